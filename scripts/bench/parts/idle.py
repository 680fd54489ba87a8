# SPDX-License-Identifier: BSD-3-Clause
"""The part idle: what a mostly idle server costs by idle policy, provider and load: CPU time, wake-ups, round trips. The
part links: the cost of thousands of idle TCP links for the lcore that accepted them."""
import time

from bench import limits
from bench.part import Part, Plot, Row, plx
from bench.processes import Failed, Watch
from bench.stats import median, read_histogram

POLICIES = {'poll': 'poll', 'event': 'event', 'latency': 'adaptive:latency:learned',
            'balanced': 'adaptive:balanced:learned', 'fixed': 'adaptive:balanced:fixed'}
# No client, one that is silent, a message now and then; or ARRIVAL-RATE.
LOADS = ('none', 'peer', 'silence', 'fixed-100', 'poisson-1000', 'poisson-10000', 'burst-1000', 'fixed-50000',
         'fixed-100000')
SETTLE_S = {'none': 0.5,      # an adaptive lcore begins with measuring what sleeps cost
            'peer': 8}        # 64 idle periods, a tenth of a second each, teach it that polling is vain
WARMUP_S = 0.8                # of other loads: half a second of messages


def row(load, policy, provider):
    arrival, _, rate = load.partition('-')
    common = '--connect {address} --out {folder} --name client'
    peer = f'$many_links -l 1@{{client_cpu}} --provider {provider} -- --connect {{address}} --links 1'
    lines = {'none': '', 'peer': peer,
             'silence': f"{plx('plx-ping', 'poll', provider, 'client', '--heartbeat off')} {common} --warmup 1 "
                        '--interval {interval} --count {silences}'}
    line = (f"{plx('plx-ping', 'poll', provider, 'client')} {common} --rate {rate} --arrival {arrival} "
            f'--duration {{duration}} --warmup {int(rate or 0) // 2}')
    base, asleep = 'event' if load == 'silence' else 'poll', load in SETTLE_S
    return Row(f'{load}/{policy}@{provider}', client=lines.get(load, line), figure='cpu_percent' if asleep else '',
               server=plx('plx-ping', POLICIES[policy], provider, 'server') + ' --listen {listen}',
               rounds=1 if load in lines else 999,
               bases=() if asleep or policy == base else (f'{load}/{base}@{provider}',),
               more={'policy': policy, 'provider': provider, 'load': load, 'rate': int(rate or 0)})


class Idle(Part):
    name = 'idle'
    rows = tuple(row(load, policy, provider) for provider in ('tcp', 'shm') for load in LOADS for policy in POLICIES
                 if (load, provider) != ('fixed-50000', 'shm'))
    sizes = (64,)
    fixed_sizes = True
    seconds = (2.5, 1.1)
    accepts_doubt = True
    columns = ('p50_ns', 'p99_ns', 'cpu_percent', 'wakes_per_s')
    plots = tuple(Plot(provider, 'rate', ('cpu_percent', 'p50_ns', 'p99_ns'), tuple(POLICIES), by='policy',
                       when=lambda row, provider=provider: row['provider'] == provider and row['rate']
                       and not row['load'].startswith('burst')) for provider in ('tcp', 'shm'))

    def chooses(self, row):
        """What the thresholds need is all that a quick run measures."""
        needed = row.key.partition('@')[0] in {key for limit in limits.table(self.name) for key in limit.keys()}
        return (needed or not (self.session.options.quick or row.more['load'] == 'silence')) and super().chooses(row)

    def measure(self, run):
        load, quick, data = run.row.more['load'], self.session.options.quick, {}
        run.limit_s = 300
        run.values |= {'interval': '1s' if quick else '10s', 'silences': 3 if quick else 9}
        run.serve()
        client = run.start('client', run.row.client) if run.row.client else run.server
        time.sleep(SETTLE_S.get(load, WARMUP_S))
        watch = run.watches['server'] = Watch(run.server)
        if load in SETTLE_S:
            time.sleep(3 if quick else 10)
            watch.look()
            if not client.running():
                raise Failed(f'{client.name}: {client.last_words()}')
        else:
            run.finish(client)
            data = run.read('client')
        if load == 'silence':  # plx-ping prints no percentile of a few round trips
            data['p50_ns'] = median((low + high) / 2 for low, high, count in read_histogram(run.folder / 'client.csv')
                                    for _ in range(count))
        return {'cpu_percent': watch.cpu_percent, 'wakes_per_s': watch.wakes_per_s} | {
            name: data.get(name) for name in ('p50_ns', 'p99_ns', 'count')}


UNLIMITED = '--links-max none --links-per-host none --accepts-per-s none --handshakes-max none'


def links(count, memory='', **more):
    return Row(f'links-{count}', **more, more={'links': count},
               server=f'$link-idle -l 0@{{server_cpu}} --idle event --provider tcp {UNLIMITED} {memory} -- '
                      f'--listen {{listen}} --links {count} --duration {{duration}} --out {{folder}}/{{key}}.json',
               client='$many_links -l 1@{client_cpu} --provider tcp --socket-mem 1G --receive-mem 4G -- '
                      f'--connect {{address}} --links {count}')


class Links(Part):
    name = 'links'
    # The longest turn is measured once, with memory from the start: clearing 2 MiB of new memory makes a long turn.
    rows = (links(1, rounds=3), links(10000, rounds=3, bases=('links-1',)), links(15000, '--socket-mem 512M', rounds=1))
    sizes = (4,)  # of the one message that each link has
    fixed_sizes = True
    seconds = (5, 2)
    start_s = 10
    columns = ('turn_ns', 'longest_turn_ns', 'bytes_per_link', 'cpu_percent', 'wakes_per_s')

    def measure(self, run):
        run.limit_s = 330
        run.serve()
        run.start('client', run.row.client)
        run.finish(run.server)
        once = run.row.more['links'] != 10000  # the process's one-time cost, or memory that was allocated before
        return run.read() | ({'bytes_per_link': None} if once else {})
