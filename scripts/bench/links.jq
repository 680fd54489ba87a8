# SPDX-License-Identifier: BSD-3-Clause
# From all runs of the part links (-s) to links.json: the median of every figure over the rounds, and the maximum of
# the longest turn. Argument: between (states.jq).

include "sums";

def combined: {
	key: .[0].key,
	provider: .[0].provider,
	links: .[0].links,
	size_bytes: .[0].size_bytes,
	figure: "turn_ns",
	rounds: length,
	longest_turn_ns: (map(.longest_turn_ns) | max),
	# with one link, the process's one-time cost; with 15000, what was not allocated in advance
	bytes_per_link: (if .[0].links == 10000 then map(.bytes_per_link) | median else null end),
	cpu_percent: (map(.cpu_percent) | median),
	wakes_per_s: (map(.wakes_per_s) | median)
} + spread("turn_ns");

def row($rows; $links): [$rows[] | select(.links == $links)][0];

# Heartbeats are per process: the figure of one link includes their cost.
def sum: . as $runs | (group_by(.links) | map(combined)) as $rows
| row($rows; 1) as $one | row($rows; 10000) as $many | row($rows; 15000) as $most
| {
	rows: $rows,
	thresholds: [
		(ratio_of_pairs($runs; "links-10000"; "links-1"; $runs[0].size_bytes; "turn_ns") | values
			| at_most("links, an idle turn with 10000 idle links over one with 1"; .; 1.2; true)),
		($many | values | at_most("links, KiB of memory of an idle link"; .bytes_per_link / 1024; 16; true)),
		(select($one and $many)
			| at_most("links, CPU % with 10000 idle links above that with 1"; $many.cpu_percent - $one.cpu_percent; 0.5; true)),
		($most | values | at_most("links, the longest turn while 15000 come, ms of CPU time"; .longest_turn_ns / 1e6; 5; false))]
};

{
	schema: "pollux-bench/2",
	part: "links",
	unit: "turns: nanoseconds of CPU time; memory: bytes; CPU time asleep: per cent of one CPU; medians over the rounds",
	every_run: .
} + by_state($between; sum)
