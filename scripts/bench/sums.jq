# SPDX-License-Identifier: BSD-3-Clause
# What the parts make of the figures of all rounds: medians, and bars.

# Of those that there are.
def median: map(values) | sort | if length == 0 then null
	elif length % 2 == 1 then .[length / 2 | floor]
	else (.[length / 2 - 1] + .[length / 2]) / 2 end;

def round3: if . == null then null else . * 1000 | round / 1000 end;

# A ratio, or a figure of one row, that is to be no greater than the limit, or no less. gates: whether
# missing it fails the run.
def at_most($what; $ratio; $limit; $gates):
	{what: $what, ratio: ($ratio | round3), limit: $limit, ok: ($ratio <= $limit), gates: $gates};
def at_least($what; $ratio; $limit; $gates):
	{what: $what, ratio: ($ratio | round3), limit: $limit, least: true, ok: ($ratio >= $limit), gates: $gates};
