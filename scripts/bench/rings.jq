# SPDX-License-Identifier: BSD-3-Clause
# From the results of plx-perf ring, pool and hop, each a file or missing, to rings.json. Run with -n.

include "sums";

def bar($what; $ratio; $limit):
	select($ratio != null) | at_most($what; $ratio; $limit; true);

# A row relative to DPDK's, in the CPU state with the most rounds: plx-perf compares within one.
def row_bar($rows; $name; $variant; $lcores; $burst; $limit):
	[$rows[] | select(.name == $name and .variant == $variant and .lcores == $lcores and .burst == $burst)] | max_by(.rounds)
	| select(. and .ratio)
	| bar("\($variant) \($name), \(if $lcores == 2 then "two lcores" else "one lcore" end), burst \($burst), over \(.peer)";
		.ratio; $limit);

def ring_bars($rows; $variant; $lcores; $limits):
	row_bar($rows; "ring"; $variant; $lcores; 1; $limits[0]),
	row_bar($rows; "ring"; $variant; $lcores; 8; $limits[1]),
	row_bar($rows; "ring"; $variant; $lcores; 32; $limits[2]);

# plx-perf compares each round with that round's bare line. With TCP polled, the wait for the polls is subtracted.
def hop_bars:
	.bare_ns as $bare
	| bar("hop, hot, over a bare cache line"; .hot.ratio; 1.4),
	  bar("hop, first after quiet, over a bare cache line"; .quiet.ratio; 2.7),
	  (.["idle-tcp"] | select(.)
		| bar("hop next to an idle tcp link, less \(.cold_poll_wait_ns | round) ns in its polls, over a bare cache line";
			(.p50_ns - .cold_poll_wait_ns) / $bare; 1.4));

# For four lcores.
def cache_bar:
	select(.bytes > 0)
	| bar("caches of a pool at 4 lcores, KiB"; .bytes / .lcores * 4 / 1024; 24);

[inputs] as $files
| ($files | map(.rows // []) | add // []) as $rows
| ($files | map(.hop | values)[0]) as $hop
| ($files | map(.caches | values)[0]) as $caches
| {
	schema: "pollux-bench/2",
	part: "rings",
	unit: "cycles of the clock per element; hop: nanoseconds of a round trip; medians over the rounds",
	environment: ($files[0].environment // null),
	rows: (($rows | map(. + {
			key: "\(.name)-\(.variant)-\(.lcores)-lcore-burst-\(.burst)", size_bytes: 8, figure: "cycles_per_elem",
			cycles_per_elem_least: .cycles_least, cycles_per_elem_greatest: .cycles_greatest}))
		+ ($hop // {} | to_entries | map(select(.value | type == "object") | .value + {
			key: "hop-\(.key)", name: "hop", size_bytes: 8, state: "one", figure: "p50_ns",
			p50_ns_least: .value.p50_least_ns, p50_ns_greatest: .value.p50_greatest_ns}))),
	states: [], changed: 0,
	hop: $hop,
	caches: $caches,
	thresholds: [
		ring_bars($rows; "spsc"; 2; [0.3, 0.65, 0.65]),
		ring_bars($rows; "mpmc"; 2; [0.25, 0.6, 0.6]),
		ring_bars($rows; "spsc"; 1; [1, 1, 1]),
		ring_bars($rows; "mpmc"; 1; [1.25, 1.5, 1.25]),
		row_bar($rows; "pool"; "shared"; 1; 1; 0.7),
		row_bar($rows; "pool"; "shared"; 1; 32; 0.7),
		($caches | values | cache_bar),
		($hop | values | hop_bars)]
}
