# SPDX-License-Identifier: BSD-3-Clause
"""One run of the bench: what its parts share."""
import collections
import json
import os
import time
from pathlib import Path

from bench import stats
from bench.environment import library, output
from bench.processes import Processes
from bench.progress import Progress
from bench.rows import fill
from bench.run import DOUBTED, Failed, Run, at

# Programs that a host or a build may lack, and why.
OPTIONAL = {'ucx_perftest': 'is not installed', 'iperf3': 'is not installed',
            'ib_send_lat': 'is not installed (perftest)',
            **dict.fromkeys(('raw-zmq', 'raw-zmq-stream'),
                            'was not built, as libzmq3-dev was not there when the build folder was made')}


class UsageError(Exception):
    """Wrong arguments."""


def cpus_of(text):
    """Each CPU of a kernel list such as 0-3,8."""
    ends = [word.partition('-') for word in text.split(',') if word]
    return [cpu for first, _, last in ends for cpu in range(int(first), int(last or first) + 1)]


class Session:
    """runner: a callable that measures a Run instead of its part's `measure`; probe: one that returns the round trip
    of a cache line. Tests pass both."""

    def __init__(self, options, root, runner=None, probe=None):
        self.options, self.root, self.runner, self.probe = options, root, runner, probe
        self.out, self.rounds = Path(options.out), options.rounds
        self.processes, self.progress = Processes(), Progress(self.say)
        self.programs, self.parts, self.runs = {}, [], collections.defaultdict(list)
        self.failures, self.left_out, self.notes = [], [], []
        self.hiccups, self.lines, self.line_ns = None, [], None
        self.cpus = sorted(os.sched_getaffinity(0))

    def say(self, text):
        if not self.options.silent:
            print(text, flush=True)

    def fail(self, text, ours=True):
        """A failed baseline is reported, but does not fail the run."""
        (self.failures if ours else self.notes).append(text if ours else f'A baseline failed: {text}')
        self.say(f"    FAILED{'' if ours else ' (a baseline)'}: {text}")

    def leave_out(self, text):
        if text not in self.left_out:
            self.left_out.append(text)
            self.say(f'note: left out: {text}')

    # Programs -----------------------------------------------------------------------------

    def use(self, programs):
        """Programs by name, and what command lines name in addition to them."""
        self.programs = programs
        old = tuple(map(int, (library('libfabric') + '.0').split('.')[:2])) < (1, 18) if programs else False
        self.values = programs | {
            'server_cpu': self.cpus[0], 'client_cpu': self.cpus[1], 'out': self.out, 'fi': 'net' if old else 'tcp',
            'modules': os.path.dirname(programs.get('plx_shm-fi', ''))}
        # A build with MPI expects to be started by mpirun, and leaves Open MPI files in /dev/shm.
        mpi = 'ucx_perftest' in programs and 'MPI mode' in output('env', 'OMPI_MCA_btl=self', 'ucx_perftest', '-h')
        self.ucx_options = ' -P 0' if mpi else ''

    def need(self, part, program):
        if program not in self.programs and not self.runner:
            self.failures.append(f'{part}: the build has no program {program}')

    def has_programs(self, part, row):
        missing = [] if self.runner else sorted(row.programs() - set(self.programs))
        for program in missing:
            if program in OPTIONAL:
                self.leave_out(f'{part}: {row.key}: {program} {OPTIONAL[program]}')
            else:
                self.need(part, program)
        return not missing

    def run_program(self, name, line, limit_s, doubt=False, any_status=False):
        """The output of a program. Its files are in runs/."""
        process = self.processes.start(name, fill(line, self.values), self.out / 'runs')
        status = process.wait(limit_s)
        self.processes.end()
        if not any_status and status not in ((0, DOUBTED) if doubt else (0,)):
            how = f'took longer than {limit_s} s' if status is None else f'status {status}'
            raise Failed(f'{how}: {process.last_words()}')
        return process.log.read_text(errors='replace')

    # Runs ---------------------------------------------------------------------------------

    def probe_line(self):
        """Measure the round trip of a cache line between the CPUs; None if that is impossible."""
        self.line_ns = None
        if self.probe:
            self.line_ns = self.probe()
        elif self.options.mode == 'local' and 'cache-line' in self.programs:
            text = output(self.programs['cache-line'], str(self.cpus[0]), str(self.cpus[1]))
            self.line_ns = float(text) if text else None
        self.lines.append(self.line_ns)
        with open(self.out / 'runs/lines', 'a', encoding='utf-8') as file:
            print('null' if self.line_ns is None else f'{self.line_ns:g}', file=file)
        return self.line_ns

    def border(self):
        return stats.between(self.lines)

    def keep(self, part, result):
        self.runs[part].append(result)
        with open(self.out / f'runs/{part}.ndjson', 'a', encoding='utf-8') as file:
            print(json.dumps(result), file=file)

    def watch_platform(self):
        """What other processes take from the CPUs, while only the clock is read."""
        self.progress.step('platform', 'the platform alone: who else takes the CPUs')
        path = self.out / 'hiccups.json'
        try:
            text = self.run_program('hiccup', '{hiccup} --cpus {server_cpu},{client_cpu} --duration 2 --json '
                                    '{out}/hiccups.json', 30)
            (self.out / 'hiccups.txt').write_text(text)
            self.hiccups = json.loads(path.read_text())
        except (Failed, OSError, ValueError, KeyError) as cause:
            self.fail(f'hiccup: {cause}')

    def measure(self):
        """All parts in turn."""
        self.progress.expect('platform', 1, 2)
        self.progress.expect('report', 1, 4 * len(self.parts))
        self.say(f'{self.progress.steps} steps, about {self.progress.all_s / 60:.1f} min; results go to {self.out}')
        if not self.runner and any(part.timed for part in self.parts):
            self.watch_platform()
        for part in self.parts:
            if part.timed:
                self.probe_line()
            part.run()

    # Two hosts ----------------------------------------------------------------------------

    def serve(self, part):
        """Servers for --connect on another host. Each restarts when its client has disconnected."""
        servers = {}
        first = int(self.options.listen.rpartition(':')[2])
        ports = [part.port(row, size) for row, size, _ in part.serving()]
        self.say(f'serving {part.name} on {self.options.listen}, up to port {first + max(ports)}; end with Ctrl-C')
        for row, size, cpu in part.serving():
            run = Run(self, part, row, size, 'serve')
            part.prepare(run)
            run.values['listen'] = at(self.options.listen, part.port(row, size))
            run.values['server_cpu'] = run.values['cpu'] = run.values[cpu]
            run.values['port'] = run.values['listen'].rpartition(':')[2]
            servers[row.key, size] = run, None
        waits = {True: '', False: ' --wait 86400'}
        while True:
            for key, (run, process) in servers.items():
                if process and process.running():
                    continue
                line = run.row.server + waits[run.row.ours or '{ib_send_lat}' in run.row.server]
                started = run.start('server', line)
                if not part.awaits(run, started):
                    self.say(f'{run.row.key}: not up: {started.last_words()}')
                    if not process:
                        raise Failed(f'{run.row.key} did not start')
                servers[key] = run, started
                if process:
                    self.processes.running.remove(process)
            time.sleep(0.2)
