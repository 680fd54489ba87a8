# SPDX-License-Identifier: BSD-3-Clause
# From all runs of the part verbs (-s) to verbs.json. Arguments: between (states.jq), pooled (percentiles of all runs of a
# row: bench/common.sh, pool_runs), devices, peer ("": this host).

include "sums";
include "words";

def names: ["ib-send-lat", "raw-fi-verbs", "verbs-poll", "ib-send-lat-event", "raw-fi-verbs-event", "verbs-event"];
def rank: . as $row | (names | index($row)) // 99;

# ib_send_lat writes no histogram.
def combined:
	.[0] as $first
	| {
		key: $first.key,
		name: $first.row,
		device: $first.device,
		provider: $first.provider,
		idle: $first.idle,
		size_bytes: $first.size_bytes,
		figure: "p50_ns",
		rounds: length,
		count: (map(.count) | add),
		min_ns: (map(.min_ns) | min),
		p90_ns: median_of("p90_ns"),
		p99_ns: median_of("p99_ns"),
		p99_9_ns: median_of("p99_9_ns"),
		p99_99_ns: median_of("p99_99_ns"),
		max_ns: (map(.max_ns) | max),
		mean_ns: median_of("mean_ns")
	} + spread("p50_ns")
	+ ([$pooled[] | select(.key == $first.key and .size_bytes == $first.size_bytes and .state == $first.state)][0] // {});

# The baseline of a row.
def base_of: {
	"raw-fi-verbs": "ib-send-lat", "verbs-poll": "raw-fi-verbs",
	"raw-fi-verbs-event": "ib-send-lat-event", "verbs-event": "raw-fi-verbs-event"
}[.] // null;

# null if either row is missing.
def ratio($rows; $name; $base; $device; $size):
	def p50($row): [$rows[] | select(.name == $row and .device == $device and .size_bytes == $size) | .p50_ns][0];
	p50($name) as $own | p50($base) as $other | if $own and $other then $own / $other else null end;

def with_base($rows):
	(.name | base_of) as $base
	| ratio($rows; .name; $base; .device; .size_bytes) as $ratio
	| . + if $ratio then {base: $base, ratio: ($ratio | round3)} else {base: null, ratio: null} end;

# Software devices and busy hosts miss it regardless: an aim.
def bar($rows; $device; $name; $bytes; $limit): # $size would hide `size`
	ratio($rows; $name; ($name | base_of); $device; $bytes) | values
	| at_most("verbs on \($device), \($name) over \($name | base_of), \($bytes | size), p50"; .; $limit; false);

def sum: (group_by([.device, .size_bytes, (.row | rank)]) | map(combined)) as $rows
| {
	rows: ($rows | map(with_base($rows))),
	thresholds: ([$rows[].device] | unique | map(. as $device
		| bar($rows; $device; "verbs-poll"; 64; 1.15), bar($rows; $device; "verbs-event"; 64; 1.15)))
};

{
	schema: "pollux-bench/2",
	part: "verbs",
	unit: "full round trips, nanoseconds; percentiles of all rounds in one, those of ib_send_lat medians over the rounds",
	devices: $devices,
	peer: (if $peer == "" then null else $peer end),
	# Hardware figures published by others.
	references: ("J. Schumacher's talk on NetIO's event-driven reimplementation: two hosts with ConnectX-5, RoCE at 100 Gb/s, one switch" as $source | [
		{name: "netio-talk-poll", ns: 3200, idle: "poll", $source,
		 what: "3.2 us, twice the 1.6 us of ib_send_lat, average, size not told"},
		{name: "netio-talk-event", ns: 8000, idle: "event", $source,
		 what: "8 us, twice the 4 us of ib_send_lat -e, average, size not told"}]),
	every_run: .
} + by_state($between; sum)
