#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# What many or hostile connections do to a listener. A test runs in a separate network namespace, so that each port and
# address is free and nothing else connects. The namespace ends with its processes.
#
#     admission_test.sh CROWD APPS TEST [ARGUMENT...]     TEST: a function below
# shellcheck disable=SC2034,SC2317 # called by their names; check expands conditions
set -uo pipefail

if [[ ${PLX_TEST_NAMESPACE-} != "$$" ]]; then
	unshare -rn ip link set lo up 2>/dev/null || exit 77
	PLX_TEST_NAMESPACE=$$ exec unshare -rn "$BASH" "$0" "$@"
fi
ip link set lo up
ulimit -Sn hard

# shellcheck source=tests/apps/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/../checks.sh"

crowd=$1 apps=$2
address=127.0.0.1:7000
provider=tcp
descriptors=$(ulimit -Hn)
# Limits on a quiet host, and on a busy one. One that gets no CPU for a moment is not taken for dead there.
if [[ -n ${PLX_TEST_SOAK-} ]]; then
	later_ms=500 eal=(--huge none)
else
	later_ms=5000 eal=(--huge none --heartbeat 1s:20s)
fi

# Processes ------------------------------------------------------------------------------------

# with_descriptors COUNT COMMAND...: becomes the command.
with_descriptors()
{
	ulimit -n "$1"
	exec "${@:2}"
}

# serve_links: plx-echo, with at most `descriptors`; sets `usual`, the time that a link takes while nothing else connects.
serve_links()
{
	start_server server with_descriptors "$descriptors" "$apps/plx-echo" "${eal[@]}" --provider tcp -- --listen "$address"
	try_links usual 3
	check 'links open while nothing else connects' "((lost == 0))"
	usual=$longest
}

# server_descriptors: how many the server has open.
server_descriptors()
{
	find "/proc/$server/fd" -mindepth 1 2>/dev/null | wc -l
}

# start_crowd N: 250 subscribe sockets that wait for a publisher; output in temp/crowdN.
start_crowd()
{
	start "crowd$1" "$crowd" "${eal[@]}" --provider "$provider" -- --connect "$address"
	wait_until "grep -q waiting '$temp/crowd$1'" || check "the clients of process $1 start" false
}

# all_return COUNT MS: a publisher starts, and COUNT subscribers are connected to it at once within that time.
all_return()
{
	local began=${EPOCHREALTIME/./} took_ms

	start server "$apps/netio-cat" publish "${eal[@]}" --provider "$provider" -- --listen "$address" -t 7 --subscribers "$1"
	ends_well 'a publisher that waits for them' "$pid"
	took_ms=$(((${EPOCHREALTIME/./} - began) / 1000))
	check "$1 sockets are connected after $took_ms ms, $2 at most" "((took_ms <= $2))"
}

# start_strangers WORDS...: to the server; output in temp/strangers; sets `strangers`.
start_strangers()
{
	start strangers python3 -B "${BASH_SOURCE[0]%/*}/strangers.py" "$address" 127.0.0.2 "$@"
	strangers=$pid
}

# made COUNT: wait until the strangers have made that many connections, a multiple of 100.
made()
{
	wait_until "grep -q '^$1 made' '$temp/strangers' || ! kill -0 $strangers 2>/dev/null"
	grep -q "^$1 made" "$temp/strangers" || check "$1 strangers connect" false
}

# try_links NAME COUNT: plx-ping sends one message, that often; output in temp/NAME. Sets `lost` and `longest`, in ms.
try_links()
{
	local began took_ms i

	lost=0 longest=0
	for ((i = 0; i < $2; i++)); do
		sleep 0.3
		began=${EPOCHREALTIME/./}
		timeout 60 "$apps/plx-ping" "${eal[@]}" --provider tcp -- --connect "$address" --count 1 --warmup 0 >>"$temp/$1" 2>&1 </dev/null
		(($? % 3 == 0)) || ((++lost))
		took_ms=$(((${EPOCHREALTIME/./} - began) / 1000))
		((took_ms < longest)) || longest=$took_ms
	done
}

# served TEXT COUNT: links open at the first try, at most 0.5 s later than usual on a quiet host.
served()
{
	try_links served "$2"
	echo "$1: $lost of $2 refused, the longest takes $longest ms (usually $usual ms)"
	((lost == 0)) || grep '^plx-ping: ' "$temp/served"
	check "$1: links open at the first try" "((lost == 0 && longest < usual + later_ms))"
}

# Tests ----------------------------------------------------------------------------------------

# A peer that a full listener refuses learns when to come again, by whatever it connects; also on the listener's CPU,
# where the listener refuses before the peer has sent its request.
busy()
{
	local on_one_cpu=("${eal[@]}" -l 0@0 --idle event)

	start server "$apps/plx-echo" "${on_one_cpu[@]}" --links-max 1 --listen "$address"
	wait_until "grep -q listening '$temp/server' '$temp/server.err'"
	start holder "$apps/plx-ping" "${on_one_cpu[@]}" -- --connect "$address" --rate 10 --warmup 0 --duration 60s
	wait_until "grep -q connected '$temp/server'"
	sleep 0.5
	for provider in shm tcp auto; do
		gives "$provider: it is busy" 1 '*is busy: come again in 1000 ms*' "$apps/plx-ping" "${on_one_cpu[@]}" --provider "$provider" \
			-- --connect "$address" --count 1
	done
}

# Links open at the first try while another address makes 2 000 connections a second that stop after plx_tcp's HELLO, and
# after it. Then the server keeps nothing of them.
flood()
{
	local before during

	serve_links
	before=$(server_descriptors)
	start_strangers 20000 2000 30 hello
	made 1000
	served 'during the flood' 4
	during=$(server_descriptors)
	kill_off "$strangers"
	echo "$(tail -n 1 "$temp/strangers"); the server's descriptors: $before, then $during"
	served 'after the flood' 2
	wait_until "((\$(server_descriptors) < before + 10))"
	check 'the server keeps none' "((\$(server_descriptors) < before + 10))"
}

# A monitor that connects and closes without a byte, ten times a second, causes no warning.
health()
{
	serve_links
	start_strangers 30 10 3 leave
	ends "$strangers"
	check 'it connects' "grep -q '^30 made' '$temp/strangers'"
	check 'the server warns of nothing' "! grep -E ' (warning|error): ' '$temp/server.err' | grep -v ' \(eal\|idle\): '"
}

# PROVIDER. A thousand subscribe sockets that wait for a publisher all get in at the default rate, 1 000 a second, when it
# starts.
herd()
{
	provider=$1
	for n in 1 2 3 4; do
		start_crowd "$n"
	done
	sleep 1
	all_return 1000 $((6 * later_ms))
}

# Links open at the first try although more connections than the server has descriptors say nothing, or only plx_tcp's
# HELLO. The server may close such connections, and others may replace them.
silent()
{
	local how

	descriptors=256 # also the hard limit
	serve_links
	for how in '' 'hello again'; do
		# shellcheck disable=SC2086 # words
		start_strangers 400 100000 30 $how
		made 400
		served "silent${how:+ with $how}" 3
		kill_off "$strangers"
	done
}

# cpu_ticks: the CPU time that the crowd has used, in 1/100 s.
cpu_ticks()
{
	awk '{ print $14 + $15 }' "/proc/$pid/stat"
}

# 250 subscribe sockets that wait for a publisher on the same host take at most 5 % of a CPU, and find it soon after it
# starts.
waiting()
{
	local used

	start_crowd 1
	sleep 1 # until each waits as long as it ever will
	used=$(cpu_ticks)
	sleep 3
	used=$(($(cpu_ticks) - used))
	check "they take $used of 300 ticks of a CPU, 15 at most" "((used <= 15))"
	all_return 250 $((4 * later_ms))
}

"${@:3}"
server=''
kill_off "${pids[@]}" 2>/dev/null
exit $failed
