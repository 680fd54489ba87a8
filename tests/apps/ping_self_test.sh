#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# plx-ping --self: needs no other process, and leaves none, however it ends; --explain.
#
#     ping_self_test.sh PLX-PING
set -uo pipefail
# shellcheck source=tests/apps/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/checks.sh"

ping=$1

# measures TEXT OPTION...: it ends well, or with 3 after a stall of the host, with two round trips.
measures()
{
	timeout 60 "$ping" --huge none --self --count 2 "${@:2}" >"$temp/out" 2>"$temp/run.err" </dev/null
	check "$1" "((\$? == 0 || \$? == 3)) && grep -q ' 2 full round trips' '$temp/out'"
}

for provider in shm tcp; do
	measures "$provider: a run" --provider $provider --explain
	check "$provider: it explains" "grep -q '^- A round trip is 64 bytes' '$temp/out'"
done
measures 'few long messages' --heartbeat 1s:60s --size 16M
"$ping" --huge none --self --one-way --duration 200ms >"$temp/out" 2>"$temp/run.err"
check 'one way' "(($? == 0))"

# Its file is gone by the time it starts the server.
cp "$ping" "$temp/replaced"
# shellcheck disable=SC2016 # the inner shell's
LD_LIBRARY_PATH=${ping%/*}/.. timeout 60 "$BASH" -c 'exec 9<"$1" && rm "$1" && exec "/proc/$$/fd/9" --huge none --self --count 2' sh "$temp/replaced" \
	>"$temp/out" 2>"$temp/run.err" </dev/null
check 'a replaced program starts its server' "((\$? == 0 || \$? == 3)) && grep -q '2 full round trips' '$temp/out'"

# started: whether the client has a child that runs the same program; sets `server`.
# shellcheck disable=SC2317 # called by wait_until
started()
{
	server=$(cat /proc/[0-9]*/stat 2>/dev/null | sed -nE "s/^([0-9]+) \(plx-ping\) . $client .*/\1/p")
	[[ -n $server && $(readlink "/proc/$server/exe") == "$ping" ]]
}

# shellcheck disable=SC2034 # check expands the conditions
# ends_both NAME SIGNAL [stopped]: the signal ends the client, also if its server is stopped, and the client its
# server, within a second on an idle host.
ends_both()
{
	local began

	server=''
	# By default, background jobs of a shell ignore SIGINT.
	start "$1" env --default-signal=INT "$ping" --huge none --log-level info -- --self --duration 60
	client=$pid
	wait_until "started && grep -q 'is open' '$temp/$1.err'"
	began=$SECONDS
	[[ -z ${3-} ]] || kill -STOP "$server"
	kill "-$2" "$client"
	wait_until "! kill -0 $client 2>/dev/null && ! kill -0 $server 2>/dev/null"
	check "$1: server and client end" "(($? == 0 && SECONDS - began < 4))"
	kill_off "$client" "$server"
}

ends_both interrupted INT
ends_both killed KILL
ends_both 'stopped server' TERM stopped
server=''
exit $failed
