# SPDX-License-Identifier: BSD-3-Clause
# The table of streams of the report, as HTML, from stream.json.

include "words";

def figures:
	"<table><tr><th>row</th><th>messages/s</th><th>over rounds</th><th>GB/s</th><th>messages</th>" +
	"<th>x base</th></tr>",
	(.rows | group_by(.size_bytes)[]
		| "<tr class=\"size\"><th colspan=\"6\">\(.[0].size_bytes | size)</th></tr>",
		  (.[] | "<tr\(if .name == "shm-stream" then " class=\"own\"" else "" end)>" +
			([.name, (.messages_per_s | round),
			  "\(.messages_per_s_least | round) – \(.messages_per_s_greatest | round)",
			  (.bytes_per_s / 1e9 | short), .count, (.ratio // "–")] | cells) + "</tr>")),
	"</table>";

"<h2>Messages one way between two processes</h2>" +
"<p>As fast as the receiver takes them; what counts is what it has received. Medians over the interleaved rounds; " +
"1 GB is 10<sup>9</sup> bytes. In the row <i>-cma</i> the receiver reads large messages out of the sender's memory, as it does in " +
"raw-fi-shm; in <i>-nocma</i> no process may read another's memory. " +
"<i>x base</i> is the rate over that of raw-fi-shm, for shm-stream over that of raw-fi-plxshm.</p>",
figures
