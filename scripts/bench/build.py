# SPDX-License-Identifier: BSD-3-Clause
"""Packages, the build of the measured programs, and the locks."""
import datetime
import fcntl
import json
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

FOLDER = 'build-bench'
# A message passes many small functions of several files: link-time optimization inlines them.
OPTIONS = ('-Dbuildtype=release', '-Db_lto=true', '-Dtests=false', '-Dbench=true')
PROGRAMS = {'raw-tcp', 'raw-fi', 'raw-fi-shm', 'raw-bare', 'raw-eventfd', 'raw-zmq', 'raw-fi-stream',
            'raw-fi-shm-stream', 'raw-zmq-stream', 'hiccup', 'cache-line', 'link-beside', 'link-idle', 'many_links',
            'params-load', 'instructions', 'plx-ping', 'plx-call', 'plx-info', 'plx-params', 'plx-perf', 'plx-perf-dpdk', 'service',
            'netio-throughput', 'netio-recv', 'netio-pubsub-bench', 'plx_shm-fi'}
OTHERS = ('ucx_perftest', 'iperf3', 'ib_send_lat')  # installed ones


class SetupError(Exception):
    """Setting up failed."""


class Lock:
    """Two runs of one checkout would share a build folder; two of one host measure each other."""

    def __init__(self, root, say):
        folder = root / FOLDER
        try:
            folder.mkdir(exist_ok=True)
            self.file = open(folder / 'bench.lock', 'a+', encoding='utf-8')
        except OSError as error:
            raise SetupError(f'{folder}: cannot be written, and bench.sh builds there; copy the tree to where you may '
                             f'write ({error.strerror})') from None
        if not self.take(self.file):
            self.file.seek(0)
            other = self.file.read().strip()
            self.file.close()
            raise SetupError(f'another bench.sh runs in this checkout ({other}): they would share '
                             f'{FOLDER}; wait for it, or end it')
        self.file.truncate(0)
        print(f'process {os.getpid()}, since {datetime.datetime.now():%F %T}', file=self.file, flush=True)
        # The file may belong to another user: then it can be read and locked, but not created.
        path = Path(tempfile.gettempdir(), 'pollux-bench.lock')
        if not path.exists():
            path.touch(0o644)
        self.host = open(path, encoding='utf-8')
        if not self.take(self.host):
            say('another bench.sh runs on this host: the two measure each other; compare within this run only')
        self.take(self.host, fcntl.LOCK_SH)

    @staticmethod
    def take(file, how=fcntl.LOCK_EX):
        try:
            fcntl.flock(file, how | fcntl.LOCK_NB)
            return True
        except OSError:
            return False

    def release(self):
        """The client of a waiting server may be on this host."""
        self.file.close()
        self.host.close()


def set_up(session):
    """Install what is missing, build, and return the paths of the programs by name."""
    root, say = session.root, session.say
    log = root / FOLDER / 'bench-build'
    groups = 'run,build,bench'

    def run(name, command, limit_s, trouble, **more):
        process = session.processes.start(name, command, log)
        status = process.wait(limit_s, **more)
        session.processes.end()
        if status != 0 and trouble:
            tail = '\n'.join((process.log.read_text(errors='replace') + process.err.read_text(errors='replace'))
                             .splitlines()[-20:])
            raise SetupError(f'{trouble}\n{tail}\nThe whole of it is in {log}')
        return process if status == 0 else None

    def configure():
        again = (root / FOLDER / 'build.ninja').exists()
        run('meson', ['meson', 'configure' if again else 'setup', root / FOLDER, *OPTIONS], 300,
            f'meson cannot set up {FOLDER}')
        run('ninja', ['ninja', '-C', root / FOLDER, 'build.ninja'], 300, 'meson cannot set the folder up again')

    log.mkdir(exist_ok=True)
    say('set-up, step 1 of 3: packages')
    setup = root / 'scripts/setup.sh'
    if not run('check', [setup, '--check', '--for', groups], 60, None):
        if subprocess.run([setup, '--for', groups], check=False).returncode:  # it may ask for a password
            raise SetupError('packages are missing and could not be installed; see above')
    say(f'set-up, step 2 of 3: meson configures {FOLDER}')
    configure()
    targets = find_targets(run, root)
    if 'plx-perf-dpdk' not in targets and run('dpdk', ['pkg-config', '--exists', 'libdpdk'], 10, None):
        # Packages were installed since the folder was made.
        run('meson', ['meson', 'setup', '--reconfigure', root / FOLDER], 300, 'meson cannot set the folder up again')
        targets = find_targets(run, root)
    say('set-up, step 3 of 3: ninja builds (about two minutes the first time)')
    relative = [str(Path(path).relative_to(root / FOLDER)) for path in targets.values()]
    run('build', ['ninja', '-C', root / FOLDER, *relative], 1500, 'the build failed', watches=[BuildProgress(log, say)],
        every_s=5)
    found = {name: path for name in OTHERS if (path := shutil.which(name))}
    return targets | found


class BuildProgress:
    """How many steps ninja has done, every few seconds."""

    def __init__(self, log, say):
        self.log, self.say, self.last = log / 'build.log', say, None

    def look(self):
        steps = re.findall(r'^\[\d+/\d+\]', self.log.read_text(errors='replace'), re.MULTILINE)
        if steps and steps[-1] != self.last:
            self.last = steps[-1]
            self.say(f'    {self.last}')


def find_targets(run, root):
    process = run('introspect', ['meson', 'introspect', '--targets', root / FOLDER], 60,
                  'meson does not list its programs')
    return {target['name']: target['filename'][0] for target in json.loads(process.log.read_text())
            if target['type'] in ('executable', 'shared module') and target['name'] in PROGRAMS}
