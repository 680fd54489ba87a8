# SPDX-License-Identifier: BSD-3-Clause
# The report's table of calls, as HTML, from services.json.

include "words";

def what: {
	"ping": "a message of plx-ping and its echo", "call-1": "one call at a time", "call-64": "64 calls open",
	"call-100": "100 calls open", "call-100000": "100000 calls open", "quiet": "an open loop, 10000 calls/s at random",
	"half": "an open loop, half of the rate of 64 open, at random",
	"params-echo": "plx-params: an echo of its self-test", "params-get": "plx-params: a parameter",
	"params-load": "plx-params: 10000 sets/s at random, 100000 parameters, 100 watchers"
}[.] // .;

"<h2>Calls of services</h2>",
"<p>Calls of a method that sends the request back, \(.rows[0].size_bytes // 64) B, one client and one service on a lcore each, in microseconds; " +
"medians over the interleaved rounds. In open loops times are from when a call should have been made.</p>",
"<table><tr><th>provider</th><th>row</th><th></th><th>p50</th><th>p90</th><th>p99</th><th>p99.9</th><th>max</th><th>M calls/s</th></tr>",
(.rows[] | "<tr\(if .name != "ping" then " class=\"own\"" else "" end)>" +
	([.provider, .name, (.name | what), (.p50_ns, .p90_ns, .p99_ns, .p99_9_ns, .max_ns | us), (.rate_per_s / 1e6 | short)] | cells) + "</tr>"),
"</table>",
(.platform | values | "<p>The platform alone holds up a CPU for \(.held_up_percent) % of the time, up to \(.longest_ns / 1e3 | round) us: at half of the greatest rate \(.met_percent) % of the calls meet such a gap, or what queued up in it.</p>")
