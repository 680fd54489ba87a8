# SPDX-License-Identifier: BSD-3-Clause
"""Thresholds: what figures and ratios of rows should be. The tables of doc/apps/thresholds.md have them."""
import fnmatch
import functools
import itertools
import re
from dataclasses import dataclass
from pathlib import Path

from bench.figures import joined, size
from bench.stats import known, median, pairs

PAGE = Path(__file__).parents[2] / 'doc/apps/thresholds.md'
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

    def of(self, row):
        return (fnmatch.fnmatch(row['key'].partition('@')[0], self.rows) or row['key'] == self.rows) and (
            not self.sizes or size(row['size_bytes']) in self.sizes.split(', '))

    def measure(self, runs, rows, key, bytes_count):
        """None without what it needs."""
        bases = [base + ('' if '@' in base else ''.join(key.partition('@')[1:])) for base in
                 re.findall('`(.*?)`', self.over)]
        if not bases:
            found = [row.get(self.figure) for row in rows if (row['key'], row['size_bytes']) == (key, bytes_count)][:1]
        else:
            of_bases = [pairs(runs, key, base, bytes_count, self.figure) for base in bases]
            found = [median(a - b if self.over.startswith('minus') else a / b for a, b in some) for some in of_bases]
        found = [value / UNITS.get(self.unit, 1) for value in known(found)]
        return (min if self.least else max)(found, default=None)

    def judge(self, part, key, bytes_count, value):
        over = self.over.replace('`', '').replace(', ', ' and ')
        what = f"{part}, {key}{over and f' {over}' if over.startswith('minus') else over and f' over {over}'}"
        return {'what': joined(what, self.figure, self.sizes and size(bytes_count)),
                'ratio': value and float(f'{value:.4g}'), 'limit': self.limit, 'unit': self.unit, 'least': self.least,
                'ok': value >= self.limit if self.least else value <= self.limit, 'gates': self.gates}


@functools.cache
def table(part):
    """The thresholds of a part. {1,8} in a key, with as many limits, stands for several rows."""
    section = (PAGE.read_text() + '\n## ').partition(f'\n## {part}')[2].partition('\n## ')[0]
    found = []
    for line in section.splitlines():
        cells = [cell.strip() for cell in line.strip('|').split('|')]
        if len(cells) != 6 or not (limit := re.fullmatch(r'at (least|most) ([\d., ]+?)( [a-zA-Z%]+)?(, a gate)?',
                                                         cells[4])):
            continue
        braces = re.search(r'{(.*)}', cells[0])
        options = braces[1].split(',') if braces else ['']
        for option, number in zip(options, itertools.cycle(limit[2].split(', '))):
            rows = cells[0].strip('`').replace(braces[0], option) if braces else cells[0].strip('`')
            found.append(Limit(rows, cells[1], cells[2].strip('`'), cells[3], limit[1] == 'least', float(number),
                               (limit[3] or '').strip(), bool(limit[4])))
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
