# SPDX-License-Identifier: BSD-3-Clause
# The table of round trips of the report, as HTML, from summary.json.

include "words";

def figures:
	"<table><tr><th>row</th><th>min</th><th>p50</th><th>p90</th><th>p99</th><th>p99.9</th><th>p99.99</th>" +
	"<th>max</th><th>p50 over rounds</th><th>round trips</th><th>x raw</th></tr>",
	(.runs | group_by(.size_bytes)[]
		| "<tr class=\"size\"><th colspan=\"11\">\(.[0].size_bytes | size)</th></tr>",
		  (.[] | "<tr\(if .name | IN("tcp-poll", "shm-poll") then " class=\"own\"" else "" end)>" +
			([.name, (.min_ns, .p50_ns, .p90_ns, .p99_ns, .p99_9_ns, .p99_99_ns, .max_ns | us),
			  "\(.p50_least_ns | us) – \(.p50_greatest_ns | us)", .count, (.ratio_to_raw // "–")]
			 | cells) + "</tr>")),
	"</table>";

"<h2>Round trips of messages between two processes</h2>" +
"<p>All times are <b>full round trips in microseconds</b>: from immediately before the send call to the " +
"first moment at which the answer is seen. Percentiles are medians over the interleaved rounds; " +
"<i>n/a</i> means too few samples. <i>x raw</i> is p50 over that of what the row stands on: raw-fi-tcp " +
"over raw-tcp, raw-fi-plxshm over raw-fi-shm, raw-fi-plxshm-event over raw-eventfd, shm-poll over raw-fi-plxshm, the rows " +
"beside idle links over those without, all others over raw-fi-tcp.</p>",
figures
