# SPDX-License-Identifier: BSD-3-Clause
"""Messages between two processes, against other transports. The part rtt: full round trips, polled and asleep. The
part stream: one way at full speed; what counts is what was received. The part live, run only by --live HOST:PORT: calls
of the self-test of a running, busy Pollux process."""
from bench import host
from bench.baselines import iperf3, ucx
from bench.part import CLIENT, Part, Plot, Row, baseline, only, ping, plx

MAIN, SMALL = {'main': True}, {'has': only(64)}
PLX_SHM = 'env FI_PROVIDER_PATH=$plx_shm-fi $raw-fi'
SMT = 'shm-poll-smt'
SHM = {'listen': 'pollux-bench'}  # a provider without addresses


# A client that is stopped once it has its links. Without heartbeats: the server would drop a silent peer.
IDLE_LINKS = ('$many_links -l 0@{client_cpu} --provider tcp --heartbeat off -- --connect {address} --links 1000',
              '^echoed 1000')


class Rtt(Part):
    name = 'rtt'
    rows = (
        baseline('bare', 'a bare cache line', '$raw-bare', **SMALL, **SHM),
        baseline('raw-fi-plxshm', 'libfabric over plx_shm', PLX_SHM, '--provider plx_shm --idle poll', ours=True,
                 bases=('raw-fi-shm',)),
        baseline('raw-fi-shm', 'libfabric, shared memory', '$raw-fi-shm', **MAIN, **SHM),
        ping('shm-poll', 'Pollux, shared memory', 'poll', 'shm', bases=('raw-fi-plxshm', 'raw-fi-shm'), **MAIN),
        ping(SMT, 'Pollux, shared memory, hyper-threads of one core', 'poll', 'shm', bases=('shm-poll',), **SMALL),
        ucx('ucx-shm', 'UCX, shared memory', 'tag_lat', bases=('raw-fi-shm',), **MAIN),
        ping('shm-adaptive', 'Pollux, shared memory, adaptive', 'adaptive', 'shm', bases=('shm-poll',), **MAIN, **SMALL),
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
             held=IDLE_LINKS, **SMALL),
        baseline('raw-zmq', 'ZeroMQ, TCP, asleep', '$raw-zmq', port=2, bases=('raw-tcp',), **MAIN),
        baseline('raw-tcp-event', 'plain sockets, asleep', '$raw-tcp', '--idle event', **MAIN, **SMALL),
        ping('tcp-event', 'Pollux, TCP, asleep', 'event', 'tcp', bases=('raw-tcp-event',), **MAIN, **SMALL))
    sizes = (64, 1 << 10, 64 << 10, 1 << 20)
    main_sizes = (64,)
    seconds = (5, 0.5)
    pooled = True

    def begin(self, session):
        self.siblings = host.siblings(session.cpus)
        if self.siblings == session.cpus[:2]:
            session.notes.append(f'CPUs {session.cpus[0]} and {session.cpus[1]}, on which the rows run, are hyper-threads '
                                 'of one core: between cores round trips take longer.')
        super().begin(session)

    def chooses(self, row):
        if not super().chooses(row):
            return False
        if row.key == SMT and not self.siblings:
            self.session.leave_out(f'rtt: {SMT}: no two of the allowed CPUs are hyper-threads of one core')
        return row.key != SMT or bool(self.siblings)

    def prepare(self, run):
        if run.row.key == SMT:
            run.values |= dict(zip(('server_cpu', 'client_cpu'), self.siblings))

    def read(self, run):
        line = {'pair_ns': run.session.line_between(self.siblings)} if run.row.key == SMT else {}
        return run.read() | line


def one_way(key, label, provider, **more):
    return ping(key, label, 'poll', provider, server='--sink --size {size}', client='--one-way', **more)


class Stream(Part):
    name = 'stream'
    rows = (
        baseline('raw-fi-plxshm', 'libfabric over plx_shm', PLX_SHM + '-stream', '--provider plx_shm', ours=True,
                 bases=('raw-fi-shm',)),
        baseline('raw-fi-shm', 'libfabric, shared memory', '$raw-fi-shm-stream', **MAIN, **SHM),
        baseline('raw-fi-shm-nocma', 'libfabric, shared memory, no CMA', 'env FI_SHM_DISABLE_CMA=1 $raw-fi-shm-stream',
                 has=lambda size: size > 16384, **SHM),  # smaller ones are never read by the other process
        one_way('shm-stream', 'Pollux, shared memory', 'shm', bases=('raw-fi-plxshm', 'raw-fi-shm'), **MAIN),
        ucx('ucx-shm', 'UCX, shared memory', 'tag_bw', bases=('raw-fi-shm',), **MAIN),
        baseline('raw-fi-tcp', 'libfabric, TCP', '$raw-fi-stream', '--provider {fi}', **MAIN),
        one_way('tcp-stream', 'Pollux, TCP', 'tcp', bases=('raw-fi-tcp',), **MAIN),
        ucx('ucx-tcp', 'UCX, TCP', 'tag_bw', bases=('raw-fi-tcp',), **MAIN),
        ucx('ucx-tcp-am', 'UCX, TCP, active messages', 'am_bw', '-x tcp -d lo -D bcopy', bases=('raw-fi-tcp',),
            has=lambda size: size <= 8192),
        iperf3(has=lambda size: size >= 65536))  # of which messages one write has at least
    sizes = (64, 4096, 65536, 1048576)
    main_sizes = (64, 1048576)
    seconds = (2, 0.3)
    warmups = (20000, 1000, 100)  # for about 10 ms
    columns = ('messages_per_s', 'bytes_per_s')
    plots = (Plot('size', 'size_bytes', columns,
                  ('shm-stream', 'tcp-stream', 'raw-fi-shm', 'raw-fi-tcp', 'ucx-shm', 'ucx-tcp')),)


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
