#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The part services of the bench: its command lines, sums and judgement, on fake runs.
# shellcheck disable=SC2016,SC2030,SC2031,SC2034,SC2154,SC2317 # jq's $; the part's functions use what is set here
set -uo pipefail

# shellcheck source=tests/perf/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/checks.sh"

# run ROW PROVIDER ROUND P50_NS P99_NS RATE
run()
{
	jq -nc --arg row "$1" --arg provider "$2" --argjson round "$3" --argjson p50 "$4" --argjson p99 "$5" --argjson rate "$6" \
		'{key: "\($row)@\($provider)", row: $row, provider: $provider, round: $round, line_ns: [], size_bytes: 64, count: 100, lost: 0, rate_per_s: $rate,
		scheduled_per_s: null, doubted: ($round == 2), p50_ns: $p50, p90_ns: $p50, p99_ns: $p99, p99_9_ns: null,
		max_ns: ($p99 + $round)}'
}
hiccups='{"duration_ns": 1000, "cpus": [{"gap_total_ns": 10, "longest_ns": 7}, {"gap_total_ns": 25, "longest_ns": 5}]}'
sums()
{
	jq -s -L "$here" --argjson between null --slurpfile hiccups <(echo "${1-$hiccups}") -f "$here/services.jq"
}
all()
{
	for round in 1 2 3; do
		run params-load shm $round 9000 90000 10000
		run params-get shm $round 591 900 1000000
		run params-echo shm $round 526 900 1000000
		run half shm $round 900 3000 3000000
		run quiet shm $round 600 1500 10000
		run call-100000 shm $round 900 3000 5000000
		run call-100 shm $round 600 900 $((6400000 + round * 100000))
		run call-64 shm $round 600 900 5000000
		run call-1 shm $round $((540 + round * 50)) 900 1000000
		run ping shm $round 500 800 1000000
		run call-64 tcp $round 600 900 1999999
	done
}
sum=$(all | sums)
check 'rows are in their order, whatever that of the runs' "$sum" \
	'[.rows[] | select(.provider == "shm") | .name] == ["ping", "call-1", "call-64", "call-100", "call-100000", "quiet", "half", "params-echo", "params-get", "params-load"]'
check 'figures are medians, and the greatest is the greatest' "$sum" \
	'[.rows[] | select(.name == "call-1")][0] | .p50_ns == 640 and .max_ns == 903 and .rounds == 3 and .doubted == 1'
check 'what no run knows stays null' "$sum" 'all(.rows[]; .p99_9_ns == null)'
check 'each threshold is judged' "$sum" '[.thresholds[] | select(.what | contains("shm")) | .ratio, .ok] == [140, true, 5000000, true, 1.32, false, 2, true, 65, true, 0, true]'
check '... of what was measured' "$sum" '[.thresholds[] | select(.what | contains("tcp"))] | length == 1 and (.[0].ok | not)'
for round in 1 2 3; do
	run ping tcp $round $((10000 * round)) 30000 1000
	run call-1 tcp $round $((10401 * round)) 30000 1000
done >"$work/calls"
check 'over tcp a call is held against a message as a ratio' "$(sums <"$work/calls")" \
	'.thresholds == [{what: "services over tcp, a call over a message and its echo, p50", ratio: 1.04, limit: 1.04, ok: false, gates: false, state: "one"}]'
check '... and none of them fails the run' "$sum" 'all(.thresholds[]; .gates == false)'
check 'the sum reports the platform' "$sum" '.platform == {held_up_percent: 2.5, met_percent: 7, longest_ns: 7}'
check '... and where a p99 is its own' "$sum" '[.thresholds[] | select(.note)] | length == 1 and (.[0].what | contains("p99")) and (.[0].note | contains("7 %"))'
check '... if it is known' "$(all | sums null)" '.platform == null'
check 'without any run there is an empty sum' "$(sums </dev/null)" '.rows == [] and .thresholds == []'

html=$(jq -r -L "$here" -f "$here/part-services.jq" <<<"$sum")
check 'the report has a line for each row' "$(jq -n --arg html "$html" '$html')" '[match("<tr class=\"own\">"; "g")] | length == 10'
check 'it can be written without any' "$(jq -n --arg html "$(sums </dev/null | jq -r -L "$here" -f "$here/part-services.jq")" '$html')" \
	'contains("Calls of services")'

# Command lines.
wanted=()
declare -A program=([plx-ping]=ping [plx-call]=call [service]=service [plx-params]=params [params-load]=load)
# shellcheck source=scripts/bench/common.sh
. "$here/common.sh"
# shellcheck source=scripts/bench/part-services.sh
. "$here/part-services.sh"
failures=() rounds=3 quick=1 duration_given='' out=$work cpu_client=7
mkdir -p "$work/runs"
run call-64 tcp 2 600 900 4000001 >"$work/runs/services.ndjson"
services_begin
line()
{
	local command=()

	services_client "$@"
	jq -n --arg line "${command[*]}" '$line'
}
check 'plx-ping is asked for round trips' "$(line ping h:1 dir tcp 2)" 'startswith("ping -l 1@7 ") and contains("--connect h:1 --size 64 --duration 0.7")'
check 'calls have their number' "$(line call-100 h:1 dir tcp 2)" 'contains("--provider tcp -- --connect h:1 ") and endswith("--in-flight 100")'
check 'half is of the rate that was reached last' "$(line half h:1 dir tcp)" 'endswith("--rate 2000000 --arrival poisson")'
check 'a parameter is asked for by its name' "$(line params-get h:1 dir tcp 2)" \
	'contains("--data hv/rack1/voltage --duration 0.7") and endswith("--method params.get") and (contains("--size") | not)'
check 'the load writes where the others do' "$(line params-load h:1 dir shm 2)" 'startswith("load -l 1@7 ") and endswith("--out dir/client.json")'
check 'the build must have its programs' "$(unset 'program[plx-call]' && services_begin && jq -n --arg said "${failures[*]}" '$said')" \
	'. == "services: the build has no program plx-call"'
exit $failed
