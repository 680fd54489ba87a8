# SPDX-License-Identifier: BSD-3-Clause
"""The part netio: throughput and round trips of NetIO's sockets, and what subscribers cost a publisher. The part soak,
run only by --soak: the same at full load for long; no end may report the other as silent."""
import re
from dataclasses import replace

from bench.baselines import iperf3
from bench.part import CLIENT, Part, Plot, Row, baseline, only, ping, plx
from bench.processes import Failed

PAGE = 65536
JSON = '--json {folder}/{key}.json'
HALF_OF = 'publish-buffered-4'  # half of its rate is what beside-POLICY publishes
POLICIES = ('disconnect', 'drop-old', 'drop-new', 'conflate')
BENCH = 'netio-pubsub-bench'


def socket(key, label, provider, mode, base, receiver='', sender='', **more):
    return Row(key, label=label, bases=(base,), more={'provider': provider}, **more,
               server=f"{plx('netio-recv', 'poll', provider, 'server')} --listen {{listen}} {receiver}",
               client=f"{plx('netio-throughput', 'poll', provider, 'client')} --connect {{address}} --mode {mode} "
                      f'--sizes {{size}} --duration {{duration}} {sender} {JSON}')


def zmq(key, label, copy, **more):
    return Row(key, ours=False, main=True, label=label, **more,
               server='$raw-zmq-stream --listen {listen} --size {size} --cpu {server_cpu}',
               client=f'$raw-zmq-stream {CLIENT} --cpu {{client_cpu}} {copy}')


def publish(mode, subscribers, base=0):
    key = f'publish-{mode}-'
    return Row(f'{key}{subscribers}', bases=(f'{key}{base}',) if base else (), figure='cycles_per_copy',
               has=only(64, 65536), more={'test': f'publish-{mode}', 'subscribers': subscribers},
               server=f"{plx(BENCH, 'poll', 'tcp', 'server')} --listen {{listen}} --mode {mode} --size {{size}} "
                      f'--subscribers {subscribers} --duration {{duration}} {JSON}',
               client=f"{plx(BENCH, 'poll', 'tcp', 'client')} --connect {{address}} --subscribers {subscribers}")


def stopped(policy):
    """Four subscribers, and a fifth that is stopped. Without heartbeats: its publisher would drop it."""
    publisher, others = (plx(BENCH, 'poll', 'tcp', end, '--heartbeat off') for end in ('server', 'client'))
    return Row(f'beside-{policy}', figure='kept', has=only(64), more={'test': 'stopped', 'subscribers': 4},
               held=(f'${BENCH} -l 0@{{client_cpu}} --provider tcp --heartbeat off -- --connect {{address}} '
                     f'--slow {policy}', '^subscribed'),
               server=f'{publisher} --listen {{listen}} --mode buffered --size {{size}} --subscribers 5 --rate {{rate}} '
                      f'--duration {{duration}} {JSON}',
               client=f'{others} --connect {{address}} --subscribers 4 --json {{folder}}/subscribers.json')


PUSH_PULL, TRIPS = 'zmq-push-pull', {'figure': 'p50_ns', 'has': only(64)}
PAGES, LONG = f'--page {PAGE} --pages 256', '--rx-buf {rx_buf}'
ROWS = (
    zmq('zmq-in-place', 'ZeroMQ, TCP, without a copy', '', bases=(PUSH_PULL,)),
    zmq(PUSH_PULL, 'ZeroMQ, TCP', '--copy'),
    socket('buffered-tcp', 'NetIO buffered, TCP', 'tcp', 'buffered', PUSH_PULL, sender=PAGES, main=True),
    socket('buffered-1M-tcp', '', 'tcp', 'buffered', PUSH_PULL, '--rx-buf 1M', '--page 1M --pages 128'),
    socket('buffered-shm', 'NetIO buffered, shared memory', 'shm', 'buffered', 'buffered-tcp', sender=PAGES),
    socket('unbuffered-shm', 'NetIO unbuffered, shared memory', 'shm', 'unbuffered', 'unbuffered-tcp', LONG),
    socket('unbuffered-tcp', 'NetIO unbuffered, TCP', 'tcp', 'unbuffered', 'raw-fi-tcp-bw', LONG),
    baseline('raw-fi-tcp-bw', '', '$raw-fi-stream', '--provider {fi}', bases=('iperf3',)),
    socket('reference-tcp', 'NetIO by reference, TCP', 'tcp', 'reference', 'raw-fi-tcp-bw', LONG),
    iperf3(has=only(1 << 20)),
    ping('tcp-poll', '', 'poll', 'tcp', **TRIPS), socket('ping-tcp', '', 'tcp', 'ping', 'tcp-poll', **TRIPS),
    ping('shm-poll', '', 'poll', 'shm', **TRIPS), socket('ping-shm', '', 'shm', 'ping', 'shm-poll', **TRIPS),
    publish('buffered', 1), publish('buffered', 4, base=1), *map(stopped, POLICIES), publish('buffered', 16, base=1),
    publish('unbuffered', 1), publish('unbuffered', 4, base=1), publish('unbuffered', 16, base=4))


class Netio(Part):
    name = 'netio'
    rows = ROWS
    sizes = (64, 1 << 10, 64 << 10, 1 << 20)
    main_sizes = (64, 1 << 20)
    seconds = (1.5, 0.25)
    warmups = (20000, 1000, 100)
    watched = True
    columns = ('gbit_per_s', 'mmsg_per_s', 'p50_ns', 'p99_ns', 'cycles_per_copy', 'kept', 'cpu_percent_sender',
               'cpu_percent_receiver')
    plots = (Plot('size', 'size_bytes', ('mmsg_per_s', 'gbit_per_s'), (
                 'buffered-tcp', 'buffered-shm', 'unbuffered-tcp', 'reference-tcp', PUSH_PULL, 'raw-fi-tcp-bw')),
             Plot('publish', 'subscribers', ('cycles_per_copy',), ('publish-buffered', 'publish-unbuffered'),
                  by='test', when=lambda row: row['size_bytes'] == 64))

    def prepare(self, run):
        run.values['rx_buf'] = min(max(run.size, PAGE), 8 << 20)  # it holds an unbuffered message
        if run.row.key.startswith('beside-'):
            # A hundredth of the duration must exceed the interruptions of a quiet host.
            run.values |= {'rate': round(self.half(HALF_OF, 'mmsg_per_s') * 1e6 / 4),
                           'duration': self.session.options.duration or max(1, self.duration)}

    def read(self, run, data=None):
        """What a program wrote, as a run of this part."""
        publishes = 'subscribers' in run.row.more
        if publishes and run.server:  # it has the figures, and would wait for the stopped one
            for process in self.session.processes.running:
                if process.stopped:
                    process.popen.kill()
            run.finish(run.server)
        data = run.read() if data is None else data
        data = (data[0] if data else {}) if isinstance(data, list) else data  # a row for each size
        sender, receiver = ('server', 'client') if publishes else ('client', 'server')
        usage = {f'cpu_percent_{side}': run.watches[end].cpu_percent for side, end in
                 (('sender', sender), ('receiver', receiver)) if run.watches}
        got = {name: data[name] for name in ('provider', 'p50_ns', 'p99_ns', 'mmsg_per_s', 'gbit_per_s',
                                             'cycles_per_copy') if data.get(name) is not None} | usage
        got['count'] = next((data[name] for name in ('copies', 'messages', 'round_trips', 'count') if name in data), 0)
        if data.get('rate_asked'):
            # What subscribers received; at most what was published, as some may have been queued earlier.
            least, count = run.read('subscribers').get('messages_per_s_least'), run.row.more['subscribers']
            if least is None:
                raise Failed('the subscribers have measured nothing')
            each = min(data['messages_per_s'], least)
            return got | {'kept': each / data['rate_asked'], 'mmsg_per_s': each * count / 1e6, 'cycles_per_copy': None,
                          'gbit_per_s': each * count * run.size * 8 / 1e9, 'count': got['count'] * count}
        if data.get('bytes_per_s'):
            got |= {'gbit_per_s': data['bytes_per_s'] * 8 / 1e9, 'mmsg_per_s': data['messages_per_s'] / 1e6}
        if not got.get('p50_ns') and not got.get('mmsg_per_s'):
            raise Failed('nothing was measured')
        return got


class Soak(Netio):
    name = 'soak'
    rows = tuple(replace(row, rounds=1) for row in ROWS if row.key in ('buffered-tcp', 'buffered-shm'))
    sizes = main_sizes = (64,)
    fixed_sizes = True
    timed = False
    seconds = (600, 600)
    columns = ('mmsg_per_s', 'seconds', 'alarms')
    plots = ()

    def measure(self, run):
        result = super().measure(run) | {'seconds': self.duration}
        said = [(run.folder / f'{end}.{kind}').read_text(errors='replace') for end in ('server', 'client')
                for kind in ('log', 'err')]
        result['alarms'] = len(re.findall(r' is silent$', '\n'.join(said), re.MULTILINE))
        if result['alarms']:
            self.session.fail(f"soak, {run.row.key}: {result['alarms']} false alarms")
        return result
