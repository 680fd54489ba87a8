#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# plx-ping --self: needs no other process, and leaves none, however it ends; --explain.
#
#     ping_self_test.sh PLX-PING
set -uo pipefail
# shellcheck source=tests/apps/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/checks.sh"

ping=$1

# run OPTION...: to its end.
run()
{
	timeout 60 "$ping" --huge none "$@" >"$temp/out" 2>"$temp/run.err" </dev/null
}

for provider in shm tcp; do
	for _ in 1 2 3; do
		run --provider $provider --self --count 100 --explain
		status=$?
		((status == 3)) || break # a stall of the host makes a short run invalid
	done
	check "$provider: a run ends with 0" "((status == 0))"
	check "$provider: it measured" "grep -q '100 full round trips of 64 B' '$temp/out'"
	check "$provider: it explains" "grep -q 'half of them took at most' '$temp/out'"
done
run --self --one-way --duration 200ms
check 'one way: a run ends with 0' "(($? == 0))"
run --self --one-way --explain
check 'one way: nothing to explain' "(($? == 2)) && grep -q -- '--explain is for round trips' '$temp/run.err'"
run --self --connect 127.0.0.1:1
check '--self and --connect exclude each other' "(($? == 2)) && grep -q 'give one of' '$temp/run.err'"

run --heartbeat 1s:60s --self --size 16M --count 2
check 'few long messages: no long warm-up' "((\$? == 0 || \$? == 3)) && grep -q '2 full round trips' '$temp/out'"

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

for signal in INT KILL; do
	server=''
	# By default, background jobs of a shell ignore SIGINT.
	start $signal env --default-signal=INT "$ping" --huge none --self --duration 60
	client=$pid
	wait_until started
	check "SIG$signal: there is a server" "(($? == 0))"
	sleep 0.2
	kill -$signal "$client"
	wait "$client" 2>/dev/null
	wait_until "! kill -0 $server 2>/dev/null"
	check "SIG$signal: the server ends with its client" "(($? == 0))"
done

# stops_server NAME [SIGNAL]: stop the server of a run, send the signal to the run, and wait until it ends.
stops_server()
{
	local began took_ms

	server=''
	start "$1" "$ping" --huge none --log-level info -- --self --duration 60
	client=$pid
	wait_until "started && grep -q 'is open' '$temp/$1.err'"
	began=$(date +%s%N)
	kill -STOP "$server"
	[[ -z ${2-} ]] || kill "-$2" "$client"
	wait_until "! kill -0 $client 2>/dev/null"
	took_ms=$((($(date +%s%N) - began) / 1000000))
	check "$1: it ends, after $took_ms ms" '((took_ms < 3000))' # 1 s on an idle host
	check "$1: so does the server" "! kill -0 $server 2>/dev/null"
	kill_off "$client" "$server"
}

stops_server 'stopped server'
stops_server 'stopped server and SIGTERM' TERM
server=''
exit $failed
