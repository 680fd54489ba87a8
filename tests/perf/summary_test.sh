#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The bench's judgement: medians, ratios within one state of the CPUs, thresholds and its final text, on fake runs; and what
# its command line refuses.
# shellcheck disable=SC2016 # jq's $
set -uo pipefail

# shellcheck source=tests/perf/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/checks.sh"
# A locale with decimal commas, which no figure has.
export LOCPATH=$work
localedef -i de_DE -f UTF-8 "$work/de_DE.UTF-8" 2>/dev/null && export LC_ALL=de_DE.UTF-8

# Round trips -----------------------------------------------------------------------------------

# run ROW SIZE ROUND P50_NS [LINE_NS [LINE_NS]]: a single run as bench.sh writes it down, with the round trip of a cache line
# before and after it.
run()
{
	jq -nc --arg row "$1" --argjson size "$2" --argjson round "$3" --argjson p50 "$4" \
		--argjson before "${5-null}" --argjson after "${6-${5-null}}" '{
		key: $row, row: $row, round: $round, run: "runs/\($row)-\($size)-\($round)", provider: "plx_tcp", idle: "poll",
		size_bytes: $size, count: 100000, min_ns: ($p50 - 1000), p50_ns: $p50, max_ns: (90000 + $round), mean_ns: ($p50 + 50),
		line_ns: [$before, $after | values]}'
}

# rtt [BETWEEN [POOLED]]: of the runs on standard input.
rtt()
{
	jq -s -L "$here" --argjson between "${1-null}" --slurpfile pooled <(echo "${2-}") -f "$here/rtt.jq"
}

good=$(
	for round in 1 2 3; do
		run tcp-poll 64 $round $((7500 + round * 100))
		run raw-tcp 64 $round 7000
		run raw-fi-tcp 64 $round 8400
		run raw-fi-tcp 65536 $round 30000
		run tcp-poll 65536 $round 30016
	done
)
sum=$(rtt <<<"$good")
check 'the figure of a row is the median of the rounds, with the least and the greatest' "$sum" \
	'.rows[] | select(.key == "tcp-poll" and .size_bytes == 64) |
		.p50_ns == 7700 and .p50_ns_least == 7600 and .p50_ns_greatest == 7800 and .rounds == 3 and .state == "one"'
check 'counts add up' "$sum" '.rows[0].count == 300000'
check 'rows have their order' "$sum" \
	'.rows | map(.key) == ["raw-fi-tcp", "raw-tcp", "tcp-poll", "raw-fi-tcp", "tcp-poll"]'
check 'ratios are over what a row is held against' "$sum" \
	'[.rows[] | select(.size_bytes == 64) | [.base, .ratio]] == [["raw-tcp", 1.2], [null, null], ["raw-tcp", 1.1]]'
check 'a threshold that is just reached is reached' "$sum" \
	'.thresholds[] | select(.what == "tcp-poll over raw-tcp, p50, 64 B") | .ok and .limit == 1.1 and .gates'
check '... and just missed is missed' "$sum" \
	'.thresholds[] | select(.what == "tcp-poll over raw-fi-tcp, p50, 65536 B") | (.ok | not) and (.gates | not)'
check 'sizes that were not measured have no threshold' "$sum" '.thresholds | length == 2'
sum=$({ run tcp-poll 64 1 9000; run tcp-beside 64 1 12000; } |
	jq -c '. + {p99_ns: (if .key == "tcp-poll" then 20000 else 40001 end)}' | rtt)
check 'a link next to a stream is compared with one alone at p99' "$sum" \
	'.thresholds == [{what: "tcp-beside over tcp-poll, p99, 64 B", ratio: 2, limit: 2, ok: false, gates: false, state: "one"}]'
sum=$({ run raw-tcp-event 64 1 20000; run tcp-event 64 1 22001; run raw-zmq 64 1 80000; } | rtt)
check 'a link that sleeps is held against sockets that sleep, as an aim' "$sum" \
	'.thresholds[0] | .what == "tcp-event over raw-tcp-event, p50, 64 B" and (.ok | not) and .limit == 1.1 and (.gates | not)'
pooled='{"key": "tcp-poll", "size_bytes": 64, "state": "one", "histogram": "pooled/x.csv", "p50_ns": 7650, "p99_ns": 9000}'
check 'percentiles are those of all rounds in one' "$(rtt null "$pooled" <<<"$good")" \
	'.rows[] | select(.key == "tcp-poll" and .size_bytes == 64) | .p50_ns == 7650 and .p99_ns == 9000 and .p50_ns_least == 7600'
check 'a short run holds shm-poll against libfabric' "$({ run shm-poll 64 1 600; run raw-fi-shm 64 1 1200; } | rtt)" \
	'.rows[] | select(.key == "shm-poll") | .base == "raw-fi-shm" and .ratio == 0.5'
sum=$({
	run bare 64 1 300
	run raw-fi-shm 64 1 1500
	run raw-fi-plxshm 64 1 630
	run raw-eventfd 64 1 10000
	run raw-fi-plxshm-event 64 1 11001
	run shm-poll 64 1 731
} | rtt)
check 'libfabric over plx_shm is held against a bare line' "$sum" \
	'.thresholds[] | select(.what | startswith("raw-fi-plxshm over bare")) | .ok and .limit == 2.1 and .ratio == 2.1 and .gates'
check '... and asleep against an eventfd, as an aim' "$sum" \
	'.thresholds[] | select(.what | startswith("raw-fi-plxshm-event over raw-eventfd")) | (.ok | not) and (.gates | not)'
check 'a link may take 100 ns more than what it stands on' "$sum" \
	'.thresholds[] | select(.what | startswith("shm-poll over raw-fi-plxshm")) | .limit == 1.159 and .ratio == 1.16 and (.ok | not)'
check 'no run, no row' "$(rtt </dev/null)" '.rows == [] and .thresholds == [] and .states == []'

# The states of the CPUs ------------------------------------------------------------------------

states()
{
	jq -nc -L "$here" "include \"states\"; $1"
}
check 'two states are distinguished' "$(states '[140, 150, 565, null] | between')" '. > 280 and . < 283'
check '... and there is one if all are alike' "$(states '[{a: ([340, 561, 420] | between), b: ([] | between)}]')" '.[0] == {a: null, b: null}'
check 'a run that began near and ended far is of no state' \
	"$(states '[{line_ns: [140, 565]}, {line_ns: [140, 150]}, {line_ns: [500, 565]}, {line_ns: []}] | with_states(280) | map(.state)')" \
	'. == ["near", "far", "one"]'
mixed=$(
	for round in 1 2 3; do
		run raw-tcp 64 $round 10000 140
		run tcp-poll 64 $round 11000 150
	done
	run raw-tcp 64 4 20000 565
	run tcp-poll 64 4 30000 565
	run tcp-poll 64 5 90000 140 565
)
sum=$(rtt 280 <<<"$mixed")
check 'rows are compared within one state' "$sum" \
	'[.rows[] | select(.key == "tcp-poll") | [.state, .rounds, .p50_ns, .ratio]] == [["near", 3, 11000, 1.1], ["far", 1, 30000, 1.5]]'
check '... thresholds in that of most runs' "$sum" '.thresholds == [{what: "tcp-poll over raw-tcp, p50, 64 B", ratio: 1.1, limit: 1.1,
	ok: true, gates: true, state: "near"}]'
check '... with the number of runs of each, and of those left out' "$sum" \
	'.states == [{state: "near", runs: 6}, {state: "far", runs: 2}] and .changed == 1'
sum=$({ run raw-tcp 64 1 10000 140; run tcp-poll 64 1 11000 565; } | rtt 280)
check 'without a common state there is no ratio, with a note' "$sum" \
	'all(.rows[]; .ratio == null) and (.thresholds | length == 1 and (.[0] | .ok == null and .ratio == null and .note == "n/a: CPU state changed"))'
check 'it is known which row has to run again' "$({ run a 64 1 1 140; run b 64 1 1 140; run c 64 1 1 565; run c 64 2 1 140 565; run a 1024 1 1 565; } |
	jq -rs -L "$here" 'include "states"; [lacking(280)]')" '. == ["64 c"]'
sum=$({ run raw-tcp 64 1 1000; run tcp-poll 64 1 2000; run raw-tcp 64 2 3000; run tcp-poll 64 2 3000; run tcp-poll 64 3 9999; } | rtt)
check 'a ratio is the median of pairs of one round' "$sum" '.rows[] | select(.key == "tcp-poll") | .ratio == 1.5'

# Histograms of several runs --------------------------------------------------------------------

# pool COUNT...: of each bucket, 100 to 109 the first, and so on. Sets `pooled` and leaves $work/pooled.csv.
pool()
{
	pooled=$(for count; do
		echo "$((++n * 10 + 90)),$((n * 10 + 99)),$count"
	done | awk -v key=k -v size=64 -v state=near -v file=f -v out="$work/pooled.csv" -v least=101 -v greatest="$greatest" -f "$here/pool.awk")
}
n=0 greatest=128
pool 50 30 20
check 'percentiles are the greatest value of their bucket' "$pooled" '.p50_ns == 109 and .count == 100 and .min_ns == 101 and .max_ns == 128'
check '... and never more than the greatest of all' "$pooled" '.p90_ns == 128'
check '... with ten values above them, or not told' "$pooled" '.p99_ns == null and .p99_9_ns == null'
pooled=$(printf '100,109,5\nlow,high,count\nlow,high,count\n100,109,7\n110,119,1\n' |
	awk -v key=k -v size=64 -v state=one -v file=f -v out="$work/pooled.csv" -v least=1 -v greatest=200 -f "$here/pool.awk")
check 'buckets of several runs become one' "$(jq -Rs . "$work/pooled.csv")" '. == "low,high,count\n100,109,12\n110,119,1\n"'
# shellcheck source=scripts/bench/common.sh
. "$here/common.sh"
check 'the points of the percentile plot' "$(percentile_points "$work/pooled.csv" | jq -Rs .)" '. == "13 0.109\n13 0.119\n"'
check '... and of the histogram, as parts of the greatest bin' "$(histogram_points "$work/pooled.csv" | awk '$2 > 0 { print $2 }' | jq -sc .)" \
	'.[0] == 1 and length == 2'

# Messages one way ------------------------------------------------------------------------------

# flow ROW SIZE ROUND MESSAGES_A_SECOND
flow()
{
	jq -nc --arg row "$1" --argjson size "$2" --argjson round "$3" --argjson rate "$4" '{
		key: $row, row: $row, round: $round, provider: "p", size_bytes: $size, count: 1000, messages_per_s: $rate,
		bytes_per_s: ($rate * $size), line_ns: []}'
}
streams()
{
	jq -s -L "$here" --argjson between null -f "$here/stream.jq"
}
sum=$({
	for round in 1 2 3; do
		flow raw-fi-plxshm 64 $round $((15000000 + round - 2))
		flow shm-stream 64 $round 9000000
		flow raw-fi-shm 1048576 $round 1000
		flow raw-fi-plxshm 1048576 $round $((1000 * round - 1000))
		flow raw-fi-shm-nocma 1048576 $round 667
		flow raw-fi-plxshm-cma 1048576 $round 900
	done
} | streams)
check 'the median of the rounds is the rate of a stream' "$sum" \
	'.rows[] | select(.key == "raw-fi-plxshm" and .size_bytes == 1048576) | .messages_per_s == 1000 and
		.bytes_per_s == 1048576000 and .messages_per_s_least == 0 and .messages_per_s_greatest == 2000 and
		.count == 3000 and .rounds == 3 and .ratio == 1 and .base == "raw-fi-shm"'
check 'a least rate that is just reached is reached' "$sum" \
	'.thresholds[] | select(.what | startswith("one way, raw-fi-plxshm over raw-fi-shm,")) | .ok and .least and (.gates | not)'
check '... and just missed is missed' "$sum" \
	'.thresholds[] | select(.what | startswith("one way, raw-fi-plxshm over raw-fi-shm-nocma,")) |
		(.ok | not) and .gates and .limit == 1.5'
check 'absolute rates are aims' "$sum" \
	'[.thresholds[] | select(.what | contains("million")) | [.ok, .gates]] == [[true, false], [false, false]]'
check 'rows of streams have their order' "$sum" \
	'.rows | map(.key) == ["raw-fi-plxshm", "shm-stream", "raw-fi-shm", "raw-fi-shm-nocma", "raw-fi-plxshm", "raw-fi-plxshm-cma"]'
sum=$({
	for round in 1 2; do
		flow tcp-single 64 $round 99999
		flow tcp-stream 64 $round 4000000
		flow ucx-tcp-am 4096 $round 200000
		flow tcp-stream 4096 $round 400000
		flow raw-fi-tcp 65536 $round 50000
		flow iperf3 65536 $round 40000
		flow ucx-tcp 65536 $round 30000
		flow tcp-stream 65536 $round 47900
	done
} | streams)
check 'over tcp each threshold is judged, and none gates' "$sum" \
	'[.thresholds[] | [.limit, .ratio, .ok]] == [[4, 4, true], [2, 2, true], [1, 0.958, false], [1.2, 1.198, false]] and
		all(.thresholds[]; .gates == false)'
check '... at 64 KiB and more over the faster of iperf3 and UCX' "$sum" \
	'.thresholds[3].what == "one way, tcp-stream over the best of iperf3 and ucx-tcp, 64 KiB"'
check 'a link is held against libfabric alone' "$sum" \
	'all(.rows[] | select(.key == "tcp-stream"); .base == "raw-fi-tcp")'
check 'no stream measured, no row' "$(streams </dev/null)" '.rows == [] and .thresholds == []'

# Idle links ------------------------------------------------------------------------------------

# idle COUNT ROUND TURN_NS LONGEST_NS BYTES CPU_PERCENT: a run of link-idle.
idle()
{
	jq -nc --argjson count "$1" --argjson round "$2" --argjson turn "$3" --argjson longest "$4" --argjson bytes "$5" --argjson cpu "$6" '{
		key: "links-\($count)", round: $round, line_ns: [], provider: "plx_tcp", links: $count, size_bytes: 4, turn_ns: $turn,
		longest_turn_ns: $longest, bytes_per_link: $bytes, cpu_percent: $cpu, wakes_per_s: 10}'
}
links()
{
	jq -s -L "$here" --argjson between null -f "$here/links.jq"
}
sum=$({
	idle 1 1 20 200000 110000 0.1
	idle 1 2 20 300000 110000 0.3
	idle 10000 1 24 4000000 16384 0.7
	idle 10000 2 24.1 6000000 16384 0.71
	idle 15000 1 24 5000001 11000 0.8
} | links)
check 'of idle links figures are medians, and the longest turn is the longest of all' "$sum" \
	'.rows | map([.links, .turn_ns, .longest_turn_ns, .bytes_per_link]) ==
		[[1, 20, 300000, null], [10000, 24.05, 6000000, 16384], [15000, 24, 5000001, null]]'
check '... and each threshold is judged' "$sum" '[.thresholds[] | [.ratio, .ok, .gates]] ==
	[[1.203, false, true], [16, true, true], [0.505, false, true], [5, false, false]]'
check '... of what was measured' "$({ idle 1 1 20 200000 110000 0.1; } | links)" '(.rows | length == 1) and .thresholds == []'
check '... if anything was' "$(links </dev/null)" '.rows == [] and .thresholds == []'

# Rings -----------------------------------------------------------------------------------------

# ring VARIANT LCORES BURST RATIO [STATE ROUNDS]: a row of plx-perf ring.
ring()
{
	jq -nc --arg variant "$1" --argjson lcores "$2" --argjson burst "$3" --argjson ratio "$4" --arg state "${5-one}" --argjson rounds "${6-5}" '{
		name: "ring", variant: $variant, lcores: $lcores, burst: $burst, state: $state, rounds: $rounds, cycles_per_elem: 10,
		cycles_least: 9, cycles_greatest: 11, peer: "rte_ring", peer_cycles_per_elem: (10 / $ratio), ratio: $ratio}'
}
rows=$({
	ring spsc 2 1 0.3 near 3
	ring spsc 2 1 9 far 2
	ring spsc 2 8 0.651
	ring mpmc 1 8 1.5
	ring mpsc 2 1 9
	ring spsc 2 256 9
} | jq -sc '{rows: .}')
rings()
{
	jq -n -L "$here" -f "$here/rings.jq"
}
sum=$(rings <<<"$rows")
check 'a threshold of a ring counts in the state of most rounds' "$sum" \
	'.thresholds[] | select(.what | startswith("spsc ring, two lcores, burst 1,")) | .ok and .limit == 0.3 and .gates'
check '... and just missed is missed' "$sum" \
	'.thresholds[] | select(.what | startswith("spsc ring, two lcores, burst 8,")) | .ok | not'
check 'one lcore has separate limits' "$sum" \
	'.thresholds[] | select(.what | startswith("mpmc ring, one lcore, burst 8,")) | .ok and .limit == 1.5'
check 'other rows have none' "$sum" '(.thresholds | length == 3) and (.rows | length == 6)'
sum=$(jq -c '{rows: [.rows[] | del(.ratio, .peer, .peer_cycles_per_elem)]}' <<<"$rows" | rings)
check 'without DPDK nothing is held against it' "$sum" '.thresholds == []'
hop='{"hop": {"bare_ns": 100, "gap_us": 20, "hot": {"p50_ns": 140, "ratio": 1.4},
	"quiet": {"p50_ns": 271, "ratio": 2.71}, "idle-tcp": {"p50_ns": 170, "ratio": 1.7, "cold_poll_wait_ns": 30}}}'
sum=$(rings <<<"$hop")
check 'hops are held against the bare line' "$sum" '.thresholds | map(.ok) == [true, false, true]'
check '... with tcp minus the time of its polls' "$sum" '.thresholds[2].ratio == 1.4'
sum=$(rings <<<'{"caches": {"lcores": 2, "bytes": 12288}}')
check 'caches are taken for four lcores' "$sum" '.thresholds == [{what: "caches of a pool at 4 lcores, KiB", ratio: 24,
	limit: 24, ok: true, gates: true}]'
sum=$(rings </dev/null)
check 'nothing measured, no row' "$sum" '.rows == [] and .thresholds == [] and .hop == null'

# The summary, and what it comes to -------------------------------------------------------------

# begin LINES: a summary without parts.
begin()
{
	jq -n -L "$here" --slurpfile environment <(echo '{"host": "h"}') \
		--slurpfile hiccups <(echo '{"duration_ns": 1000, "cpus": [{"gap_total_ns": 20}, {"gap_total_ns": 5}]}') \
		--slurpfile lines <(echo "$1") --argjson between "$(jq -s -L "$here" 'include "states"; between' <<<"$1")" \
		--argjson failures '[]' --argjson left_out '["UCX: not here"]' -f "$here/summary.jq"
}
check 'the share that others had is the worst CPU'"'"'s' "$(begin '140 150')" '.platform_lost == 0.02'
check 'a single state has its round trip' "$(begin '140 150 160')" '.cpus == {line_ns: 150}'
check '... and two have theirs' "$(begin '140 null 150 570')" '.cpus == {near_ns: 145, far_ns: 570}'
out=$work
begin '140 150 570' >"$work/summary.json"
{
	run shm-poll 64 1 657
	run tcp-poll 64 1 15700
	run raw-tcp 64 1 10440
	run raw-fi-tcp 64 1 13900
	run raw-zmq 64 1 80123
} | rtt >"$work/rtt.json"
{
	flow shm-stream 64 1 10400000
	flow shm-stream 1048576 1 9800
	flow tcp-stream 64 1 240000
} | streams >"$work/stream.json"
jq -n '{thresholds: [], rows: [{key: "zmq-push-pull", size_bytes: 64, gbit_per_s: 2.048}, {key: "zmq-in-place", size_bytes: 64, gbit_per_s: 1}]}' \
	>"$work/netio.json"
add_to_summary rtt
add_to_summary stream
add_to_summary netio
sum=$(<"$work/summary.json")
# says FILTER TEXT
says()
{
	check "says: $2" "$(jq -L "$here" "include \"headline\"; [$1] | join(\" \")" <<<"$sum")" "contains(\"$2\")"
}
says headline 'On this host a 64 B round trip takes 0.66 µs between two processes over shared memory and 15.70 µs over TCP; ZeroMQ takes 80.12, plain sockets 10.44.'
says compared 'plain sockets 10.44 µs; libfabric 13.90 over TCP; ZeroMQ 80.12'
says rates 'Pollux over shared memory 10.4 M/s, 10.3 GB/s; Pollux over TCP 0.24 M/s; ZeroMQ 4 M/s'
says notes 'This host is busy: other work took 2 % of a CPU'
says notes '(a cache line there and back takes 145 ns) and far apart at times (570 ns)'
says notes 'Left out: UCX: not here'
check 'parts and thresholds are in the summary, single runs are not' "$sum" \
	'(.parts | keys == ["netio", "rtt", "stream"]) and (.thresholds | length >= 2) and (.parts.rtt | has("every_run") | not)'
sum=$(begin '140')
says headline 'Measured on this host: .'
says notes 'This host is busy'

# in_words FILTER TEXT JSON: a table of the report, or of the terminal, has the text.
in_words()
{
	local got

	got=$(jq -r -L "$here" "${@:4}" "$1" <<<"$3")
	if grep -qF -- "$2" <<<"$got"; then
		echo "ok: '$2'"
	else
		echo "FAILED: '$2' is not in: $got"
		failed=1
	fi
}
sum=$({ run raw-tcp 65536 1 12345; run raw-tcp 64 1 1234567; } | rtt)
in_words "$(<"$here/part-rtt.jq")" '<h3>64 KiB</h3>' "$sum"
in_words "$(<"$here/part-rtt.jq")" '<td>12.35</td>' "$sum" # microseconds, of three digits or more
in_words "$(<"$here/part-rtt.jq")" '<td>1235</td>' "$sum"
in_words "$(<"$here/part-rtt.jq")" '<td>n/a</td>' "$sum"
in_words "$(<"$here/part-rtt.jq")" '<h3>64 B, CPUs far</h3>' "$(rtt 280 <<<"$mixed")"
in_words "$(<"$here/part-stream.jq")" '<td>0.096</td>' "$(flow raw-fi-shm 64 1 1500000 | streams)" # GB/s
in_words "$(<"$here/part-rings.jq")" '<td>ring spsc</td>' "$(rings <<<"$rows")"
in_words "$(<"$here/part-rings.jq")" '<td>ring spsc, CPUs near</td>' "$(rings <<<"$rows")"
report=$(jq '.environment += {date: "d", cpu_model: "c", server_cpu: 0, client_cpu: 1, cpu_count: 2, hypervisor: "none", version: "1", git_revision: "r"}
	| del(.hiccups)' "$work/summary.json")
in_words "$(<"$here/report.jq")" '<div class="bar own"><span class="name">Pollux, shared memory</span>' "$report" --arg which top
in_words "$(<"$here/report.jq")" 'width: 19.6%' "$report" --arg which top
in_words "$(<"$here/report.jq")" '<td class="missed">missed</td>' "$report" --arg which bottom
in_words "$(<"$here/markdown.jq")" '| a cache line, there and back | 145 ns (near) and 570 ns (far) |' "$report"
in_words "$(<"$here/markdown.jq")" '| Pollux, shared memory | 0.66 |  |  |' "$report"
in_words "$(<"$here/markdown.jq")" '| Pollux, shared memory | 10.4 | 10.3 |' "$report"
two=$(jq '.parts.rtt.rows |= map(.state = "near") + map(select(.key == "tcp-poll") | .state = "far" | .p50_ns = 18000)' <<<"$report")
in_words "$(<"$here/markdown.jq")" '| full round trip | p50, CPUs near (145 ns) | p90 | p99 | p50, CPUs far (570 ns) | p90 | p99 |' "$two"
in_words "$(<"$here/markdown.jq")" '| Pollux, TCP | 15.70 |  |  | 18.00 |  |  |' "$two"
in_words 'include "words"; [(0.00373691, 24.8904, 0, null) | digits] | tostring' '[0.003737,24.89,0,null]' null
in_words 'include "words"; [(6, null) | over(4)] | tostring' '[1.5,"n/a"]' null
printf 'iterations,50.0_percentile_lat,avg_lat,overall_lat,avg_bw,overall_bw,avg_mr,overall_mr\n 200,0.145,0.463,0.463,131.9,131.9,2161121,2161121\n' >"$work/ucx"
check 'half round trips of ucx_perftest are doubled' "$(jq -Rn --arg name u --arg test tag_lat --argjson size 64 -f "$here/ucx.jq" "$work/ucx")" \
	'.p50_ns == 290 and .count == 200 and .p99_ns == null'
check 'its rates are taken as they are' "$(jq -Rn --arg name u --arg test tag_bw --argjson size 64 -f "$here/ucx.jq" "$work/ucx")" \
	'.messages_per_s == 2161121 and .bytes_per_s == 138311744'

# Two results -----------------------------------------------------------------------------------

# result LINES P50_NS SPREAD_NS: a summary of one row.
result()
{
	begin "$1" | jq --argjson p50 "$2" --argjson spread "$3" '.parts.rtt = {rows: [{key: "tcp-poll", size_bytes: 64, state: "one", provider: "net",
		figure: "p50_ns", p50_ns: $p50, p50_ns_least: ($p50 - $spread), p50_ns_greatest: ($p50 + $spread)}]}'
}
compare()
{
	jq -n -L "$here" --slurpfile a <(echo "$1") --slurpfile b <(echo "$2") -f "$here/compare.jq"
}
check 'a difference below the noise is none' "$(compare "$(result 140 1000 50)" "$(result 150 1040 10)")" \
	'.rows | length == 1 and (.[0] | .verdict == "within the noise" and .noise == 0.1 and (.change - 0.04 | fabs) < 1e-9)'
check '... one above it is better or worse' "$(jq -n --argjson up "$(compare "$(result 140 1000 10)" "$(result 140 1060 10)")" \
	--argjson down "$(compare "$(result 140 1000 10)" "$(result 140 900 10)")" '[$up, $down] | map(.rows[0].verdict)')" '. == ["worse", "better"]'
check 'CPUs that were near in one and far in the other: nothing is compared' "$(compare "$(result 140 1000 10)" "$(result 565 3000 10)")" \
	'.rows == [] and (.only_a | length == 1) and (.only_b | length == 1)'
a="it's \\a" # any name
for folder in "$a" b; do
	mkdir -p "$work/$folder"
	printf '%s\n' low,high,count 100,109,5 110,119,3 >"$work/$folder/x.csv"
	result 140 $((1000 + ${#folder})) 5 | jq '.parts.rtt.rows[0].histogram = "x.csv"' >"$work/$folder/summary.json"
done
text=$(cd "$work" && "$here/../bench.sh" --compare "$a" b 2>&1)
check 'bench.sh --compare prints both, and writes a page' "$(jq -n --arg text "$text" --arg page "$(cat "$work/b/compare.html" 2>&1)" '{$text, $page}')" \
	'(.text | contains("A: ") and contains("within the noise") and (contains("FAILED") | not) and endswith("Page: b/compare.html")) and
		(.page | contains("Of 1 figures") and contains("p50 1.00"))'

# The rounds of a part, with runs that are made up ----------------------------------------------

# shellcheck disable=SC2034,SC2317 # common.sh uses the variables, and calls the functions
rounds()
(
	out=$work rounds=2 failures=() sizes=(64 1024) rows=(first second) mode=local lines=("$@")
	declare -A program=([cache-line]=next_line)
	say() { printf '%s\n' "$*"; }
	# shellcheck source=scripts/bench/common.sh
	. "$here/common.sh"
	probe_line()
	{
		line_ns=${lines[0]-140}
		lines=("${lines[@]:1}")
		echo "$line_ns" >>"$out/runs/lines"
	}
	part_has() { [[ $1-$2 != second-1024 ]]; }
	part_measure()
	{
		jq -n --argjson size "$2" '{figure: 7, size_bytes: $size}' >"$work/$1.json"
		echo 'last words' >"$work/client.log"
		keep_run part "$1" "$2" "$3" $((${#1} > 5 ? 124 : 0)) "$work" '"figure \(.figure)"'
	}
	rm -rf "$out/runs"
	mkdir -p "$out/runs"
	expect_rounds part 0.4 sizes rows
	in_rounds part sizes rows
	printf '%s\n' "${failures[@]}"
)
text=$(rounds)
kept=$(jq -sc --arg text "$text" '{text: ($text | split("\n")), kept: map([.row, .round, .figure, .line_ns])}' "$work/runs/part.ndjson")
check 'every row of every size is run in each round' "$kept" \
	'.text | map(select(startswith("["))) == ["[1/6, 6 s left] part, round 1 of 2, 64 B, first", "[2/6, 5 s left] part, round 1 of 2, 64 B, second",
		"[3/6, 4 s left] part, round 1 of 2, 1 KiB, first", "[4/6, 3 s left] part, round 2 of 2, 64 B, first",
		"[5/6, 2 s left] part, round 2 of 2, 64 B, second", "[6/6, 1 s left] part, round 2 of 2, 1 KiB, first"]'
check 'what a good run wrote is kept, with its row, its round and the state of the CPUs' "$kept" \
	'.kept == [["first", 1, 7, [140, 140]], ["first", 1, 7, [140, 140]], ["first", 2, 7, [140, 140]], ["first", 2, 7, [140, 140]]]'
check 'a failure has its last output' "$kept" \
	'.text[-1] == "part, second, 64 B, round 2: status 124 (took too long): last words"'
text=$(rounds 140 565 140)
check 'a run during which the state changed is repeated' "$(jq -sc --arg text "$text" '{text: ($text | split("\n")), n: length}' "$work/runs/part.ndjson")" \
	'.n == 6 and ([.text[] | select(contains("once more"))] | length == 2)'
text=$(rounds 140 140 140 140 565 565)
check 'a row that lacks a state that others have runs again, three times at most' \
	"$(jq -sc --arg text "$text" '{text: ($text | split("\n")), n: length}' "$work/runs/part.ndjson")" '[.text[] | select(contains("extra round"))] | length <= 3'

# The command line ------------------------------------------------------------------------------

# refuses WORDS OPTION...: status 2 and a text with these words, before anything is built.
refuses()
{
	local words=$1 text status

	shift
	text=$(timeout 10 "$here/../bench.sh" "$@" 2>&1)
	status=$?
	if ((status == 2)) && [[ $text == *"$words"* ]]; then
		echo "ok: bench.sh $* is refused"
	else
		echo "FAILED: bench.sh $*: status $status: $text"
		failed=1
	fi
}

refuses "unknown option '--bogus'" --bogus
refuses '--out /dev/null/x: cannot be made' --out /dev/null/x
refuses 'there is no such part; there are rtt stream rings idle links netio services verbs' --only soak
refuses 'leave one out' --only rtt --full
refuses 'that part is of one host' --only rings --serve
refuses 'that part is of one host' --only stream --connect host:1
refuses 'that part is of one host' --only netio --connect host:1
refuses 'that is for the part verbs' --only rtt --device rxe0
refuses "'0' is no size from 1 to 16M" --sizes 64,0
refuses "'17M' is no size" --sizes 17M
refuses 'that is for --live' --provider tcp
refuses 'there are auto, tcp, shm and verbs' --provider sockets --live localhost:1
refuses 'HOST:PORT is needed' --connect host
refuses 'needs two folders of results' --compare /nonexistent
refuses 'there is no summary.json of this version' --compare /nonexistent /nowhere
refuses 'a whole number from 1' --rounds x
refuses 'needs a value' --out

exit $failed
