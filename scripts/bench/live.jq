# SPDX-License-Identifier: BSD-3-Clause
# From all runs of the part live (-s) to live.json. Arguments: between (states.jq), pooled (percentiles of all runs of
# a size: bench/common.sh, pool_runs), at (HOST:PORT).

include "sums";

def combined:
	.[0] as $first
	| {key: $first.key, provider: $first.provider, size_bytes: $first.size_bytes, figure: "p50_ns", rounds: length}
	+ spread("p50_ns") + ([$pooled[] | select(.size_bytes == $first.size_bytes and .state == $first.state)][0] // {});

def sum: {rows: (group_by(.size_bytes) | map(combined)), thresholds: []};

{
	schema: "pollux-bench/2",
	part: "live",
	unit: "calls of the self-test, nanoseconds; percentiles of all rounds in one",
	at: $at,
	every_run: .
} + by_state($between; sum)
