# SPDX-License-Identifier: BSD-3-Clause
# The report's tables of round trips over RDMA devices, as HTML, from verbs.json.

include "words";

def one_size($references):
	"<tr class=\"size\"><th colspan=\"10\">\(.[0].device | @html), \(.[0] | .state as $state | .size_bytes | size | in_state($state))</th></tr>",
	(.[] | "<tr\(if .name | startswith("verbs-") then " class=\"own\"" else "" end)>" +
		([.name, (.min_ns, .p50_ns, .p90_ns, .p99_ns, .p99_9_ns, .max_ns | us),
		  "\(.p50_ns_least | us) – \(.p50_ns_greatest | us)", (.base // "–"), (.ratio // "–")] | cells) + "</tr>"),
	(select(.[0].size_bytes == 64) | $references[]
		| "<tr>" + ([.name, "", (.ns | us), "", "", "", "", "other hosts", "", ""] | cells) + "</tr>");

"<h2>Round trips over RDMA devices</h2>",
(select(.rows != [])
	| "<p>Full round trips in microseconds\(if .peer then ", to \(.peer | @html)" else ", each device to itself" end); medians over the " +
	  "interleaved rounds. <i>-event</i> rows sleep for every message, on both ends. ib_send_lat tells half round trips, which are doubled here. " +
	  "<i>x base</i> is p50 over that of base.</p>",
	  "<table>" + ([.devices[] | "<tr>" + ([.device, .transport, .rate, "MTU \(.mtu_bytes)", .address, "NUMA node \(.node)"] | cells) + "</tr>"] | add // "") + "</table>",
	  "<table><tr><th>row</th><th>min</th><th>p50</th><th>p90</th><th>p99</th><th>p99.9</th><th>max</th><th>p50 over rounds</th>" +
	  "<th>base</th><th>x base</th></tr>",
	  (.references as $references | .rows | group_by([.device, .size_bytes, .state])[] | one_size($references)),
	  "</table>",
	  (.references[] | "<p>\(.name): \(.what | @html); \(.source | @html).</p>"))
