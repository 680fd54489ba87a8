# SPDX-License-Identifier: BSD-3-Clause
# The report's tables of NetIO's sockets, as HTML, from netio.json.

include "words";

def figure: if . == null then "–" else short end;
def whole: if . == null then "–" else round end;
def kept: . * 1e4 | round / 1e4;

# heads: column titles; row: the cells of a row.
def table(heads; row):
	if . == [] then empty else
	"<table><tr>" + (["row", heads] | map("<th>\(.)</th>") | join("")) + "</tr>",
	(group_by(.size_bytes)[]
		| "<tr class=\"size\"><th colspan=\"\([heads] | length + 1)\">\(.[0].size_bytes | size)</th></tr>",
		  (.[] | "<tr\(if .test | IN("zmq-in-place", "zmq-push-pull", "iperf3", "raw-fi-tcp-bw", "plx-ping") then ""
				else " class=\"own\"" end)>" + ([.name, row] | cells) + "</tr>")),
	"</table>" end;

def peer: .peer // "–", .ratio // "–";

"<h2>NetIO's sockets</h2>" +
"<p>Messages one way as fast as the receiver takes them; what counts is what it has received. Medians over the interleaved rounds; 1 Gb is " +
"10<sup>9</sup> bits. CPU is that of the whole process, in per cent of one; NetIO's programs poll. <i>x peer</i> is " +
"over what the row is held against.</p>",
(.rows | map(select(.gbit_per_s and .subscribers == null))
	| table("provider", "Mmsg/s", "Gb/s", "over rounds", "CPU sender", "CPU receiver", "peer", "x peer";
		.provider, (.mmsg_per_s | digits // "–"), (.gbit_per_s | figure),
		"\(.gbit_per_s_least | figure) – \(.gbit_per_s_greatest | figure)",
		(.cpu_percent_sender | whole), (.cpu_percent_receiver | whole), peer)),
(.rows | map(select(.p50_ns))
	| table("provider", "p50, µs", "p99, µs", "p50 over rounds", "peer", "x peer";
		.provider, (.p50_ns | us), (.p99_ns | us), "\(.p50_ns_least | us) – \(.p50_ns_greatest | us)", peer)),
(.rows | map(select(.cycles_per_copy))
	| table("subscribers", "Mcopies/s", "Gb/s", "cycles/copy", "over rounds", "CPU sender", "CPU receiver", "peer", "x peer";
		.subscribers, (.mmsg_per_s | digits // "–"), (.gbit_per_s | figure), (.cycles_per_copy | whole),
		"\(.cycles_per_copy_least | whole) – \(.cycles_per_copy_greatest | whole)",
		(.cpu_percent_sender | whole), (.cpu_percent_receiver | whole), peer)),
(.rows | map(select(.kept)) | select(. != [])
	| "<p>Four subscribers and one that is stopped, published to at half the rate of publish-buffered-4.</p>",
	  table("subscribers", "Mcopies/s", "asked", "kept", "over rounds", "CPU sender", "CPU receiver";
		.subscribers, (.mmsg_per_s | digits), (.rate_asked * .subscribers / 1e6 | digits), (.kept | kept),
		"\(.kept_least | kept) – \(.kept_greatest | kept)",
		(.cpu_percent_sender | whole), (.cpu_percent_receiver | whole)))
