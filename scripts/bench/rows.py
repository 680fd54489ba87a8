# SPDX-License-Identifier: BSD-3-Clause
"""Rows: what a part measures, as the command lines of two processes."""
import re
from dataclasses import dataclass, field
from typing import Callable

# What command lines name in braces: programs, and these values of a run. {client} stands for usual options.
VALUES = {'client', 'listen', 'address', 'port', 'size', 'duration', 'whole_s', 'warmup', 'folder', 'key', 'server_cpu',
          'client_cpu', 'modules', 'fi', 'rate', 'provider', 'device', 'rx_buf', 'cpu', 'rounds', 'out'}
CLIENT = ('--connect {address} --size {size} --duration {duration} --warmup {warmup} '
          '--out {folder} --name {key}')


@dataclass(frozen=True)
class Row:
    """Command lines name programs and other values in braces: see Run.values. Environment stands before them."""
    key: str
    server: str = ''
    client: str = ''
    label: str = ''               # as text, for pictures and tables
    bases: tuple = ()             # what it is compared with: the first of these rows that the run has
    figure: str = ''              # its main figure, if not the part's
    has: Callable = lambda size: True  # which sizes it has
    rounds: int = 0               # at most; 0: all
    main: bool = False            # also without --full and --only
    ours: bool = True             # a baseline may fail
    port: int | None = None       # of --serve: the first port plus this; None: for one host
    listen: str = '127.0.0.1:0'
    more: dict = field(default_factory=dict)  # what its part needs

    def programs(self):
        lines = self.server + self.client
        return set(re.findall(r'{([a-z_][\w-]*)}', lines)) - VALUES


def only(*sizes):
    return lambda size: size in sizes


def fill(line, values):
    """The words of a command line."""
    words = []
    for word in line.split():
        words += fill(CLIENT, values) if word == '{client}' else [word.format_map(values)]
    return words


def baseline(key, program, options='', ours=False, **more):
    """A program of tests/perf: the same options for both ends."""
    return Row(key, ours=ours, server=f'{program} --listen {{listen}} {options} --cpu {{server_cpu}}',
               client=f'{program} {{client}} {options} --cpu {{client_cpu}}', **more)


def plx(program, idle, provider, end, options=''):
    """A program of Pollux up to its own options, at one end."""
    lcore = {'server': '0@{server_cpu}', 'client': '1@{client_cpu}'}[end]
    return f'{{{program}}} -l {lcore} --idle {idle} --provider {provider} {options} --'


def ping(key, idle, provider, server='--size {size}', client='', listener=None, **more):
    """plx-ping at both ends; the listener may have another provider."""
    return Row(key, server=f"{plx('plx-ping', idle, listener or provider, 'server')} --listen {{listen}} {server}",
               client=f"{plx('plx-ping', idle, provider, 'client')} {{client}} {client}", **more)
