# SPDX-License-Identifier: BSD-3-Clause
"""Figures: their names and units in tables and plots, how the runs of a row combine, and numbers as text."""
import math

from bench import stats

TRIPS = tuple(f'{name}_ns' for name in ('min', 'p50', 'p90', 'p99', 'p99_9', 'max'))
# Figure: its label, and what its values are divided by.
LABELS = {name: (name.removesuffix('_ns').replace('p99_9', 'p99.9').replace('_', ' ') + ', µs', 1e3)
          for name in (*TRIPS, 'watch_p50_ns', 'watch_p99_ns')} | {
    'messages_per_s': ('million messages a second', 1e6), 'bytes_per_s': ('GB a second', 1e9),
    'mmsg_per_s': ('million messages a second', 1), 'gbit_per_s': ('Gb a second', 1),
    'rate_per_s': ('million calls a second', 1e6), 'cpu_percent': ('CPU %', 1), 'wakes_per_s': ('wakes/s', 1),
    'cpu_percent_sender': ('CPU % sender', 1), 'cpu_percent_receiver': ('CPU % receiver', 1),
    'cycles_per_copy': ('cycles per copy', 1), 'cycles_per_elem': ('cycles per element', 1),
    'hop_ns': ('p50, ns', 1), 'hop_p99_ns': ('p99, ns', 1), 'turn_ns': ('turn, ns', 1),
    'peer_cycles_per_elem': ("DPDK's cycles per element", 1), 'kib_at_4_lcores': ('KiB at 4 lcores', 1),
    'longest_turn_ns': ('longest turn, ms', 1e6), 'bytes_per_link': ('KiB a link', 1024)}
# What a row takes from its runs, if that is not the median; texts are those of the first run.
COMBINED = {'min_ns': min, 'max_ns': max, 'longest_turn_ns': max, 'count': sum, 'lost': sum, 'alarms': sum,
            'doubted': sum}
LESS_IS_BETTER = ('_ns', '_percent', 'cycles_per_copy', 'cycles_per_elem', 'instructions')  # ends of names


def combine(runs):
    """The fields of a row, with the least and the greatest value of each median."""
    row = {}
    for name in dict.fromkeys(name for run in runs for name in run):
        values = stats.known(run.get(name) for run in runs)
        if not values or not all(isinstance(value, (int, float)) for value in values):
            row[name] = values[0] if values else None
        elif name in COMBINED:
            row[name] = COMBINED[name](values)
        else:
            row |= {name: stats.median(values), f'{name}_least': min(values), f'{name}_greatest': max(values)}
    return row


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
    value = row.get(figure)
    return str(value) if isinstance(value, str) else us(value) if label(figure).endswith('µs') else digits(
        scaled(row, figure))


def size(count):
    for unit, name in ((1 << 20, 'MiB'), (1 << 10, 'KiB')):
        if count >= unit and count % unit == 0:
            return f'{count // unit} {name}'
    return f'{count} B'


def seconds(value):
    return f'{int(value) // 60} min {int(value) % 60} s' if value >= 60 else f'{value:.0f} s'


def joined(*texts):
    return ', '.join(filter(None, texts))


def in_state(state):
    return '' if state == stats.ONE else f'CPUs {state}'
