# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# The part live, which --live HOST:PORT runs, and nothing else does: round trips as calls of the self-test that
# each Pollux process has, of one that runs and works. Sourced by bench.sh.
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
		-- --connect "$peer" --service --size "$1" --duration "$duration" --out "$2" --name "$live_row")
}

# live_measure ROW SIZE ROUND
live_measure()
{
	local size=$2 dir=$out/runs/$1-$2-$3 status command=()

	mkdir -p "$dir"
	live_client "$size" "$dir"
	once_or_twice run_client "$dir" "$(client_limit "$duration")"
	status=$?
	keep_run '' "$1" "$size" "$3" "$status" "$dir" "$out/runs/live.ndjson" \
		'"    p50 \(if .p50_ns then .p50_ns / 1000 else "n/a" end) us, \(.count) calls, by \(.provider)"'
}

live_run()
{
	: >"$out/runs/live.ndjson"
	in_rounds live '' size_list live_rows
}

# Of every figure the median over the rounds; the run whose median is that one stands for them in the plots.
live_sum()
{
	jq -s -L "$here" --arg at "$peer" 'include "sums"; group_by(.size_bytes) | map({
			name: .[0].row, at: $at, provider: .[0].provider, size_bytes: .[0].size_bytes, rounds: length, count: (map(.count) | add),
			min_ns: (map(.min_ns) | min), p50_ns: (map(.p50_ns) | median), p90_ns: (map(.p90_ns) | median),
			p99_ns: (map(.p99_ns) | median), p99_9_ns: (map(.p99_9_ns) | median), max_ns: (map(.max_ns) | max),
			run: ((map(.p50_ns) | median) as $m | min_by((.p50_ns // 0) - ($m // 0) | fabs) | .run)})
		| {schema: "pollux-bench/1", part: "live", unit: "calls of the self-test, nanoseconds; medians over the rounds", rows: ., bars: []}' \
		"$out/runs/live.ndjson" >"$out/live.json" &&
		add_to_summary live '.live = $part'
}

live_plot()
{
	local size run data=$out/plots/data kind status=0

	while read -r size run; do
		mkdir -p "$data"
		rm -f "$data"/*
		percentile_points "$out/$run/$live_row.hgrm" >"$data/percentiles.$live_row"
		histogram_points "$out/$run/$live_row.csv" >"$data/histogram.$live_row"
		for kind in percentiles histogram; do
			draw "$kind-$size" "$kind" "size='$(size_words "$size")'; bytes='$size'" || status=1
		done
		rm -rf "$data"
	done < <(jq -r '.rows[] | "\(.size_bytes) \(.run)"' "$out/live.json")
	return $status
}

live_print()
{
	say
	say "Round trips, us, as calls of the self-test of the process at $peer; medians over $rounds rounds."
	table_of_sizes '%-11s %9s %9s %9s %9s %9s %9s  %s\n' min p50 p90 p99 p99.9 max provider < <(
		jq -r -L "$here" 'include "words"; .rows[] | "\(.size_bytes) \(.name) \(.min_ns | us) \(.p50_ns | us) \(.p90_ns | us) " +
			"\(.p99_ns | us) \(.p99_9_ns | us) \(.max_ns | us) \(.provider)"' "$out/live.json")
}

live_compare()
{
	jq -e '.live' "$compare/summary.json" >/dev/null || return 0
	say
	say "Compared with $compare: p50 before and now, us"
	jq -r -L "$here" --slurpfile before "$compare/summary.json" 'include "words";
		.rows[] | . as $now | $before[0].live.rows[] | select(.size_bytes == $now.size_bytes)
		| [.size_bytes, (.p50_ns | us), ($now.p50_ns | us)] | @tsv' "$out/live.json" | column -t -s $'\t'
}

live_html()
{
	local size

	jq -r -L "$here" 'include "words"; "<h2>Calls of the self-test at \(.rows[0].at // "" | @html)</h2>",
		"<table><tr><th>bytes</th><th>min</th><th>p50</th><th>p90</th><th>p99</th><th>p99.9</th><th>max</th><th>calls</th><th>provider</th></tr>",
		(.rows[] | "<tr class=\"own\">" + ([.size_bytes, (.min_ns, .p50_ns, .p90_ns, .p99_ns, .p99_9_ns, .max_ns | us), .count, .provider]
			| cells) + "</tr>"), "</table>"' "$out/live.json"
	while read -r size; do
		inline_svg "$out/plots/percentiles-$size.svg"
		inline_svg "$out/plots/histogram-$size.svg"
	done < <(jq '.rows[].size_bytes' "$out/live.json")
}
