# SPDX-License-Identifier: BSD-3-Clause
"""Arithmetic over rounds: medians, pairs, histograms, and the states of the CPUs.

A hypervisor moves virtual CPUs between near and distant cores within minutes, and a comparison across such a move
means nothing. Each run has `line_ns`: round trips of a cache line between the two CPUs before and after it.
"""
import math
import statistics

# Within one state round trips differ by up to 1.6, depending on the line's place; between states by 4
# (tests/perf/cache_line.c, on a virtual machine with two CPUs).
FAR_FACTOR = 2.2
ONE = 'one'            # the name of a single state
STATE_LEAST = 0.05     # of all round trips; fewer are outliers


def known(values):
    return [value for value in values if value is not None]


def median(values):
    values = known(values)
    return statistics.median(values) if values else None


def pairs(runs, key, base, size, figure):
    """A row's figure and that of another row, for each pair of one round; without pairs, both medians."""
    own, other = ([run for run in runs if (run['key'], run['size_bytes']) == (name, size) and run.get(figure)]
                  for name in (key, base))
    found = [(a[figure], b[figure]) for a in own for b in other if a['round'] == b['round']]
    if not found and own and other:
        found = [(median(run[figure] for run in own), median(run[figure] for run in other))]
    return found


# The states of the CPUs ------------------------------------------------------------------------

def differ(a, b):
    """Whether two round trips of a cache line belong to different states."""
    return a is not None and b is not None and max(a, b) > FAR_FACTOR * min(a, b)


def between(lines):
    """The border between two states, in the widest gap that has enough on both sides; None if there is one state."""
    lines = sorted(known(lines))
    few = max(2, math.ceil(STATE_LEAST * len(lines)))
    gaps = [(lines[at] / lines[at - 1], at) for at in range(few, len(lines) - few + 1)]
    at = max(gaps, default=(0, 0))[1]
    if not at or not differ(statistics.median_high(lines[:at]), statistics.median_low(lines[at:])):
        return None
    return math.sqrt(lines[at - 1] * lines[at])


def state_of(run, border):
    lines = run.get('line_ns') or []
    far = {border is not None and line > border for line in lines}
    if len(far) == 2 or lines and differ(min(lines), max(lines)):
        return 'changed'
    return ONE if border is None or not lines else 'far' if far.pop() else 'near'


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
        return {'line_ns': round(median(lines))}
    return {'near_ns': round(median(line for line in lines if line <= border)),
            'far_ns': round(median(line for line in lines if line > border))}


# Histograms ------------------------------------------------------------------------------------

def read_histogram(path):
    """(low, high, count) of each bucket, from lines "low,high,count" after a line with these names."""
    return [tuple(map(int, line.split(','))) for line in path.read_text().splitlines() if line[:1].isdigit()]


def write_histogram(path, buckets):
    path.parent.mkdir(exist_ok=True)
    path.write_text('low,high,count\n' + ''.join(f'{low},{high},{count}\n' for low, high, count in buckets))


def pool(histograms):
    """Histograms of several runs as one."""
    counts = {}
    for low, high, count in (bucket for buckets in histograms for bucket in buckets):
        counts[low, high] = counts.get((low, high), 0) + count
    return [(low, high, count) for (low, high), count in sorted(counts.items())]


def percentile(buckets, fraction):
    """The greatest value of the bucket; None with fewer than ten values above it."""
    total, passed = sum(count for _, _, count in buckets), 0
    if total * (1 - fraction) < 10 - 1e-9:
        return None
    for _, high, count in buckets:
        passed += count
        if passed >= total * fraction - 1e-9:
            return high
    return None


def percentiles(buckets, greatest):
    found = {f'p{name}_ns': percentile(buckets, fraction) for name, fraction in
             (('50', 0.5), ('90', 0.9), ('99', 0.99), ('99_9', 0.999), ('99_99', 0.9999))}
    return {name: value and min(value, greatest) for name, value in found.items()}
