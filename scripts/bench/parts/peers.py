# SPDX-License-Identifier: BSD-3-Clause
"""The part peers: links and NetIO's sockets in shared memory against UCX, Open MPI and iceoryx, if they are installed.
Rows of others are compared with Pollux' row of that kind; doc/apps/thresholds.md has the ratios of Pollux over them."""
from bench import host
from bench.baselines import ucx
from bench.part import CLIENT, Part, Plot, Row, baseline, only, ping
from bench.parts.messages import SHM, one_way
from bench.parts.netio import PAGE, PAGES, socket
from bench.processes import Failed

LIBRARIES = ('peer-mpi', 'peer-iceoryx')
TRIPS, RATE, LINK = {'figure': 'p50_ns', 'has': only(64, 256, 4096)}, {'bases': ('shm-stream',)}, 'pollux-peers'
STREAM = {'has': lambda size: size != 256}
LARGE, SMALL = {'has': lambda size: size >= 65536}, {'has': lambda size: size <= 8192 and size != 256}
SOME = {'has': only(64, 65536, 1 << 20)}
POSIX_AM = '-x posix -d memory -D'  # UCX's lower layer: active messages
# Other software names the transport `vader`, later `sm`; it then copies with `smsc`.
MPIRUN = ('$mpirun --allow-run-as-root --bind-to none --host localhost:2 --mca pml ob1 --mca btl vader,self '
          '--mca btl_vader_single_copy_mechanism ')
RANK = '-np 1 setpriv --pdeathsig KILL --'  # it ends with mpirun
ROUDI = '$iox-roudi --monitoring-mode off --log-level warning', 'RouDi is ready for clients'


def mpi(key, label, options, copies='none --mca smsc ^cma,knem,xpmem', **more):
    """Both ends are one job of mpirun."""
    client = CLIENT.replace('{address}', LINK)
    return Row(key, label=label, ours=False, **more, client=(
        f'{MPIRUN}{copies} {RANK} $peer-mpi --listen {LINK} --cpu {{server_cpu}} --size {{size}} {options} : '
        f'{RANK} $peer-mpi {client} --cpu {{client_cpu}} {options}'))


def iceoryx(key, label, options, **more):
    return baseline(key, label, '$peer-iceoryx', options, listen=LINK, server_options='--size {size}', daemon=ROUDI, **more)


def netio(key, label, provider, mode, **more):
    receiver = '--rx-buf {rx_buf} --rx-bufs {rx_bufs}'
    return socket(key, label, provider, mode, f'{provider}-stream', receiver, PAGES if mode == 'buffered' else '', **more)


class Peers(Part):
    name = 'peers'
    rows = (
        baseline('bare', 'a bare cache line', '$raw-bare', figure='p50_ns', has=only(64), **SHM),
        ping('shm-poll', 'Pollux, shared memory', 'poll', 'shm', bases=('ucx-am-lat', 'mpi-lat', 'iceoryx-lat'), **TRIPS),
        ucx('ucx-am-lat', 'UCX, active messages', 'am_lat', f'{POSIX_AM} bcopy', 'posix', bases=('shm-poll',), **TRIPS),
        ucx('ucx-tag-lat', 'UCX, tagged', 'tag_lat', '', 'posix', bases=('shm-poll',), **TRIPS),
        mpi('mpi-lat', 'Open MPI', '', bases=('shm-poll',), **TRIPS),
        iceoryx('iceoryx-lat', 'iceoryx, copied', '', bases=('shm-poll',), **TRIPS),
        one_way('shm-stream', 'Pollux, shared memory', 'shm', bases=('ucx-tag-bw', 'mpi-bw', 'iceoryx-bw'), **STREAM),
        ucx('ucx-am-bw', 'UCX, active messages', 'am_bw', f'{POSIX_AM} {{data}}', 'posix', **SMALL,
            **RATE),
        ucx('ucx-tag-bw', 'UCX, tagged', 'tag_bw', '', 'posix', **STREAM, **RATE),
        ucx('ucx-tag-bw-cma', 'UCX, tagged, CMA', 'tag_bw', '', 'posix,cma', **LARGE, **RATE),
        mpi('mpi-bw', 'Open MPI', '--one-way', **STREAM, **RATE),
        mpi('mpi-bw-cma', 'Open MPI, CMA', '--one-way', 'cma', **LARGE, **RATE),
        iceoryx('iceoryx-bw', 'iceoryx, copied', '--one-way', **STREAM, **RATE),
        netio('netio-unbuffered', 'NetIO unbuffered, shared memory', 'shm', 'unbuffered', **SOME),
        netio('netio-reference', 'NetIO by reference, shared memory', 'shm', 'reference', **SOME),
        netio('netio-buffered', 'NetIO buffered, shared memory', 'shm', 'buffered', **SOME),
        one_way('tcp-stream', 'Pollux, TCP', 'tcp', has=only(1 << 20)),
        netio('netio-buffered-tcp', 'NetIO buffered, TCP', 'tcp', 'buffered', has=only(1 << 20)))
    sizes = (64, 256, 1 << 10, 2 << 10, 4 << 10, 8 << 10, 16 << 10, 64 << 10, 1 << 20)
    seconds = (2, 0.3)
    warmups = (20000, 1000, 100)
    columns = ('bytes_per_s', 'messages_per_s', 'p50_ns', 'min_ns', 'p90_ns', 'p99_ns')
    plots = (Plot('size', 'size_bytes', ('bytes_per_s', 'messages_per_s'), (
                 'shm-stream', 'ucx-am-bw', 'ucx-tag-bw', 'mpi-bw', 'iceoryx-bw')),
             Plot('trips', 'size_bytes', ('p50_ns',), ('shm-poll', 'ucx-am-lat', 'ucx-tag-lat', 'mpi-lat', 'iceoryx-lat')))

    def begin(self, session):
        """Among all parts only if there is one of the two to compare with."""
        if session.options.full and not session.runner and not set(LIBRARIES) & set(session.programs):
            session.leave_out(f"peers: {' and '.join(host.OPTIONAL[name] for name in LIBRARIES)}")
            self.rows = ()
        super().begin(session)

    def prepare(self, run):
        # As many receive buffers as the link's server has.
        run.values |= {'rx_buf': max(run.size, PAGE), 'rx_bufs': (8 << 20) // max(run.size, PAGE),
                       'data': 'short' if run.size <= 64 else 'bcopy'}

    def read(self, run):
        data = run.read()
        if not isinstance(data, list):
            return data
        if not data or not data[0].get('mmsg_per_s'):  # of NetIO's sockets: a row for each size
            raise Failed('nothing was measured')
        per_s = data[0]['mmsg_per_s'] * 1e6
        return {'count': data[0]['messages'], 'messages_per_s': per_s, 'bytes_per_s': per_s * run.size}
