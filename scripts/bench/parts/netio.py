# SPDX-License-Identifier: BSD-3-Clause
"""The part netio: throughput and round trips of NetIO's sockets, and what subscribers cost a publisher."""
from dataclasses import replace

from bench import words
from bench.baselines import IPERF3, measure_iperf3
from bench.limits import Limit, value, plus, ratio
from bench.part import Part, Plot, Table
from bench.rows import Row, baseline, only, ping, plx
from bench.run import Failed

PAGE = 65536
JSON = '--json {folder}/{key}.json'
HALF_OF = 'publish-buffered-4'  # half of its rate is what beside-POLICY publishes
POLICIES = ('disconnect', 'drop-old', 'drop-new', 'conflate')


def socket(key, provider, mode, bases=(), receiver='', sender='', has=lambda size: True, **more):
    return Row(key, bases=bases, has=has, **more, more={'test': mode, 'provider': provider},
               server=f"{plx('netio-recv', 'poll', provider, 'server')} --listen {{listen}} {receiver}",
               client=f"{plx('netio-throughput', 'poll', provider, 'client')} --connect {{address}} --mode {mode} "
                      f'--sizes {{size}} --duration {{duration}} {sender} {JSON}')


def zmq(key, copy, label, **more):
    return Row(key, ours=False, main=True, label=label, **more, more={'test': key},
               server='{raw-zmq-stream} --listen {listen} --size {size} --cpu {server_cpu}',
               client='{raw-zmq-stream} {client} --cpu {client_cpu}' + copy)


def publish(mode, subscribers, base=None):
    key = f'publish-{mode}-{subscribers}'
    return Row(key, bases=(base,) if base else (), figure='cycles_per_copy', has=only(64, 65536),
               more={'test': f'publish-{mode}', 'provider': 'tcp', 'subscribers': subscribers},
               server=f"{plx('netio-pubsub-bench', 'poll', 'tcp', 'server')} --listen {{listen}} --mode {mode} "
                      f'--size {{size}} --subscribers {subscribers} --duration {{duration}} {JSON}',
               client=f"{plx('netio-pubsub-bench', 'poll', 'tcp', 'client')} --connect {{address}} "
                      f'--subscribers {subscribers}')


def stopped(policy):
    """Four subscribers, and a fifth that is stopped. Without heartbeats: its publisher would drop it."""
    quiet = [plx('netio-pubsub-bench', 'poll', 'tcp', end, '--heartbeat off') for end in ('server', 'client')]
    return Row(f'beside-{policy}', figure='kept', has=only(64),
               more={'test': f'beside-{policy}', 'provider': 'tcp', 'subscribers': 4, 'slow': policy},
               server=f'{quiet[0]} --listen {{listen}} --mode buffered --size {{size}} --subscribers 5 --rate {{rate}} '
                      f'--duration {{duration}} {JSON}',
               client=f'{quiet[1]} --connect {{address}} --subscribers 4 --json {{folder}}/subscribers.json')


PUSH_PULL, LINKS = 'zmq-push-pull', {'figure': 'p50_ns', 'has': only(64)}
ROWS = (
    zmq('zmq-in-place', '', 'ZeroMQ, TCP, without a copy', bases=(PUSH_PULL,)),
    zmq(PUSH_PULL, ' --copy', 'ZeroMQ, TCP'),
    socket('buffered-tcp', 'tcp', 'buffered', (PUSH_PULL,), sender=f'--page {PAGE} --pages 256', main=True,
           label='NetIO buffered, TCP'),
    socket('buffered-1M-tcp', 'tcp', 'buffered', (PUSH_PULL,), '--rx-buf 1M', '--page 1M --pages 128'),
    socket('buffered-shm', 'shm', 'buffered', ('buffered-tcp',), sender=f'--page {PAGE} --pages 256',
           label='NetIO buffered, shared memory'),
    socket('unbuffered-shm', 'shm', 'unbuffered', ('unbuffered-tcp',), '--rx-buf {rx_buf}',
           label='NetIO unbuffered, shared memory'),
    socket('unbuffered-tcp', 'tcp', 'unbuffered', ('raw-fi-tcp-bw',), '--rx-buf {rx_buf}',
           label='NetIO unbuffered, TCP'),
    baseline('raw-fi-tcp-bw', '{raw-fi-stream}', '--provider {fi}', bases=('iperf3',), more={'test': 'raw-fi-tcp-bw'}),
    socket('reference-tcp', 'tcp', 'reference', ('raw-fi-tcp-bw',), '--rx-buf {rx_buf}',
           label='NetIO by reference, TCP'),
    replace(IPERF3, has=only(1 << 20), more={'test': 'iperf3', 'provider': 'kernel tcp'}),
    ping('tcp-poll', 'poll', 'tcp', more={'test': 'plx-ping', 'provider': 'tcp'}, **LINKS),
    socket('ping-tcp', 'tcp', 'ping', ('tcp-poll',), **LINKS),
    ping('shm-poll', 'poll', 'shm', more={'test': 'plx-ping', 'provider': 'shm'}, **LINKS),
    socket('ping-shm', 'shm', 'ping', ('shm-poll',), **LINKS),
    publish('buffered', 1), publish('buffered', 4, 'publish-buffered-1'),
    *(stopped(policy) for policy in POLICIES),
    publish('buffered', 16, 'publish-buffered-1'),
    publish('unbuffered', 1), publish('unbuffered', 4, 'publish-unbuffered-1'),
    publish('unbuffered', 16, 'publish-unbuffered-4'),
)


def limit(key, base, size, value, words_after='', name='gbit_per_s', **more):
    return Limit(f'netio, {key} over {base}, {words.size(size)}{words_after}', value, ratio(key, base, size, name),
                 **more)


def cycles(key, base, size, most, gates=False):
    return limit(key, base, size, most, ', cycles/copy', 'cycles_per_copy', gates=gates)


def common(name):
    return (('over rounds', lambda row: words.least_to_greatest(words.digits, row, name)),
            ('CPU % sender', lambda row: words.whole(row['cpu_percent_sender'])),
            ('CPU % receiver', lambda row: words.whole(row['cpu_percent_receiver'])), ('ratio', words.ratio))


RATES = (('Mmsg/s', lambda row: words.digits(row['mmsg_per_s'])), ('Gb/s', lambda row: words.digits(row['gbit_per_s'])))


class Netio(Part):
    name = 'netio'
    title = "NetIO's sockets"
    explained = ('Messages one way as fast as the receiver takes them; what counts is what it has received. Medians '
                 'over the interleaved rounds; 1 Gb is 10⁹ bits. CPU is that of the whole process, in per cent of '
                 "one; NetIO's programs poll.")
    rows = ROWS
    sizes = (64, 1 << 10, 64 << 10, 1 << 20)
    main_sizes = (64, 1 << 20)
    seconds = (1.5, 0.25)
    warmups = (20000, 1000, 100)
    figure = 'gbit_per_s'
    keep = ('provider', 'test', 'subscribers')
    spreads = ('mmsg_per_s', 'gbit_per_s', 'p50_ns', 'cycles_per_copy', 'kept')
    medians = ('p99_ns', 'rate_asked', 'cpu_percent_sender', 'cpu_percent_receiver')
    sums = ('count',)
    limits = (
        limit('ping-tcp', 'tcp-poll', 64, 1.05, ', p50', 'p50_ns'),
        limit('ping-shm', 'shm-poll', 64, plus('shm-poll', 100), ', p50', 'p50_ns'),
        limit('buffered-tcp', PUSH_PULL, 64, 5, least=True), limit('buffered-shm', 'buffered-tcp', 64, 2, least=True),
        limit('reference-tcp', 'raw-fi-tcp-bw', 1 << 20, 0.9, least=True),
        limit('reference-tcp', 'iperf3', 1 << 20, 1.6, least=True),
        limit('buffered-tcp', PUSH_PULL, 65536, 1.8, least=True),
        limit('buffered-1M-tcp', PUSH_PULL, 65536, 3, least=True),
        cycles('publish-buffered-16', 'publish-buffered-1', 64, 1.15, gates=True),
        cycles('publish-buffered-16', 'publish-buffered-1', 65536, 1.15),
        cycles('publish-unbuffered-16', 'publish-unbuffered-4', 64, 1.1),
        cycles('publish-unbuffered-16', 'publish-unbuffered-4', 65536, 1.1),
        *(Limit(f'netio, beside-{policy} over {HALF_OF}, 64 B, kept of half its rate', 0.99,
                value(f'beside-{policy}', 'kept'), least=True) for policy in POLICIES))
    tables = (
        Table('', RATES + common('gbit_per_s'), lambda row: row['gbit_per_s'] and row['subscribers'] is None),
        Table('Round trips', (
            ('p50, µs', lambda row: words.us(row['p50_ns'])), ('p99, µs', lambda row: words.us(row['p99_ns'])),
            ('over rounds', lambda row: words.least_to_greatest(words.us, row, 'p50_ns')), ('ratio', words.ratio)),
            lambda row: row['p50_ns']),
        Table('Publish and subscribe; cycles are those of the publisher', RATES + (
            ('cycles/copy', lambda row: words.whole(row['cycles_per_copy'])),) + common('cycles_per_copy'),
            lambda row: row['cycles_per_copy']),
        Table(f'Four subscribers and one that is stopped, at half the rate of {HALF_OF}', RATES[:1] + (
            ('asked', lambda row: words.digits(row['rate_asked'] * row['subscribers'] / 1e6)),
            ('kept', lambda row: words.digits(row['kept']))) + common('kept')[:3], lambda row: row['kept']))
    plots = (
        Plot('netio', 'message', lambda row: row['size_bytes'], (
            ('million messages a second', lambda row: row['mmsg_per_s']),
            ('Gb a second', lambda row: row['gbit_per_s'])),
            ('buffered-tcp', 'buffered-shm', 'unbuffered-tcp', 'reference-tcp', PUSH_PULL, 'raw-fi-tcp-bw'), label=str),
        Plot('netio-publish', 'subscribers', lambda row: row['subscribers'],
             tuple((f'cycles per copy of {words.size(size)}', lambda row, size=size:
                    row['cycles_per_copy'] if row['size_bytes'] == size else None) for size in (64, 65536)),
             ('publish-buffered', 'publish-unbuffered'), label=str, key=lambda row: row['test'],
             when=lambda row: row['cycles_per_copy']))

    def begin(self, session):
        super().begin(session)
        # A hundredth of it must exceed the interruptions of a quiet host.
        self.stopped_s = session.options.duration or (1 if session.options.quick else 1.5)

    def measure(self, run):
        row = run.row
        if row.key == 'iperf3':
            return self.figures(run, measure_iperf3(run))
        publisher = row.key.startswith(('publish-', 'beside-'))
        run.values['rx_buf'] = min(max(run.size, PAGE), 8 << 20)  # it holds an unbuffered message
        if 'slow' in row.more:
            run.values |= {'rate': self.half_rate(), 'duration': self.stopped_s}
        run.serve()
        if policy := row.more.get('slow'):
            run.hold('slow', '{netio-pubsub-bench} -l 0@{client_cpu} --provider tcp --heartbeat off -- '
                     f'--connect {{address}} --slow {policy}', '^subscribed', 10)
        run.client(watch=('sender', 'receiver') if publisher else ('receiver', 'sender'))
        if publisher:  # it has the figures, and would wait for the stopped one
            self.session.processes.end_stopped()
            run.finish(run.server_process)
        return self.figures(run, run.read())

    def half_rate(self):
        rates = [run['mmsg_per_s'] for run in self.session.runs[self.name]
                 if run['key'] == HALF_OF and run['size_bytes'] == 64]
        if not rates:
            raise Failed(f'{HALF_OF}, of whose rate it takes half, was not measured')
        return round(rates[-1] * 1e6 / 4 / 2)

    def figures(self, run, data):
        """What a program wrote, as a run of this part."""
        data = (data[0] if data else {}) if isinstance(data, list) else data  # a row for each size
        more, got = run.row.more, {}
        if data.get('rate_asked'):
            # What subscribers received; at most what was published, as some may have been queued earlier.
            least = run.read('subscribers').get('messages_per_s_least')
            if least is None:
                raise Failed('the subscribers have measured nothing')
            each, count = min(data['messages_per_s'], least), more['subscribers']
            got = {'kept': each / data['rate_asked'], 'rate_asked': data['rate_asked'],
                   'mmsg_per_s': each * count / 1e6, 'gbit_per_s': each * count * run.size * 8 / 1e9,
                   'count': data['messages'] * count}
        elif data.get('cycles_per_copy'):
            got = {name: data[name] for name in ('mmsg_per_s', 'gbit_per_s', 'cycles_per_copy')}
            got['count'] = data['copies']
        elif data.get('bytes_per_s'):
            got = {'gbit_per_s': data['bytes_per_s'] * 8 / 1e9, 'count': data['count'],
                   'mmsg_per_s': None if run.row.key == 'iperf3' else data['messages_per_s'] / 1e6}
        elif data.get('p50_ns'):
            got = {'p50_ns': data['p50_ns'], 'p99_ns': data['p99_ns'],
                   'count': data.get('round_trips', data.get('count'))}
        elif data.get('mmsg_per_s'):
            got = {'mmsg_per_s': data['mmsg_per_s'], 'gbit_per_s': data['gbit_per_s'], 'count': data['messages']}
        else:
            raise Failed('nothing was measured')
        usage = {f'cpu_percent_{side}': watch.cpu_percent for side, watch in run.watches.items()}
        return {'test': more['test'], 'provider': more.get('provider', data.get('provider')),
                'subscribers': more.get('subscribers')} | usage | got

    def describe(self, result):
        texts = ((result.get('mmsg_per_s'), '{} Mmsg/s'), (result.get('gbit_per_s'), '{} Gb/s'),
                 (result.get('cycles_per_copy'), '{} cycles/copy'), (result.get('kept'), 'kept {} of the rate'))
        said = [text.format(words.digits(value)) for value, text in texts if value is not None]
        return ', '.join(said or [f"p50 {words.us(result['p50_ns'])} us"])
