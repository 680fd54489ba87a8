# SPDX-License-Identifier: BSD-3-Clause
# From all runs of the part idle (-s) to idle.json: the median of every figure over the rounds. Argument: between
# (states.jq).

include "sums";

def policies: ["poll", "event", "latency", "balanced", "fixed"];
def arrivals: ["none", "peer", "silence", "fixed", "poisson", "burst"];
def rank: . as $row | [.provider, (arrivals | index($row.arrival)), .rate, (policies | index($row.policy))];

def combined: {
	key: .[0].key,
	policy: .[0].policy,
	provider: .[0].provider,
	arrival: .[0].arrival,
	rate: .[0].rate,
	size_bytes: 64,
	figure: (if .[0].p50_ns then "p50_ns" else "cpu_percent" end),
	rounds: length,
	wakes_per_s: (map(.wakes_per_s) | median | round3),
	p99_ns: (map(.p99_ns) | median),
	doubted: (map(select(.doubted)) | length)
} + spread("p50_ns") + (spread("cpu_percent") | map_values(round3));

def row_of($rows; $policy; $provider; $arrival; $rate):
	[$rows[] | select(.policy == $policy and .provider == $provider and .arrival == $arrival and .rate == $rate)][0];

# The code determines idle wake-ups and CPU time. Round trips depend on the host as much, whose other work takes as
# long as a wake-up: those are aims.

# One figure of one row.
def most($rows; $policy; $provider; $arrival; $rate; $field; $words; $limit):
	row_of($rows; $policy; $provider; $arrival; $rate)
	| select(. and .[$field] != null)
	| at_most("idle, \($provider), \($policy), \($words)"; .[$field]; $limit; $arrival | IN("none", "peer"));

# The ratio of the median round trip to another policy's.
def over($rows; $policy; $base; $provider; $arrival; $rate; $words; $limit):
	row_of($rows; $policy; $provider; $arrival; $rate) as $row
	| row_of($rows; $base; $provider; $arrival; $rate) as $other
	| select($row and $other and $row.p50_ns and $other.p50_ns)
	| at_most("idle, \($provider), \($policy) over \($base), p50, \($words)"; $row.p50_ns / $other.p50_ns; $limit; false);

# At 100 000/s, and in bursts, a host may be at its limit: one delay then queues everything after it, and the ratio is
# the queue's. One of many messages is faster than a rare one if none waits for another.
def strained($rows; $policy; $provider; $arrival; $rate):
	. as $bar
	| row_of($rows; "poll"; $provider; "poisson"; 1000).p50_ns as $calm
	| row_of($rows; "poll"; $provider; $arrival; $rate).p50_ns as $polled
	| row_of($rows; $policy; $provider; $arrival; $rate).p50_ns as $own
	| if $calm and $polled and $own and ($polled > $calm or $own > 20 * $calm)
	then $bar + {note: "messages queue: \($polled / $calm * 10 | round / 10) times poll's p50 at 1 000/s, and \($own / $calm * 10 | round / 10) times"}
	else $bar end;

def sum: (group_by(rank) | map(combined)) as $rows
| {
	rows: $rows,
	thresholds: [
		("tcp", "shm" | . as $provider | (
			most($rows; "balanced"; .; "none"; 0; "wakes_per_s"; "wakes/s with nobody there"; 2),
			most($rows; "balanced"; .; "none"; 0; "cpu_percent"; "CPU % with nobody there"; 0.5),
			most($rows; "balanced"; .; "peer"; 0; "wakes_per_s"; "wakes/s with an idle peer"; 25),
			most($rows; "balanced"; .; "peer"; 0; "cpu_percent"; "CPU % with an idle peer"; 0.5),
			over($rows; "balanced"; "event"; .; "silence"; 0; "first message after silence"; 1.2),
			over($rows; "latency"; "poll"; .; "fixed"; 50000; "50 000/s"; 1.15),
			(over($rows; "latency"; "poll"; .; "fixed"; 100000; "100 000/s"; 1.15)
				| strained($rows; "latency"; $provider; "fixed"; 100000)),
			over($rows; "balanced"; "event"; .; "poisson"; 1000; "1 000/s, Poisson"; 1.1),
			most($rows; "balanced"; .; "poisson"; 1000; "cpu_percent"; "CPU % at 1 000/s, Poisson"; 10),
			(over($rows; "balanced"; "poll"; .; "burst"; 1000; "bursts of 100"; 1.15)
				| strained($rows; "balanced"; $provider; "burst"; 1000))))]
};

{
	schema: "pollux-bench/2",
	part: "idle",
	unit: "CPU time of the server in per cent of one CPU; how often it slept; round trips in nanoseconds; medians over the rounds",
	every_run: .
} + by_state($between; sum)
