# SPDX-License-Identifier: BSD-3-Clause
"""Thresholds: a figure or a ratio of a part's rows, with a limit (doc/apps/thresholds.md)."""
from dataclasses import dataclass
from typing import Callable

from bench.stats import median, pair_ratios, round3


class Figures:
    """The runs of one state, for what a threshold measures; None if a row was not measured."""

    def __init__(self, runs, rows):
        self.runs, self.rows = runs, rows

    def row(self, key, size=None):
        return next((row for row in self.rows
                     if row['key'] == key and size in (None, row['size_bytes'])), {})

    def of(self, key, figure='p50_ns', size=64):
        return self.row(key, size).get(figure)

    def ratio(self, key, base, size=64, figure='p50_ns'):
        return median(pair_ratios(self.runs, key, base, size, figure))

    def difference(self, key, base, figure='p50_ns', size=64):
        own, other = self.of(key, figure, size), self.of(base, figure, size)
        return None if own is None or other is None else own - other


@dataclass(frozen=True)
class Limit:
    """One threshold. A gate fails a run with --strict; the others are aims."""
    what: str
    limit: float | Callable  # of the Figures, if it depends on a row
    measure: Callable        # of the Figures
    gates: bool = False
    least: bool = False      # a minimum
    note: Callable | None = None

    def judge(self, figures):
        value = self.measure(figures)
        if value is None:
            return None
        limit = self.limit(figures) if callable(self.limit) else self.limit
        result = {'what': self.what, 'ratio': round3(value), 'limit': limit}
        if self.least:
            result['least'] = True
        result |= {'ok': value >= limit if self.least else value <= limit, 'gates': self.gates}
        note = self.note(figures) if self.note else None
        return result | ({'note': note} if note else {})


def ratio(key, base, size=64, figure='p50_ns'):
    return lambda figures: figures.ratio(key, base, size, figure)


def value(key, name, size=64, scale=1):
    def measure(figures):
        found = figures.of(key, name, size)
        return None if found is None else found * scale
    return measure


def difference(key, base, name='p50_ns', size=64):
    return lambda figures: figures.difference(key, base, name, size)


def plus(base, ns):
    """As the limit of a ratio: that many nanoseconds more than the base."""
    return lambda figures: round3(1 + ns / figures.of(base))


def judge(limits, states, every):
    """Each threshold in the first state that has what it needs. states: (name, Figures); every: of all runs."""
    found = []
    for limit in limits:
        judged = next(((state, result) for state, figures in states
                       if (result := limit.judge(figures))), None)
        if judged:
            found.append(judged[1] | {'state': judged[0]})
        elif result := limit.judge(every):
            found.append(result | {'ratio': None, 'ok': None, 'note': 'n/a: CPU state changed'})
    return found
