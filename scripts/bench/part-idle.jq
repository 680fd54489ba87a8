# SPDX-License-Identifier: BSD-3-Clause
# The report's table of idle policies, as HTML, from idle.json.

include "words";

def load: "\(.arrival)\(if .rate > 0 then ", \(.rate)/s" else "" end)";

"<h2>CPU against latency: a server with little to do</h2>" +
"<p>By its idle policy. CPU time and sleeps are the server's; round trips are those of a client that polls. " +
"<i>none</i>: nobody is connected; <i>peer</i>: one is, and says nothing; <i>silence</i>: a message each ten seconds (a quick run: one). " +
"<i>latency</i> and <i>balanced</i> are adaptive, by what they have learned; <i>fixed</i> is balanced with a fixed time. " +
"Medians over the rounds.</p>" +
"<table><tr><th>load</th><th>policy</th><th>CPU %</th><th>wakes/s</th><th>p50, µs</th><th>p99, µs</th></tr>",
(.rows | group_by([.provider])[]
	| "<tr class=\"size\"><th colspan=\"6\">\(.[0].provider)</th></tr>",
	  (.[] | "<tr>" + ([load, .policy, (.cpu_percent | short), (.wakes_per_s | round), (.p50_ns | us), (.p99_ns | us)]
		| cells) + "</tr>")),
"</table>"
