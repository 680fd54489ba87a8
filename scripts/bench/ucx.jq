# SPDX-License-Identifier: BSD-3-Clause
# From the output of ucx_perftest -f -v (-Rn) to a run as plx-ping writes it. For round trips it prints half the
# median, in microseconds. Arguments: name, test (tag_lat, tag_bw), size.

[inputs | gsub(" "; "") | split(",")] as $lines
| ($lines | map(select(.[0] == "iterations"))[0]) as $head
| ($lines | map(select(.[0] | test("^[0-9]+$"))) | last) as $line
| if $head and $line then [$head, ($line | map(tonumber))] | transpose | map({(.[0]): .[1]}) | add
  else error("ucx_perftest has printed no figures") end
| {name: $name, provider: "ucx", idle: "poll", size_bytes: $size, count: .iterations}
	+ if $test == "tag_lat" then {
		min_ns: null, p50_ns: (.["50.0_percentile_lat"] * 2000 | round), p90_ns: null, p99_ns: null, p99_9_ns: null,
		p99_99_ns: null, max_ns: null, mean_ns: (.overall_lat * 2000), elapsed_ns: (.overall_lat * 2000 * .iterations)}
	  else {
		elapsed_ns: (1e9 / .overall_mr * .iterations), messages_per_s: .overall_mr, bytes_per_s: (.overall_mr * $size)}
	  end
