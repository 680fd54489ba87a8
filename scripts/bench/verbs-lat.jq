# SPDX-License-Identifier: BSD-3-Clause
# From the output of ib_send_lat -H (-Rn) to a run as plx-ping writes it. It prints half of each round trip, in
# microseconds. Arguments: name, idle, size.

# Needs as many round trips above it as plx-ping, else null.
def percentile($per_100k): . as $all | length as $n
	| if $n * (100000 - $per_100k) >= 1000000 then $all[($n * $per_100k / 100000 | ceil) - 1] else null end;

[inputs | capture("^[0-9]+, (?<us>[0-9.e+]+)$") | .us | tonumber * 2000 | round] | sort
| if . == [] then error("ib_send_lat has printed no times") else . end
| {
	name: $name, provider: "ibverbs", idle: $idle, size_bytes: $size, count: length,
	min_ns: .[0], p50_ns: percentile(50000), p90_ns: percentile(90000), p99_ns: percentile(99000),
	p99_9_ns: percentile(99900), p99_99_ns: percentile(99990), max_ns: .[-1],
	mean_ns: (add / length), elapsed_ns: add
}
