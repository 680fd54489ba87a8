# SPDX-License-Identifier: BSD-3-Clause
# Merge histograms of several runs, lines "low,high,count" sorted by low: write them to `out`, and print the
# percentiles as a line of JSON. Variables: key, size, state, file (its name in the results), out, least and greatest
# (of all values, nanoseconds).

# The value at this quantile; null with fewer than ten values above it.
function percentile(fraction, target, sum, i)
{
	if (total * (1 - fraction) < 10 - 1e-9)
		return "null"
	target = total * fraction
	for (i = 1; i <= n; i++) {
		sum += count[i]
		if (sum >= target - 1e-9)
			return high[i] < greatest ? high[i] : greatest
	}
}

BEGIN { FS = "," }

$1 + 0 == $1 {
	if (!n || $1 != low[n]) {
		low[++n] = $1
		high[n] = $2
	}
	count[n] += $3
	total += $3
}

END {
	print "low,high,count" >out
	for (i = 1; i <= n; i++)
		print low[i] "," high[i] "," count[i] >out
	printf "{\"key\": \"%s\", \"size_bytes\": %s, \"state\": \"%s\", \"histogram\": \"%s\", \"count\": %.0f, ", \
		key, size, state, file, total
	printf "\"min_ns\": %s, \"p50_ns\": %s, \"p90_ns\": %s, \"p99_ns\": %s, \"p99_9_ns\": %s, \"p99_99_ns\": %s, \"max_ns\": %s}\n", \
		least, percentile(0.5), percentile(0.9), percentile(0.99), percentile(0.999), percentile(0.9999), greatest
}
