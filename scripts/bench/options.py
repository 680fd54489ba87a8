# SPDX-License-Identifier: BSD-3-Clause
"""The command line: bench.sh --help."""
import argparse
import datetime
import os
import re
from pathlib import Path

from bench.session import UsageError

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

# (option, value, text); without a value it is a flag.
OPTIONS = (
    ('full', '', 'all parts with all rows, in long rounds: about 80 minutes; with --quick 22'),
    ('only', 'PART', 'one part with all its rows: rtt (round trips), stream (one-way messages), rings (rings, '
     "pools, hops), idle (CPU against latency), links (thousands of idle links), netio (NetIO's sockets), services "
     '(calls), verbs (round trips over RDMA devices) or instructions (per message, by callgrind)'),
    ('quick', '', 'short rounds, as without --full and --only'),
    ('rounds', 'N', 'number of rounds'),
    ('duration', 'S', 'seconds of a run'),
    ('out', 'DIR', 'folder for results (default: bench-out-DATE-TIME)'),
    ('provider', 'P', 'with --live: provider of the links (default: auto)'),
    ('sizes', 'N,N,...', 'message sizes, with K or M (default: 64, for stream and netio 64,1M; with --full and --only '
     '64,1K,64K,1M, for stream 64,4K,64K,1M). Rows of other sizes are omitted'),
    ('device', 'NAME', 'verbs: only that RDMA device (default: each with an active port and an IP address)'),
    ('strict', '', 'exit with status 3 if a gating threshold is missed'),
    ('compare', ('A', 'B'), 'measure nothing: compare the results in folders A and B with their noise, as a table and '
     'as a page, B/compare.html (or --out DIR)'),
    ('report', 'DIR', 'measure nothing: write the report and the plots of the results in DIR again'),
    ('soak', '', "only NetIO's sockets at full load, ten minutes over tcp and ten over shm (or --duration S): no end "
     'may find the other one silent'),
    ('serve', '', 'run the servers for bench.sh --connect on another host, until Ctrl-C; of rtt, or with --only verbs '
     'of verbs'),
    ('connect', 'HOST:PORT', 'measure against such servers; PORT is the first of several'),
    ('live', 'HOST:PORT', 'only measure a running Pollux process that listens there, by its self-test; sizes up to 64K '
     '(default: 64,1K,16K)'),
    ('listen', 'HOST:PORT', "address of --serve (default 0.0.0.0:17300; verbs: the device's address)"),
    ('silent', '', argparse.SUPPRESS))

PARTS = ['rtt', 'stream', 'rings', 'idle', 'links', 'netio', 'services', 'verbs', 'instructions']
MAIN = ['rtt', 'stream', 'netio']
LARGEST_SELF_TEST = 65536
PROVIDERS = ('auto', 'tcp', 'shm', 'verbs')


class Parser(argparse.ArgumentParser):
    def error(self, message):
        raise UsageError(f'{message}; see --help')


def size(word):
    match = re.fullmatch(r'([1-9]\d{0,8})([KkMm]?)', word)
    count = int(match[1]) << {'': 0, 'K': 10, 'M': 20}[match[2].upper()] if match else 0
    if not 1 <= count <= 16 << 20:
        raise UsageError(f"--sizes: '{word}' is no size from 1 to 16M; give sizes such as 64,1K,64K,1M")
    return count


def parse(arguments):
    """The options, checked before anything is built or locked."""
    parser = Parser(usage='scripts/bench.sh [OPTION]...', description=ABOUT, epilog=END, allow_abbrev=False,
                    formatter_class=lambda prog: argparse.RawDescriptionHelpFormatter(
                        prog, max_help_position=24, width=106))
    for name, value, text in OPTIONS:
        more = {'metavar': value, 'nargs': len(value) if isinstance(value, tuple) else None}
        parser.add_argument(f'--{name}', help=text, **(more if value else {'action': 'store_true'}))
    parser.set_defaults(listen='0.0.0.0:17300')
    options, unknown = parser.parse_known_args(arguments)
    if unknown:
        raise UsageError(f"unknown option '{unknown[0]}'; see --help")
    check(options)
    return options


def check(options):
    """Refuse what contradicts; set `parts`, `mode`, `peer`, `main`, `rounds` and numbers."""
    def refuse(condition, text):
        if condition:
            raise UsageError(text)

    only, alone = options.only, options.soak or options.live
    options.mode = 'serve' if options.serve else 'connect' if options.connect else 'live' if options.live else 'local'
    options.peer = options.connect or options.live
    refuse(options.full and only, f'--full and --only {only}: --only already runs all of that part; leave one out')
    refuse(only and only not in PARTS, f"--only {only}: there is no such part; there are {' '.join(PARTS)}")
    refuse(options.soak and (only or options.mode != 'local'),
           '--soak runs alone, on one host; leave --only, --serve and --connect out')
    refuse(options.live and only, f'--only {only}: --live runs alone')
    refuse(options.mode in ('serve', 'connect') and only not in (None, 'rtt', 'verbs'),
           f'--only {only}: that part is of one host; leave --{options.mode} out')
    options.main = not (options.full or only or alone or options.mode != 'local')
    options.parts = (['soak'] if options.soak else ['live'] if options.live else [only] if only else
                     MAIN if options.main else ['rtt'] if options.mode != 'local' else PARTS)
    refuse(options.device and 'verbs' not in options.parts, f'--device {options.device}: that is for the part verbs')
    refuse(options.provider and not options.live, f'--provider {options.provider}: that is for --live')
    refuse(options.provider not in (None, *PROVIDERS),
           f'--provider {options.provider}: there are auto, tcp, shm and verbs')
    options.sizes = [size(word) for word in options.sizes.split(',')] if options.sizes is not None else None
    refuse(options.live and max(options.sizes or [1]) > LARGEST_SELF_TEST,
           '--sizes: a self-test takes 1 to 64K; give sizes such as 64,1K,64K')
    refuse(options.rounds and not re.fullmatch(r'[1-9]\d{0,3}', options.rounds),
           f'--rounds {options.rounds}: a whole number from 1 to 9999 is needed')
    refuse(options.duration and not re.fullmatch(r'\d{1,5}(\.\d{1,3})?', options.duration),
           f'--duration {options.duration}: seconds are needed, such as 5 or 0.7')
    for name, value in ((options.mode, options.peer), ('listen', options.listen)):
        refuse(value and not re.fullmatch(r'.+:\d+', value), f'--{name} {value}: HOST:PORT is needed')
    options.quick = options.quick or not (options.full or only)
    options.duration = float(options.duration) if options.duration else None
    options.rounds_given = int(options.rounds) if options.rounds else None
    options.rounds = options.rounds_given or (5 if options.main or options.live or not options.quick else 3)
    check_folders(options, refuse)


def check_folders(options, refuse):
    for folder in (*(options.compare or ()), *([options.report] if options.report else ())):
        refuse(not Path(folder, 'summary.json').is_file(), f'{folder}: there is no summary.json of this version of '
               'bench.sh; give a folder that bench.sh wrote (--out)')
    out = Path(os.path.abspath(options.out or f'bench-out-{datetime.datetime.now():%Y%m%d-%H%M%S}'))
    if options.compare:
        out = Path(options.out or options.compare[1])
    parent = out
    while not parent.exists() and parent != parent.parent:
        parent = parent.parent
    if not (options.serve or options.report):
        refuse(not parent.is_dir(), f'--out {options.out}: cannot be made: {parent} is not a folder')
        refuse(not os.access(parent, os.W_OK), f'--out {options.out}: cannot be written')
    options.out = out
