# SPDX-License-Identifier: BSD-3-Clause
"""A part of the bench: rows, how they run in rounds, and how runs become figures. A part is a subclass with tables of
rows, figures and plots; it overrides what is special about it. Its thresholds are in doc/apps/thresholds.md.
"""
import re
import subprocess
import time
from dataclasses import dataclass, field
from typing import Callable

from bench import limits, schema, stats
from bench.processes import Failed
from bench.session import DOUBTED, Run

RUNS_MAX = 3      # of a row in a round
CLIENT = '--connect {address} --size {size} --duration {duration} --warmup {warmup} --out {folder} --name {key}'


@dataclass(frozen=True, eq=False)
class Row:
    """What a part measures: the command lines of two processes, with $PROGRAM and {value} (see session.Run)."""
    key: str
    server: str = ''
    client: str = ''
    label: str = ''               # as text, for pictures and tables
    bases: tuple = ()             # what it is compared with: the first of these rows that the run has
    figure: str = ''              # its main figure, if not the part's
    has: Callable = lambda size: True  # which sizes it has
    rounds: int = 999             # at most
    main: bool = False            # also without --full and --only
    ours: bool = True             # a baseline may fail
    port: int | None = None       # of --serve: the first port plus this; None: for one host
    each_size: bool = False       # its server serves one size: there is one at each of the ports from there
    silent: bool = False          # its server prints no line "listening on"
    listen: str = '127.0.0.1:0'
    held: tuple = ()              # a client that is stopped once it has printed a pattern
    daemon: tuple = ()            # that both ends need, and what it prints when it is ready
    measure: Callable | None = None  # of a Run, if not the part's
    more: dict = field(default_factory=dict)  # fields of its results

    def programs(self):
        return set(re.findall(r'\$([\w-]+)', ' '.join((self.server, self.client, *self.held, *self.daemon))))


@dataclass(frozen=True)
class Plot:
    """Panels of figures over the field x, with a line for each of these values (at most six) of the field `by`."""
    name: str
    x: str
    figures: tuple
    lines: tuple
    by: str = 'key'
    when: Callable = lambda row: True


def only(*sizes):
    return lambda size: size in sizes


def baseline(key, label, program, options='', ours=False, server_options='', **more):
    """A program of tests/perf: the same options for both ends."""
    return Row(key, ours=ours, label=label,
               server=f'{program} --listen {{listen}} {server_options} {options} --cpu {{server_cpu}}',
               client=f'{program} {CLIENT} {options} --cpu {{client_cpu}}', **more)


def plx(program, idle, provider, end, options=''):
    """A program of Pollux up to its own options, at one end."""
    lcore = {'server': '0@{server_cpu}', 'client': '1@{client_cpu}'}[end]
    return f'${program} -l {lcore} --idle {idle} --provider {provider} {options} --'


def ping(key, label, idle, provider, server='--size {size}', client='', **more):
    """plx-ping at both ends."""
    return Row(key, label=label, **more,
               server=f"{plx('plx-ping', idle, provider, 'server')} --listen {{listen}} {server}",
               client=f"{plx('plx-ping', idle, provider, 'client')} {CLIENT} {client}")


class Part:
    name = ''                # doc/apps/bench.md explains it
    timed = True            # False: neither other load nor the state of the CPUs changes its figures
    duration = 0
    rows = ()
    programs = ()           # that it needs in addition to those of its rows
    sizes = ()
    main_sizes = ()         # of the main job, if they are others
    fixed_sizes = False     # --sizes does not change them
    seconds = (5, 0.7)      # a run in long and in quick rounds
    columns = stats.TRIPS  # figures in tables; the first is the main one
    pooled = False          # histograms of all rounds of a row become one
    start_s = 0.6           # both ends, and warming up
    accepts_doubt = False   # if a program doubts its figures twice, they count
    between_cpus = True     # its round trips are between the CPUs of the probed cache line
    watched = False         # the CPU time of both ends, in `watches` of a run
    plots = ()
    warmups = (5000, 1000, 100)  # messages of up to 4 KiB, up to 64 KiB, more

    # What it measures ---------------------------------------------------------------------

    def begin(self, session):
        """Choose rows and sizes; estimate."""
        options = session.options
        self.session, self.chosen = session, []
        self.duration = options.duration or self.seconds[options.quick]
        chosen = options.main and self.main_sizes or self.sizes
        self.chosen_sizes = chosen if self.fixed_sizes or not options.sizes else options.sizes
        if session.has_programs(self.name, self.programs):
            self.chosen = [row for row in self.rows if self.chooses(row)]
        runs = [row for row in self.chosen for size in self.chosen_sizes if row.has(size)]
        session.progress.expect(self.name, sum(min(row.rounds, session.rounds) for row in runs),
                                self.duration + self.start_s)

    def chooses(self, row):
        if (self.session.options.main and not row.main
                or self.session.options.mode in ('serve', 'connect') and row.port is None):
            return False
        return self.session.has_programs(f'{self.name}: {row.key}', row.programs())

    def port(self, row, size):
        """Of a server on another host: the first port plus this."""
        return row.port + (self.chosen_sizes.index(size) if row.each_size else 0)

    def serving(self):
        """The servers of --serve: (row, size that the server must know)."""
        sizes = {row: sorted(filter(row.has, self.chosen_sizes)) for row in self.chosen}
        return [(row, size) for row, some in sizes.items() for size in (some if row.each_size else some[-1:])]

    def warmup(self, size):
        return self.warmups[(size > 4096) + (size > 65536)]

    # Running ------------------------------------------------------------------------------

    def run(self):
        for number in range(1, self.session.rounds + 1):
            for size in self.chosen_sizes:
                for row in self.chosen:
                    if row.has(size) and number <= row.rounds:
                        self.session.progress.step(self.name, self.title(row, size, number))
                        self.run_steadily(row, size, number)

    def run_steadily(self, row, size, number):
        """A run. It is repeated if the CPUs changed state meanwhile, or if its program doubts its figures."""
        session, reason = self.session, ''
        for count in range(1, RUNS_MAX + 1):
            begun, before = time.monotonic(), session.lines[-1]
            result = self.run_once(row, size, number)
            after = session.probe_line() if self.timed else before
            if reason:
                session.progress.lost[reason] += time.monotonic() - begun
            if result and result['doubted'] and count == 1:
                reason = 'runs repeated, because programs doubted their figures'
                session.say('    it could not account for its time, or missed its rate')
                continue
            again = stats.differ(before, after) and count < RUNS_MAX
            if result and (not result['doubted'] or self.accepts_doubt):
                session.runs[self.name].append(result | {'key': row.key, 'round': number, 'size_bytes': size,
                                                         'line_ns': stats.known((before, after))})
            elif result and not again:
                session.fail(f'{self.title(row, size, number)}: status {DOUBTED}: it could not account for its time',
                             row.ours)
            if not again:
                return
            reason = 'runs repeated, because the CPUs changed state'
            session.say('    the state of the CPUs changed; once more')

    def title(self, row, size, number):
        return f'{self.name}, {row.key}, {stats.size(size)}, round {number}'

    def run_once(self, row, size, number):
        """The figures of a run, or None if it failed, which is noted."""
        session = self.session
        try:
            run = Run(session, self, row, size, number)
            self.prepare(run)
            try:
                result = (session.runner or row.measure or self.measure)(run)
            finally:
                session.processes.end()
        except (Failed, LookupError, OSError, TypeError, ValueError, subprocess.SubprocessError) as cause:
            # Others than Failed: output that it cannot read.
            what = cause if isinstance(cause, Failed) else f'{type(cause).__name__}: {cause}'
            session.fail(f'{self.title(row, size, number)}: {what}', row.ours)
            return None
        result = row.more | result | {'run': run.name, 'doubted': run.doubted}
        session.say('    ' + ', '.join(f'{stats.label(name)} {stats.text(result, name)}' for name in self.columns
                                       if result.get(name) is not None))
        return result

    def prepare(self, run):
        """Set values of a run before its server starts."""

    def measure(self, run):
        """What a run measured, or Failed."""
        if run.row.daemon:
            run.start_ready('daemon', *run.row.daemon)
        if run.row.server:
            run.serve()
        if run.row.held:
            run.start_ready('stopped', *run.row.held).stop()
        run.client(watch=self.watched)
        if run.row.daemon:
            run.finish(run.server)  # it signs off from the daemon
        return self.read(run)

    def read(self, run):
        """What its client wrote."""
        return run.read()

    def half(self, key, figure, size=64):
        """Half of what the last run of a row measured."""
        found = [run[figure] for run in self.session.runs[self.name] if (run['key'], run['size_bytes']) == (key, size)]
        if not found:
            raise Failed(f'{key}, of whose rate it takes half, was not measured')
        return found[-1] / 2

    # Figures ------------------------------------------------------------------------------

    def combine(self, runs, group, state):
        """The figures of a row, over its runs in one state."""
        first, row = group[0], next(row for row in self.rows if row.key == group[0]['key'])
        keys = {run['key'] for run in runs if run['size_bytes'] == first['size_bytes']}
        base = next((base for base in row.bases if base in keys), None)
        name = row.figure or self.columns[0]
        ratios = [a / b for a, b in stats.pairs(runs, row.key, base, first['size_bytes'], name)] if base else []
        fields = {'provider', 'idle', 'count', 'doubted', *self.columns, *row.more}
        found = stats.combine([{field: run[field] for field in run if field in fields} for run in group])
        found |= self.pool(group, state)
        line = self.between_cpus and stats.median(run.get('pair_ns') or stats.median(run['line_ns']) for run in group)
        if line and found.get('p50_ns'):
            found['cache_lines'] = found['p50_ns'] / line
        return found | {
            'key': row.key, 'size_bytes': first['size_bytes'], 'figure': name, 'rounds': len(group), 'state': state,
            'ours': row.ours, 'base': base, 'ratio': stats.median(ratios),
            'ratio_least': min(ratios, default=None), 'ratio_greatest': max(ratios, default=None)}

    def pool(self, group, state):
        """Merge the histograms of a row into pooled/, and take percentiles from there."""
        first, out = group[0], self.session.out
        paths = [out / run['run'] / f"{first['key'].split('@')[0]}.csv" for run in group]
        buckets = stats.pool(bucket for path in paths if self.pooled and state and path.is_file()
                             for bucket in stats.read_histogram(path))
        if not buckets:
            return {}
        file = f"pooled/{self.name}-{first['key']}-{first['size_bytes']}-{state}.csv"
        stats.write_histogram(out / file, buckets)
        return {'histogram': file} | stats.percentiles(buckets, max(run['max_ns'] for run in group))

    def rows_of(self, runs, state):
        order, groups = [row.key for row in self.rows], {}
        for run in sorted(runs, key=lambda run: (run['size_bytes'], order.index(run['key']))):
            groups.setdefault((run['size_bytes'], run['key']), []).append(run)
        return [self.combine(runs, group, state) for group in groups.values()]

    def summarize(self, runs):
        """The part in summary.json: rows and thresholds by state. See schema.py."""
        states = stats.by_state(runs, stats.between(self.session.lines))
        of_states = {state: (some, self.rows_of(some, state)) for state, some in states.items()}
        every = (runs, self.rows_of(runs, ''))
        return self.summary([row for _, rows in of_states.values() for row in rows], of_states, every,
                            changed=len(runs) - sum(map(len, states.values())),
                            states=[{'state': state, 'runs': len(some)} for state, some in states.items()])

    def summary(self, rows, of_states=None, every=None, **more):
        """Of rows without rounds: their figures are all that thresholds need."""
        every = every or ([], rows)
        rounds = max((run['round'] for run in every[0]), default=0)
        return {'schema': schema.VERSION, 'part': self.name, 'rows': rows, 'states': [], 'changed': 0,
                'rounds': rounds or None, 'duration_s': self.duration or None,
                'thresholds': limits.judge(self.name, of_states or {stats.ONE: every}, every)} | more

    def heading(self, row):
        """Of rows that stand together in a table: those of one device or provider, size and state."""
        size = '' if self.fixed_sizes else stats.size(row['size_bytes'])
        return stats.joined(row['key'].partition('@')[2], size, stats.in_state(row['state']))
