# SPDX-License-Identifier: BSD-3-Clause
"""This host: the lock, packages, the build of the measured programs, and what one must know to interpret figures."""
import datetime
import fcntl
import json
import os
import platform
import re
import shutil
import subprocess
from pathlib import Path

from bench.processes import Failed

FOLDER = 'build-bench'
# A message passes many small functions of several files: link-time optimization inlines them.
BUILD_OPTIONS = ('-Dbuildtype=release', '-Db_lto=true', '-Dtests=false', '-Dbench=true')
# Programs that a host or a build may lack, and why.
MPI, ICEORYX = (f'{name} is not installed (scripts/setup.sh --for peers)' for name in ('Open MPI', 'iceoryx'))
OTHERS = {'ucx_perftest': 'ucx_perftest is not installed (ucx-utils)', 'iperf3': 'iperf3 is not installed',
          'ib_send_lat': 'ib_send_lat is not installed (perftest)', 'mpirun': MPI, 'iox-roudi': ICEORYX}
BUILT = dict.fromkeys(('raw-zmq', 'raw-zmq-stream'), 'ZeroMQ is not installed (libzmq3-dev)') | {
    'peer-mpi': MPI, 'peer-iceoryx': ICEORYX}
OPTIONAL = OTHERS | BUILT
KERNEL_OPTIONS = re.compile(r'\w*(cpus|nohz|rcu|irq|mitigations|idle|pstate|processor|tsc|clock|smt|preempt|hugepage)')


def lock(root):
    """Two runs of one checkout would share a build folder. The lock ends when the file is closed."""
    path = root / FOLDER / 'bench.lock'
    try:
        path.parent.mkdir(exist_ok=True)
        file = open(path, 'a+', encoding='utf-8')
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise Failed(f'another bench.sh runs in this checkout ({read(path)}): they would share {FOLDER}; wait for it, '
                     'or end it') from None
    except OSError as error:
        raise Failed(f'{path}: cannot be written, and bench.sh builds there; copy the tree to where you may write '
                     f'({error.strerror})') from None
    file.truncate(0)
    print(f'process {os.getpid()}, since {datetime.datetime.now():%F %T}', file=file, flush=True)
    return file


# The build -------------------------------------------------------------------------------------

def run(text, command, output_too=False, limit_s=None):
    """A step of the set-up. Its output is on the terminal, or if not wanted there only after a failure."""
    ran = subprocess.run(command, capture_output=not output_too, text=True, timeout=limit_s, check=False)
    if ran.returncode:
        said = '' if output_too else ':\n' + '\n'.join((ran.stdout + ran.stderr).splitlines()[-20:])
        raise Failed(f'{text}{said or "; see above"}')
    return ran.stdout


def targets(folder, wanted):
    """The paths of programs that meson builds, by name."""
    found = json.loads(run('meson does not list its programs', ['meson', 'introspect', '--targets', folder]))
    return {target['name']: target['filename'][0] for target in found
            if target['type'] in ('executable', 'shared module') and target['name'] in wanted}


def build(session, wanted):
    """Install what is missing, build, and return the paths of programs by name; of the provider that is loaded as a
    module, its folder."""
    setup, folder = [session.root / 'scripts/setup.sh', '--for', 'run,build,bench'], session.root / FOLDER
    session.say('set-up, step 1 of 3: packages')
    if subprocess.run([*setup, '--check'], capture_output=True, check=False).returncode:
        run('packages are missing and could not be installed', setup, output_too=True)  # it may ask for a password
    session.say(f'set-up, step 2 of 3: meson configures {FOLDER}')
    run(f'meson cannot set up {FOLDER}', ['bash', '-c', '. "$0" && configure "$@"', session.root / 'scripts/common.sh',
                                          folder, *BUILD_OPTIONS])
    found = targets(folder, wanted)
    if set(wanted) & set(BUILT) - set(found):  # their libraries may have been installed since the last time
        for step in ('configure', '--clearcache'), ('setup', '--reconfigure'):
            run(f'meson cannot update {FOLDER}', ['meson', *step, folder])
        found = targets(folder, wanted)
    session.say('set-up, step 3 of 3: ninja builds (about two minutes the first time)')
    run('the build failed', ['ninja', '-C', folder, *(os.path.relpath(path, folder) for path in found.values())], True)
    return {name: path for name in OTHERS if (path := shutil.which(name))} | {
        name: os.path.dirname(path) if path.endswith('.so') else path for name, path in found.items()}


# The environment -------------------------------------------------------------------------------

def output(*command, check=True):
    """Of a command, or nothing if it fails."""
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=check).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ''


def read(path, otherwise=''):
    try:
        return Path(path).read_text(errors='replace').strip() or otherwise
    except OSError:
        return otherwise


def found(pattern, text, otherwise='unknown'):
    match = re.search(pattern, text, re.MULTILINE)
    return match[1] if match else otherwise


def library(name):
    return output('pkg-config', '--modversion', name) or 'unknown'


def cpus_of(text):
    """Each CPU of a kernel list such as 0-3,8."""
    ends = [word.partition('-') for word in text.split(',') if word]
    return [cpu for first, _, last in ends for cpu in range(int(first), int(last or first) + 1)]


def siblings(cpus, topology='/sys/devices/system/cpu'):
    """The first two of these CPUs that are hyper-threads of one core, or nothing."""
    for cpu in cpus:
        threads = cpus_of(read(f'{topology}/cpu{cpu}/topology/thread_siblings_list'))
        if len(pair := [thread for thread in threads if thread in cpus]) > 1:
            return pair[:2]
    return []


def environment(root, cpus):
    """Before the runs."""
    return {
        'date': datetime.datetime.now().astimezone().isoformat(timespec='seconds'),
        'version': found(r"^ *version: '([^']*)'", read(root / 'meson.build')),
        'git_revision': output('git', '-C', str(root), 'describe', '--always', '--dirty', '--abbrev=12') or 'unknown',
        'host': platform.node(), 'cpu_model': found(r'^model name\s*: (.*)', read('/proc/cpuinfo')),
        'cpu_count': len(os.sched_getaffinity(0)), 'server_cpu': cpus[0], 'client_cpu': cpus[1],
        'kernel': f'{platform.system()} {platform.release()}',
        'kernel_options': ' '.join(word for word in read('/proc/cmdline').split() if KERNEL_OPTIONS.match(word)),
        'hypervisor': found(r'^Hypervisor vendor: *(.*)', output('lscpu'), 'none'),
        'governor': read(f'/sys/devices/system/cpu/cpu{cpus[1]}/cpufreq/scaling_governor', 'not visible'),
        'system': found(r'^PRETTY_NAME="(.*)"', read('/etc/os-release')),
        'compiler': output(os.environ.get('CC', 'cc'), '--version').partition('\n')[0],
        'libfabric_version': library('libfabric'), 'zmq_version': library('libzmq'),
        'ucx_version': found(r'(\d+\.\d+\.\d+)', output('ucx_info', '-v')), 'mpi_version': library('ompi-c'),
        'iceoryx_version': found(r'(\d+\.\d+\.\d+)', output('iox-roudi', '--version'))}
