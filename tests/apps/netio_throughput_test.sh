#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# netio-throughput against netio-recv: each mode over tcp and shm gives figures, and wrong options are refused.
set -uo pipefail
# shellcheck source=tests/apps/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/checks.sh"

apps=$1

# serve PROVIDER: a netio-recv; sets `address`.
serve()
{
	start recv timeout -k 5 100 "$apps/netio-recv" --huge none --provider "$1" -- --listen 127.0.0.1:0
	server=$pid
	listening "$temp/recv" && return
	cat "$temp/recv.err"
	exit 1
}

# measure PROVIDER OPTION...: output in $temp/out; returns the status.
measure()
{
	timeout 60 "$apps/netio-throughput" --huge none --provider "$1" -- "${@:2}" >"$temp/out" 2>"$temp/err" </dev/null
}

for provider in tcp shm; do
	serve "$provider"
	for mode in buffered unbuffered reference ping; do
		measure "$provider" --connect "$address" --mode "$mode" --sizes 1,64,70000,1M --duration 200ms \
			--json "$temp/rows.json"
		check "$provider $mode: status 0" "(($? == 0))"
		cat "$temp/err"
		check "$provider $mode: four rows" "(($(grep -c ' B  ' "$temp/out") == 4))"
		check "$provider $mode: each has figures" \
			"jq -e 'length == 4 and all(.[]; (.messages // .round_trips) > 0)' '$temp/rows.json' >'$temp/jq'"
	done
	check "$provider: every connection ended in order" \
		"sleep 0.3; (($(grep -c 'gone: closed; ' "$temp/recv") == 4))"
	stops_well netio-recv "$server"
done

serve tcp
measure tcp --connect "$address" --mode buffered --page 1K --pages 4 --sizes 64K --duration 100ms
check 'a message that no pages hold ends with 1' "(($? == 1)) && grep -q 'do not hold it' '$temp/err'"
measure tcp --connect "$address" --mode ping --page 1K
check '--page without buffered ends with 2' "(($? == 2)) && grep -q 'for --mode buffered' '$temp/err'"
measure tcp --connect "$address" --duration 100ms --json "$temp/none/rows.json"
check 'a file that cannot be made ends with 1 at once' \
	"(($? == 1)) && grep -q 'No such file' '$temp/err' && [[ ! -s '$temp/out' ]]"
measure tcp --connect "$address" --sizes 64,,0
check 'a size of 0 ends with 2' "(($? == 2)) && grep -q -- --sizes '$temp/err'"
stops_well netio-recv "$server"
measure tcp --connect "$address" --duration 100ms
check 'nobody there ends with 1' "(($? == 1)) && grep -q 'refused' '$temp/err'"

# A stopped run closes its connections in order.
serve tcp
"$apps/netio-cat" send --huge none --provider tcp -- --connect "$address" \
	< <(echo hello; sleep 30) >"$temp/cat" 2>"$temp/cat.err" &
cat=$!
wait_until "grep -q ' connected ' '$temp/recv'"
stops_well netio-recv "$server"
wait "$cat"
check 'a connection that is open when it is stopped is closed' "grep -q 'gone: closed; ' '$temp/recv'"
exit $failed
