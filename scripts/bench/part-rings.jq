# SPDX-License-Identifier: BSD-3-Clause
# The report's tables of rings, pools and hops, as HTML, from rings.json.

include "words";
def figure: if . == null then "–" else . * 100 | round / 100 end;

def rows:
	"<table><tr><th></th><th>lcores</th><th>burst</th><th>cycles</th><th>over rounds</th>" +
	"<th>DPDK's</th><th>over rounds</th><th>ratio</th></tr>",
	(.rows[] | select(.name != "hop") | (.state // "one") as $state | "<tr>" + ([("\(.name) \(.variant)" | in_state($state)), .lcores, .burst, (.cycles_per_elem | figure),
		"\(.cycles_least | figure) – \(.cycles_greatest | figure)", (.peer_cycles_per_elem | figure),
		(if .peer then "\(.peer_cycles_least | figure) – \(.peer_cycles_greatest | figure)" else "–" end),
		(.ratio | figure)] | cells) + "</tr>"),
	"</table>";

def caches:
	select(.caches) | .caches
	| "<p>Caches of a shared pool at \(.lcores) lcores take \(.bytes) bytes" +
	  (if .peer_bytes then "; those of rte_mempool \(.peer_bytes)" else "" end) + ".</p>";

def hops:
	select(.hop) | .hop
	| "<p>A message to another lcore and back, nanoseconds; <i>bare</i> is a cache line between the same CPUs, " +
	  "<i>quiet</i> the first message after \(.gap_us) µs without one" +
	  (if .["idle-tcp"] then ", <i>idle-tcp</i> while both lcores poll an idle tcp link: a poll takes " +
		"\(.["idle-tcp"].cold_poll_ns | round) ns, once in 16 turns of \(.["idle-tcp"].turn_ns | round) ns" else "" end) +
	  ".</p><table><tr><th></th><th>p50</th><th>over rounds</th><th>p99</th><th>round trips</th><th>over bare</th></tr>",
	  (to_entries[] | select(.value | type == "object")
		| "<tr>" + ([.key, (.value.p50_ns | figure), "\(.value.p50_least_ns | figure) – \(.value.p50_greatest_ns | figure)",
			(.value.p99_ns | figure), .value.count, (.value.ratio | figure)] | cells) + "</tr>"),
	  "</table>";

"<h2>Rings, pools and messages between lcores</h2>" +
"<p>Cycles of the clock per element, medians over the rounds" +
(if .environment.peer_version then ", next to those of \(.environment.peer_version | @html) in the same run" else "" end) +
".</p>",
rows, caches, hops
