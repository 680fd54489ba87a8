# SPDX-License-Identifier: BSD-3-Clause
"""A part of the bench: rows, how they run in rounds, and how runs become figures, tables and thresholds.

A part is a subclass with tables of rows, limits and columns; it overrides what is special about it. One without rounds
overrides `run` and `summarize`, and needs nothing else: see parts/rings.py.
"""
from dataclasses import dataclass
from typing import Callable

from bench import limits, stats, words
from bench.run import DOUBTED, SILENT_START_S, Failed, Run

EXTRA_ROUNDS = 3  # for rows that lack the state of the others
SCHEMA = 'pollux-bench/2'


@dataclass(frozen=True)
class Table:
    """Columns of rows for which `when` is true, as (title, text of a row)."""
    title: str
    columns: tuple
    when: Callable = lambda row: True


@dataclass(frozen=True)
class Plot:
    """Lines over x for each panel (title, value of a row). The rows: at most six, by key."""
    name: str
    x_title: str
    x: Callable
    panels: tuple
    rows: tuple
    label: Callable = None
    key: Callable = lambda row: row['key']
    when: Callable = lambda row: True


def trips(*names):
    """Columns of percentiles, such as p99_9, in microseconds."""
    return tuple((name.replace('_', '.'), lambda row, figure=f'{name}_ns': words.us(row.get(figure))) for name in names)


class Part:
    name = title = explained = ''
    timed = True            # False: neither other load nor the state of the CPUs changes its figures
    duration = 0
    rows = ()
    programs = ()           # that it needs in addition to those of its rows
    sizes = ()
    main_sizes = None       # of the main job, if they are others
    fixed_sizes = False     # --sizes does not change them
    seconds = (5, 0.7)      # a run in long and in quick rounds
    main_seconds = None     # of the main job, if they are others
    figure = 'p50_ns'
    keep = ('provider',)    # what results take from a row's first run
    spreads = ('p50_ns',)   # medians with the least and the greatest value
    medians = maxima = sums = ()
    pooled = False          # histograms of all rounds of a row become one
    start_s = 0.6           # both ends, and warming up
    tries = 2               # of a run that a program doubts
    accepts_doubt = False   # what the last of these tries measured
    limits = ()
    tables = ()
    plots = ()
    lines = ()                   # rows of the percentile plot; (): the first six
    warmups = (5000, 1000, 100)  # messages of up to 4 KiB, up to 64 KiB, more

    # What it measures ---------------------------------------------------------------------

    def begin(self, session):
        """Choose rows and sizes; estimate."""
        options = session.options
        self.session = session
        self.duration = options.duration or options.main and self.main_seconds or self.seconds[options.quick]
        chosen = self.main_sizes if options.main and self.main_sizes else self.sizes
        self.chosen_sizes = chosen if self.fixed_sizes or not options.sizes else options.sizes
        for program in self.programs:
            session.need(self.name, program)
        self.chosen = [row for row in self.rows if self.chooses(row)]
        runs = [row for row in self.chosen for size in self.chosen_sizes if row.has(size)]
        session.progress.expect(self.name, sum(min(row.rounds or session.rounds, session.rounds) for row in runs),
                                self.duration + self.start_s)

    def chooses(self, row):
        if self.session.options.main and not row.main:
            return False
        if self.session.options.mode in ('serve', 'connect') and row.port is None:
            return False
        return self.session.has_programs(self.name, row)

    def port(self, row, _size):
        """Of a server on another host: the first port plus this."""
        return row.port

    def serving(self):
        """The servers of --serve: a row, the size that the server must know, and the name of its CPU. Baselines sleep
        until a client connects; plx-ping spins, so it has the other CPU."""
        return [(row, max(self.chosen_sizes), 'server_cpu' if not row.ours else 'client_cpu') for row in self.chosen]

    def warmup(self, size):
        return self.warmups[(size > 4096) + (size > 65536)]

    # Running ------------------------------------------------------------------------------

    def run(self):
        session = self.session
        for number in range(1, session.rounds + 1):
            for size in self.chosen_sizes:
                for row in self.chosen:
                    if row.has(size) and (not row.rounds or number <= row.rounds):
                        session.progress.step(self.name, f'{self.name}, round {number} of {session.rounds}, '
                                              f'{words.size(size)}, {row.key}')
                        self.run_steadily(row, size, number)
        by_key = {row.key: row for row in self.chosen}
        for extra in range(1, EXTRA_ROUNDS + 1) if self.timed else ():
            for key, size in stats.lacking(session.runs[self.name], session.border()):
                session.say(f'{self.name}, extra round {extra}, {words.size(size)}, {key}: '
                            'the others ran in another state of the CPUs')
                with session.progress.losing('extra rounds, because the CPUs changed state'):
                    self.run_steadily(by_key[key], size, session.rounds + extra)

    def run_steadily(self, row, size, number):
        """A run, and up to two more if the CPUs changed state meanwhile."""
        session, before = self.session, self.session.line_ns
        for again in range(3):
            with session.progress.losing('runs repeated, because the CPUs changed state', again):
                result = self.run_once(row, size, number)
                after = session.probe_line()
            if result is not None:
                lines = (before, after) if self.timed else (before,)
                session.keep(self.name, result | {'key': row.key, 'round': number, 'size_bytes': size,
                                                  'line_ns': stats.known(lines)})
            if not self.timed or not stats.differ(before, after):
                return
            before = after
            if again < 2:
                session.say('    the state of the CPUs changed; once more')

    def run_once(self, row, size, number):
        """The figures of a run, or None if it failed, which is noted."""
        session = self.session
        try:
            for left in reversed(range(self.tries)):
                run = Run(session, self, row, size, number)
                try:
                    with session.progress.losing('runs repeated, because programs doubted their figures',
                                                 left < self.tries - 1):
                        result = (session.runner or self.measure)(run)
                finally:
                    session.processes.end()
                if not run.doubted:
                    break
                if left:
                    session.say('    it could not account for its time, or missed its rate; once more')
            if run.doubted and not self.accepts_doubt:
                raise Failed(f'status {DOUBTED}: it could not account for its time')
        except (Failed, LookupError, OSError, TypeError, ValueError) as cause:  # others: output that it cannot read
            what = cause if isinstance(cause, Failed) else f'{type(cause).__name__}: {cause}'
            session.fail(f'{self.name}, {row.key}, {words.size(size)}, round {number}: {what}', row.ours)
            return None
        result |= {'run': run.name, 'doubted': run.doubted}
        session.say(f'    {self.describe(result)}')
        return result

    def prepare(self, run):
        """Set values of a run before its server starts."""

    def awaits(self, run, process):
        """Whether a server listens, within some seconds. Its line "listening on" has the address."""
        match = process.wait_for(r'listening on (\S+)', SILENT_START_S)
        run.values['address'] = match and match[1]
        return bool(match)

    def measure(self, run):
        """What a run measured, or Failed."""
        run.serve()
        run.client()
        return run.read()

    def describe(self, result):
        p50 = result.get('p50_ns')
        return f"p50 {words.us(p50)} us, {result.get('count')} round trips"

    # Figures ------------------------------------------------------------------------------

    def order(self, key):
        return [row.key for row in self.rows].index(key)

    def combine(self, runs, group, state):
        """The figures of a row, over its runs in one state."""
        first, row = group[0], next(row for row in self.rows if row.key == group[0]['key'])
        keys = {run['key'] for run in runs if run['size_bytes'] == first['size_bytes']}
        base = next((base for base in row.bases if base in keys), None)
        name = row.figure or self.figure
        pairs = stats.pair_ratios(runs, row.key, base, first['size_bytes'], name) if base else []
        result = {'key': row.key, 'size_bytes': first['size_bytes'], 'figure': name, 'rounds': len(group),
                  'state': state, 'ours': row.ours, 'base': base, 'ratio': stats.round3(stats.median(pairs)),
                  'ratio_least': min(pairs, default=None), 'ratio_greatest': max(pairs, default=None)}
        result |= {field: first.get(field) for field in self.keep}
        for field in self.spreads:
            result |= stats.spread(group, field)
        for fields, total in ((self.medians, stats.median), (self.maxima, lambda values: max(values, default=None)),
                              (self.sums, sum)):
            result |= {field: total(stats.known(run.get(field) for run in group)) for field in fields}
        if self.pooled:
            result |= self.pool(group, state)
        return result

    def pool(self, group, state):
        """Merge the histograms of a row into pooled/, and take percentiles from there."""
        first, out = group[0], self.session.out
        name = first['key'].split('@')[0]
        if not state:
            return {}
        paths = [path for run in group if (path := out / run['run'] / f'{name}.csv').is_file()]
        if not paths:
            return {}
        buckets = stats.pool(paths)
        file = f"pooled/{self.name}-{first['key']}-{first['size_bytes']}-{state}.csv"
        (out / 'pooled').mkdir(exist_ok=True)
        (out / file).write_text('low,high,count\n' + ''.join(f'{low},{high},{count}\n'
                                                             for low, high, count in buckets))
        return {'histogram': file} | stats.percentiles(
            buckets, min(run['min_ns'] for run in group), max(run['max_ns'] for run in group))

    def rows_of(self, runs, state):
        groups = {}
        for run in sorted(runs, key=lambda run: (run['size_bytes'], self.order(run['key']))):
            groups.setdefault((run['size_bytes'], run['key']), []).append(run)
        return [self.combine(runs, group, state) for group in groups.values()]

    def summarize(self, runs):
        """The part in summary.json: rows and thresholds by state. See schema.py."""
        states = stats.by_state(runs, self.session.border())
        figures = {state: limits.Figures(some, self.rows_of(some, state)) for state, some in states.items()}
        every = limits.Figures(runs, self.rows_of(runs, '') if len(states) != 1
                               else next(iter(figures.values())).rows)
        return {'schema': SCHEMA, 'part': self.name, 'unit': self.explained,
                'rows': [row for figure in figures.values() for row in figure.rows],
                'states': [{'state': state, 'runs': len(some)} for state, some in states.items()],
                'changed': len(runs) - sum(map(len, states.values())),
                'thresholds': limits.judge(self.limits_of(every), figures.items(), every)} | self.extras()

    def limits_of(self, _figures):
        return self.limits

    def extras(self):
        """Further fields of the summary."""
        return {}

    # Words --------------------------------------------------------------------------------

    def heading(self, row):
        """Of rows that stand together in a table."""
        return words.in_state(words.size(row['size_bytes']), row['state'])

    def label(self, result):
        """Of a row in tables."""
        return next((row.label for row in self.rows if row.key == result['key'] and row.label), result['key'])

    def plot_rows(self, rows):
        """What plots show of the rows of a result."""
        return rows

    def notes(self, _summary):
        """Sentences after its tables."""
        return []
