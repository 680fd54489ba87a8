#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A limit on file sizes (ulimit -f) ends no process: allocations that need larger files fall back, with one notice. And a
# program that lacks a resource names the cause, and the variable or limit to change.
#
#     limits_test.sh APP-DIR SANITIZER
set -uo pipefail
# shellcheck source=tests/apps/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/checks.sh"

apps=$1

# shellcheck disable=SC2317 # called by start
# limited OPTION LIMIT COMMAND...: becomes the command, with that limit of ulimit.
limited()
{
	ulimit "$1" "$2"
	exec "${@:3}"
}

# serve LIMIT OPTION...: plx-echo; sets `server` and `port`.
serve()
{
	start server limited -f "$1" "$apps/plx-echo" "${@:2}" --listen 127.0.0.1:0
	server=$pid
	listening "$temp/server"
}

# ping LIMIT OPTION...
ping()
{
	start ping limited -f "$1" timeout 60 "$apps/plx-ping" "${@:2}" --connect "127.0.0.1:$port" --count 50
	ends "$pid"
}

few_bytes='this process may create files of at most 102400; raise the limit with ulimit -f'

serve 100
ping unlimited --huge none
check 'a server with the limit is reached over TCP' "(($? == 0))"
check 'it measured' "grep -q '50 full round trips' '$temp/ping'"
check 'the server names the limit' "grep -q 'shm is not offered: .*$few_bytes' '$temp/server.err'"
ping 100
check 'both have the limit' "(($? == 0)) && grep -q '50 full round trips' '$temp/ping'"
stops_well 'the server with the limit' "$server"

serve unlimited --huge none
ping 100 --huge none
check 'a client with the limit uses TCP' "(($? == 0)) && grep -q '50 full round trips' '$temp/ping'"
check 'it names the limit once' "(($(grep -c "shm is not used for links: .*$few_bytes" "$temp/ping.err") == 1))"
ping 100 --huge none --provider shm
check 'shm alone fails, without a signal' "(($? == 1))"
check 'it names the limit' "grep -q '$few_bytes' '$temp/ping.err'"
stops_well 'the server without the limit' "$server"

HWLOC_SYNTHETIC='core:2 pu:1' timeout 20 "$apps/plx-echo" --listen 127.0.0.1:0 >"$temp/out" 2>"$temp/err" </dev/null
check 'a variable that shows another host is named' \
	"(($? == 1)) && grep -q 'HWLOC_SYNTHETIC is set in the environment; unset it' '$temp/err'"

[[ $2 == none ]] || exit $failed # a sanitizer needs further descriptors
# Descriptors: each step that lacks one, until there are enough.
for ((n = 6; n < 64; n++)); do
	start few limited -n "$n" "$apps/plx-echo" --huge none --log-level error --provider tcp --listen 127.0.0.1:0
	listening "$temp/few"
	listens=$?
	kill_off "$pid"
	((listens != 0)) || break
	check "$n descriptors: $(<"$temp/few.err")" "grep -q 'descriptors.*ulimit -n' '$temp/few.err'"
done
check "$n descriptors are enough" '((n > 6 && n < 64))'
exit $failed
