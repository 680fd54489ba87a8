# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# From what the parts measured to the summary, plots and the report. Each part is in part-NAME.sh and
# has functions NAME_begin, NAME_run, NAME_sum, NAME_plot, NAME_print and NAME_html. Sourced by
# bench.sh.
# shellcheck disable=SC2154

# in_parts VERB: what each part that is run does for it. Returns 1 where one of them failed.
in_parts()
{
	local part status=0

	for part in "${parts[@]}"; do
		"${part}_$1" || status=1
	done
	return $status
}

# summary.json, to which the parts add what they have to say, and a file of each.
summarize()
{
	jq -s -L "$here" --slurpfile environment "$out/environment.json" \
		--slurpfile hiccups "$out/hiccups.json" \
		--slurpfile failures "$out/failures.json" \
		--arg fi_provider "${fi_provider-}" \
		-f "$here/summary.jq" "$out/runs/all.ndjson" >"$out/summary.json" &&
		in_parts sum
}

plot_all()
{
	local status=0

	mkdir -p "$out/plots"
	: >"$out/plots/gnuplot.log"
	in_parts plot || status=1
	[[ -s $out/plots/gnuplot.log ]] || rm -f "$out/plots/gnuplot.log"
	return $status
}

print_summary()
{
	in_parts print
	say
	cat "$out/hiccups.txt"
	say
	jq -r '
		(.bars[] | "\(if .ok then "reached" elif .gates then "MISSED " elif .least then "below  " else "above  " end)  " +
			(if .what then "\(.what): \(.ratio)"
			 else "\(.row) at \(.size_bytes) B is \(.ratio) x \(.over)" end) +
			" (at \(if .least then "least" else "most" end) \(.limit)\(if .gates then "" else "; shown only" end)" +
			"\(if .note then "; \(.note)" else "" end))"),
		(if (.platform_lost // 0) <= 0.01 then empty
		 else "\nnote: others had \(.platform_lost * 1000 | round / 10) % of a CPU before the runs began: " +
			"this host is busy, and these figures tell of that" end),
		(if .valid then empty else "\nINVALID: \(.reason)" end),
		(if .baseline_checked or .runs == [] then empty
		 else "\nnote: raw-fi-tcp was not checked against raw-tcp, as 64 B was not measured with both" end),
		(.failures[] | "\nFAILED: \(.)")' "$out/summary.json"
}

write_report()
{
	{
		cat "$here/report-head.html"
		jq -r -L "$here" --arg which top -f "$here/report.jq" "$out/summary.json"
		in_parts html
		jq -r -L "$here" --arg which bottom -f "$here/report.jq" "$out/summary.json"
		printf '</body>\n</html>\n'
	} >"$out/report.html"
}
