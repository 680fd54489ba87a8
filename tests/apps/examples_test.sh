#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Every example runs, with its peer if any, and prints the right text. Each has at most 100 lines, is in the index, and
# is used by a page of the guide.
set -uo pipefail
# shellcheck source=tests/apps/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/checks.sh"

sources=$PLX_SOURCE_ROOT/apps/examples
examples=$PLX_BUILD_ROOT/apps/examples
PATH=$examples:$PATH

# The host may be busy: peers are patient.
eal=(--huge none --heartbeat 1s:20s)
export NETIO_OPTIONS="${eal[*]}"

# run NAME PROGRAM ARG...: to its end; returns its status.
run()
{
	start "$@"
	ends "$pid"
}

# printed NAME TEXT: whether it has printed exactly that.
# shellcheck disable=SC2317 # see check
printed()
{
	[[ $(<"$temp/$1") == "$2" ]]
}

# Their sources.
for file in "$sources"/*.c; do
	name=$(basename "$file" .c)
	check "$name has at most 100 lines, says how to run it, and is in the index and on a page of the guide" \
		"(($(wc -l <"$file") <= 100)) && grep -q '^ \* Run it:  .*$name' '$file' &&
			grep -qF '[$name.c]($name.c)' '$sources/README.md' &&
			grep -qF '(../../apps/examples/$name.c)' '$PLX_SOURCE_ROOT'/doc/guide/*.md"
	grep -q 'usage: ' "$file" || continue
	gives "$name without arguments" 2 "*usage: $name *" "$name"
done

# Over links.
start_server server link_server "${eal[@]}" --listen 127.0.0.1:0
run client link_client "${eal[@]}" --connect "$address" --send hello --send 'hello again'
check 'link_client prints the answers' "(($? == 0)) && printed client \$'hello\nhello again'"
seq 20000 >"$temp/input"
"$examples/embed" "${eal[@]}" --connect "$address" <"$temp/input" >"$temp/embed" 2>"$temp/embed.err"
check 'embed prints what it has read' "(($? == 0)) && cmp '$temp/input' '$temp/embed'"
stops_well link_server "$server"
check 'it has counted' "grep -qE '^[0-9]+ messages answered\$' '$temp/server'"

# A session whose server comes later, at the second address.
start session session_client "${eal[@]}" --connect "127.0.0.1:1,$address" --send hello --send 'hello again'
session=$pid
wait_until "grep -q refused '$temp/session.err'"
start server link_server "${eal[@]}" --listen "$address"
server=$pid
ends_well session_client "$session"
check 'session_client waits for its server' "printed session \$'hello\nhello again'"
stops_well link_server "$server"

start_server server direct_server "${eal[@]}" --listen 127.0.0.1:0
run client direct_client "${eal[@]}" --connect "$address" --put 'hello from far away'
ends_well direct_server "$server"
check 'and has what was put' "grep -qx 'hello from far away' '$temp/server'"

# Services.
start_server service service "${eal[@]}" --listen 127.0.0.1:0
run client service_client "${eal[@]}" --connect "$address" --limit 42
check 'service_client sets a limit, and prints the temperature' \
	"(($? == 0)) && printed client '21.5 degrees' && grep -qx 'limit 42.0 degrees' '$temp/service'"
run client service_client "${eal[@]}" --connect "$address" --limit 101
check 'a limit out of range ends with 1, and the reason' \
	"(($? == 1)) && grep -q 'error: give 0 to 100' '$temp/client.err'"
run threads service_threads "${eal[@]}" --connect "$address" --calls 2000
check 'service_threads has all replies' "(($? == 0)) && printed threads '8000 replies'"
start threads service_threads "${eal[@]}" --connect "$address" --calls 4000000000
wait_until "((\$(ls /proc/$pid/task | wc -l) > 4))"
stops_well service_threads "$pid"
check 'and leaves no message' "! grep 'never received' '$temp/threads.err'"
stops_well service "$server"

if [[ -x $PLX_BUILD_ROOT/apps/plx-params ]]; then
	start_server params "$PLX_BUILD_ROOT/apps/plx-params" "${eal[@]}" --serve "$temp/params.db" --listen 127.0.0.1:0
	ask=("$PLX_BUILD_ROOT/apps/plx-params" "${eal[@]}" --connect "$address")
	run define "${ask[@]}" --define hv/voltage --type real --value 1500 --unit V --max 2000
	start follow params_client "${eal[@]}" --connect "$address" --name hv/voltage
	follow=$pid
	wait_until "grep -qx 'hv/voltage = 1500' '$temp/follow'"
	run set "${ask[@]}" --set hv/voltage --value 1600.5
	run remove "${ask[@]}" --remove hv/voltage
	wait_until "grep -q removed '$temp/follow'"
	check 'params_client prints the parameter and its changes' \
		"printed follow \$'hv/voltage = 1500\nhv/voltage = 1600.5\nhv/voltage is removed'"
	stops_well params_client "$follow"
	stops_well plx-params "$server"
fi

# Lcores and timers.
run lcores lcores "${eal[@]}" -l 0@0,1@0 --ranges 20
check 'lcores counts on two lcores' \
	"(($? == 0)) && grep -qx '2262 primes' '$temp/lcores' && ((\$(grep -c '^lcore [01] counted' '$temp/lcores') == 2))"

start timers timers "${eal[@]}" --for 1h
wait_until "grep -qx 'tick 1' '$temp/timers'"
kill -USR1 "$pid"
wait_until "grep -q '^report: [0-9]* ticks' '$temp/timers'"
check 'timers reports on SIGUSR1' "(($? == 0))"
stops_well timers "$pid"

# Latencies of a function.
run histogram histogram 2000 10000 "$temp/sort"
check 'histogram prints both times, and bars' "(($? == 0)) && grep -qE '% \|#+\$' '$temp/histogram' &&
	awk '/^  from (intended|start) +[0-9]/ && \$6 != \"n/a\" && \$7 == \"n/a\" {rows++} END {exit rows != 2}' '$temp/histogram'"
check 'it writes all to two files' "grep -qE '^#\[Max .* Total count += +2000\]\$' '$temp/sort.hgrm' &&
	((\$(awk -F, 'NR > 1 {sum += \$3} END {print sum}' '$temp/sort.csv') == 2000))"

# The guide's command compares the files of two runs.
if command -v gnuplot >/dev/null; then
	cp "$temp/sort.hgrm" "$temp/before.hgrm"
	run histogram histogram 2000 20000 "$temp/after"
	compare=$(sed -n '/^    gnuplot -e/,/^$/p' "$PLX_SOURCE_ROOT/doc/guide/histograms.md")
	run compare env -C "$temp" bash -c "$compare"
	check "the guide's gnuplot command draws both files" "(($? == 0)) && [[ ! -s '$temp/compare.err' ]] &&
		grep -q before '$temp/compare.svg' && grep -q after '$temp/compare.svg'"
fi

# An open loop: a stall of the server delays all requests of that time, and few of those that are sent.
if [[ -x $PLX_BUILD_ROOT/apps/plx-echo ]]; then
	start_server echo "$PLX_BUILD_ROOT/apps/plx-echo" "${eal[@]}" --listen 127.0.0.1:0
	start loop open_loop "${eal[@]}" --connect "$address" --rate 1000 --count 1500
	loop=$pid
	wait_until "grep -q 'open_loop.* connected' '$temp/echo'"
	sleep 0.2
	kill -STOP "$server"
	sleep 0.4
	kill -CONT "$server"
	ends_well open_loop "$loop"
	check 'open_loop counts the stall from the intended time' "awk '/^  from intended/ {intended = \$6}
		/^  from send/ {sent = \$6} END {exit !(intended > 100000 && intended > sent)}' '$temp/loop'"
	stops_well plx-echo "$server"
fi

# Over NetIO.
gives 'netio_hello' 0 'the loop runs on lcore 0, *CPU*' netio_hello
run signal netio_signal
check 'netio_signal' "(($? == 0)) && printed signal \$'piece 0: 0\npiece 1: 1\npiece 2: 4\npiece 3: 9\npiece 4: 16'"
run timer netio_timer
check 'netio_timer' "(($? == 0)) && printed timer '$(printf 'reading %d\n' {1..10})'"

# Three sources and one receiver; one of them comes by TCP.
start_server recv netio_recv 0 3
senders=()
for source in 1 2; do
	start send$source netio_send 127.0.0.1 "$port" $source $((source * 10000))
	senders+=("$pid")
done
NETIO_OPTIONS+=' --provider tcp' start send3 netio_send 127.0.0.1 "$port" 3 30000
senders+=("$pid")
for sender in "${senders[@]}"; do
	ends_well netio_send "$sender"
done
ends_well netio_recv "$server"
grep '^source' "$temp/recv" | sort >"$temp/sources"
check 'and misses nothing' "printed sources 'source 1: 10000 fragments, 0 missing, 1200000 bytes; closed
source 2: 20000 fragments, 0 missing, 2400000 bytes; closed
source 3: 30000 fragments, 0 missing, 3600000 bytes; closed'"

# Two workers, one of them faster.
workers=() ports=()
for us in 50 1000; do
	start_server pull$us netio_pull 0 $us
	workers+=("$pid")
	ports+=("$port")
done
run push netio_push 5000 "${ports[@]}"
check 'netio_push ends with 0' "(($? == 0)) && printed push '5000 of 5000 jobs done, 0 of them twice'"
for worker in "${workers[@]}"; do
	stops_well netio_pull "$worker"
done
check 'each job is done once, most by the faster worker' \
	"cat '$temp/pull50' '$temp/pull1000' | sort -n | cmp - <(seq 0 4999) && ((\$(wc -l <'$temp/pull50') > 2500))"

# subscribed COUNT FIRST LAST PORT...: until that many publishers have disconnected; its status is checked.
subscribed()
{
	local count=$1 subscriber

	start subscribe netio_subscribe "$2" "$3" 127.0.0.1 "${@:4}"
	subscriber=$pid
	wait_until "((\$(grep -c '^lost .*: closed' '$temp/subscribe') == $count))"
	check 'netio_subscribe sees the publishers end' "(($? == 0))"
	stops_well netio_subscribe "$subscriber"
}

start_server publish netio_publish 0 30
subscribed 1 1 2 "$port"
ends_well netio_publish "$server"
for ((i = 0; i < 30; i++)); do
	((i % 3 == 0)) || echo "tag $((i % 3)), $((i < 10 ? 9 : 10)) bytes: reading $i"
done >"$temp/expected"
check 'netio_subscribe has what it asked for, and counts it' \
	"grep '^tag' '$temp/subscribe' | cmp - '$temp/expected' && grep -qx '20 messages' '$temp/subscribe'"

start_server publish netio_publish_ref 0 50
subscribed 1 0 0 "$port"
ends_well netio_publish_ref "$server"
check 'its blocks come in order' "grep '^tag' '$temp/subscribe' | cmp - <(seq -f 'tag 0, 1048576 bytes: block %g' 0 49)"

NETIO_OPTIONS+=' -l 0@0,1@0' start publish netio_publish_lcores 2000
publisher=$pid
wait_until "((\$(grep -c '^lcore [01] listens on ' '$temp/publish') == 2))"
mapfile -t ports < <(sed -n 's/^lcore . listens on .*://p' "$temp/publish")
subscribed 2 0 1 "${ports[@]}"
ends_well netio_publish_lcores "$publisher"
for tag in 0 1; do
	check "the readings of lcore $tag come in order" \
		"sed -n 's/^tag $tag, .*: reading //p' '$temp/subscribe' | cmp - <(seq 0 1999)"
done
exit $failed
