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

TERM_GRACE_S = 1.0


class Stopped(BaseException):
    """A signal asks the bench to end."""

    def __init__(self, signum):
        super().__init__(signum)
        self.status = 128 + signum


def raise_on_signals():
    def stop(signum, _frame):
        raise Stopped(signum)
    for signum in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(signum) is not signal.SIG_IGN:  # as after nohup
            signal.signal(signum, stop)


@contextlib.contextmanager
def signals_held():
    """Children are ended whole, also if the user presses Ctrl-C twice."""
    held = {signal.SIGHUP, signal.SIGINT, signal.SIGTERM}
    old = signal.pthread_sigmask(signal.SIG_BLOCK, held)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, old)


class Process:
    """A program in its own process group. Its output goes to NAME.log and NAME.err in a folder."""

    def __init__(self, name, command, folder):
        self.name, self.folder, self.stopped = name, Path(folder), False
        self.log, self.err = self.folder / f'{name}.log', self.folder / f'{name}.err'
        (self.folder / f'{name}.command').write_text(shlex.join(map(str, command)) + '\n')
        self.begun = time.monotonic()
        # It ends with the bench, even if that is killed.
        with open(self.log, 'wb') as log, open(self.err, 'wb') as err:
            self.popen = subprocess.Popen(['setpriv', '--pdeathsig', 'KILL', '--', *map(str, command)], stdout=log,
                                          stderr=err, stdin=subprocess.DEVNULL, start_new_session=True,
                                          preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_SETMASK, ()))
        self.pid = self.popen.pid

    def running(self):
        return self.popen.poll() is None

    def wait(self, limit_s, watches=(), every_s=0.1):
        """Its status, or None if it ran longer. Watches look shortly before the end, and use no CPU until then."""
        deadline = time.monotonic() + limit_s
        handle = os.pidfd_open(self.pid) if self.running() else None
        try:
            while self.running():
                left = deadline - time.monotonic()
                if left <= 0:
                    return None
                for watch in watches:
                    watch.look()
                poll = select.poll()
                poll.register(handle, select.POLLIN)
                poll.poll(1000 * min(left, every_s if watches else left))
        finally:
            if handle is not None:
                os.close(handle)
        return self.popen.returncode

    def wait_for(self, pattern, limit_s):
        """The first match in its output, within a time and while it runs; or None."""
        deadline = time.monotonic() + limit_s
        while True:
            running = self.running()
            for path in (self.log, self.err):
                if match := re.search(pattern, path.read_text(errors='replace'), re.MULTILINE):
                    return match
            if not running or time.monotonic() > deadline:
                return None
            time.sleep(0.02)

    def stop(self):
        """Stopped, it uses no CPU, and nobody gets an answer from it."""
        self.stopped = True
        os.kill(self.pid, signal.SIGSTOP)

    def signal(self, signum):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signum)

    def last_words(self, lines=3):
        """The end of what it wrote to standard error, or else of its output; without its log, if there is more."""
        for path in (self.err, self.log):
            said = [line.strip() for line in path.read_text(errors='replace').splitlines() if line.strip()]
            said = [line for line in said if not re.match(r'\d{4}-\d\d-\d\dT', line)] or said
            if said:
                return ' | '.join(said[-lines if path == self.err else -1:])
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

    def end_stopped(self):
        for process in self.running:
            if process.stopped:
                process.signal(signal.SIGKILL)


class Watch:
    """CPU time and sleeps of all threads of a process, from now until its last look."""

    def __init__(self, process):
        self.pid, self.begun = process.pid, time.monotonic()
        self.watched_s, self.cpu_s, self.wakes, self.first = 0, 0, 0, None
        with contextlib.suppress(OSError, IndexError, TypeError):
            self.first = self._usage()

    def _usage(self):
        cpu_ns = sleeps = 0
        for task in Path(f'/proc/{self.pid}/task').iterdir():
            cpu_ns += int((task / 'schedstat').read_text().split()[0])
            sleeps += int(re.search(r'^voluntary_ctxt_switches:\s*(\d+)', (task / 'status').read_text(),
                                    re.MULTILINE)[1])
        return cpu_ns / 1e9, sleeps

    def look(self):
        """After the process has ended, the last values remain."""
        with contextlib.suppress(OSError, IndexError, TypeError):
            cpu_s, sleeps = self._usage()
            self.cpu_s, self.wakes = cpu_s - self.first[0], sleeps - self.first[1]
            self.watched_s = time.monotonic() - self.begun

    @property
    def cpu_percent(self):
        """None after less than 50 ms."""
        return self.cpu_s / self.watched_s * 100 if self.watched_s >= 0.05 else None

    @property
    def wakes_per_s(self):
        return self.wakes / self.watched_s if self.watched_s >= 0.05 else None
