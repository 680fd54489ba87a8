# SPDX-License-Identifier: BSD-3-Clause
"""The part stream: one-way messages between two processes at full speed; what counts is what was received."""
from dataclasses import replace

from bench import words
from bench.baselines import IPERF3, measure_iperf3, measure_ucx, ucx
from bench.limits import Limit, value, ratio
from bench.part import Part, Plot, Table
from bench.rows import baseline, only, ping

COPIED = 16384  # messages up to it are never read by the other process
PLX_SHM = 'env FI_PROVIDER_PATH={modules}'
RATE = 'messages_per_s'
NAME = 'pollux-bench'


def one_way(key, provider, options='', **more):
    return ping(key, 'poll', provider, server='--sink --size {size}', client=f'--one-way {options}', **more)


ROWS = (
    baseline('raw-fi-plxshm', PLX_SHM + ' {raw-fi-stream}', '--provider plx_shm', ours=True, bases=('raw-fi-shm',),
             label='libfabric over plx_shm'),
    baseline('raw-fi-plxshm-cma', f'{PLX_SHM} FI_PLX_SHM_COPY_MAX={COPIED} {{raw-fi-stream}}', '--provider plx_shm',
             ours=True, bases=('raw-fi-shm',), has=lambda size: size > COPIED, label='libfabric over plx_shm, CMA'),
    baseline('raw-fi-shm', '{raw-fi-shm-stream}', listen=NAME, main=True, label='libfabric, shared memory'),
    baseline('raw-fi-shm-nocma', 'env FI_SHM_DISABLE_CMA=1 {raw-fi-shm-stream}', listen=NAME,
             has=lambda size: size > COPIED, label='libfabric, shared memory, no CMA'),
    one_way('shm-stream', 'shm', main=True, bases=('raw-fi-plxshm', 'raw-fi-shm'), label='Pollux, shared memory'),
    ucx('ucx-shm', 'tag_bw', main=True, bases=('raw-fi-shm',), label='UCX, shared memory'),
    baseline('raw-fi-tcp', '{raw-fi-stream}', '--provider {fi}', main=True, label='libfabric, TCP'),
    one_way('tcp-stream', 'tcp', main=True, bases=('raw-fi-tcp',), label='Pollux, TCP'),
    ucx('ucx-tcp', 'tag_bw', main=True, bases=('raw-fi-tcp',), label='UCX, TCP'),
    ucx('ucx-tcp-am', 'am_bw', '-x tcp -d lo -D bcopy', bases=('raw-fi-tcp',), has=lambda size: size <= 8192,
        label='UCX, TCP, active messages'),
    replace(IPERF3, has=lambda size: size >= 65536),  # of which messages one write has at least
    one_way('tcp-single', 'tcp', '--burst 1', has=only(64), label='Pollux, TCP, one a turn'),
)


def limit(key, base, size, least, gates=False):
    return Limit(f'one way, {key} over {base}, {words.size(size)}', least, ratio(key, base, size, RATE), gates,
                 least=True)


def aim(key, millions):
    return Limit(f'one way, {key}, 64 B, million messages/s', millions, value(key, RATE, scale=1e-6), least=True)


def over_the_best(key, bases, size, least):
    def measure(figures):
        return min((value for base in bases if (value := figures.ratio(key, base, size, RATE)) is not None),
                   default=None)
    return Limit(f"one way, {key} over the best of {' and '.join(bases)}, {words.size(size)}", least, measure,
                 least=True)


class Stream(Part):
    name = 'stream'
    title = 'Messages one way'
    explained = ('As fast as the receiver takes them; what counts is what it has received. Medians over the '
                 'interleaved rounds; 1 GB is 10⁹ bytes. Ratio: the rate over that of another row.')
    rows = ROWS
    sizes = (64, 4096, 65536, 1048576)
    main_sizes = (64, 1048576)
    seconds = (2, 0.3)
    warmups = (20000, 1000, 100)  # for about 10 ms
    tries = 1
    figure = RATE
    spreads = (RATE,)
    medians = ('bytes_per_s',)
    sums = ('count',)
    limits = (
        limit('raw-fi-plxshm', 'raw-fi-shm', 1048576, 1),  # varies by 10 % between runs, so it is no gate
        limit('raw-fi-plxshm', 'raw-fi-shm-nocma', 1048576, 1.5, gates=True),
        limit('shm-stream', 'raw-fi-plxshm', 64, 0.667),  # the two aims below, as a ratio
        aim('raw-fi-plxshm', 15), aim('shm-stream', 10), aim('tcp-stream', 4),
        limit('tcp-stream', 'ucx-tcp-am', 4096, 2),
        *(each for size in (65536, 1048576) for each in (
            limit('tcp-stream', 'raw-fi-tcp', size, 1),
            over_the_best('tcp-stream', ('iperf3', 'ucx-tcp'), size, 1.2))))
    tables = (Table('', (
        ('messages/s', lambda row: words.whole(row[RATE])),
        ('of rounds', lambda row: words.least_to_greatest(words.whole, row, RATE)),
        ('GB/s', lambda row: words.short(row['bytes_per_s'] / 1e9)), ('ratio', words.ratio))),)
    plots = (Plot('stream', 'message', lambda row: row['size_bytes'], (
        ('million messages a second', lambda row: row[RATE] / 1e6),
        ('GB a second', lambda row: row['bytes_per_s'] / 1e9)),
        ('shm-stream', 'tcp-stream', 'raw-fi-shm', 'raw-fi-tcp', 'ucx-shm', 'ucx-tcp')),)

    def measure(self, run):
        if 'ucx' in run.row.more:
            return measure_ucx(run)
        if run.row.key == 'iperf3':
            return measure_iperf3(run)
        return super().measure(run)

    def describe(self, result):
        return f"{words.whole(result[RATE])} messages/s, {words.short(result['bytes_per_s'] / 1e9)} GB/s"
