# SPDX-License-Identifier: BSD-3-Clause
# From a row's program output to a run of the part netio. Arguments: test, provider ("": as the program prints), size,
# subscribers (null: none), least (messages a second of the slowest subscriber, null if unknown), usage (of sender and
# receiver: cpu_ns and watched_us).

# Less than 50 ms is not reported.
def per_cent: if . and .watched_us >= 50000 then .cpu_ns / 10 / .watched_us * 100 | round / 100 else null end;

# netio-throughput writes a row for each size.
(if type == "array" then .[0] // {} else . end)
| (if .rate_asked then
	# Count what subscribers received, not what is still queued; at most the messages published, since some may
	# have been queued earlier.
	([.messages_per_s, $least // error("the subscribers have measured nothing")] | min) as $each
	| {kept: ($each / .rate_asked), rate_asked, mmsg_per_s: ($each * $subscribers / 1e6),
	   gbit_per_s: ($each * $subscribers * $size * 8 / 1e9), count: (.messages * $subscribers)}
   elif .cycles_per_copy then {mmsg_per_s, gbit_per_s, cycles_per_copy, count: .copies}
   elif .end.sum_received then .end.sum_received | {gbit_per_s: (.bits_per_second / 1e9), count: null}
   elif .messages_per_s then {mmsg_per_s: (.messages_per_s / 1e6), gbit_per_s: (.bytes_per_s * 8 / 1e9), count}
   elif .p50_ns then {p50_ns, p99_ns, count: (.round_trips // .count)}
   elif .mmsg_per_s then {mmsg_per_s, gbit_per_s, count: .messages}
   else error("nothing was measured") end) as $figures
| {
	test: $test,
	provider: (if $provider != "" then $provider else .provider end),
	size_bytes: $size,
	subscribers: $subscribers,
	mmsg_per_s: null, gbit_per_s: null, p50_ns: null, p99_ns: null, cycles_per_copy: null,
	kept: null, rate_asked: null,
	cpu_percent_sender: ($usage.sender | per_cent),
	cpu_percent_receiver: ($usage.receiver | per_cent)
} + $figures
