# SPDX-License-Identifier: BSD-3-Clause
"""Figures of runs: medians, pairs and histograms over rounds, the states of the CPUs, and numbers as text.

A hypervisor moves virtual CPUs between near and distant cores within minutes, and a comparison across such a move
means nothing. Each run has `line_ns`: round trips of a cache line between the two CPUs before and after it.
"""
import itertools
import math
import statistics

# Within one state round trips differ by up to 1.6, depending on the line's place; between states by 4
# (tests/perf/cache_line.c, on a virtual machine with two CPUs).
FAR_FACTOR = 2.2
ONE = 'one'            # the name of a single state
STATE_LEAST = 0.05     # of all round trips; fewer are outliers

TRIPS = ('p50_ns', 'min_ns', 'p90_ns', 'p99_ns', 'p99_9_ns', 'max_ns')
# Figure: its label, and what its values are divided by. Others have their own names.
LABELS = {name: (name.removesuffix('_ns').replace('p99_9', 'p99.9').replace('_', ' ') + ', µs', 1e3)
          for name in (*TRIPS, 'watch_p50_ns', 'watch_p99_ns')} | {
    'messages_per_s': ('million messages a second', 1e6), 'bytes_per_s': ('GB a second', 1e9),
    'mmsg_per_s': ('million messages a second', 1), 'gbit_per_s': ('Gb a second', 1),
    'rate_per_s': ('million calls a second', 1e6), 'cpu_percent': ('CPU %', 1), 'wakes_per_s': ('wakes/s', 1),
    'cycles_per_elem': ('cycles per element', 1), 'peer_cycles_per_elem': ("DPDK's cycles per element", 1),
    'cache_lines': ('cache lines', 1), 'hop_ns': ('p50, ns', 1), 'hop_p99_ns': ('p99, ns', 1), 'turn_ns': ('turn, ns', 1),
    'longest_turn_ns': ('longest turn, ms', 1e6), 'bytes_per_link': ('KiB a link', 1024)}
# What a row takes from its runs, if that is not the median; texts are those of the first run.
COMBINED = {'min_ns': min, 'max_ns': max, 'longest_turn_ns': max, 'count': sum, 'lost': sum, 'alarms': sum,
            'doubted': sum}
LESS_IS_BETTER = ('_ns', '_percent', 'cycles_per_copy', 'cycles_per_elem', 'instructions')  # ends of names


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


def combine(runs):
    """The fields of a row, with the least and the greatest value of each median."""
    row = {}
    for name in dict.fromkeys(name for run in runs for name in run):
        values = known(run.get(name) for run in runs)
        if not values or not all(isinstance(value, (int, float)) for value in values):
            row[name] = values[0] if values else None
        elif name in COMBINED:
            row[name] = COMBINED[name](values)
        else:
            row |= {name: median(values), f'{name}_least': min(values), f'{name}_greatest': max(values)}
    return row


# The states of the CPUs ------------------------------------------------------------------------

def differ(a, b):
    """Whether two round trips of a cache line belong to different states."""
    return a is not None and b is not None and max(a, b) > FAR_FACTOR * min(a, b)


def between(lines):
    """The border between two states, in the widest gap that has enough on both sides; None if there is one state."""
    lines = sorted(known(lines))
    few = max(2, math.ceil(STATE_LEAST * len(lines)))
    at = max(((lines[at] / lines[at - 1], at) for at in range(few, len(lines) - few + 1)), default=(0, 0))[1]
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


def describe_cpus(lines):
    """The round trip of a cache line: near_ns and far_ns with two states, line_ns with one."""
    lines, border = known(lines), between(lines)
    if border is None:
        return {'line_ns': round(median(lines))} if lines else {}
    return {'near_ns': round(median(line for line in lines if line <= border)),
            'far_ns': round(median(line for line in lines if line > border))}


# Histograms: (low, high, count) of each bucket -------------------------------------------------

def read_histogram(path):
    return [tuple(map(int, line.split(','))) for line in path.read_text().splitlines() if line[:1].isdigit()]


def write_histogram(path, buckets):
    path.parent.mkdir(exist_ok=True)
    path.write_text('low,high,count\n' + ''.join(f'{low},{high},{count}\n' for low, high, count in buckets))


def pool(buckets):
    """Those of several runs as one histogram."""
    counts = {}
    for low, high, count in buckets:
        counts[low, high] = counts.get((low, high), 0) + count
    return [(low, high, count) for (low, high), count in sorted(counts.items())]


def percentiles(buckets, greatest):
    """Of each the greatest value of its bucket; None with fewer than ten values above it."""
    found, passed = {}, list(itertools.accumulate(count for *_, count in buckets))
    for name, fraction in (('50', 0.5), ('90', 0.9), ('99', 0.99), ('99_9', 0.999), ('99_99', 0.9999)):
        high = next(high for (_, high, _), below in zip(buckets, passed) if below >= passed[-1] * fraction - 1e-9)
        found[f'p{name}_ns'] = min(high, greatest) if passed[-1] * (1 - fraction) >= 10 - 1e-9 else None
    return found


# As text ---------------------------------------------------------------------------------------

def label(figure):
    return LABELS.get(figure, (figure.replace('_', ' '), 1))[0]


def scaled(row, figure):
    value = row.get(figure)
    return None if value is None else value / LABELS.get(figure, ('', 1))[1]


def us(ns):
    """Nanoseconds as microseconds."""
    return 'n/a' if ns is None else f'{ns / 1e3:.0f}' if ns >= 1e6 else f'{math.floor(ns / 10 + 0.5) / 100:.2f}'


def digits(value):
    """Four digits, wherever the point is."""
    return 'n/a' if value is None else f'{value:.0f}' if abs(value) >= 1000 else f'{value:.4g}'


def text(row, figure):
    return us(row.get(figure)) if label(figure).endswith('µs') else digits(scaled(row, figure))


def size(count):
    unit, name = next((unit, name) for unit, name in ((1 << 20, 'MiB'), (1 << 10, 'KiB'), (1, 'B')) if count % unit == 0)
    return f'{count // unit} {name}'


def seconds(value):
    return f'{int(value) // 60} min {int(value) % 60} s' if value >= 60 else f'{value:.0f} s'


def joined(*texts):
    return ', '.join(filter(None, texts))


def in_state(state):
    return '' if state == ONE else f'CPUs {state}'
