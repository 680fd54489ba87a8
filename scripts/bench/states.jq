# SPDX-License-Identifier: BSD-3-Clause
# The states of the CPUs, near and far, by the round trip of a cache line between them. Runs have `line_ns`: its value
# before and after them, [] if not measured.

# Whether two values belong to different states. Within one state they differ by up to 1.6, depending on the line's
# place; between states by 4 (tests/perf/cache_line.c, on a virtual machine with two CPUs).
def far_factor: 2.2;
def differ($a; $b): $a != null and $b != null and ([$a, $b] | max / min) > far_factor;

# Between the least and greatest of all, if they are as far apart as two states.
def between: map(values) | if . != [] and max > far_factor * min then (max * min | sqrt) else null end;

# "one" if there is a single state; "changed" if it changed during the run.
def state_of($between):
	(.line_ns // []) as $lines
	| if $between == null or $lines == [] then "one"
	  elif all($lines[]; . <= $between) then "near"
	  elif all($lines[]; . > $between) then "far"
	  else "changed" end;

# Runs that have a state.
def with_states($between): map(. + {state: state_of($between)} | select(.state != "changed"));

# Lines "SIZE KEY" of rows without a run in the most common state of that size.
def lacking($between):
	group_by(.size_bytes)[]
	| .[0].size_bytes as $size | (map(.key) | unique) as $keys
	| ([with_states($between) | group_by(.state)[] | map(.key) | unique] | sort_by(length) | last // []) as $most
	| ($keys - $most)[] | "\($size) \(.)";
