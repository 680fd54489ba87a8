# SPDX-License-Identifier: BSD-3-Clause
"""What one must know of a host to interpret its figures."""
import datetime
import os
import platform
import re
import subprocess
from pathlib import Path

KERNEL_OPTIONS = re.compile(r'(isolcpus|nohz_full|rcu_nocbs|irqaffinity|mitigations|idle|intel_idle|intel_pstate|'
                            r'amd_pstate|processor|cpuidle|tsc|clocksource|nosmt|preempt|hugepages|default_hugepagesz|'
                            r'transparent_hugepage)[.=_a-z]*')


def output(*command):
    """Of a command, or nothing if it fails."""
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=20, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ''


def first_line(path, otherwise='unknown'):
    try:
        return Path(path).read_text().strip().partition('\n')[0] or otherwise
    except OSError:
        return otherwise


def found(pattern, text, otherwise='unknown'):
    match = re.search(pattern, text, re.MULTILINE)
    return match[1] if match else otherwise


def read(path):
    try:
        return Path(path).read_text(errors='replace')
    except OSError:
        return ''


def library(name):
    return output('pkg-config', '--modversion', name) or 'unknown'


def steal_ms():
    """Stolen time, over all CPUs (proc(5))."""
    return int(read('/proc/stat').split()[8]) * 1000 // os.sysconf('SC_CLK_TCK')


def describe(root, cpus):
    """Before the runs; `finish` adds what is known after them."""
    return {
        'date': datetime.datetime.now().astimezone().isoformat(timespec='seconds'),
        'version': found(r"^ *version: '([^']*)'", read(root / 'meson.build')),
        'git_revision': output('git', '-C', str(root), 'describe', '--always', '--dirty', '--abbrev=12') or 'unknown',
        'host': platform.node(), 'cpu_model': found(r'^model name\s*: (.*)', read('/proc/cpuinfo')),
        'cpu_count': len(os.sched_getaffinity(0)), 'server_cpu': cpus[0], 'client_cpu': cpus[1],
        'kernel': f'{platform.system()} {platform.release()}',
        'kernel_options': ' '.join(word for word in read('/proc/cmdline').split() if KERNEL_OPTIONS.match(word)),
        'hypervisor': found(r'^Hypervisor vendor: *(.*)', output('lscpu'), 'none'),
        'governor': first_line(f'/sys/devices/system/cpu/cpu{cpus[1]}/cpufreq/scaling_governor', 'not visible'),
        'clocksource': first_line('/sys/devices/system/clocksource/clocksource0/current_clocksource'),
        'isolated_cpus': first_line('/sys/devices/system/cpu/isolated', 'none'),
        'system': found(r'^PRETTY_NAME="(.*)"', read('/etc/os-release')),
        'compiler': output(os.environ.get('CC', 'cc'), '--version').partition('\n')[0],
        'libfabric_version': library('libfabric'), 'zmq_version': library('libzmq'),
        'ucx_version': found(r'(\d+\.\d+\.\d+)', output('ucx_info', '-v')),
        'libfabric_providers': re.findall(r'^([a-z].*):$', output('fi_info', '-l'), re.MULTILINE),
        'load_before': ' '.join(read('/proc/loadavg').split()[:3]), 'steal_ms': steal_ms()}


def finish(environment, session):
    return environment | {
        'load_after': ' '.join(read('/proc/loadavg').split()[:3]), 'steal_ms': steal_ms() - environment['steal_ms'],
        'peer': session.options.peer or 'this host', 'rounds': session.rounds, 'duration_s': session.parts[0].duration}
