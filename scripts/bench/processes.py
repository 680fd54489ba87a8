# SPDX-License-Identifier: BSD-3-Clause
"""Processes that the bench starts: their output, their end, and their use of the CPU."""
import contextlib
import os
import re
import select
import shlex
import signal
import subprocess
import time
from pathlib import Path

SIGNALS = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)
TERM_GRACE_S = 1.0


class Failed(Exception):
    """A run or the set-up failed; the text is its cause."""


class Stopped(BaseException):
    """A signal asks the bench to end."""

    def __init__(self, signum):
        super().__init__(signum)
        self.status = 128 + signum


def raise_on_signals():
    def stop(signum, _frame):
        raise Stopped(signum)
    for signum in SIGNALS:
        if signal.getsignal(signum) is not signal.SIG_IGN:  # as after nohup
            signal.signal(signum, stop)


@contextlib.contextmanager
def signals_held():
    """Children are ended whole, also if the user presses Ctrl-C twice."""
    old = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, old)


class Process:
    """A program in its own process group. Its output goes to NAME.log and NAME.err in a folder."""

    def __init__(self, name, command, folder):
        self.name, self.stopped, self.begun = name, False, time.monotonic()
        self.log, self.err = folder / f'{name}.log', folder / f'{name}.err'
        (folder / f'{name}.command').write_text(shlex.join(map(str, command)) + '\n')
        # It ends with the bench, even if that is killed.
        with open(self.log, 'wb') as log, open(self.err, 'wb') as err:
            self.popen = subprocess.Popen(['setpriv', '--pdeathsig', 'KILL', '--', *map(str, command)], stdout=log,
                                          stderr=err, stdin=subprocess.DEVNULL, start_new_session=True,
                                          preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_SETMASK, ()))
        self.pid = self.popen.pid

    def running(self):
        return self.popen.poll() is None

    def wait(self, limit_s, watches=(), every_s=0.1):
        """Its status, or None if it ran longer. Watches look shortly before the end; nothing uses a CPU until then."""
        deadline, poll = time.monotonic() + limit_s, select.poll()
        if self.running():
            handle = os.pidfd_open(self.pid)
            poll.register(handle, select.POLLIN)
            try:
                while self.running() and (left := deadline - time.monotonic()) > 0:
                    for watch in watches:
                        watch.look()
                    poll.poll(1000 * min(left, every_s if watches else left))
            finally:
                os.close(handle)
        return self.popen.poll()

    def wait_for(self, pattern, limit_s):
        """The first match in its output, within a time and while it runs; or None."""
        deadline = time.monotonic() + limit_s
        while True:
            running = self.running()
            for text in self.texts():
                if match := re.search(pattern, text, re.MULTILINE):
                    return match
            if not running or time.monotonic() > deadline:
                return None
            time.sleep(0.02)

    def texts(self):
        """What it wrote to standard error, and its output."""
        return [path.read_text(errors='replace') for path in (self.err, self.log)]

    def stop(self):
        """Stopped, it uses no CPU, and nobody gets an answer from it."""
        self.stopped = True
        os.kill(self.pid, signal.SIGSTOP)

    def signal(self, signum):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signum)

    def last_words(self):
        """The end of what it wrote to standard error, or else of its output; without its log, if there is more."""
        for text, lines in zip(self.texts(), (3, 1)):
            said = [line.strip() for line in text.splitlines() if line.strip()]
            said = [line for line in said if not re.match(r'\d{4}-\d\d-\d\dT', line)] or said
            if said:
                return ' | '.join(said[-lines:])
        return ''


class Processes:
    """All that run. Nothing else is ever signalled."""

    def __init__(self):
        self.running = []

    def start(self, name, command, folder):
        with signals_held():
            process = Process(name, command, folder)
            self.running.append(process)
        return process

    def run(self, name, command, folder, limit_s, allowed=(0,), **more):
        """Run a program to its end, and return its output; other statuses are failures."""
        process = self.start(name, command, folder)
        status = process.wait(limit_s, **more)
        self.end()
        if status not in allowed:
            how = f'took longer than {limit_s} s' if status is None else f'status {status}'
            raise Failed(f'{name}: {how}: {process.last_words()}')
        return process.log.read_text(errors='replace')

    def end(self):
        """End all of them, within a short time."""
        with signals_held():
            for process in self.running:
                process.signal(signal.SIGKILL if process.stopped else signal.SIGTERM)
            deadline = time.monotonic() + TERM_GRACE_S
            for process in self.running:
                process.wait(max(0, deadline - time.monotonic()))
                process.signal(signal.SIGKILL)  # also what it started
                process.popen.wait()
            self.running.clear()


class Watch:
    """CPU time and sleeps of all threads of a process, from now until its last look."""

    def __init__(self, process):
        self.pid, self.begun, self.now, self.watched_s = process.pid, time.monotonic(), (0, 0), 0
        self.first = (0, 0)
        self.look()
        self.first = self.now

    def look(self):
        """After the process has ended, the last values remain."""
        cpu_ns = sleeps = 0
        with contextlib.suppress(OSError, IndexError, TypeError):
            for task in Path(f'/proc/{self.pid}/task').iterdir():
                cpu_ns += int((task / 'schedstat').read_text().split()[0])
                sleeps += int(re.search(r'^voluntary_ctxt_switches:\s*(\d+)', (task / 'status').read_text(), re.M)[1])
            self.now, self.watched_s = (cpu_ns / 1e9, sleeps), time.monotonic() - self.begun

    def per_s(self, which):
        """None after less than 50 ms."""
        return (self.now[which] - self.first[which]) / self.watched_s if self.watched_s >= 0.05 else None

    @property
    def cpu_percent(self):
        per_s = self.per_s(0)
        return None if per_s is None else 100 * per_s

    @property
    def wakes_per_s(self):
        return self.per_s(1)
