# SPDX-License-Identifier: BSD-3-Clause
# From what the program of a row has written to a run of the part netio. Arguments: test, provider
# ("": as the program says), size, subscribers (null: none), least (messages a second of the subscriber that
# got the fewest, null where a row does not tell), usage (of sender and receiver: cpu_ns and
# watched_us).

# Of less than 50 ms nothing is told.
def per_cent: if . and .watched_us >= 50000 then .cpu_ns / 10 / .watched_us * 100 | round / 100 else null end;

# netio-throughput writes a row for each size.
(if type == "array" then .[0] // {} else . end)
| (if .rate_asked then
	# What the subscribers have got, not what still waits somewhere for them; and no more than what was
	# published, as before that time something may have waited too.
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
