#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The part live of the bench: its command line, sums, table and report, on fake runs.
# shellcheck disable=SC2016,SC2034,SC2154,SC2317 # jq's $; the part's functions use what is set here
set -uo pipefail

# shellcheck source=tests/perf/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/checks.sh"

say()
{
	printf '%s\n' "$*"
}

die()
{
	say "$1"
	exit 2
}

# run SIZE ROUND P50_NS
run()
{
	jq -nc --argjson size "$1" --argjson round "$2" --argjson p50 "$3" \
		'{key: "self-test", row: "self-test", round: $round, line_ns: [], run: "runs/self-test-\($size)-\($round)", provider: "net", size_bytes: $size, count: 100,
		min_ns: ($p50 - 10), p50_ns: $p50, p90_ns: $p50, p99_ns: ($p50 * 2), p99_9_ns: null, max_ns: ($p50 * 3)}'
}

declare -A program=([plx-ping]=ping)
out=$work peer=h:1 rounds=3 duration=0.7 provider='' cpu_client=7 sizes=64,1M sizes_given=0 mode=live
mkdir -p "$work/runs"
# shellcheck source=scripts/bench/common.sh
. "$here/common.sh"
# shellcheck source=scripts/bench/part-live.sh
. "$here/part-live.sh"

live_begin >/dev/null
check 'sizes are those that a self-test takes' "$(jq -nc '$ARGS.positional' --args "${size_list[@]}")" '. == ["64", "1024", "16384"]'
check 'a longer one is refused' "$(jq -n --arg said "$(sizes_given=1 size_list=(64 1048576) && live_begin)" '$said')" \
	'contains("--sizes 64,1M: a self-test takes 1 to 64K")'
line()
{
	local command=()

	live_client "$@"
	jq -n --arg line "${command[*]}" '$line'
}
check 'plx-ping measures the self-test of the listener' "$(line 64 dir)" \
	'. == "ping -l 0@7 --idle poll --provider auto -- --connect h:1 --process --size 64 --duration 0.7 --out dir --name self-test"'

for size in 64 1024; do
	run $size 1 700
	run $size 2 $((size + 500))
	run $size 3 400
done >"$work/runs/live.ndjson"
for size in 64 1024; do
	for round in 1 2 3; do
		mkdir -p "$work/runs/self-test-$size-$round"
		printf 'low,high,count\n500,509,90\n%d,%d,10\n' $((size + 600)) $((size + 609)) >"$work/runs/self-test-$size-$round/self-test.csv"
	done
done
echo '{"thresholds": []}' >"$work/summary.json"
live_sum
check 'percentiles are those of all rounds in one' "$(cat "$work/live.json")" \
	'.rows[0] | .p50_ns == 509 and .p90_ns == 509 and .histogram == "pooled/live-self-test-64-one.csv" and .count == 300 and .max_ns == 2100 and .p99_9_ns == null'
check '... with the spread of the rounds' "$(cat "$work/live.json")" '.rows[0] | .p50_ns_least == 400 and .p50_ns_greatest == 700'
check '... of each size' "$(cat "$work/live.json")" '[.rows[].size_bytes] == [64, 1024]'
check 'the summary has them' "$(cat "$work/summary.json")" '.parts.live.rows | length == 2'
check 'the table has a line for each' "$(jq -n --arg text "$(live_print)" '$text')" '[match("self-test"; "g")] | length >= 2'
check 'and the report' "$(jq -n --arg html "$(inline_svg() { :; } && live_html)" '$html')" '[match("<tr class=\"own\">"; "g")] | length == 2'
exit $failed
