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


class Failed(Exception):
    """A run or the set-up failed; the text is its cause."""
    status = 1


class UsageError(Failed):
    """Wrong arguments, or a file that is no result."""
    status = 2


class Stopped(BaseException):
    """A signal asks the bench to end."""

    def __init__(self, signum, _frame=None):
        super().__init__(signum)
        self.status = 128 + signum


def raise_on_signals():
    def stop(*arguments):
        raise Stopped(*arguments)
    for signum in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(signum) is not signal.SIG_IGN:  # as after nohup
            signal.signal(signum, stop)


class Process:
    """A program in its own process group. Its output goes to NAME.log and NAME.err in a folder."""

    def __init__(self, name, command, folder):
        self.name, self.stopped = name, False
        self.log, self.err = folder / f'{name}.log', folder / f'{name}.err'
        (folder / f'{name}.command').write_text(shlex.join(map(str, command)) + '\n')
        # It ends with the bench, even if that is killed, or stopped by a second Ctrl-C while it ends its processes.
        with open(self.log, 'wb') as log, open(self.err, 'wb') as err:
            self.popen = subprocess.Popen(['setpriv', '--pdeathsig', 'KILL', '--', *map(str, command)], stdout=log,
                                          stderr=err, stdin=subprocess.DEVNULL, start_new_session=True)
        self.pid = self.popen.pid

    def running(self):
        return self.popen.poll() is None

    def wait(self, limit_s, watches=()):
        """Its status, or None if it ran longer. Watches look shortly before the end; nothing uses a CPU until then."""
        deadline, poll = time.monotonic() + limit_s, select.poll()
        if self.running():
            handle = os.pidfd_open(self.pid)
            poll.register(handle, select.POLLIN)
            while self.running() and (left := deadline - time.monotonic()) > 0:
                for watch in watches:
                    watch.look()
                poll.poll(1000 * min(left, 0.1 if watches else left))
            os.close(handle)
        return self.popen.poll()

    def wait_for(self, pattern, limit_s):
        """The first match in its output, within a time and while it runs; or None."""
        deadline, running = time.monotonic() + limit_s, True
        while running and time.monotonic() < deadline:
            running = self.running()
            if match := re.search(pattern, '\n'.join(self.texts()), re.MULTILINE):
                return match
            time.sleep(0.02)
        return None

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
        self.running.append(Process(name, command, folder))
        return self.running[-1]

    def end(self):
        """End all of them, within a short time."""
        for process in self.running:
            process.signal(signal.SIGKILL if process.stopped else signal.SIGTERM)
        deadline = time.monotonic() + TERM_GRACE_S
        for process in self.running:
            process.wait(max(0, deadline - time.monotonic()))
            process.signal(signal.SIGKILL)  # also what it started
            process.popen.wait()
        self.running.clear()


class Watch:
    """CPU time and sleeps per second of all threads of a process, from now until its last look."""

    def __init__(self, process):
        self.tasks, self.first, self.cpu_percent, self.wakes_per_s = Path(f'/proc/{process.pid}/task'), None, None, None
        self.look()

    def look(self):
        """After the process has ended, the last values remain; None after less than 50 ms."""
        with contextlib.suppress(OSError, IndexError, TypeError):
            tasks = [((task / 'schedstat').read_text(), (task / 'status').read_text()) for task in self.tasks.iterdir()]
            now = (time.monotonic(), sum(int(schedstat.split()[0]) for schedstat, _ in tasks), sum(
                int(re.search(r'^voluntary_ctxt_switches:\s*(\d+)', status, re.MULTILINE)[1]) for _, status in tasks))
            self.first = self.first or now
            watched_s, cpu_ns, sleeps = (b - a for a, b in zip(self.first, now))
            if watched_s >= 0.05:
                self.cpu_percent, self.wakes_per_s = cpu_ns / 1e7 / watched_s, sleeps / watched_s
