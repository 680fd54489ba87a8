# SPDX-License-Identifier: BSD-3-Clause
# The report's table of streams, as HTML, from stream.json.

include "words";

def meaning: {
	"raw-fi-shm": "libfabric's shm provider alone; the receiver reads large messages out of the sender's memory (CMA)",
	"raw-fi-shm-nocma": "the same where no process may read another's memory",
	"raw-fi-plxshm": "libfabric alone over Pollux's own provider",
	"raw-fi-plxshm-cma": "the same; the receiver reads large messages out of the sender's memory",
	"shm-stream": "plx-ping --one-way", "tcp-stream": "plx-ping --one-way", "raw-fi-tcp": "libfabric alone, over its own provider",
	"tcp-single": "plx-ping --one-way --burst 1: each message leaves alone",
	"ucx-shm": "ucx_perftest tag_bw", "ucx-tcp": "ucx_perftest tag_bw",
	"ucx-tcp-am": "ucx_perftest am_bw: the receiver copies nothing out", "iperf3": "one connection, writes of that size, in whole seconds"
}[.] // "";

"<h2>Messages one way</h2>",
"<p>As fast as the receiver takes them; what counts is what it has received. Medians over the interleaved rounds; " +
"1 GB is 10<sup>9</sup> bytes. <i>Ratio</i>: the rate over that of another row.</p>",
(.rows | group_by([.size_bytes, .state])[]
	| .[0].state as $state
	| "<h3>\(.[0].size_bytes | size | in_state($state))</h3>",
	  "<div class=\"wide\"><table><tr><th>row</th><th>messages/s</th><th>of rounds</th><th>GB/s</th><th>ratio</th></tr>",
	  (.[] | "<tr\(if .key | is_pollux then " class=\"own\"" else "" end)><td class=\"row\">\(.key | row_label | @html)<small>\(.key): \(.key | meaning | @html)</small></td>" +
		([(.messages_per_s | round), "\(.messages_per_s_least | round)–\(.messages_per_s_greatest | round)",
		  (.bytes_per_s / 1e9 | short), ratio_words] | cells) + "</tr>"),
	  "</table></div>")
