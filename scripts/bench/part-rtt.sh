# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# The part rtt: round trips of messages between two processes. rows.sh has its rows. Sourced by bench.sh.
# shellcheck disable=SC2034,SC2154

# Measuring ------------------------------------------------------------------------------------

rtt_begin()
{
	rtt_sizes=("${size_list[@]}")
	[[ $scope != main ]] || ((sizes_given)) || rtt_sizes=(64)
	choose_provider
	choose_rows
	[[ $mode == serve ]] || expect_rounds rtt "$duration" rtt_sizes rows
}

rtt_shown=' ' # rows whose histogram was on the terminal

# rtt_measure ROW SIZE ROUND: one run. The first run of a Pollux row shows its histogram.
rtt_measure()
{
	local row=$1 size=$2 round=$3 dir=$out/runs/$1-$2-$3 status

	mkdir -p "$dir"
	once_or_twice run_row "$row" "$size" "$dir"
	status=$?
	keep_run rtt "$row" "$size" "$round" "$status" "$dir" \
		'"    p50 \(if .p50_ns then .p50_ns / 1000 else "n/a" end) us, \(.count) round trips"'
	if [[ $row == @(shm|tcp)-poll && $rtt_shown != *" $row "* ]] && ((!status)); then
		rtt_shown+="$row "
		sed -e '/^lcore/d' -e '/^provider/d' -e '/^mem:/d' -e 's/^/    /' "$dir/client.log"
	fi
}

rtt_run()
{
	in_rounds rtt rtt_sizes rows
}

# Sum, plots, tables ---------------------------------------------------------------------------

rtt_sum()
{
	sum_pooled rtt
}

rtt_plot()
{
	plot_pooled rtt
}

rtt_print()
{
	say
	say "Full round trips, us; all $rounds rounds in one. x base: p50 over that of base, by pairs of one round."
	table_of_sizes '%-19s %8s %8s %8s %8s %8s %8s  %-16s %6s %s\n' \
		min p50 p90 p99 p99.9 max 'p50 over rounds' 'x' base < <(jq -r -L "$here" 'include "words";
		.rows[] | "\(.size_bytes) \(.state) \(.key) \(.min_ns | us) \(.p50_ns | us) \(.p90_ns | us) " +
			"\(.p99_ns | us) \(.p99_9_ns | us) \(.max_ns | us) " +
			"\(.p50_ns_least | us)..\(.p50_ns_greatest | us) \(.ratio // "-") \(.base // "-")"' "$out/rtt.json")
}

rtt_html()
{
	html_pooled rtt "Round trips"
	jq -r -L "$here" -f "$here/part-rtt.jq" "$out/rtt.json"
}
