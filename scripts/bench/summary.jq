# SPDX-License-Identifier: BSD-3-Clause
# From all single runs (-s) to the summary: of every figure the median over the rounds.
# Arguments: environment, hiccups, failures (each read by --slurpfile), fi_provider.

include "sums";

# A percentile that most rounds could not tell is not told.
def median_of(f): length as $n | [.[] | f | select(. != null)]
	| if length * 2 > $n then median else null end;

def rows: ["raw-tcp", "raw-fi-tcp", "raw-fi-shm", "bare", "raw-fi-plxshm", "raw-eventfd", "raw-fi-plxshm-event",
	"raw-zmq", "tcp-poll", "tcp-poll-idle", "shm-poll", "shm-poll-tcp"];
def rank: . as $row | (rows | index($row)) // 99;

def combined: {
	name: .[0].row,
	provider: .[0].provider,
	idle: .[0].idle,
	size_bytes: .[0].size_bytes,
	rounds: length,
	count: (map(.count) | add),
	min_ns: (map(.min_ns) | min),
	p50_ns: median_of(.p50_ns),
	p90_ns: median_of(.p90_ns),
	p99_ns: median_of(.p99_ns),
	p99_9_ns: median_of(.p99_9_ns),
	p99_99_ns: median_of(.p99_99_ns),
	max_ns: (map(.max_ns) | max),
	mean_ns: median_of(.mean_ns),
	elapsed_ns: (map(.elapsed_ns) | add),
	p50_least_ns: (map(.p50_ns | values) | min),
	p50_greatest_ns: (map(.p50_ns | values) | max),
	# the run whose median is the median one stands for all of them in the plots
	run: (median_of(.p50_ns) as $m | min_by((.p50_ns // 0) - ($m // 0) | fabs) | .run)
};

def p50_of($runs; $row; $size):
	[$runs[] | select(.name == $row and .size_bytes == $size) | .p50_ns][0];

# What a row stands on, or is held against; rows that stand on nothing have none.
def base_of: {
	"bare": null, "raw-eventfd": null,
	"raw-fi-tcp": "raw-tcp", "raw-fi-plxshm": "raw-fi-shm", "raw-fi-plxshm-event": "raw-eventfd",
	"shm-poll": "raw-fi-plxshm", "shm-poll-tcp": "shm-poll", "tcp-poll-idle": "tcp-poll"
} as $bases | if in($bases) then $bases[.] else "raw-fi-tcp" end;

def with_ratio($runs):
	(.name | base_of) as $base
	| p50_of($runs; $base; .size_bytes) as $p50
	| . + {ratio_to_raw: (if $p50 and .p50_ns then .p50_ns / $p50 | round3 else null end)};

def bar($runs; $row; $base; $size; $limit):
	p50_of($runs; $row; $size) as $p50
	| p50_of($runs; $base; $size) as $raw
	| select($p50 and $raw)
	| {row: $row, over: $base, size_bytes: $size, limit: $limit,
	   ratio: ($p50 / $raw | round3), ok: ($p50 <= $raw * $limit), gates: ($fi_provider == "net")};

# A bar of the same host, which no choice of a provider changes. plus: nanoseconds.
def host_bar($runs; $row; $base; $size; $factor; $plus; $gates):
	p50_of($runs; $row; $size) as $p50
	| p50_of($runs; $base; $size) as $raw
	| select($p50 and $raw)
	| ($raw * $factor + $plus) as $most
	| {row: $row, over: $base, size_bytes: $size, limit: ($most / $raw | round3),
	   ratio: ($p50 / $raw | round3), ok: ($p50 <= $most), gates: $gates};

def bars($runs): [
	bar($runs; "tcp-poll"; "raw-fi-tcp"; 64; 1.10),
	bar($runs; "tcp-poll"; "raw-fi-tcp"; 1024; 1.10),
	bar($runs; "tcp-poll"; "raw-fi-tcp"; 65536; 1.20),
	bar($runs; "tcp-poll"; "raw-fi-tcp"; 1048576; 1.30),
	bar($runs; "tcp-poll"; "raw-tcp"; 64; 1.40),
	bar($runs; "tcp-poll-idle"; "tcp-poll"; 64; 1.10),
	host_bar($runs; "raw-fi-plxshm"; "raw-fi-shm"; 64; 0.45; 0; true),
	host_bar($runs; "raw-fi-plxshm"; "bare"; 64; 2.1; 0; true),
	# an aim that is not reached yet, so it is shown and does not gate
	host_bar($runs; "shm-poll"; "raw-fi-plxshm"; 64; 1; 100; false),
	# an aim
	host_bar($runs; "raw-fi-plxshm-event"; "raw-eventfd"; 64; 1.1; 0; false)];

def why_invalid($runs):
	p50_of($runs; "raw-tcp"; 64) as $tcp
	| p50_of($runs; "raw-fi-tcp"; 64) as $fi
	| select($tcp and $fi and $fi > $tcp * 1.30)
	| "p50 of raw-fi-tcp at 64 B is \($fi) ns, above 1.30 times that of raw-tcp, \($tcp) ns: a slow baseline flatters";

group_by([.size_bytes, (.row | rank)]) | map(combined) as $runs
| ([why_invalid($runs)][0]) as $reason
| {
	schema: "pollux-bench/1",
	unit: "full round trips, nanoseconds; medians over the rounds",
	environment: $environment[0],
	valid: ($reason == null),
	reason: $reason,
	baseline_checked: (p50_of($runs; "raw-tcp"; 64) != null and p50_of($runs; "raw-fi-tcp"; 64) != null),
	# the greatest share of a CPU that somebody else had while only the clock was read
	platform_lost: ($hiccups[0] | if . then .duration_ns as $d | [.cpus[].gap_total_ns / $d] | max | round3
		else null end),
	failures: $failures[0],
	bars: bars($runs),
	hiccups: $hiccups[0],
	runs: ($runs | map(with_ratio($runs)))
}
