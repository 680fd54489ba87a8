# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# bench.sh --compare A B: differences between the results of two runs. Sourced by bench.sh.
# shellcheck disable=SC2154

compare_caution='Two runs of the same code differ by more than the rounds within each: repeat both before you believe a small change.'

compare_results()
{
	local folder a=${compare[0]} b=${compare[1]}

	for folder in "$a" "$b"; do
		jq -e '.schema == "pollux-bench/2"' "$folder/summary.json" >/dev/null 2>&1 ||
			die "--compare $folder: there is no summary.json of this version of bench.sh; give a folder that bench.sh wrote (--out)" 2
	done
	command -v gnuplot >/dev/null || die 'gnuplot is not there; run scripts/setup.sh --for bench'
	out=${out:-$b}
	mkdir -p "$out/plots" || die "--out $out: cannot be made" 2
	jq -n -L "$here" --slurpfile a "$a/summary.json" --slurpfile b "$b/summary.json" -f "$here/compare.jq" >"$out/compare.json" ||
		die 'the results cannot be compared'
	compare_print
	compare_plot || say "FAILED: plots: see $out/plots/gnuplot.log"
	compare_html >"$out/compare.html"
	say
	say "$compare_caution"
	say "Page: $out/compare.html"
}

compare_print()
{
	jq -r '("a", "b") as $which | .[$which]
		| "\($which | ascii_upcase): \(.date), host \(.host), Pollux \(.version) (\(.git_revision)), cache line: \(.cpus)"' "$out/compare.json"
	say
	jq -r -L "$here" 'include "words";
		def figure: digits | tostring;
		(["part", "row", "size", "CPUs", "figure", "A", "B", "change", "noise", ""] | @tsv),
		(.rows[] | [.part, .key, (.size_bytes | size), .state, .figure, (.a | figure), (.b | figure),
			"\(.change * 1000 | round / 10) %", (if .noise then "\(.noise * 1000 | round / 10) %" else "-" end), .verdict] | @tsv)' \
		"$out/compare.json" | column -t -s $'\t'
	jq -r '(.only_a[] | "only in A, or in another state of the CPUs: \(.)"), (.only_b[] | "only in B, or in another state of the CPUs: \(.)")' \
		"$out/compare.json"
}

# The changes, and the histograms of both runs, row by row, for the smallest size.
compare_plot()
{
	local data=$out/plots/data status=0 n=0 label folder file p50 colour

	: >"$out/plots/gnuplot.log"
	rm -rf "$data"
	mkdir -p "$data"
	jq -r '.rows[] | (.noise // 0) as $noise | [.change * 100, (.change - $noise) * 100, (.change + $noise) * 100,
		({"better": 1, "worse": 2}[.verdict] // 3)] | map(tostring) | join(" ")' "$out/compare.json" >"$data/changes"
	jq -r -L "$here" 'include "words"; .rows[] | .state as $state | "\(.part), \(.key), \(.size_bytes | size | in_state($state))"' \
		"$out/compare.json" >"$data/labels"
	[[ ! -s $data/changes ]] || draw compare compare "n=$(wc -l <"$data/changes")" || status=1

	rm -rf "$data"
	mkdir -p "$data"
	while IFS=$'\t' read -r label folder file p50 colour; do
		file=${!folder}/$file
		[[ -s $file ]] || continue
		((++n))
		histogram_points "$file" >"$data/$n.histogram"
		printf '%s\n' "$label" >>"$data/labels"
		printf '%s\n' "$p50" >>"$data/p50"
		printf '%s\n' "$colour" >>"$data/colours"
	done < <(jq -r -L "$here" 'include "words";
		[.rows[] | select(.part == "rtt" and .histograms[0] and .histograms[1])] | group_by(.size_bytes)[0] // [] | .[]
		| (["A: \(.key | row_label)", "a", .histograms[0], (.a | us), "#8a94a6"], ["B", "b", .histograms[1], (.b | us), "#c2410c"]) | @tsv' \
		"$out/compare.json")
	((!n)) || draw compare-histograms histogram "size='the smallest size, A above B'; state='one'; n=$n" || status=1
	rm -rf "$data"
	[[ -s $out/plots/gnuplot.log ]] || rm -f "$out/plots/gnuplot.log"
	return $status
}

compare_html()
{
	sed 's/Pollux, measured/Pollux, two runs compared/' "$here/report-head.html"
	jq -r -L "$here" 'include "words";
		"<p class=\"lead\">Of \(.rows | length) figures \([.rows[] | select(.verdict == "better")] | length) are better in B, " +
		"\([.rows[] | select(.verdict == "worse")] | length) worse, and the others differ by no more than their noise.</p>",
		(("a", "b") as $which | .[$which] | "<p class=\"meta\">\($which | ascii_upcase): \(.date | @html) · host \(.host | @html) · \(.cpu_model | @html) · " +
			"Pollux \(.version | @html) (\(.git_revision | @html)) · libfabric \(.libfabric_version | @html) · cache line: \(.cpus | @html)</p>"),
		"<div class=\"wide\"><table><tr><th>part, row</th><th>size</th><th>CPUs</th><th>figure</th><th>A</th><th>B</th><th>change</th><th>noise</th><th></th></tr>",
		(.rows[] | "<tr>" + (["\(.part), \(.key)", (.size_bytes | size), .state, .figure, (.a | digits), (.b | digits), "\(.change * 1000 | round / 10) %",
			(if .noise then "\(.noise * 1000 | round / 10) %" else "–" end)] | cells) +
			"<td class=\"\({"better": "reached", "worse": "missed"}[.verdict] // "")\">\(.verdict)</td></tr>"),
		"</table></div>", "<p>\($caution)</p>"' --arg caution "$compare_caution" "$out/compare.json"
	inline_svg "$out/plots/compare.svg"
	inline_svg "$out/plots/compare-histograms.svg"
	printf '</body>\n</html>\n'
}
