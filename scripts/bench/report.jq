# SPDX-License-Identifier: BSD-3-Clause
# Shared by all parts of the report, as HTML, from summary.json: $which is "top" or "bottom".

include "headline";
include "words";

def chart:
	[("shm-poll", (if row_of("rtt"; "ucx-shm"; 64) then "ucx-shm" else "raw-fi-shm" end), "raw-tcp", "tcp-poll",
		(if row_of("rtt"; "ucx-tcp"; 64) then "ucx-tcp" else "raw-fi-tcp" end), "raw-zmq") as $key
		| row_of("rtt"; $key; 64) | values | select(.p50_ns)]
	| if . == [] then empty else (map(.p50_ns) | max) as $most
	| "<div class=\"chart\" role=\"img\" aria-label=\"Round trips of 64 B, median\">",
	  "<p class=\"caption\">Round trip of 64 B between two processes of this host, median, µs</p>",
	  (.[] | "<div class=\"bar\(if .key | is_pollux then " own" else "" end)\"><span class=\"name\">\(.key | row_label | @html)</span>" +
		"<span class=\"track\"><i style=\"width: \(.p50_ns / $most * 1000 | round / 10)%\"></i></span><b>\(.p50_ns | us)</b></div>"),
	  "</div>" end;

def top:
	"<p class=\"lead\">\(headline | @html)</p>", chart,
	(.environment | "<p class=\"meta\">\(.date | @html) · host \(.host | @html) · \(.cpu_model | @html), CPUs \(.server_cpu) and \(.client_cpu) of \(.cpu_count)" +
		"\(if .hypervisor == "none" then "" else " (virtual machine, \(.hypervisor | @html))" end) · Pollux \(.version | @html) (\(.git_revision | @html))</p>"),
	([rates] | .[] | "<p>\(@html)</p>"),
	([notes] | if . == [] then empty else "<ul class=\"notes\">", (.[] | "<li>\(@html)</li>"), "</ul>" end),
	(.failures[] | "<p class=\"bad\">Failed: \(@html)</p>");

def thresholds:
	if .thresholds == [] then empty else
	"<h2>Thresholds</h2><p>Ratios that the project holds its own code to; what each is for: doc/apps/thresholds.md. They gate a run with --strict alone.</p>",
	"<div class=\"wide\"><table><tr><th>what</th><th>measured</th><th>threshold</th><th></th></tr>",
	(.thresholds[] | "<tr>" + ([.what + (if .note then " (\(.note))" else "" end), (.ratio // "–"),
		"at \(if .least then "least" else "most" end) \(.limit)"] | cells) + "<td class=\"\(verdict)\">\(verdict)\(if .gates then "" else " (an aim)" end)</td></tr>"),
	"</table></div>" end;

def platform:
	if .hiccups == null then empty else
	"<h2>What the platform alone takes away</h2>" +
	"<p>Gaps above \(.hiccups.gap_above_ns / 1000) µs between two readings of the clock, while nothing but " +
	"a spin ran on the CPU, for \(.hiccups.duration_ns / 1000000000) s before the runs. No percentile can be better than these.</p>" +
	"<div class=\"wide\"><table><tr><th>CPU</th><th>gaps</th><th>lost, ms</th><th>steal, ms</th><th>longest, µs</th></tr>",
	(.hiccups.cpus[] | "<tr>" + ([.cpu, .gap_count, (.gap_total_ns / 10000 | round / 100), .steal_ms,
		(.longest_gaps_ns | map(. / 1000 | round | tostring) | join(" "))] | cells) + "</tr>"),
	"</table></div>" end;

def environment:
	"<h2>Environment</h2><div class=\"wide\"><table>",
	(.environment | to_entries[]
		| "<tr><td>\(.key | gsub("_"; " ") | @html)</td><td class=\"text\">" +
		  "\(.value | if type == "array" then join(", ") else tostring end | @html)</td></tr>"),
	"</table></div>";

if $which == "top" then top else thresholds, platform, environment end
