# SPDX-License-Identifier: BSD-3-Clause
# From all runs of the part services (-s) to services.json: the median of every figure over the rounds. Arguments:
# between (states.jq), hiccups (by --slurpfile).

include "sums";

def names: ["ping", "call-1", "call-64", "call-100", "call-100000", "quiet", "half", "params-echo", "params-get", "params-load"];
def rank: . as $row | (names | index($row)) // 99;

def combined: {
	key: .[0].key,
	name: .[0].row,
	provider: .[0].provider,
	size_bytes: .[0].size_bytes,
	figure: (if .[0].row | test("^call-.") then "rate_per_s" else "p50_ns" end),
	rounds: length,
	doubted: (map(select(.doubted)) | length),
	lost: (map(.lost) | add),
	p90_ns: (map(.p90_ns) | median),
	p99_ns: (map(.p99_ns) | median),
	p99_9_ns: (map(.p99_9_ns) | median),
	max_ns: (map(.max_ns) | max),
	watch_p50_ns: (map(.watch_p50_ns) | median),
	watch_p99_ns: (map(.watch_p99_ns) | median),
	scheduled_per_s: (map(.scheduled_per_s) | median)
} + spread("p50_ns") + (spread("rate_per_s") | map_values(values | round));

def row($rows; $name; $provider): [$rows[] | select(.name == $name and .provider == $provider)][0];

# A lower bound for every program on this host: it shows in an open loop's tail. met_percent: of calls at half of the
# highest rate, the share that arrives in a gap of either CPU, or while the backlog of the gap is worked off, which
# takes as long again.
def platform: if . then ([.duration_ns as $all | .cpus[] | .gap_total_ns / $all * 100]) as $percent
	| {held_up_percent: ($percent | max | round3), met_percent: ($percent | add * 2 | round3), longest_ns: ([.cpus[].longest_ns] | max)}
	else null end;

# A p99 belongs to the platform if more than 1 % of the calls meet its gaps.
def with_platform($platform): if $platform and $platform.met_percent > 1
	then . + {note: "\($platform.met_percent) % of such calls meet a gap of the platform, so it is that one\u0027s"} else . end;

# Over TCP, runs differ by more than 150 ns: there it is a ratio, by pairs of one round.
def call_bar($runs; $provider):
	ratio_of_pairs($runs; "call-1@\($provider)"; "ping@\($provider)"; 64; "p50_ns") | values
	| at_most("services over \($provider), a call over a message and its echo, p50"; .; 1.04; false);

# What depends on the host's speed and other load is an aim.
def thresholds($rows; $provider; $least; $platform):
	row($rows; "ping"; $provider) as $ping | row($rows; "call-1"; $provider) as $one
	| row($rows; "call-64"; $provider) as $many | row($rows; "call-100"; $provider) as $few
	| row($rows; "call-100000"; $provider) as $most | row($rows; "quiet"; $provider) as $quiet
	| row($rows; "half"; $provider) as $half
	| row($rows; "params-echo"; $provider) as $echo | row($rows; "params-get"; $provider) as $get
	| row($rows; "params-load"; $provider) as $load
	| (if $provider == "shm" and $ping.p50_ns and $one.p50_ns then
		at_most("services over \($provider), a call over plx-ping, p50, ns"; $one.p50_ns - $ping.p50_ns; 150; false) else empty end),
	  (if $many then at_least("services over \($provider), 64 open, calls per second"; $many.rate_per_s; $least; false) else empty end),
	  (if $few and $most then
		at_most("services over \($provider), 100000 open over 100, time per call"; $few.rate_per_s / $most.rate_per_s; 1.3; false) else empty end),
	  (if $half.p99_ns and $quiet.p99_ns then
		at_most("services over \($provider), half of the greatest rate over 10000/s, p99"; $half.p99_ns / $quiet.p99_ns; 2; false)
		| with_platform($platform) else empty end),
	  (if $echo.p50_ns and $get.p50_ns then
		at_most("services over \($provider), a parameter over an echo, p50, ns"; $get.p50_ns - $echo.p50_ns; 300; false) else empty end),
	  (if $load then
		at_most("services over \($provider), 10000 sets/s, 100000 parameters, 100 watchers: lost"; $load.lost; 0; false) else empty end);

($hiccups[0] | platform) as $platform
| def sum: . as $runs | (group_by([.provider, (.row | rank)]) | map(combined)) as $rows
	| {rows: $rows, thresholds: [thresholds($rows; "shm"; 5000000; $platform), thresholds($rows; "tcp"; 2000000; $platform), call_bar($runs; "tcp")]};
{
	schema: "pollux-bench/2",
	part: "services",
	unit: "calls of a method, nanoseconds; medians over the rounds",
	platform: $platform,
	every_run: .
} + by_state($between; sum)
