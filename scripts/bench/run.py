# SPDX-License-Identifier: BSD-3-Clause
"""One run of a row: its processes, their end, and what they wrote."""
import json
import random
import time

from bench.processes import Watch
from bench.rows import fill

SILENT_START_S = 10   # until a server must listen
CLIENT_SLACK_S = 40   # warm-up and the client's own limits
DOUBTED = 3           # status of a program that could not account for its time, or missed its rate


class Failed(Exception):
    """A run failed; the text is its cause."""


def at(address, offset):
    """HOST:PORT, with a port that is higher by the offset."""
    host, _, port = address.rpartition(':')
    return f'{host}:{int(port) + offset}'


class Run:
    """`values` are what command lines name: programs, the session's values and those of this run."""

    def __init__(self, session, part, row, size, number):
        name = f'{part.name}-{row.key}-{size}-{number}'.replace('/', '-').replace('@', '-')
        self.session, self.part, self.row, self.size, self.round, self.name = (
            session, part, row, size, number, f'runs/{name}')
        self.folder = session.out / self.name
        self.folder.mkdir(parents=True, exist_ok=True)
        self.doubted, self.server_process, self.watches = False, None, {}
        self.limit_s = part.duration + CLIENT_SLACK_S
        self.values = session.values | {'key': row.key.split('@')[0], 'size': size, 'duration': part.duration,
                                        'warmup': part.warmup(size), 'folder': self.folder, 'listen': row.listen,
                                        'whole_s': int(part.duration) + 1}

    def start(self, name, line):
        command = fill(line, self.values) if isinstance(line, str) else line
        return self.session.processes.start(name, command, self.folder)

    def serve(self, line=None, tries=1):
        """Start the server, whose line "listening on" has the address. {port} is random: it may be in use."""
        self.part.prepare(self)
        if self.session.options.mode == 'connect':
            self.values['address'] = at(self.session.options.peer, self.part.port(self.row, self.size))
            return
        for _ in range(tries):
            self.values |= {'port': random.randrange(20000, 30000), 'address': None}
            server = self.start('server', line or self.row.server)
            if self.part.awaits(self, server):
                self.session.progress.lose('slow starts', time.monotonic() - server.begun - 0.5)
                self.server_process = server
                return
            self.session.processes.end()
        raise Failed(f'the server did not start: {server.last_words()}')

    def watch(self, side, process):
        self.watches[side] = Watch(process)

    def finish(self, process):
        """Wait for the process that measures. A program that doubts its figures ends with status 3."""
        status = process.wait(self.limit_s, list(self.watches.values()))
        if status is None:
            raise Failed(f'{process.name} took too long: {self.last_words(process)}')
        if status not in (0, DOUBTED):
            how = f'signal {-status}' if status < 0 else f'status {status}'
            raise Failed(f'{process.name}: {how}: {self.last_words(process)}')
        self.doubted = self.doubted or status == DOUBTED

    def last_words(self, process):
        """Of a process, or else of the server."""
        server = self.server_process
        return process.last_words() or server and server.last_words() or 'it printed nothing'

    def client(self, line=None, watch=None):
        """Run the client to its end. watch: names of the server's and the client's side in `watches`."""
        client = self.start('client', line or self.row.client)
        if watch:
            time.sleep(0.1)  # until both are at work
            self.watch(watch[0], self.server_process)
            self.watch(watch[1], client)
        self.finish(client)

    def hold(self, name, line, pattern, limit_s=30):
        """Start a process that is stopped once it has printed the pattern."""
        process = self.start(name, line)
        if not process.wait_for(pattern, limit_s):
            raise Failed(f'{name}: {process.last_words()}')
        process.stop()

    def read(self, name=None):
        """JSON that a program wrote to the run's folder."""
        path = self.folder / f"{name or self.values['key']}.json"
        try:
            return json.loads(path.read_text())
        except (OSError, ValueError) as error:
            raise Failed(f'{path.name}: {error}') from None

    def output(self, name='client'):
        return (self.folder / f'{name}.log').read_text(errors='replace')
