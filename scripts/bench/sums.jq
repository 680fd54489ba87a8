# SPDX-License-Identifier: BSD-3-Clause
# Summing up the runs of all rounds: medians, ratios, thresholds; within one state of the CPUs.

include "states";

# Of the available ones.
def median: map(values) | sort | if length == 0 then null
	elif length % 2 == 1 then .[length / 2 | floor]
	else (.[length / 2 - 1] + .[length / 2]) / 2 end;

def round3: if . == null then null else . * 1000 | round / 1000 end;

# A figure over some runs: median, least and greatest.
def spread($figure): map(.[$figure] | values) as $all | {
	($figure): ($all | median), ($figure + "_least"): ($all | min), ($figure + "_greatest"): ($all | max)
};

# A percentile that most rounds lack is omitted.
def median_of($figure): length as $n | map(.[$figure] | values) | if length * 2 > $n then median else null end;

# The ratio of a row's figure to another's: the median over pairs of one round; without pairs, of both medians. null if
# either is missing. Runs have `key`.
def ratio_of_pairs($runs; $own; $base; $size; $figure):
	def of($key): [$runs[] | select(.key == $key and .size_bytes == $size and .[$figure])];
	of($own) as $a | of($base) as $b
	| [$a[] as $x | $b[] | select(.round == $x.round) | $x[$figure] / .[$figure]] as $pairs
	| if $pairs != [] then $pairs | median
	  elif $a != [] and $b != [] then ($a | map(.[$figure]) | median) / ($b | map(.[$figure]) | median)
	  else null end;

# A ratio, or a figure of one row, with an upper or lower limit. gates: whether missing it fails a run with --strict.
def at_most($what; $ratio; $limit; $gates):
	{what: $what, ratio: ($ratio | round3), limit: $limit, ok: ($ratio <= $limit), gates: $gates};
def at_least($what; $ratio; $limit; $gates):
	{what: $what, ratio: ($ratio | round3), limit: $limit, least: true, ok: ($ratio >= $limit), gates: $gates};

# sum: makes {rows, thresholds} from runs of one state. Applied to each state separately, the one with the most runs
# first. A threshold counts in the first state that has everything it needs; if none has, that is reported.
def by_state($between; sum):
	. as $every
	| [with_states($between) | group_by(.state)[]] | sort_by(-length)
	| map({state: .[0].state, runs: length, sum: (.[0].state as $state | sum
		| .rows[].state = $state | .thresholds[] |= . + {state: $state})}) as $sums
	| ($every | sum | .thresholds) as $thresholds
	| {
		rows: ($sums | map(.sum.rows) | add // []),
		states: ($sums | map({state, runs})),
		changed: (($every | length) - ($sums | map(.runs) | add // 0)),
		thresholds: [$thresholds[] | .what as $what
			| [$sums[].sum.thresholds[] | select(.what == $what)][0] // . + {ratio: null, ok: null, note: "n/a: CPU state changed"}]
	};
