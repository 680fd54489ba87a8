# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# The part live, run only by --live HOST:PORT: round trips as calls of the self-test of a running, busy Pollux process.
# Sourced by bench.sh.
# shellcheck disable=SC2016,SC2034,SC2154

live_row=self-test
live_size_max=65536 # of a self-test

live_begin()
{
	((sizes_given)) || size_list=(64 1024 16384)
	local size
	for size in "${size_list[@]}"; do
		((size <= live_size_max)) || die "--sizes $sizes: a self-test takes 1 to 64K; give sizes such as 64,1K,64K" 2
	done
	live_rows=("$live_row")
	expect_rounds live "$duration" size_list live_rows
	say "client on CPU $cpu_client; what it measures is what listens at $peer"
}

live_has()
{
	:
}

# live_client SIZE DIR: sets `command`.
live_client()
{
	command=("${program[plx-ping]}" -l "0@$cpu_client" --idle poll --provider "${provider:-auto}"
		-- --connect "$peer" --process --size "$1" --duration "$duration" --out "$2" --name "$live_row")
}

# live_measure ROW SIZE ROUND
live_measure()
{
	local size=$2 dir=$out/runs/$1-$2-$3 status command=()

	mkdir -p "$dir"
	live_client "$size" "$dir"
	once_or_twice run_client "$dir" "$(client_limit "$duration")"
	status=$?
	keep_run live "$1" "$size" "$3" "$status" "$dir" \
		'"    p50 \(if .p50_ns then .p50_ns / 1000 else "n/a" end) us, \(.count) calls, by \(.provider)"'
}

live_run()
{
	in_rounds live size_list live_rows
}

live_sum()
{
	sum_pooled live --arg at "$peer"
}

live_plot()
{
	plot_pooled live
}

live_print()
{
	say
	say "Round trips, us, as calls of the self-test of the process at $peer; all $rounds rounds in one."
	table_of_sizes '%-11s %9s %9s %9s %9s %9s %9s  %s\n' min p50 p90 p99 p99.9 max provider < <(
		jq -r -L "$here" 'include "words"; .rows[] | "\(.size_bytes) \(.state) \(.key) \(.min_ns | us) \(.p50_ns | us) \(.p90_ns | us) " +
			"\(.p99_ns | us) \(.p99_9_ns | us) \(.max_ns | us) \(.provider)"' "$out/live.json")
}

live_html()
{
	html_pooled live "Calls of the self-test"
	jq -r -L "$here" 'include "words"; "<p>Of the process at \(.at // "" | @html), in microseconds.</p>",
		"<div class=\"wide\"><table><tr><th>size</th><th>min</th><th>p50</th><th>p90</th><th>p99</th><th>p99.9</th><th>max</th><th>calls</th><th>provider</th></tr>",
		(.rows[] | "<tr class=\"own\">" + ([(.size_bytes | size), (.min_ns, .p50_ns, .p90_ns, .p99_ns, .p99_9_ns, .max_ns | us), .count, .provider]
			| cells) + "</tr>"), "</table></div>"' "$out/live.json"
}
