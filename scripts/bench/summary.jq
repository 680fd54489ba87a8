# SPDX-License-Identifier: BSD-3-Clause
# The summary (-n), before the parts add theirs. Arguments: environment, hiccups, lines (each by --slurpfile; lines:
# round trips of a cache line between the two CPUs), between (states.jq), failures, left_out.

include "sums";

($lines | map(values)) as $ns
| {
	schema: "pollux-bench/2",
	environment: $environment[0],
	# the largest share of a CPU that other processes took while only the clock was read
	platform_lost: ($hiccups[0] | if . then .duration_ns as $d | [.cpus[].gap_total_ns / $d] | max | round3 else null end),
	# round trip of a cache line: near_ns and far_ns with two states, line_ns with one
	cpus: (if $between then {near_ns: ($ns | map(select(. <= $between)) | median | round), far_ns: ($ns | map(select(. > $between)) | median | round)}
		elif $ns != [] then {line_ns: ($ns | median | round)} else {} end),
	failures: $failures,
	left_out: $left_out,
	hiccups: $hiccups[0],
	thresholds: [],
	parts: {}
}
