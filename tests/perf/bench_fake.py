# SPDX-License-Identifier: BSD-3-Clause
"""The bench with runs that are made up: nothing is built, and no program is measured."""
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / 'scripts'))

from bench import cli, host, options, plots  # noqa: E402
from bench.parts import ALL  # noqa: E402
from bench.session import Session  # noqa: E402

HOST = {'date': '2026-01-01', 'version': '1.0', 'git_revision': 'abc', 'host': 'h', 'cpu_model': 'c', 'cpu_count': 2,
        'server_cpu': 0, 'client_cpu': 1, 'kernel': 'k', 'kernel_options': '', 'hypervisor': 'none', 'system': 's',
        'compiler': 'cc', 'libfabric_version': '1', 'ucx_version': '2', 'zmq_version': '3', 'steal_ms': 0}


class BenchCase(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.enterContext(mock.patch.object(host, 'environment', lambda *_: dict(HOST)))
        self.enterContext(mock.patch.object(plots, 'gnuplot', lambda *_: []))

    def session(self, runner, *arguments, probe=lambda: 100.0):
        """runner: figures of a Run, or Failed."""
        session = Session(options.parse([*arguments, '--silent', '--out', str(self.folder / 'out')]), ROOT, runner, probe)
        (session.out / 'runs').mkdir(parents=True, exist_ok=True)
        session.use({})
        return session

    def bench(self, runner, *arguments, **more):
        """The status and the session of a whole run."""
        session = self.session(runner, *arguments, **more)
        return cli.measure(session), session

    def begin(self, name, *arguments):
        """A part that has begun."""
        part = ALL[name]()
        part.begin(self.session(lambda run: {}, *(arguments or (('--soak',) if name == 'soak' else ('--only', name)))))
        part.session.parts.append(part)
        return part

    def summary(self, name, *runs):
        """A part's summary, of one round of (key, size, figures)."""
        return self.begin(name).summarize([
            {'key': key, 'size_bytes': size, 'round': 1, 'line_ns': [], 'run': 'none', 'count': 1} | figures
            for key, size, figures in runs])


def trips(p50=7000, count=1000):
    return {'provider': 'net', 'idle': 'poll', 'count': count, 'min_ns': p50 - 100, 'p50_ns': p50, 'p99_ns': 3 * p50,
            'max_ns': 9 * p50, 'mean_ns': p50}
