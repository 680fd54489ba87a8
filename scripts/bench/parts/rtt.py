# SPDX-License-Identifier: BSD-3-Clause
"""The part rtt: full round trips between two processes, polled and asleep, against other transports."""
from bench import words
from bench.baselines import measure_ucx, ucx
from bench.limits import Limit, plus, ratio
from bench.part import Part, Table, trips
from bench.rows import Row, baseline, only, ping, plx

ONE_SIZE = {'has': only(64)}
PLX_SHM = 'env FI_PROVIDER_PATH={modules} {raw-fi}'
NAME = 'pollux-bench'  # of providers without addresses

ROWS = (
    baseline('bare', '{raw-bare}', listen=NAME, label='a bare cache line', **ONE_SIZE),
    baseline('raw-fi-plxshm', PLX_SHM, '--provider plx_shm --idle poll', ours=True, bases=('raw-fi-shm',),
             label='libfabric over plx_shm'),
    baseline('raw-fi-shm', '{raw-fi-shm}', listen=NAME, main=True, label='libfabric, shared memory'),
    ping('shm-poll', 'poll', 'shm', main=True, bases=('raw-fi-plxshm', 'raw-fi-shm'), label='Pollux, shared memory'),
    ucx('ucx-shm', 'tag_lat', main=True, bases=('raw-fi-shm',), label='UCX, shared memory'),
    ping('shm-adaptive', 'adaptive', 'shm', main=True, bases=('shm-poll',), **ONE_SIZE,
         label='Pollux, shared memory, adaptive'),
    ping('shm-poll-tcp', 'poll', 'shm', listener='auto', bases=('shm-poll',), **ONE_SIZE, more={'idle_links': 1},
         label='Pollux, shared memory, with idle TCP'),
    baseline('raw-eventfd', '{raw-eventfd}', listen=NAME, label='eventfd, asleep', **ONE_SIZE),
    baseline('raw-fi-plxshm-event', PLX_SHM, '--provider plx_shm --idle event', ours=True, bases=('raw-eventfd',),
             **ONE_SIZE, label='libfabric over plx_shm, asleep'),
    ping('shm-event', 'event', 'shm', main=True, bases=('raw-eventfd',), **ONE_SIZE,
         label='Pollux, shared memory, asleep'),
    baseline('raw-fi-tcp', '{raw-fi}', '--provider {fi}', main=True, port=1, bases=('raw-tcp',),
             label='libfabric, TCP'),
    baseline('raw-tcp', '{raw-tcp}', '--idle poll', main=True, port=0, label='plain sockets'),
    ping('tcp-poll', 'poll', 'tcp', main=True, port=3, bases=('raw-tcp',), label='Pollux, TCP'),
    Row('tcp-beside', server=plx('link-beside', 'poll', 'tcp', 'server') + ' --listen {listen}',
        client=plx('link-beside', 'poll', 'tcp', 'client') +
        ' --connect {address} --duration {duration} --warmup {warmup} --out {folder} --name {key}',
        bases=('tcp-poll',), **ONE_SIZE, label='Pollux, TCP, during a stream'),
    ucx('ucx-tcp', 'tag_lat', main=True, bases=('raw-tcp',), label='UCX, TCP'),
    ping('tcp-adaptive', 'adaptive', 'tcp', main=True, bases=('tcp-poll',), **ONE_SIZE, label='Pollux, TCP, adaptive'),
    ping('tcp-poll-idle', 'poll', 'tcp', bases=('tcp-poll',), **ONE_SIZE, more={'idle_links': 1000},
         label='Pollux, TCP, with 1000 idle links'),
    baseline('raw-zmq', '{raw-zmq}', main=True, port=2, bases=('raw-tcp',), label='ZeroMQ, TCP, asleep'),
    baseline('raw-tcp-event', '{raw-tcp}', '--idle event', main=True, label='plain sockets, asleep', **ONE_SIZE),
    ping('tcp-event', 'event', 'tcp', main=True, bases=('raw-tcp-event',), **ONE_SIZE, label='Pollux, TCP, asleep'),
)


def limit(key, base, most, gates=False, size=64, percentile='p50', words_after='', **more):
    return Limit(f'{key} over {base}, {percentile}, {size} B{words_after}', most,
                 ratio(key, base, size, f'{percentile}_ns'), gates, **more)


class Rtt(Part):
    name = 'rtt'
    title = 'Round trips'
    explained = ('Full round trips in microseconds: from just before the send call to the first moment at which the '
                 'answer is seen. All rounds in one; n/a: too few samples. Ratio: p50 over that of another row, by '
                 'pairs that ran one after the other in one state of the CPUs.')
    rows = ROWS
    programs = ('many_links',)
    sizes = (64, 1 << 10, 64 << 10, 1 << 20)
    main_sizes = (64,)
    main_seconds = 0.5
    keep = ('provider', 'idle')
    medians = ('mean_ns',)
    sums = ('count',)
    pooled = True
    lines = ('raw-fi-shm', 'shm-poll', 'raw-tcp', 'raw-fi-tcp', 'tcp-poll', 'raw-zmq')
    limits = (
        limit('tcp-poll', 'raw-tcp', 1.10, gates=True),
        *(limit('tcp-poll', 'raw-fi-tcp', 1, size=size) for size in (1024, 65536, 1048576)),
        limit('tcp-poll-idle', 'tcp-poll', 1.10, gates=True),
        limit('tcp-beside', 'tcp-poll', 2, percentile='p99'),
        limit('tcp-event', 'raw-tcp-event', 1.10),
        limit('raw-fi-plxshm', 'raw-fi-shm', 0.45, gates=True),
        limit('raw-fi-plxshm', 'bare', 2.1, gates=True),
        limit('shm-poll', 'raw-fi-plxshm', plus('raw-fi-plxshm', 100), words_after=', 100 ns more'),
        limit('raw-fi-plxshm-event', 'raw-eventfd', 1.1))
    tables = (Table('', (
        ('p50', lambda row: words.us(row['p50_ns'])), ('ratio', words.ratio),
        *trips('min', 'p90', 'p99', 'p99_9', 'max'),
        ('p50 of rounds', lambda row: words.least_to_greatest(words.us, row, 'p50_ns')))),)
    shown = frozenset()  # rows whose histogram was on the terminal

    def measure(self, run):
        if 'ucx' in run.row.more:
            return measure_ucx(run)
        run.serve()
        if links := run.row.more.get('idle_links'):  # without heartbeats: the server would drop a silent peer
            run.hold('idle', '{many_links} -l 0@{client_cpu} --provider tcp --heartbeat off -- '
                     f'--connect {{address}} --links {links}', f'^echoed {links}')
        run.client()
        if run.row.key in ('shm-poll', 'tcp-poll') and run.row.key not in self.shown:
            self.shown |= {run.row.key}
            for line in run.output().splitlines():
                if not line.startswith(('lcore', 'provider', 'mem:')):
                    run.session.say(f'    {line}')
        return run.read()
