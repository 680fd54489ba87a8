# SPDX-License-Identifier: BSD-3-Clause
"""One run of the bench: what its parts share, the runs of rows, and how far it is."""
import collections
import json
import os
import random
import re
import subprocess
import time

from bench import host, stats
from bench.processes import Failed, Processes, Watch

SILENT_START_S = 10   # until a server must listen
CLIENT_SLACK_S = 40   # warm-up and the client's own limits
DOUBTED = 3           # status of a program that could not account for its time, or missed its rate
LATE, LATE_S = 1.25, 15  # times the estimate, and that much later, before a run gives reasons


def at(address, offset):
    """HOST:PORT, with a port that is higher by the offset."""
    name, _, port = address.rpartition(':')
    return f'{name}:{int(port) + offset}'


def fill(line, values):
    """The words of a command line: $PROGRAM and {value}."""
    return [re.sub(r'\$([\w-]+)', r'{\1}', word).format_map(values) for word in line.split()]


class Progress:
    """How far the bench is, how long it takes, and why that is longer than its estimate."""

    def __init__(self, say):
        self.say, self.begun, self.steps, self.done, self.all_s, self.done_s = say, None, 0, 0, 0, 0
        self.each, self.lost = {}, collections.Counter()  # seconds lost, by reason

    def expect(self, name, steps, each_s):
        self.each[name] = each_s
        self.steps += steps
        self.all_s += steps * each_s

    def step(self, name, text):
        """A step starts. The time left is estimated from earlier steps."""
        self.begun = self.begun or time.monotonic()
        left = self.all_s - self.done_s
        if self.done_s >= 5:
            left *= (time.monotonic() - self.begun) / self.done_s
        self.done += 1
        self.done_s += self.each.get(name, 0)
        self.say(f'[{self.done}/{self.steps}, {stats.seconds(max(0, left))} left] {text}')

    def why_late(self):
        """A sentence if it took much longer than estimated; or None."""
        took = time.monotonic() - self.begun if self.begun else 0
        if took < LATE * self.done_s or took - self.done_s < LATE_S:
            return None
        reasons = [f'{reason} ({stats.seconds(lost)})' for reason, lost in self.lost.most_common() if lost >= 1]
        return (f'It took {stats.seconds(took)}; the estimate was {stats.seconds(self.done_s)}. Reasons: '
                f"{'; '.join(reasons + ['programs that started, ended or ran slowly'])}.")


class Session:
    """runner: a callable that measures a Run instead of its part's `measure`; probe: one that returns the round trip
    of a cache line. Tests pass both."""

    def __init__(self, options, root, runner=None, probe=None):
        self.options, self.root, self.runner, self.probe = options, root, runner, probe
        self.out, self.rounds = options.out, options.rounds
        self.processes, self.progress = Processes(), Progress(self.say)
        self.programs, self.parts, self.runs = {}, [], collections.defaultdict(list)
        self.failures, self.left_out, self.notes = [], [], []
        self.hiccups, self.lines = None, [None]
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

    def use(self, programs):
        """Programs by name, and what command lines name in addition to them."""
        old = re.match(r'1\.(\d|1[0-7])\b', host.library('libfabric'))
        self.programs = programs
        self.values = programs | {'server_cpu': self.cpus[0], 'client_cpu': self.cpus[1], 'fi': 'net' if old else 'tcp'}

    def has_programs(self, part, names):
        """Whether the build has them, and the host those of others."""
        missing = [] if self.runner else sorted(set(names) - set(self.programs))
        for program in missing:
            if program in host.OPTIONAL:
                self.leave_out(f'{part}: {host.OPTIONAL[program]}')
            else:
                self.failures.append(f'{part}: the build has no program {program}')
        return not missing

    def line_between(self, cpus):
        """The round trip of a cache line between two CPUs; None if it cannot be measured."""
        if not self.probe and self.options.mode == 'local' and 'cache-line' in self.programs:
            text = host.output(self.programs['cache-line'], *map(str, cpus))
            return float(text) if text else None
        return self.probe and self.probe()

    def probe_line(self):
        self.lines.append(self.line_between(self.cpus[:2]))
        with open(self.out / 'runs/lines', 'a', encoding='utf-8') as file:
            print(json.dumps(self.lines[-1]), file=file)
        return self.lines[-1]

    def watch_platform(self):
        """What other processes take from the CPUs, while only the clock is read."""
        self.progress.step('platform', 'the platform alone: who else takes the CPUs')
        path = self.out / 'hiccups.json'
        try:
            host.run('it failed', [self.programs['hiccup'], '--cpus', f'{self.cpus[0]},{self.cpus[1]}', '--duration', '2',
                                   '--json', path], limit_s=30)
            self.hiccups = json.loads(path.read_text())
        except (Failed, KeyError, OSError, ValueError, subprocess.TimeoutExpired) as cause:
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

    def serve(self, part):
        """Servers for --connect on another host. Each restarts when its client has disconnected."""
        servers, served = {}, part.serving()
        last = at(self.options.listen, max(part.port(row, size) for row, size in served))
        self.say(f"serving {part.name} on {self.options.listen}, up to port {last.rpartition(':')[2]}; end with Ctrl-C")
        for row, size in served:
            run = Run(self, part, row, size, 'serve')
            part.prepare(run)
            listen = at(self.options.listen, part.port(row, size))
            # Servers sleep until a client connects, except plx-ping, which has the other CPU.
            cpu = run.values['client_cpu' if row.ours and row.more.get('idle') != 'event' else 'server_cpu']
            run.values |= {'listen': listen, 'port': listen.rpartition(':')[2], 'server_cpu': cpu, 'cpu': cpu}
            servers[run] = None
        while True:
            for run, old in servers.items():
                if old and old.running():
                    continue
                patience = '' if run.row.ours or run.row.silent else ' --wait 86400'  # for its client
                servers[run] = run.start('server', run.row.server + patience)
                if not run.awaits(servers[run]):
                    if not old:
                        raise Failed(f'{run.row.key} did not start: {servers[run].last_words()}')
                    self.say(f'{run.row.key}: not up: {servers[run].last_words()}')
                if old:
                    self.processes.running.remove(old)
            time.sleep(0.2)


class Run:
    """One run of a row. `values` are what command lines name: programs, the session's values and those of this run."""

    def __init__(self, session, part, row, size, number):
        name = f'{part.name}-{row.key}-{size}-{number}'.replace('/', '-').replace('@', '-')
        self.session, self.part, self.row, self.size, self.round, self.name = (
            session, part, row, size, number, f'runs/{name}')
        self.folder = session.out / self.name
        self.folder.mkdir(parents=True, exist_ok=True)
        self.doubted, self.server, self.watches = False, None, {}
        self.limit_s = part.duration + CLIENT_SLACK_S
        self.values = session.values | {'key': row.key.split('@')[0], 'size': size, 'duration': part.duration,
                                        'warmup': part.warmup(size), 'folder': self.folder, 'listen': row.listen,
                                        'whole_s': int(part.duration) + 1}

    def start(self, name, line):
        return self.session.processes.start(name, fill(line, self.values), self.folder)

    def serve(self, tries=1):
        """Start the server, whose line "listening on" has the address. {port} is random: it may be in use."""
        if self.session.options.mode == 'connect':
            self.values['address'] = at(self.session.options.peer, self.part.port(self.row, self.size))
            return
        for _ in range(tries):
            self.values |= {'port': random.randrange(20000, 30000), 'address': None}
            begun, self.server = time.monotonic(), self.start('server', self.row.server)
            listens = self.awaits(self.server)
            self.session.progress.lost['slow starts'] += max(0, time.monotonic() - begun - 0.5)
            if listens:
                return
            self.session.processes.end()
        raise Failed(f'the server did not start: {self.server.last_words()}')

    def awaits(self, server):
        """Whether it listens, within some seconds. Its line "listening on" has the address, if it prints anything."""
        if self.row.silent:
            time.sleep(1)
            self.values['address'] = at(self.values['listen'], int(self.values['port']))
            return server.running()
        match = server.wait_for(r'listening on (\S+)', SILENT_START_S)
        self.values['address'] = match and match[1]
        return bool(match)

    def finish(self, process):
        """Wait for the process that measures. A program that doubts its figures ends with status 3."""
        status = process.wait(self.limit_s, list(self.watches.values()))
        if status not in (0, DOUBTED):
            how = 'took too long' if status is None else f'signal {-status}' if status < 0 else f'status {status}'
            said = process.last_words() or self.server and self.server.last_words() or 'it printed nothing'
            raise Failed(f'{process.name}: {how}: {said}')
        self.doubted = self.doubted or status == DOUBTED

    def client_soon(self, line, tries, pause_s, expected=''):
        """Run a client whose server may not be listening yet: then it fails, with the text that is expected."""
        for left in reversed(range(tries)):
            time.sleep(pause_s)
            try:
                return self.client(line)
            except Failed as cause:
                if not left or expected not in str(cause) + self.output():
                    raise

    def client(self, line=None, watch=False):
        """Run the client to its end."""
        client = self.start('client', line or self.row.client)
        if watch:
            time.sleep(0.1)  # until both are at work
            self.watches = {'server': Watch(self.server), 'client': Watch(client)}
        self.finish(client)

    def start_ready(self, name, line, pattern):
        """Start a process, and wait until it has printed the pattern."""
        process = self.start(name, line)
        if not process.wait_for(pattern, 30):
            raise Failed(f'{process.name}: {process.last_words()}')
        return process

    def read(self, name=None):
        """JSON that a program wrote to the run's folder."""
        path = self.folder / f"{name or self.values['key']}.json"
        try:
            return json.loads(path.read_text())
        except (OSError, ValueError) as error:
            raise Failed(f'{path.name}: {error}') from None

    def output(self, name='client'):
        return (self.folder / f'{name}.log').read_text(errors='replace')
