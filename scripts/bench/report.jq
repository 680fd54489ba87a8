# SPDX-License-Identifier: BSD-3-Clause
# What all parts share of the report, as HTML, from summary.json: $which is "top" or "bottom".

include "words";

def verdict:
	(if (.platform_lost // 0) <= 0.01 then empty
	 else "<p class=\"bad\">Others had \(.platform_lost * 1000 | round / 10) % of a CPU before the runs began: " +
		"this host was busy, and these figures tell of that.</p>" end),
	(if .valid then empty else "<p class=\"bad\">Invalid: \(.reason | @html)</p>" end),
	(if .baseline_checked or .runs == [] then empty
	 else "<p>raw-fi-tcp was not checked against raw-tcp: 64 B was not measured with both.</p>" end),
	(.failures[] | "<p class=\"bad\">Failed: \(@html)</p>");

def bars:
	if .bars == [] then empty else
	"<h2>Bars</h2><table><tr><th>what</th><th>ratio</th><th>limit</th><th></th></tr>",
	(.bars[] | "<tr>" + ([(.what // "\(.row) over \(.over), \(.size_bytes | size)") + (if .note then " (\(.note))" else "" end), .ratio,
		"at \(if .least then "least" else "most" end) \(.limit)"] | cells) +
		(if .ok then "<td class=\"good\">reached</td>"
		 elif .gates then "<td class=\"bad\">missed</td>"
		 else "<td>\(if .least then "below" else "above" end) (shown only)</td>" end) + "</tr>"),
	"</table>" end;

def hiccups:
	if .hiccups == null then empty else
	"<h2>What the platform alone takes away</h2>" +
	"<p>Gaps above \(.hiccups.gap_above_ns / 1000) µs between two readings of the clock, while nothing but " +
	"a spin ran on the CPU, for \(.hiccups.duration_ns / 1000000000) s before the runs.</p>" +
	"<table><tr><th>CPU</th><th>gaps</th><th>lost, ms</th><th>steal, ms</th><th>longest, µs</th></tr>",
	(.hiccups.cpus[] | "<tr>" + ([.cpu, .gap_count, (.gap_total_ns / 10000 | round / 100), .steal_ms,
		(.longest_gaps_ns | map(. / 1000 | round | tostring) | join(" "))] | cells) + "</tr>"),
	"</table>" end;

def environment:
	"<h2>Environment</h2><table>",
	(.environment | to_entries[]
		| "<tr><td>\(.key | gsub("_"; " ") | @html)</td><td class=\"text\">" +
		  "\(.value | if type == "array" then join(", ") else tostring end | @html)</td></tr>"),
	"</table>";

if $which == "top" then verdict, bars else hiccups, environment end
