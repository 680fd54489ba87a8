# SPDX-License-Identifier: BSD-3-Clause
# The report's table of round trips, as HTML, from rtt.json.

include "words";

def meaning: {
	"bare": "two processes spin on one cache line: no message can be quicker",
	"raw-fi-shm": "libfabric's shm provider alone, polled", "raw-fi-plxshm": "libfabric alone over Pollux's own provider, polled",
	"ucx-shm": "ucx_perftest tag_lat, polled (it prints the median alone)", "shm-poll": "plx-ping, both ends poll",
	"shm-adaptive": "plx-ping, both ends poll and sleep when idle (the default)",
	"shm-poll-tcp": "shm-poll while the server polls an idle TCP link too",
	"raw-tcp": "plain sockets, TCP_NODELAY, both ends spin", "raw-tcp-event": "plain sockets, both ends sleep in epoll_wait for each message",
	"raw-fi-tcp": "libfabric alone, polled", "tcp-poll": "plx-ping, both ends poll",
	"ucx-tcp": "ucx_perftest tag_lat, polled (it prints the median alone)",
	"tcp-adaptive": "plx-ping, both ends poll and sleep when idle (the default)",
	"shm-event": "plx-ping, both ends sleep for each message", "tcp-event": "plx-ping, both ends sleep for each message",
	"tcp-beside": "a link while another one between the same two lcores sends 4 KiB in each turn",
	"tcp-poll-idle": "tcp-poll while the server holds 1000 idle links",
	"raw-zmq": "ZeroMQ PAIR, blocking, as most programs use it; its own thread moves the bytes", "raw-eventfd": "two processes sleep on an eventfd for each message",
	"raw-fi-plxshm-event": "libfabric alone over Pollux's provider, asleep for each message"
}[.] // "";

"<p>Full round trips in microseconds: from just before the send call to the first moment at which the answer is seen. All rounds in one; " +
"<i>n/a</i>: too few samples. <i>Ratio</i>: p50 over that of another row, by pairs that ran one after the other in one state of the CPUs.</p>",
(.rows | group_by([.size_bytes, .state])[]
	| .[0].state as $state
	| "<h3>\(.[0].size_bytes | size | in_state($state))</h3>",
	  "<div class=\"wide\"><table><tr><th>row</th><th>p50</th><th>ratio</th><th>min</th><th>p90</th><th>p99</th><th>p99.9</th>" +
	  "<th>max</th><th>p50 of rounds</th></tr>",
	  (.[] | "<tr\(if .key | is_pollux then " class=\"own\"" else "" end)><td class=\"row\">\(.key | row_label | @html)<small>\(.key): \(.key | meaning | @html)</small></td>" +
		([(.p50_ns | us), ratio_words, (.min_ns, .p90_ns, .p99_ns, .p99_9_ns, .max_ns | us), "\(.p50_ns_least | us)–\(.p50_ns_greatest | us)"]
		 | cells) + "</tr>"),
	  "</table></div>")
