# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# From results to the summary, plots and the report. Each part is in part-NAME.sh and has functions NAME_begin,
# NAME_run, NAME_sum, NAME_plot, NAME_print and NAME_html. Sourced by bench.sh.
# shellcheck disable=SC2154

# in_parts VERB: call PART_VERB for each part of the run. Returns 1 if one fails.
in_parts()
{
	local part status=0

	for part in "${parts[@]}"; do
		"${part}_$1" || status=1
	done
	return $status
}

# Write summary.json, with the results of all parts, and a file for each part.
summarize()
{
	jq -n -L "$here" --slurpfile environment "$out/environment.json" --slurpfile hiccups "$out/hiccups.json" \
		--argjson between "$(line_between)" --slurpfile lines "$out/runs/lines" \
		--argjson failures "$(words_array "${failures[@]}")" --argjson left_out "$(words_array "${left_out[@]}")" \
		-f "$here/summary.jq" >"$out/summary.json" &&
		in_parts sum
}

words_array()
{
	jq -nc '$ARGS.positional' --args "$@"
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
	jq -r -L "$here" 'include "words";
		.thresholds[] | "\(verdict | . + "        " | .[:8]) \(.what): \(.ratio // "-") (at \(if .least then "least" else "most" end) \(.limit)" +
			"\(if .gates then "" else "; an aim" end)\(if .note then "; \(.note)" else "" end))"' "$out/summary.json"
}

# The result, what it was compared with, caveats, and the path of the report: at most five lines.
print_end()
{
	say
	jq -r -L "$here" --argjson late "$(words_array "${late[@]}")" 'include "headline";
		headline, compared, ([rates][0] // "No rates were measured."),
		((.failures + $late) as $failed | if $failed != [] then "FAILED: \($failed | length): \($failed[0])\(if $failed[1] then " ..." else "" end)"
		 else [notes | select(startswith("Left out") | not)] | if . == [] then "Nothing unusual was seen." else "Note: \(join(" "))" end end)' \
		"$out/summary.json"
	say "Report: $out/report.html"
}

write_report()
{
	jq -r -L "$here" -f "$here/markdown.jq" "$out/summary.json" >"$out/report.md" || return
	{
		cat "$here/report-head.html"
		jq -r -L "$here" --arg which top -f "$here/report.jq" "$out/summary.json"
		in_parts html
		jq -r -L "$here" --arg which bottom -f "$here/report.jq" "$out/summary.json"
		printf '</body>\n</html>\n'
	} >"$out/report.html"
}
