#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The bench's judgement: medians, ratios, bars and validity, on runs that are made up; and what its
# command line refuses.
set -uo pipefail

# shellcheck source=tests/perf/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/checks.sh"

# run ROW SIZE ROUND P50_NS: a single run as bench.sh writes it down.
run()
{
	jq -nc --arg row "$1" --argjson size "$2" --argjson round "$3" --argjson p50 "$4" '{
		row: $row, round: $round, run: "runs/\($row)-\($size)-\($round)", name: $row,
		provider: "net", idle: "poll", size_bytes: $size, count: 100000, min_ns: ($p50 - 1000),
		p50_ns: $p50, p90_ns: ($p50 + 100), p99_ns: ($p50 + 200),
		p99_9_ns: (if $round == 1 then 9000 else null end), p99_99_ns: null,
		max_ns: (90000 + $round), mean_ns: ($p50 + 50), elapsed_ns: 1000000000, valid: true}'
}

# summary FI_PROVIDER: of the runs on standard input.
summary()
{
	jq -s --argjson environment '[{"kernel": "k"}]' --argjson failures '[[]]' --arg fi_provider "$1" \
		--argjson hiccups '[{"duration_ns": 1000, "cpus": [{"gap_total_ns": 20}, {"gap_total_ns": 5}]}]' \
		-L "$here" -f "$here/summary.jq"
}

good=$(
	for round in 1 2 3; do
		run tcp-poll 64 $round $((7500 + round * 100))
		run raw-tcp 64 $round $((6000 + round * 10))
		run raw-fi-tcp 64 $round 7000
		run raw-fi-tcp 65536 $round 30000
		run tcp-poll 65536 $round 36001
	done
)
sum=$(summary net <<<"$good")
check 'the median of the rounds is the figure' "$sum" \
	'.runs[] | select(.name == "tcp-poll" and .size_bytes == 64) | .p50_ns == 7700 and .rounds == 3'
check '... with the least and the greatest beside it' "$sum" \
	'.runs[] | select(.name == "tcp-poll" and .size_bytes == 64) |
		.p50_least_ns == 7600 and .p50_greatest_ns == 7800 and .min_ns == 6600 and .max_ns == 90003'
check 'the median run stands for the plots' "$sum" \
	'.runs[] | select(.name == "tcp-poll" and .size_bytes == 64) | .run == "runs/tcp-poll-64-2"'
check 'counts add up' "$sum" '.runs[0] | .count == 300000 and .elapsed_ns == 3000000000'
check 'what most rounds could not tell is not told' "$sum" 'all(.runs[]; .p99_9_ns == null)'
check 'rows have their order' "$sum" \
	'.runs | map(.name) == ["raw-tcp", "raw-fi-tcp", "tcp-poll", "raw-fi-tcp", "tcp-poll"]'
check 'ratios are over raw-fi-tcp' "$sum" \
	'.runs[] | select(.name == "tcp-poll" and .size_bytes == 64) | .ratio_to_raw == 1.1'
check '... and its own over raw-tcp' "$sum" \
	'.runs[] | select(.name == "raw-fi-tcp" and .size_bytes == 64) | .ratio_to_raw == 1.163'
check 'a bar that is just reached is reached' "$sum" \
	'.bars[] | select(.over == "raw-fi-tcp" and .size_bytes == 64) | .ok and .limit == 1.1'
check 'a bar that is just missed is missed' "$sum" \
	'.bars[] | select(.size_bytes == 65536) | (.ok | not) and .gates'
check '64 B is held against plain sockets too' "$sum" \
	'.bars[] | select(.over == "raw-tcp") | .ok and .limit == 1.4'
check 'sizes that were not measured have no bar' "$sum" '.bars | length == 3'
check 'a good baseline is valid' "$sum" '.valid and .reason == null and .baseline_checked'
check 'the share that others had is the worst CPU'"'"'s' "$sum" '.platform_lost == 0.02'

sum=$(summary tcp <<<"$good")
check 'on libfabric'"'"'s tcp bars are shown, and gate nothing' "$sum" 'all(.bars[]; .gates | not)'

sum=$({ run raw-tcp 64 1 6000; run raw-fi-tcp 64 1 7800; } | summary net)
check 'a baseline at 1.30 times raw-tcp is valid' "$sum" '.valid'
sum=$({ run raw-tcp 64 1 6000; run raw-fi-tcp 64 1 7801; } | summary net)
check 'a baseline above it is not, and says why' "$sum" \
	'(.valid | not) and (.reason | contains("is 7801 ns, above 1.30 times that of raw-tcp, 6000 ns"))'
sum=$(run tcp-poll 1024 1 8000 | summary net)
check 'without a baseline nothing is checked, and that is said' "$sum" \
	'.valid and (.baseline_checked | not) and .bars == [] and .runs[0].ratio_to_raw == null'

# Rows of shared memory: what each is held against.
sum=$({
	run bare 64 1 300
	run raw-fi-shm 64 1 1500
	run raw-fi-plxshm 64 1 630
	run raw-eventfd 64 1 10000
	run raw-fi-plxshm-event 64 1 11001
	run shm-poll 64 1 800
	run shm-poll-tcp 64 1 1000
} | summary tcp)
check 'libfabric over plx_shm is held against a bare line' "$sum" \
	'.bars[] | select(.row == "raw-fi-plxshm" and .over == "bare") | .ok and .limit == 2.1 and .ratio == 2.1 and .gates'
check '... and asleep against an eventfd, as an aim' "$sum" \
	'.bars[] | select(.row == "raw-fi-plxshm-event") | .over == "raw-eventfd" and (.ok | not) and (.gates | not)'
check '... and a link beside tcp against one without' "$sum" \
	'.runs[] | select(.name == "shm-poll-tcp") | .ratio_to_raw == 1.25'
check 'what stands on nothing has no ratio' "$sum" \
	'all(.runs[] | select(.name == "bare" or .name == "raw-eventfd"); .ratio_to_raw == null)'
sum=$({ run raw-fi-plxshm 64 1 631; run bare 64 1 300; } | summary net)
check '... and just missed is missed' "$sum" '.bars | map(.ok) == [false]'

# The part stream: medians, ratios and bars, of runs that are made up.
# flow ROW SIZE ROUND MESSAGES_A_SECOND
flow()
{
	jq -nc --arg row "$1" --argjson size "$2" --argjson round "$3" --argjson rate "$4" '{
		row: $row, round: $round, run: "runs/stream-\($row)-\($size)-\($round)", name: $row, provider: "p",
		size_bytes: $size, count: 1000, elapsed_ns: 1000000, messages_per_s: $rate,
		bytes_per_s: ($rate * $size), valid: true}'
}
streams()
{
	jq -s -L "$here" -f "$here/stream.jq"
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
	'.rows[] | select(.name == "raw-fi-plxshm" and .size_bytes == 1048576) | .messages_per_s == 1000 and
		.bytes_per_s == 1048576000 and .messages_per_s_least == 0 and .messages_per_s_greatest == 2000 and
		.count == 3000 and .rounds == 3 and .ratio == 1'
check 'a least rate that is just reached is reached' "$sum" \
	'.bars[] | select(.what | startswith("one way, raw-fi-plxshm over raw-fi-shm,")) | .ok and .least and (.gates | not)'
check '... and just missed is missed' "$sum" \
	'.bars[] | select(.what | startswith("one way, raw-fi-plxshm over raw-fi-shm-nocma,")) |
		(.ok | not) and .gates and .limit == 1.5'
check 'absolute rates are aims' "$sum" \
	'[.bars[] | select(.what | contains("million")) | [.ok, .gates]] == [[true, false], [false, false]]'
check 'links are held against libfabric alone' "$sum" \
	'.bars[] | select(.what | startswith("one way, shm-stream over")) | .ratio == 0.6 and (.ok | not) and (.gates | not)'
check 'rows of streams have their order' "$sum" \
	'.rows | map(.name) == ["raw-fi-plxshm", "shm-stream", "raw-fi-plxshm", "raw-fi-plxshm-cma", "raw-fi-shm",
		"raw-fi-shm-nocma"]'
sum=$(streams </dev/null)
check 'no stream measured, none told' "$sum" '.rows == [] and .bars == []'

# The part rings: its bars, from results that are made up.
# ring VARIANT LCORES BURST RATIO: a row of plx-perf ring.
ring()
{
	jq -nc --arg variant "$1" --argjson lcores "$2" --argjson burst "$3" --argjson ratio "$4" '{
		name: "ring", variant: $variant, lcores: $lcores, burst: $burst, cycles_per_elem: 10,
		peer: "rte_ring", peer_cycles_per_elem: (10 / $ratio), ratio: $ratio}'
}
rows=$({
	ring spsc 2 1 0.3
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
check 'a bar of a ring that is just reached is reached' "$sum" \
	'.bars[] | select(.what | startswith("spsc ring, two lcores, burst 1,")) | .ok and .limit == 0.3 and .gates'
check '... and just missed is missed' "$sum" \
	'.bars[] | select(.what | startswith("spsc ring, two lcores, burst 8,")) | .ok | not'
check 'one lcore has limits of its own' "$sum" \
	'.bars[] | select(.what | startswith("mpmc ring, one lcore, burst 8,")) | .ok and .limit == 1.5'
check 'other rows have none' "$sum" '(.bars | length == 3) and (.rows | length == 5)'
sum=$(jq -c '{rows: [.rows[] | del(.ratio, .peer, .peer_cycles_per_elem)]}' <<<"$rows" | rings)
check 'without DPDK nothing is held against it' "$sum" '.bars == []'
hop='{"hop": {"bare_ns": 100, "gap_us": 20, "hot": {"p50_ns": 140, "ratio": 1.4},
	"quiet": {"p50_ns": 271, "ratio": 2.71}, "idle-tcp": {"p50_ns": 170, "ratio": 1.7, "cold_poll_wait_ns": 30}}}'
sum=$(rings <<<"$hop")
check 'hops are held against the bare line' "$sum" '.bars | map(.ok) == [true, false, true]'
check '... beside tcp less what its polls take' "$sum" '.bars[2].ratio == 1.4'
sum=$(rings <<<'{"caches": {"lcores": 2, "bytes": 12288}}')
check 'caches are taken for four lcores' "$sum" '.bars == [{what: "caches of a pool at 4 lcores, KiB", ratio: 24,
	limit: 24, ok: true, gates: true}]'
sum=$(rings </dev/null)
check 'nothing measured, nothing said' "$sum" '.rows == [] and .bars == [] and .hop == null'

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
sum=$({ run raw-tcp 65536 1 12345; run raw-tcp 64 1 1234567; } | summary net)
in_words "$(<"$here/part-rtt.jq")" '<th colspan="11">64 KiB</th>' "$sum"
in_words "$(<"$here/part-rtt.jq")" '<td>12.35</td>' "$sum" # microseconds, of three digits or more
in_words "$(<"$here/part-rtt.jq")" '<td>1235</td>' "$sum"
in_words "$(<"$here/part-rtt.jq")" '<td>n/a</td>' "$sum"
in_words "$(<"$here/part-stream.jq")" '<td>0.096</td>' "$(flow raw-fi-shm 64 1 1500000 | streams)" # GB/s
in_words "$(<"$here/part-rings.jq")" '<td>ring spsc</td>' "$(rings <<<"$rows")"
in_words "$(<"$here/report.jq")" 'raw-fi-tcp was not checked' "$sum" --arg which top
in_words 'include "words"; [(0.00373691, 24.8904, 0, null) | digits] | tostring' '[0.003737,24.89,0,null]' null
in_words 'include "words"; [(6, null) | over(4)] | tostring' '[1.5,"n/a"]' null

# The rounds of a part, with runs that are made up.
# shellcheck disable=SC2034,SC2317 # common.sh uses the variables, and calls the functions
rounds()
(
	out=$work rounds=2 failures=() sizes=(64 1024) rows=(first second)
	say() { printf '%s\n' "$*"; }
	# shellcheck source=scripts/bench/common.sh
	. "$here/common.sh"
	part_has() { [[ $1-$2 != second-1024 ]]; }
	part_measure()
	{
		echo '{"figure": 7}' >"$work/$1.json"
		echo 'last words' >"$work/client.log"
		keep_run 'part, ' "$1" "$2" "$3" $((${#1} > 5 ? 124 : 0)) "$work" "$work/all" '"figure \(.figure)"'
	}
	in_rounds part 'part, ' sizes rows
	printf '%s\n' "${failures[@]}"
)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
text=$(rounds)
kept=$(jq -sc --arg text "$text" '{text: ($text | split("\n")), kept: map([.row, .round, .figure])}' "$work/all")
check 'every row of every size is run in each round' "$kept" \
	'.text | map(select(startswith("["))) == ["[1/6] part, round 1, 64 B, first", "[2/6] part, round 1, 64 B, second",
		"[3/6] part, round 1, 1024 B, first", "[4/6] part, round 2, 64 B, first",
		"[5/6] part, round 2, 64 B, second", "[6/6] part, round 2, 1024 B, first"]'
check 'what a good run wrote is kept, with its row and round' "$kept" \
	'.kept == [["first", 1, 7], ["first", 1, 7], ["first", 2, 7], ["first", 2, 7]]'
check 'a failure is told with its last words' "$kept" \
	'.text[-1] == "part, second, 64 B, round 2: status 124 (took too long): last words"'

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
refuses 'there is no such part; there are rtt stream rings idle netio services verbs' --only soak
refuses 'that part is of one host' --only rings --serve
refuses 'that part is of one host' --only stream --connect host:1
refuses 'that part is of one host' --only netio --connect host:1
refuses 'that is for the part verbs' --only rtt --device rxe0
refuses "'0' is no size from 1 to 16M" --sizes 64,0
refuses "'17M' is no size" --sizes 17M
refuses 'there are tcp, net and fi:tcp' --provider sockets
refuses 'HOST:PORT is needed' --connect host
refuses 'there is no summary.json' --compare /nonexistent
refuses 'a whole number from 1' --rounds x
refuses 'needs a value' --out

exit $failed
