# SPDX-License-Identifier: BSD-3-Clause
"""Figures over rounds: medians, pairs, histograms, and the states of the CPUs.

A hypervisor moves virtual CPUs between near and distant cores within minutes, and a comparison across such a move
means nothing. Each run has `line_ns`: round trips of a cache line between the two CPUs before and after it.
"""
import math
import statistics

from bench.words import RESULT_STATE_ONE, rounded

# Within one state round trips differ by up to 1.6, depending on the line's place; between states by 4
# (tests/perf/cache_line.c, on a virtual machine with two CPUs).
FAR_FACTOR = 2.2


def known(values):
    return [value for value in values if value is not None]


def median(values):
    values = known(values)
    return statistics.median(values) if values else None


def round3(value):
    return None if value is None else rounded(value, 3)


def spread(runs, figure):
    """The median of a figure over the runs, with its least and greatest value."""
    values = known(run.get(figure) for run in runs)
    return {figure: median(values), figure + '_least': min(values, default=None),
            figure + '_greatest': max(values, default=None)}


def pair_ratios(runs, row, base, size, figure):
    """A row's figure over that of another row, for each pair of one round; without pairs, of both medians."""
    own, other = ([run for run in runs if (run['key'], run['size_bytes']) == (key, size) and run.get(figure)]
                  for key in (row, base))
    pairs = [a[figure] / b[figure] for a in own for b in other if a['round'] == b['round']]
    if not pairs and own and other:
        pairs = [median(run[figure] for run in own) / median(run[figure] for run in other)]
    return pairs


# The states of the CPUs ------------------------------------------------------------------------

def differ(a, b):
    """Whether two round trips of a cache line belong to different states."""
    return a is not None and b is not None and max(a, b) > FAR_FACTOR * min(a, b)


def between(lines):
    """The border between the two states; None if there is one state."""
    lines = known(lines)
    return math.sqrt(min(lines) * max(lines)) if lines and differ(min(lines), max(lines)) else None


def state_of(run, border):
    lines = run.get('line_ns') or []
    if border is None or not lines:
        return RESULT_STATE_ONE
    far = {line > border for line in lines}
    return 'changed' if len(far) == 2 else 'far' if far.pop() else 'near'


def by_state(runs, border):
    """Lists of runs by state, that with the most runs first, without runs during which the state changed."""
    states = {}
    for run in runs:
        states.setdefault(state_of(run, border), []).append(run)
    states.pop('changed', None)
    return dict(sorted(states.items(), key=lambda item: -len(item[1])))


def lacking(runs, border):
    """(key, size) of rows without a run in the state that most rows of that size have."""
    found = []
    for size in sorted({run['size_bytes'] for run in runs}):
        of_size = [run for run in runs if run['size_bytes'] == size]
        states = [{run['key'] for run in some} for some in by_state(of_size, border).values()]
        most = max(states, key=len, default=set())
        found += [(key, size) for key in sorted({run['key'] for run in of_size} - most)]
    return found


def describe_cpus(lines):
    """The round trip of a cache line: near_ns and far_ns with two states, line_ns with one."""
    lines, border = known(lines), between(lines)
    if not lines:
        return {}
    if border is None:
        return {'line_ns': rounded(median(lines))}
    return {'near_ns': rounded(median(line for line in lines if line <= border)),
            'far_ns': rounded(median(line for line in lines if line > border))}


# Histograms ------------------------------------------------------------------------------------

def read_histogram(path):
    """(low, high, count) of each bucket, from lines "low,high,count" after a line with these names."""
    lines = path.read_text().splitlines()
    return [tuple(int(word) for word in line.split(',')) for line in lines if line[:1].isdigit()]


def pool(paths):
    """Histograms of several runs as one."""
    counts = {}
    for path in paths:
        for low, high, count in read_histogram(path):
            counts[low, high] = counts.get((low, high), 0) + count
    return [(low, high, count) for (low, high), count in sorted(counts.items())]


def percentile(buckets, fraction, greatest):
    """The greatest value of the bucket; None with fewer than ten values above it."""
    total = sum(count for _, _, count in buckets)
    if total * (1 - fraction) < 10 - 1e-9:
        return None
    passed = 0
    for _, high, count in buckets:
        passed += count
        if passed >= total * fraction - 1e-9:
            return min(high, greatest)
    return None


def percentiles(buckets, least, greatest):
    values = {f'p{name}_ns': percentile(buckets, fraction, greatest) for name, fraction in
              (('50', 0.5), ('90', 0.9), ('99', 0.99), ('99_9', 0.999), ('99_99', 0.9999))}
    return {'count': sum(count for _, _, count in buckets), 'min_ns': least, **values, 'max_ns': greatest}
