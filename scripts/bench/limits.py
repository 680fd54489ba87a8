# SPDX-License-Identifier: BSD-3-Clause
"""Thresholds: what figures and ratios of rows should be. The tables of doc/apps/thresholds.md have them."""
import fnmatch
import itertools
import re
from dataclasses import dataclass
from pathlib import Path

from bench import stats

PAGES = Path(__file__).parents[2] / 'doc/apps'
UNITS = {'million': 1e6, 'KiB': 1024, 'ms': 1e6}


@dataclass(frozen=True)
class Limit:
    """One row of a table. A gate fails a run with --strict; the others are aims."""
    rows: str         # a pattern of keys
    over: str         # the base of a ratio, several (the best counts), or `minus` the base of a difference
    figure: str
    sizes: str
    least: bool       # a minimum
    limit: float
    unit: str
    gates: bool

    def keys(self):
        return [self.rows, *filter(None, self.over.removeprefix('minus ').split(', '))]

    def of(self, row):
        names = row['key'], row['key'].partition('@')[0]
        return any(fnmatch.fnmatch(name, self.rows) for name in names) and (
            not self.sizes or stats.size(row['size_bytes']) in self.sizes.split(', '))

    def measure(self, runs, rows, key, size):
        """None without what it needs. The base of a row NAME@DEVICE is of that device, too."""
        found, minus = [], self.over.startswith('minus')
        for base in self.keys()[1:]:
            suffix = '' if '@' in base else ''.join(key.partition('@')[1:])
            pairs = stats.pairs(runs, key, base + suffix, size, self.figure)
            found.append(stats.median(a - b if minus else a / b for a, b in pairs))
        if not self.over:
            found = [row.get(self.figure) for row in rows if (row['key'], row['size_bytes']) == (key, size)][:1]
        found = [value / UNITS.get(self.unit, 1) for value in stats.known(found)]
        return (min if self.least else max)(found, default=None)

    def judge(self, part, key, size, value):
        over = self.over.replace(', ', ' and ')
        what = ' '.join(filter(None, (key, '' if not over or over.startswith('minus') else 'over', over)))
        return {'what': stats.joined(part, what, self.figure, self.sizes and stats.size(size)),
                'ratio': value and float(f'{value:.4g}'), 'limit': self.limit, 'unit': self.unit, 'least': self.least,
                'ok': value >= self.limit if self.least else value <= self.limit, 'gates': self.gates}


def section(page, heading):
    """Of a page of doc/apps: what follows a heading."""
    text = (PAGES / f'{page}.md').read_text() + '\n## '
    return text.partition(f'\n## {heading}')[2].partition('\n## ')[0]


def table(part):
    """The thresholds of a part. {1,8} in a key, with as many limits, stands for several rows."""
    found = []
    for line in section('thresholds', part).splitlines():
        cells = [cell.strip() for cell in line.replace('`', '').strip('|').split('|')]
        limit = len(cells) == 6 and re.fullmatch(r'at (least|most) ([\d., ]+?)(?: ([a-zA-Z%]+))?(, a gate)?', cells[4])
        if not limit:
            continue
        before, braces, after = re.fullmatch(r'([^{]*)(?:{(.*)})?(.*)', cells[0]).groups()
        for option, number in zip((braces or '').split(','), itertools.cycle(limit[2].split(', '))):
            found.append(Limit(before + option + after, *cells[1:4], limit[1] == 'least', float(number), limit[3] or '',
                               bool(limit[4])))
    return found


def judge(part, of_states, every):
    """Each threshold in the first state that has what it needs. States: (runs, rows), as `every`, which has all."""
    found = []
    for limit in table(part):
        for of_row in dict.fromkeys((row['key'], row['size_bytes']) for row in every[1] if limit.of(row)):
            values = {state: limit.measure(*some, *of_row) for state, some in of_states.items()}
            state = next((state for state, value in values.items() if value is not None), None)
            if state:
                found.append(limit.judge(part, *of_row, values[state]) | {'state': state})
            elif (value := limit.measure(*every, *of_row)) is not None:
                found.append(limit.judge(part, *of_row, value) | {'ratio': None, 'ok': None,
                                                                  'note': 'n/a: CPU state changed'})
    return found
