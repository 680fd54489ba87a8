# SPDX-License-Identifier: BSD-3-Clause
"""The command line: bench.sh --help."""
import argparse
import datetime
import os
import re
from pathlib import Path

from bench.processes import UsageError

ABOUT = """Measure round trips of 64 B between two processes of this host, polled and adaptive, over shared memory
and TCP, and one-way message rates of links and NetIO's sockets. Compare with plain sockets, libfabric,
ZeroMQ and UCX (if ucx_perftest is installed). Install what is missing, build, measure for about three
minutes, and write a report."""
END = """Rows of each part: doc/apps/bench.md; thresholds: doc/apps/thresholds.md. Server and client run on the
first two CPUs that this process may use; for verbs on two of the device's NUMA node, if known.

Exit status:
  0  everything ran
  1  set-up or a run failed
  2  wrong usage
  3  with --strict: everything ran, but a threshold was missed"""

PARTS = ['rtt', 'stream', 'rings', 'idle', 'links', 'netio', 'services', 'verbs', 'peers', 'instructions']
MAIN = ['rtt', 'stream', 'netio']
PEER = r'.+:\d+', 'HOST:PORT'
FOLDER = r'.+', 'a folder'

# (option, value, pattern of the value and what is allowed, text); without a value it is a flag.
OPTIONS = (
    ('full', '', None, 'all parts with all rows, in long rounds: about 80 minutes; with --quick '
     '22; with Open MPI or iceoryx installed 95 and 26'),
    ('only', 'PART', ('|'.join(PARTS), f"one of {' '.join(PARTS)}"),
     'one part with all its rows: rtt (round trips), stream (one-way messages), rings (rings, pools, hops), idle (CPU '
     "against latency), links (thousands of idle links), netio (NetIO's sockets), services (calls), verbs (round trips "
     'over RDMA devices), peers (shared memory, against UCX, Open MPI and iceoryx) or instructions (per message, by '
     'callgrind)'),
    ('quick', '', None, 'short rounds, as without --full and --only'),
    ('rounds', 'N', (r'[1-9]\d{0,3}', 'a whole number from 1 to 9999'), 'number of rounds'),
    ('duration', 'S', (r'(?=.*[1-9])\d{1,5}(\.\d{1,3})?', 'seconds above 0, such as 5 or 0.7'), 'seconds of a run'),
    ('out', 'DIR', FOLDER, 'folder for results (default: bench-out-DATE-TIME)'),
    ('provider', 'P', ('auto|tcp|shm|verbs', 'auto, tcp, shm or verbs'),
     'with --live: provider of the links (default: auto)'),
    ('sizes', 'N,N,...', (r'[1-9]\d{0,8}[KkMm]?(,[1-9]\d{0,8}[KkMm]?)*', 'sizes from 1 to 16M, such as 64,1K,64K,1M'),
     'message sizes, with K or M (default: 64, for stream and netio 64,1M; with --full and --only 64,1K,64K,1M, for '
     'stream 64,4K,64K,1M). Rows of other sizes are omitted'),
    ('device', 'NAME', (r'\S+', 'the name of an RDMA device'),
     'verbs: only that RDMA device (default: each with an active port and an IP address)'),
    ('strict', '', None, 'exit with status 3 if a gating threshold is missed'),
    ('compare', ('A', 'B'), FOLDER, 'measure nothing: compare the results in folders A and B with their noise, as a table '
     'and as a page, B/compare.html (or --out DIR)'),
    ('report', 'DIR', FOLDER, 'measure nothing: write the report and the plots of the results in DIR again'),
    ('soak', '', None, "only NetIO's sockets at full load, ten minutes over tcp and ten over shm (or --duration S): no "
     'end may find the other one silent'),
    ('serve', '', None, 'run the servers for bench.sh --connect on another host, until Ctrl-C; of rtt, or with --only '
     'verbs of verbs'),
    ('connect', 'HOST:PORT', PEER, 'measure against such servers; PORT is the first of several'),
    ('live', 'HOST:PORT', PEER, 'only measure a running Pollux process that listens there, by its self-test; sizes up to '
     '64K (default: 64,1K,16K)'),
    ('listen', 'HOST:PORT', PEER, "address of --serve (default 0.0.0.0:17300; verbs: the device's address)"),
    ('silent', '', None, argparse.SUPPRESS))

# At most one of these is given, apart from the allowed pairs.
MODES = ('full', 'only', 'soak', 'live', 'connect', 'serve', 'compare', 'report')
PAIRS = {('only', 'connect'), ('only', 'serve')}
NOT_MEASURING = {'compare': {'compare', 'out'}, 'report': {'report'}}  # the options that go with them


class Parser(argparse.ArgumentParser):
    def error(self, message):
        raise UsageError(f'{message}; see --help')


def refuse(condition, text):
    if condition:
        raise UsageError(text)


def parse(arguments):
    """The options, checked before anything is built or locked."""
    parser = Parser(usage='scripts/bench.sh [OPTION]...', description=ABOUT, epilog=END, allow_abbrev=False,
                    formatter_class=lambda prog: argparse.RawDescriptionHelpFormatter(
                        prog, max_help_position=24, width=106))
    for name, value, _, text in OPTIONS:
        more = {'metavar': value, 'nargs': len(value) if isinstance(value, tuple) else None}
        parser.add_argument(f'--{name}', help=text, **(more if value else {'action': 'store_true'}))
    options, unknown = parser.parse_known_args(arguments)
    refuse(unknown, f"unknown option '{unknown and unknown[0]}'; see --help")
    names = [word.partition('=')[0] for word in arguments if word.startswith('--')]
    for name in names:
        refuse(names.count(name) > 1, f'{name}: given twice; give it once')
    check(options)
    choose(options)
    return options


def check(options):
    """Refuse what is malformed or contradicts: what was given, and what is allowed."""
    given = {name: value for name, value in vars(options).items() if value not in (None, False)}
    for name, value, allowed, _ in OPTIONS:
        if name in given and value:
            for one in given[name] if isinstance(value, tuple) else [given[name]]:
                refuse(not re.fullmatch(allowed[0], one), f"--{name} '{one}': give {allowed[1]}")
    modes = [name for name in MODES if name in given]
    refuse(len(modes) > 1 and tuple(modes) not in PAIRS,
           f"{' and '.join(f'--{name}' for name in modes)}: they exclude each other; give one of them")
    for name, parts in (('serve', ('rtt', 'verbs')), ('connect', ('rtt', 'verbs'))):
        refuse(name in given and options.only not in (None, *parts),
               f'--only {options.only}: that part is of one host; leave --{name} out, or give rtt or verbs')
    for name, needed in (('provider', 'live'), ('listen', 'serve')):
        refuse(name in given and needed not in given,
               f'--{name} {given.get(name)}: that is for --{needed}; leave it out')
    refuse('device' in given and 'full' not in given and options.only != 'verbs',
           f'--device {options.device}: that is for the part verbs; add --only verbs or --full')
    for mode, allowed in NOT_MEASURING.items():
        for name in set(given) - allowed:
            refuse(mode in given, f'--{name}: --{mode} has no use for it; leave it out')
    for folder in (*(options.compare or ()), *([options.report] if options.report else ())):
        refuse(not Path(folder, 'summary.json').is_file(), f'{folder}: there is no summary.json of this version of '
               'bench.sh; give a folder that bench.sh wrote (--out)')


def choose(options):
    """Set `parts`, `mode`, `peer`, `main`, `out`, `rounds` and numbers."""
    options.mode = next((name for name in ('serve', 'connect', 'live') if getattr(options, name)), 'local')
    options.peer = options.connect or options.live
    options.main = not (options.full or options.only or options.soak) and options.mode == 'local'
    options.parts = (['soak'] if options.soak else ['live'] if options.live else [options.only] if options.only else
                     MAIN if options.main else PARTS if options.full else ['rtt'])
    options.listen = options.listen or '0.0.0.0:17300'
    if options.sizes:
        options.sizes = [int(word.strip('KkMm')) << {'K': 10, 'M': 20}.get(word[-1].upper(), 0)
                         for word in options.sizes.split(',')]
        refuse(max(options.sizes) > (64 << 10 if options.live else 16 << 20),
               f"--sizes: the largest is {'64K, of a self-test' if options.live else '16M'}; give such as 64,1K,64K")
    options.quick = options.quick or not (options.full or options.only)
    options.duration = float(options.duration) if options.duration else None
    options.rounds_given = int(options.rounds) if options.rounds else None
    options.rounds = options.rounds_given or (5 if options.main or options.live or not options.quick else 3)
    out = options.out or options.report or (options.compare[1] if options.compare else
                                            f'bench-out-{datetime.datetime.now():%Y%m%d-%H%M%S}')
    options.out = parent = Path(os.path.abspath(out))
    while not parent.exists():
        parent = parent.parent
    refuse(not options.serve and not (parent.is_dir() and os.access(parent, os.W_OK)),
           f'--out {out}: cannot be made: {parent} is not a folder in which you may write')
