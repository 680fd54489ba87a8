# SPDX-License-Identifier: BSD-3-Clause
# A result as a page of Markdown (report.md), from summary.json: what was measured where, and both states of the CPUs side
# by side.

include "headline";
include "words";

def row: "| \(join(" | ")) |";
def table($head): ($head | row), "|\($head | map("---|") | add)", .[];
def per_million: . / 1e4 | round / 100;

def states: [.parts[]?.rows[]?.state // "one"] | unique | if contains(["near"]) then ["near", "far"] else .[:1] end;
def state_words($cpus): if . == "one" then "" else ", CPUs \(.) (\($cpus[. + "_ns"]) ns)" end;

def environment:
	. as $all | .environment
	| [["date", .date], ["Pollux", "\(.version), \(.git_revision)"],
	   ["host", "\(.cpu_model), CPUs \(.server_cpu) and \(.client_cpu) of \(.cpu_count)\(if .hypervisor == "none" then "" else "; a virtual machine (\(.hypervisor))" end)"],
	   ["a cache line, there and back", ($all.cpus | if .near_ns then "\(.near_ns) ns (near) and \(.far_ns) ns (far)" else "\(.line_ns // "n/a") ns" end)],
	   ["system", "\(.system), \(.kernel), \(.compiler)"],
	   ["libraries", "libfabric \(.libfabric_version), UCX \(.ucx_version), ZeroMQ \(.zmq_version)"],
	   ["kernel options", .kernel_options],
	   ["runs", "\(.rounds) rounds of \(.duration_s) s"],
	   ($all | notes | ["note", .]), ($all.failures[] | ["failed", .])]
	| map(select(.[1] | values | . != "") | row) | table(["", ""]);

# Percentiles, one line a row, one group of columns a state.
def round_trips:
	(states) as $states | .cpus as $cpus | [.parts.rtt.rows[]? | select(.size_bytes == 64)] as $rows
	| [$rows[].key] | reduce .[] as $key ([]; if index([$key]) then . else . + [$key] end)
	| map(. as $key | [$key | row_label] + [$states[] as $state
		| ([$rows[] | select(.key == $key and .state == $state)][0] // {}) | .p50_ns, .p90_ns, .p99_ns | if . then us else "" end] | row)
	| if . == [] then empty else "", "## Round trips of 64 B, in µs", "",
		table(["full round trip"] + [$states[] | state_words($cpus) as $in | "p50\($in)", "p90", "p99"]) end;

def one_way:
	(states) as $states | .cpus as $cpus
	| [.parts.stream.rows[]?, (.parts.netio.rows[]? | select(.mmsg_per_s) | .messages_per_s = .mmsg_per_s * 1e6)] as $rows
	| [$rows[].key] | reduce .[] as $key ([]; if index([$key]) then . else . + [$key] end)
	| map(. as $key | [$key | row_label] + [$states[] as $state | (64, 1048576) as $size
		| ([$rows[] | select(.key == $key and .state == $state and .size_bytes == $size)][0].messages_per_s // null)
		| if . == null then "" elif $size == 64 then per_million else . * $size / 1e8 | round / 10 end] | row)
	| if . == [] then empty else "", "## One way", "",
		table(["messages that arrived"] + [$states[] | state_words($cpus) as $in | "64 B, M/s\($in)", "1 MiB, GB/s"]) end;

def thresholds:
	if .thresholds == [] then empty else "", "## Thresholds", "",
	([.thresholds[] | [.what, .ratio // "n/a", "at \(if .least then "least" else "most" end) \(.limit)", verdict] | row]
		| table(["what", "measured", "threshold", ""])) end;

"# A result of `scripts/bench.sh`", "", environment,
round_trips, one_way, thresholds
