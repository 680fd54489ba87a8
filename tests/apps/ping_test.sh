#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# plx-ping: both sides count the same messages; files of an earlier run; the lcores that serve; and --self, which needs no
# other process and leaves none, however it ends. link_test.sh has servers that end, cli_test.sh the options.
#
#     ping_test.sh PLX-PING
# shellcheck disable=SC2034 # check expands the conditions
set -uo pipefail
# shellcheck source=tests/apps/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/checks.sh"

ping=$1
eal=(--huge none --heartbeat 1s:20s)

# serve OPTION...: sets `server` and `address`.
serve()
{
	start_server server "$ping" "${eal[@]}" --idle event "$@" --listen 127.0.0.1:0
}

# asks STATUS PATTERN OPTION...: of a client; its result is temp/plx-ping.json.
asks()
{
	gives "${*:3}" "$1" "$2" "$ping" "${eal[@]}" --connect "$address" --warmup 10 --out "$temp" "${@:3}"
}

for provider in tcp shm; do
	serve --provider $provider --sink
	for size in 0 1M; do
		asks 0 '*100 messages of * B one way in *' --one-way --size $size --count 100
		check "$provider: each message of $size is counted once, on both sides" \
			"wait_until 'tail -n 1 $temp/server | grep -q \" gone: closed; 110 messages, $((110 * ${size/M/ * 1024 * 1024})) bytes\"'"
	done
	stops_well "$provider: the server" "$server"
	check "$provider: it counts the messages of each lcore" "grep -q '^lcore 0: 2 links, 220 messages, ' '$temp/server'"
done

# Credit is read between bursts, so a window of 2 stops each burst.
serve --sink --rx-bufs 2
asks 0 '*' --one-way --count 1000
check 'the sink has the window that was requested' "jq -e '.again >= 1000 / 64' '$temp/plx-ping.json' >'$temp/jq'"
stops_well 'the sink' "$server"

serve -l 0@0,1@0 --spread none
asks 1 '*--one-way: the server sends messages back; *' --one-way --duration 60s
for size in 64K 1M; do
	asks '[03]' '*10 full round trips of *' --size $size --count 10 --verify --rx-buf 4K
done
start early env --default-signal=INT "$ping" "${eal[@]}" --connect "$address" --warmup 1000000000 --out "$temp"
wait_until "grep -q 'pid $pid) connected' '$temp/server'"
kill -INT "$pid"
ends "$pid"
check 'a signal in the warm-up leaves no figures' \
	"(($? == 3)) && [[ ! -s '$temp/early' && ! -e '$temp/plx-ping.json' ]] && grep -q 'SIGINT came before anything was measured' '$temp/early.err'"
stops_well 'a server with two lcores' "$server"
check 'one lcore serves all if nothing is spread' "grep -q '^lcore 0: 4 links, ' '$temp/server' && grep -q '^lcore 1: 0 links, ' '$temp/server'"

# Nothing listens there now.
touch "$temp/plx-ping.json"
asks 2 '*give --rate R too*' --arrival poisson
check 'a wrong command line leaves the files of an earlier run' "[[ -e '$temp/plx-ping.json' ]]"
asks 1 '*refused*'
check 'a run that fails removes them' "[[ ! -e '$temp/plx-ping.json' ]]"

# Its own server ---------------------------------------------------------------------------------

# measures TEXT OPTION...: it ends well, or with 3 after a stall of the host, with two round trips.
measures()
{
	gives "$1" '[03]' '* 2 full round trips*' "$ping" "${eal[@]}" --self --count 2 "${@:2}"
}

measures 'a run over shm, with an explanation' --provider shm --explain
measures 'a run over tcp, of long messages' --provider tcp --size 16M
gives 'on a terminal, figures so far' '[03]' '* round trips, p50 *' script -qec "'$ping' --self --duration 1200ms" /dev/null
gives 'on a terminal, how many were sent' '[03]' '* messages sent *' script -qec "'$ping' --self --one-way --duration 1200ms" /dev/null
gives 'one way' 0 '*one way in*' "$ping" "${eal[@]}" --self --one-way --duration 100ms

# Its file is removed before it starts the server.
cp "$ping" "$temp/replaced"
# shellcheck disable=SC2016 # the inner shell's
gives 'a replaced program starts its server' '[03]' '* 2 full round trips*' env LD_LIBRARY_PATH="${ping%/*}/.." \
	"$BASH" -c 'exec 9<"$1" && rm "$1" && exec "/proc/$$/fd/9" --huge none --self --count 2' sh "$temp/replaced"

# started: whether the client has a child that runs the same program; sets `server`.
# shellcheck disable=SC2317 # called by wait_until
started()
{
	server=$(cat /proc/[0-9]*/stat 2>/dev/null | sed -nE "s/^([0-9]+) \(plx-ping\) . $client .*/\1/p")
	[[ -n $server && $(readlink "/proc/$server/exe") == "$ping" ]]
}

# ends_both NAME SIGNAL [stopped]: the signal ends the client, also if its server is stopped, and the client its server,
# within a second on an idle host.
ends_both()
{
	local began

	server=''
	start "$1" env --default-signal=INT "$ping" --huge none --idle event --log-level info -- --self --rate 100 --duration 60
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
