# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# The part rtt: full round trips of messages between two processes. Its rows are in rows.sh. Sourced
# by bench.sh.
# shellcheck disable=SC2154

# Measuring ------------------------------------------------------------------------------------

rtt_begin()
{
	choose_provider
	choose_rows
	[[ $mode == serve ]] || say "server on CPU $cpu_server, client on CPU $cpu_client, libfabric's $fi_provider for tcp"
}

# rtt_measure ROW SIZE ROUND: one run.
rtt_measure()
{
	local row=$1 size=$2 round=$3 dir=$out/runs/$1-$2-$3 status

	mkdir -p "$dir"
	once_or_twice run_row "$row" "$size" "$dir"
	status=$?
	keep_run '' "$row" "$size" "$round" "$status" "$dir" "$out/runs/all.ndjson" \
		'"    p50 \(if .p50_ns then .p50_ns / 1000 else "n/a" end) us, \(.count) round trips"'
}

rtt_run()
{
	in_rounds rtt '' size_list rows
}

# Sum ------------------------------------------------------------------------------------------

# rtt.json: this part's share of the summary, with every single run beside the medians.
rtt_sum()
{
	jq --slurpfile every "$out/runs/all.ndjson" \
		'{schema, part: "rtt", unit, valid, reason, failures, bars, runs, every_run: $every}' \
		"$out/summary.json" >"$out/rtt.json"
}

# Plots ----------------------------------------------------------------------------------------

# The points of a .hgrm: 1/(1-p) and microseconds.
percentile_points()
{
	awk 'NF == 4 && $1 + 0 == $1 { print $4, $1 }' "$1"
}

# A histogram's CSV gathered into bins 2 % wide, so that all sizes of bucket look alike: the bin's
# middle in microseconds, and its share in per cent. The last half per cent, which may lie a
# thousand times further out, is for the percentile plot.
histogram_points()
{
	awk -F, 'NR > 1 {
			bin = int(log(($1 + $2) / 2 + 1) / log(1.02))
			sum[bin] += $3
			total += $3
			if (least == "" || bin < least) least = bin
			if (bin > greatest) greatest = bin
		}
		END {
			for (bin = least - 1; bin <= greatest + 1 && seen <= total * 0.995; bin++) {
				print exp((bin + 0.5) * log(1.02)) / 1000, sum[bin] / total * 100
				seen += sum[bin]
			}
		}' "$1"
}

# One percentile plot and one histogram for a size.
plot_size()
{
	local size=$1 data=$out/plots/data row run words kind status=0

	words=$(size_words "$size")
	mkdir -p "$data"
	rm -f "$data"/*
	while read -r row run; do
		percentile_points "$out/$run/$row.hgrm" >"$data/percentiles.$row"
		histogram_points "$out/$run/$row.csv" >"$data/histogram.$row"
	done < <(jq -r --argjson size "$size" \
		'.runs[] | select(.size_bytes == $size) | "\(.name) \(.run)"' "$out/summary.json")
	for kind in percentiles histogram; do
		draw "$kind-$size" "$kind" "size='$words'; bytes='$size'" || status=1
	done
	rm -rf "$data"
	return $status
}

rtt_plot()
{
	local size status=0

	while read -r size; do
		plot_size "$size" || status=1
	done < <(jq '.runs | map(.size_bytes) | unique[]' "$out/summary.json")
	return $status
}

# The terminal ---------------------------------------------------------------------------------

rtt_print()
{
	say
	say "Full round trips, us; medians over $rounds rounds. x raw: p50 over that of what a row stands on."
	table_of_sizes '%-19s %9s %9s %9s %9s %9s %9s  %-17s %6s\n' \
		min p50 p90 p99 p99.9 max 'p50 over rounds' 'x raw' < <(jq -r -L "$here" 'include "words";
		.runs[] | "\(.size_bytes) \(.name) \(.min_ns | us) \(.p50_ns | us) \(.p90_ns | us) " +
			"\(.p99_ns | us) \(.p99_9_ns | us) \(.max_ns | us) " +
			"\(.p50_least_ns | us)..\(.p50_greatest_ns | us) \(.ratio_to_raw // "-")"' "$out/summary.json")
}

# p50 and p99 of every row over those of an earlier run.
rtt_compare()
{
	jq -e '.runs != []' "$compare/summary.json" >/dev/null || return 0
	table_beside '%-19s %9s  %9s %9s %7s  %9s %9s %7s\n' 'p50 and p99 before and now, us' \
		'p50 then' now ratio 'p99 then' now ratio < <(
		jq -r -L "$here" --slurpfile before "$compare/summary.json" 'include "words";
			.runs[] | . as $now
			| $before[0].runs[] | select(.name == $now.name and .size_bytes == $now.size_bytes) | . as $was
			| "\(.name) \(.size_bytes) \($was.p50_ns | us) \($now.p50_ns | us) " +
			  "\(($now.p50_ns) | over($was.p50_ns)) \($was.p99_ns | us) \($now.p99_ns | us) " +
			  "\(($now.p99_ns) | over($was.p99_ns))"' "$out/summary.json")
}

# The report -----------------------------------------------------------------------------------

rtt_html()
{
	local size

	jq -r -L "$here" -f "$here/part-rtt.jq" "$out/summary.json"
	while read -r size; do
		printf '<h3>%s</h3>\n' "$(size_words "$size")"
		inline_svg "$out/plots/percentiles-$size.svg"
		inline_svg "$out/plots/histogram-$size.svg"
	done < <(jq '.runs | map(.size_bytes) | unique[]' "$out/summary.json")
}
