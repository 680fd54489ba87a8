# SPDX-License-Identifier: BSD-3-Clause
"""The part soak, run only by --soak: NetIO's sockets at full load for long; no end may report the other as silent."""
import re
from dataclasses import replace

from bench import words
from bench.limits import Limit
from bench.part import Table
from bench.parts.netio import ROWS, Netio


class Soak(Netio):
    name = 'soak'
    title = 'NetIO at full load'
    explained = 'An alarm is one end that reports the other one as silent.'
    rows = tuple(replace(row, rounds=1) for row in ROWS if row.key in ('buffered-tcp', 'buffered-shm'))
    sizes = main_sizes = (64,)
    fixed_sizes = True
    timed = False
    seconds = (600, 600)
    figure = 'mmsg_per_s'
    maxima = ('seconds',)
    sums = ('count', 'alarms')
    tables = (Table('', (
        ('seconds', lambda row: str(row['seconds'])), ('Mmsg/s', lambda row: words.short(row['mmsg_per_s'])),
        ('alarms', lambda row: str(row['alarms'])))),)
    plots = ()

    def chooses(self, row):
        return self.session.has_programs(self.name, row)

    def limits_of(self, figures):
        return [Limit(f"soak, {row['key']}, false alarms in {words.number(row['seconds'])} s", 0,
                      lambda figures, key=row['key']: figures.of(key, 'alarms'), gates=True) for row in figures.rows]

    def measure(self, run):
        result = super().measure(run)
        said = run.output('server') + run.output('client')
        for name in ('server', 'client'):
            said += (run.folder / f'{name}.err').read_text(errors='replace')
        alarms = len(re.findall(r' is silent$', said, re.MULTILINE))
        if alarms:
            self.session.fail(f'soak, {run.row.key}: {alarms} false alarms')
        return result | {'seconds': self.duration, 'alarms': alarms}
