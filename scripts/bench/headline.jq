# SPDX-License-Identifier: BSD-3-Clause
# The summary in a few sentences, for the end of the terminal's output and the top of the report.

include "words";

# Rows of the state with the most runs come first.
def row_of($part; $key; $size): [.parts[$part].rows[]? | select(.key == $key and .size_bytes == $size)][0];
def took($key): row_of("rtt"; $key; 64) | values | .p50_ns | values | us;

def list: if length < 2 then join("") else "\(.[:-1] | join(", ")) and \(last)" end;

def own: [(took("shm-poll") | "\(.) µs between two processes over shared memory"), (took("tcp-poll") | "\(.) µs over TCP")];

def headline:
	own as $own | [(took("raw-zmq") | "ZeroMQ takes \(.)"), (took("raw-tcp") | "plain sockets \(.)")] as $others
	| if $own != [] then "On this host a 64 B round trip takes \($own | list)\($others | if . == [] then "" else "; " + join(", ") end)."
	  elif .parts.live.rows[0]? then .parts.live | .rows[0]
		| "A call of \(.size_bytes | size) to the process that runs, and back, takes \(.p50_ns | us) µs."
	  else "Measured on this host: \(.parts | keys | join(", "))." end;

# The comparison.
def compared:
	[(took("raw-tcp") | "plain sockets \(.) µs"),
	 ([(took("raw-fi-shm") | "\(.) over shared memory"), (took("raw-fi-tcp") | "\(.) over TCP")] | select(. != []) | "libfabric \(list)"),
	 ([(took("ucx-shm") | "\(.) over shared memory"), (took("ucx-tcp") | "\(.) over TCP")] | select(. != []) | "UCX \(list)"),
	 (took("raw-zmq") | "ZeroMQ \(.)")]
	| if . == [] then "Nothing else was measured." else "Compared with, 64 B round trips: \(join("; "))." end;

# One-way messages: throughput of a row of either part. NetIO and ZeroMQ pack small messages together.
def rates:
	def per_s($key; $size): (row_of("stream"; $key; $size) | values | .messages_per_s),
		(row_of("netio"; $key; $size) | values | .gbit_per_s * 1e9 / 8 / $size);
	[["Pollux over shared memory", "shm-stream"], ["Pollux over TCP", "tcp-stream"], ["its NetIO sockets over TCP", "buffered-tcp"],
	 ["UCX over shared memory", "ucx-shm"], ["UCX over TCP", "ucx-tcp"], ["ZeroMQ", "zmq-in-place", "zmq-push-pull"]] as $rows
	| [. as $all | $rows[] | .[0] as $name | .[1:] as $keys | $all
		| [([per_s($keys[]; 64)] | max | values | "\(. / 1e4 | round / 100) M/s"),
		   ([per_s($keys[]; 1048576)] | max | values | "\(. * 1048576 / 1e8 | round / 10) GB/s")]
		| select(. != []) | "\($name) \(join(", "))"]
	| if . == [] then empty else "One way, messages of 64 B a second, and bytes in messages of 1 MiB: \(join("; "))." end;

# Caveats of the figures.
def notes:
	(if (.platform_lost // 0) > 0.01 then "This host is busy: other work took \(.platform_lost * 1000 | round / 10) % of a CPU before the runs " +
		"began. Medians hold; long tails and rates show it." else empty end),
	(.cpus | select(.near_ns) | "The two CPUs were near each other at times (a cache line there and back takes \(.near_ns) ns) and far apart at " +
		"times (\(.far_ns) ns), as the hypervisor moved them. Rows are compared within one state."),
	([.parts[] | .changed // 0] | add // 0 | select(. > 0)
		| "\(.) \(if . == 1 then "run" else "runs" end) during which that state changed \(if . == 1 then "is" else "are" end) left out."),
	(.left_out[] | "Left out: \(.)");
