# SPDX-License-Identifier: BSD-3-Clause
# Differences between two summaries, -n with A and B by --slurpfile: {a, b, rows, only_a, only_b}. A row has both
# figures, `change` (relative to the first), `noise` (the spread over the rounds, of the noisier run, at least 5 %),
# and a verdict.

include "states";

def figures: (.cpus // {}) as $cpus | [.parts | to_entries[] | .key as $part | .value.rows[]
	| .figure as $figure | select(.[$figure])
	| {id: [$part, .key, .size_bytes, .provider, $figure], line: $cpus["\(if .state == "one" then "line" else .state end)_ns"],
	   state, value: .[$figure], least: .[$figure + "_least"], greatest: .[$figure + "_greatest"], histogram}];

# If the CPUs were near in one run and distant in the other, they cannot be compared.
def same_state($a; $b): $a.line == null or $b.line == null or (differ($a.line; $b.line) | not);

def noise: if .least and .greatest and .value > 0 then [(.greatest - .least) / .value, 0.05] | max else null end;
def less_is_better: test("_ns$|^cycles|^cpu");

def verdict: if .noise == null then "noise unknown" elif (.change | fabs) <= .noise then "within the noise"
	elif (.change < 0) == (.figure | less_is_better) then "better" else "worse" end;

def about: .environment | {date, host, cpu_model, version, git_revision, kernel, libfabric_version};

def words($cpus): if $cpus.near_ns then "near (\($cpus.near_ns) ns) and far (\($cpus.far_ns) ns)" elif $cpus.line_ns then "\($cpus.line_ns) ns"
	else "not measured" end;

$a[0] as $was | $b[0] as $now
| ($was | figures) as $old | ($now | figures) as $new
| [$new[] as $y | [$old[] | select(.id == $y.id and same_state(.; $y))][0] | values | . as $x
	| {part: $y.id[0], key: $y.id[1], size_bytes: $y.id[2], provider: $y.id[3], figure: $y.id[4], state: $y.state,
	   a: $x.value, b: $y.value, change: ($y.value / $x.value - 1), noise: ([($x | noise), ($y | noise)] | map(values) | max),
	   histograms: [$x.histogram, $y.histogram]}
	| . + {verdict: verdict}] as $rows
| ($rows | map([.part, .key, .size_bytes, .provider, .figure])) as $ids
| {
	a: ($was | about + {cpus: words(.cpus // {})}), b: ($now | about + {cpus: words(.cpus // {})}),
	rows: $rows,
	only_a: [$old[] | select(.id as $id | $ids | index([$id]) | not) | .id | join(" ")] | unique,
	only_b: [$new[] | select(.id as $id | $ids | index([$id]) | not) | .id | join(" ")] | unique
}
