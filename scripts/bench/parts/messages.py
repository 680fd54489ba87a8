# SPDX-License-Identifier: BSD-3-Clause
"""The part rtt: full round trips between two processes, polled and asleep, against other transports. The part live, run
only by --live HOST:PORT: calls of the self-test of a running, busy Pollux process."""
from bench.baselines import ucx
from bench.part import CLIENT, Part, Row, baseline, only, ping, plx

MAIN, SMALL = {'main': True}, {'has': only(64)}
PLX_SHM = 'env FI_PROVIDER_PATH=$plx_shm-fi $raw-fi'
SHM = {'listen': 'pollux-bench'}  # a provider without addresses


def idle_links(count):
    """Without heartbeats: the server would drop a silent peer."""
    return (f'$many_links -l 0@{{client_cpu}} --provider tcp --heartbeat off -- --connect {{address}} --links {count}',
            f'^echoed {count}')


class Rtt(Part):
    name = 'rtt'
    rows = (
        baseline('bare', 'a bare cache line', '$raw-bare', **SMALL, **SHM),
        baseline('raw-fi-plxshm', 'libfabric over plx_shm', PLX_SHM, '--provider plx_shm --idle poll', ours=True,
                 bases=('raw-fi-shm',)),
        baseline('raw-fi-shm', 'libfabric, shared memory', '$raw-fi-shm', **MAIN, **SHM),
        ping('shm-poll', 'Pollux, shared memory', 'poll', 'shm', bases=('raw-fi-plxshm', 'raw-fi-shm'), **MAIN),
        ucx('ucx-shm', 'UCX, shared memory', 'tag_lat', bases=('raw-fi-shm',), **MAIN),
        ping('shm-adaptive', 'Pollux, shared memory, adaptive', 'adaptive', 'shm', bases=('shm-poll',), **MAIN, **SMALL),
        ping('shm-poll-tcp', 'Pollux, shared memory, with idle TCP', 'poll', 'shm', listener='auto', bases=('shm-poll',),
             held=idle_links(1), **SMALL),
        baseline('raw-eventfd', 'eventfd, asleep', '$raw-eventfd', **SMALL, **SHM),
        baseline('raw-fi-plxshm-event', 'libfabric over plx_shm, asleep', PLX_SHM, '--provider plx_shm --idle event',
                 ours=True, bases=('raw-eventfd',), **SMALL),
        ping('shm-event', 'Pollux, shared memory, asleep', 'event', 'shm', bases=('raw-eventfd',), **MAIN, **SMALL),
        baseline('raw-fi-tcp', 'libfabric, TCP', '$raw-fi', '--provider {fi}', port=1, bases=('raw-tcp',), **MAIN),
        baseline('raw-tcp', 'plain sockets', '$raw-tcp', '--idle poll', port=0, **MAIN),
        ping('tcp-poll', 'Pollux, TCP', 'poll', 'tcp', port=3, bases=('raw-tcp',), **MAIN),
        Row('tcp-beside', label='Pollux, TCP, during a stream', bases=('tcp-poll',), **SMALL,
            server=plx('link-beside', 'poll', 'tcp', 'server') + ' --listen {listen}',
            client=plx('link-beside', 'poll', 'tcp', 'client') + ' ' + CLIENT.replace('--size {size}', '')),
        ucx('ucx-tcp', 'UCX, TCP', 'tag_lat', bases=('raw-tcp',), **MAIN),
        ping('tcp-adaptive', 'Pollux, TCP, adaptive', 'adaptive', 'tcp', bases=('tcp-poll',), **MAIN, **SMALL),
        ping('tcp-poll-idle', 'Pollux, TCP, with 1000 idle links', 'poll', 'tcp', bases=('tcp-poll',),
             held=idle_links(1000), **SMALL),
        baseline('raw-zmq', 'ZeroMQ, TCP, asleep', '$raw-zmq', port=2, bases=('raw-tcp',), **MAIN),
        baseline('raw-tcp-event', 'plain sockets, asleep', '$raw-tcp', '--idle event', **MAIN, **SMALL),
        ping('tcp-event', 'Pollux, TCP, asleep', 'event', 'tcp', bases=('raw-tcp-event',), **MAIN, **SMALL))
    programs = ('many_links',)
    sizes = (64, 1 << 10, 64 << 10, 1 << 20)
    main_sizes = (64,)
    main_seconds = 0.5
    pooled = True


class Live(Part):
    name = 'live'
    rows = (Row('self-test',
                client='$plx-ping -l 0@{client_cpu} --idle poll --provider {provider} -- --process ' + CLIENT),)
    sizes = (64, 1024, 16384)
    seconds = (5, 0.5)
    pooled = True

    def prepare(self, run):
        options = run.session.options
        run.values |= {'address': options.peer, 'provider': options.provider or 'auto'}
