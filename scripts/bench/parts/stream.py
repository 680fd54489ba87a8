# SPDX-License-Identifier: BSD-3-Clause
"""The part stream: one-way messages between two processes at full speed; what counts is what was received."""
from bench.baselines import iperf3, ucx
from bench.part import Part, Plot, baseline, only, ping

COPIED = 16384  # messages up to it are never read by the other process
MAIN, LARGE = {'main': True}, {'has': lambda size: size > COPIED}
PLX_SHM = 'env FI_PROVIDER_PATH=$plx_shm-fi'
SHM = {'listen': 'pollux-bench'}


def one_way(key, label, provider, options='', **more):
    return ping(key, label, 'poll', provider, server='--sink --size {size}', client=f'--one-way {options}', **more)


class Stream(Part):
    name = 'stream'
    rows = (
        baseline('raw-fi-plxshm', 'libfabric over plx_shm', PLX_SHM + ' $raw-fi-stream', '--provider plx_shm', ours=True,
                 bases=('raw-fi-shm',)),
        baseline('raw-fi-plxshm-cma', 'libfabric over plx_shm, CMA',
                 f'{PLX_SHM} FI_PLX_SHM_COPY_MAX={COPIED} $raw-fi-stream', '--provider plx_shm', ours=True,
                 bases=('raw-fi-shm',), **LARGE),
        baseline('raw-fi-shm', 'libfabric, shared memory', '$raw-fi-shm-stream', **MAIN, **SHM),
        baseline('raw-fi-shm-nocma', 'libfabric, shared memory, no CMA', 'env FI_SHM_DISABLE_CMA=1 $raw-fi-shm-stream',
                 **LARGE, **SHM),
        one_way('shm-stream', 'Pollux, shared memory', 'shm', bases=('raw-fi-plxshm', 'raw-fi-shm'), **MAIN),
        ucx('ucx-shm', 'UCX, shared memory', 'tag_bw', bases=('raw-fi-shm',), **MAIN),
        baseline('raw-fi-tcp', 'libfabric, TCP', '$raw-fi-stream', '--provider {fi}', **MAIN),
        one_way('tcp-stream', 'Pollux, TCP', 'tcp', bases=('raw-fi-tcp',), **MAIN),
        ucx('ucx-tcp', 'UCX, TCP', 'tag_bw', bases=('raw-fi-tcp',), **MAIN),
        ucx('ucx-tcp-am', 'UCX, TCP, active messages', 'am_bw', '-x tcp -d lo -D bcopy', bases=('raw-fi-tcp',),
            has=lambda size: size <= 8192),
        iperf3(has=lambda size: size >= 65536),  # of which messages one write has at least
        one_way('tcp-single', 'Pollux, TCP, one a turn', 'tcp', '--burst 1', has=only(64)))
    sizes = (64, 4096, 65536, 1048576)
    main_sizes = (64, 1048576)
    seconds = (2, 0.3)
    warmups = (20000, 1000, 100)  # for about 10 ms
    tries = 1
    columns = ('messages_per_s', 'bytes_per_s')
    plots = (Plot('size', 'size_bytes', columns,
                  ('shm-stream', 'tcp-stream', 'raw-fi-shm', 'raw-fi-tcp', 'ucx-shm', 'ucx-tcp')),)
