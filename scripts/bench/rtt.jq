# SPDX-License-Identifier: BSD-3-Clause
# From all runs of the part rtt (-s) to rtt.json. Arguments: between (states.jq), pooled (percentiles of all runs of a
# row: bench/common.sh, pool_runs).

include "sums";

# Compared rows are adjacent.
def names: ["bare", "raw-fi-shm", "raw-fi-plxshm", "ucx-shm", "shm-poll", "shm-adaptive", "shm-poll-tcp", "raw-fi-tcp", "raw-tcp",
	"tcp-poll", "tcp-beside", "ucx-tcp", "tcp-adaptive", "tcp-poll-idle", "raw-eventfd", "raw-fi-plxshm-event", "shm-event", "raw-zmq", "raw-tcp-event", "tcp-event"];
def rank: . as $row | (names | index($row)) // 99;

# The baseline of a row; rows without one have none.
def base_of: {
	"raw-fi-tcp": "raw-tcp", "raw-zmq": "raw-tcp", "ucx-tcp": "raw-tcp", "tcp-adaptive": "tcp-poll", "tcp-beside": "tcp-poll", "tcp-poll-idle": "tcp-poll",
	"tcp-poll": "raw-tcp", "raw-fi-plxshm": "raw-fi-shm", "ucx-shm": "raw-fi-shm", "shm-adaptive": "shm-poll",
	"shm-poll-tcp": "shm-poll", "raw-fi-plxshm-event": "raw-eventfd", "shm-event": "raw-eventfd", "tcp-event": "raw-tcp-event"
}[.];
# A short run has no raw-fi-plxshm and no raw-eventfd.
def base_in($runs): if . == "shm-event" and all($runs[]; .key != "raw-eventfd") then null elif . == "shm-poll" then (if any($runs[]; .key == "raw-fi-plxshm") then "raw-fi-plxshm" else "raw-fi-shm" end)
	else base_of end;

# Percentiles are over all runs together, as in the plots; the spread is over the rounds.
def combined($runs):
	.[0] as $first
	| ($first.key | base_in($runs)) as $base
	| {
		key: $first.key,
		provider: $first.provider,
		idle: $first.idle,
		size_bytes: $first.size_bytes,
		figure: "p50_ns",
		rounds: length,
		count: (map(.count) | add),
		mean_ns: (map(.mean_ns) | median),
		base: $base,
		ratio: (if $base then ratio_of_pairs($runs; $first.key; $base; $first.size_bytes; "p50_ns") | round3 else null end)
	} + spread("p50_ns")
	+ ([$pooled[] | select(.key == $first.key and .size_bytes == $first.size_bytes and .state == $first.state)][0] // {});

def bar_of($runs; $row; $base; $bytes; $percentile; $limit; $gates):
	ratio_of_pairs($runs; $row; $base; $bytes; $percentile + "_ns") | values
	| at_most("\($row) over \($base), \($percentile), \($bytes) B"; .; $limit; $gates);
def bar($runs; $row; $base; $bytes; $limit; $gates): bar_of($runs; $row; $base; $bytes; "p50"; $limit; $gates);

# At most that many nanoseconds more.
def plus_bar($runs; $row; $base; $plus):
	[$runs[] | select(.key == $base and .size_bytes == 64) | .p50_ns] | median | values | . as $ns
	| bar($runs; $row; $base; 64; (1 + $plus / $ns) | round3; false) | .what += ", \($plus) ns more";

def thresholds($runs): [
	bar($runs; "tcp-poll"; "raw-tcp"; 64; 1.10; true),
	(1024, 65536, 1048576 | bar($runs; "tcp-poll"; "raw-fi-tcp"; .; 1; false)),
	bar($runs; "tcp-poll-idle"; "tcp-poll"; 64; 1.10; true),
	bar_of($runs; "tcp-beside"; "tcp-poll"; 64; "p99"; 2; false),
	bar($runs; "tcp-event"; "raw-tcp-event"; 64; 1.10; false),
	bar($runs; "raw-fi-plxshm"; "raw-fi-shm"; 64; 0.45; true),
	bar($runs; "raw-fi-plxshm"; "bare"; 64; 2.1; true),
	plus_bar($runs; "shm-poll"; "raw-fi-plxshm"; 100),
	bar($runs; "raw-fi-plxshm-event"; "raw-eventfd"; 64; 1.1; false)];

def sum: . as $runs | {
	rows: (group_by([.size_bytes, (.key | rank)]) | map(combined($runs))),
	thresholds: thresholds($runs)
};

{
	schema: "pollux-bench/2",
	part: "rtt",
	unit: "full round trips, nanoseconds; percentiles of all rounds in one, least and greatest p50 of the rounds",
	every_run: .
} + by_state($between; sum)
