# SPDX-License-Identifier: BSD-3-Clause
"""The part idle: what a mostly idle server costs by idle policy, provider and load: CPU time, wake-ups, round trips."""
import time

from bench import words
from bench.limits import Limit, value, ratio
from bench.part import Part, Plot, Table
from bench.processes import Watch
from bench.rows import Row, plx
from bench.run import Failed
from bench.stats import median, read_histogram

POLICIES = {'poll': 'poll', 'event': 'event', 'latency': 'adaptive:latency:learned',
            'balanced': 'adaptive:balanced:learned', 'fixed': 'adaptive:balanced:fixed'}
PROVIDERS = ('tcp', 'shm')
# No client, one that is silent, a message now and then; or ARRIVAL-RATE.
LOADS = ('none', 'peer', 'silence', 'fixed-100', 'poisson-1000', 'poisson-10000', 'burst-1000', 'fixed-50000',
         'fixed-100000')
# What the thresholds need is all that a quick run measures.
NEEDED = ('none/balanced peer/balanced silence/event silence/balanced poisson-1000/event poisson-1000/balanced '
          'poisson-1000/poll burst-1000/poll burst-1000/balanced fixed-50000/poll fixed-50000/latency '
          'fixed-100000/poll fixed-100000/latency').split()
SETTLE_S = {'none': 0.5,      # an adaptive lcore begins with measuring what sleeps cost
            'peer': 8,        # 64 idle periods, a tenth of a second each, teach it that polling is vain
            'silence': 0.5}
WARMUP_S = 0.8                # of other loads: half a second of messages


def row(load, policy, provider):
    client = plx('plx-ping', 'poll', provider, 'client')
    common = '--connect {address} --out {folder} --name client'
    arrival, _, rate = load.partition('-')
    lines = {'none': '', 'peer': '{many_links} -l 1@{client_cpu} --provider ' + provider +
                                 ' -- --connect {address} --links 1',
             'silence': f"{plx('plx-ping', 'poll', provider, 'client', '--heartbeat off')} {common} --warmup 1"}
    line = lines.get(load, f'{client} {common} --rate {rate} --arrival {arrival} --duration {{duration}} '
                           f'--warmup {int(rate or 0) // 2}')
    base = 'event' if load == 'silence' else 'poll'
    return Row(f'{load}/{policy}@{provider}', client=line,
               server=plx('plx-ping', POLICIES[policy], provider, 'server') + ' --listen {listen}',
               rounds=1 if load in SETTLE_S else 0, figure='cpu_percent' if load in ('none', 'peer') else 'p50_ns',
               bases=() if load in ('none', 'peer') or policy == base else (f'{load}/{base}@{provider}',),
               more={'load': load, 'policy': policy, 'provider': provider, 'arrival': arrival, 'rate': int(rate or 0)})


def strained(load, policy, provider):
    """At a host's limit one delay queues everything after it, and the ratio is the queue's. Without a queue, one of
    many messages is faster than a rare one."""
    def note(figures):
        calm, polled, own = (figures.of(f'{key}@{provider}') for key in
                             ('poisson-1000/poll', f'{load}/poll', f'{load}/{policy}'))
        if calm and polled and own and (polled > calm or own > 20 * calm):
            return (f"messages queue: {words.number(words.rounded(polled / calm, 1))} times poll's p50 at 1 000/s, and "
                    f'{words.number(words.rounded(own / calm, 1))} times')
        return None
    return note


def limits_of(provider):
    """The code determines idle wake-ups and CPU time. Round trips depend as much on the host: those are aims."""
    def most(load, name, text, limit):
        return Limit(f'idle, {provider}, balanced, {text}', limit, value(f'{load}/balanced@{provider}', name),
                     gates=load in ('none', 'peer'))

    def over(policy, base, load, text, limit, note=False):
        return Limit(f'idle, {provider}, {policy} over {base}, p50, {text}', limit,
                     ratio(f'{load}/{policy}@{provider}', f'{load}/{base}@{provider}'),
                     note=strained(load, policy, provider) if note else None)

    return (most('none', 'wakes_per_s', 'wakes/s with nobody there', 2),
            most('none', 'cpu_percent', 'CPU % with nobody there', 0.5),
            most('peer', 'wakes_per_s', 'wakes/s with an idle peer', 25),
            most('peer', 'cpu_percent', 'CPU % with an idle peer', 0.5),
            over('balanced', 'event', 'silence', 'first message after silence', 1.2),
            over('latency', 'poll', 'fixed-50000', '50 000/s', 1.15),
            over('latency', 'poll', 'fixed-100000', '100 000/s', 1.15, note=True),
            over('balanced', 'event', 'poisson-1000', '1 000/s, Poisson', 1.1),
            most('poisson-1000', 'cpu_percent', 'CPU % at 1 000/s, Poisson', 10),
            over('balanced', 'poll', 'burst-1000', 'bursts of 100', 1.15, note=True))


class Idle(Part):
    name = 'idle'
    title = 'CPU against latency: a server with little to do'
    explained = ("By its idle policy. CPU time and sleeps are the server's; round trips are those of a client that "
                 'polls. none: nobody is connected; peer: one is, and sends nothing; silence: a message each ten '
                 'seconds (a quick run: one). latency and balanced are adaptive, by what they have learned; fixed is '
                 'balanced with a fixed time. Medians over the rounds.')
    rows = tuple(row(load, policy, provider) for provider in PROVIDERS for load in LOADS for policy in POLICIES
                 if (load, provider) != ('fixed-50000', 'shm'))
    sizes = (64,)
    fixed_sizes = True
    seconds = (2.5, 1.1)
    tries = 3  # if the host delayed the client below its rate
    accepts_doubt = True
    keep = ('provider', 'policy', 'arrival', 'rate')
    spreads = ('p50_ns', 'cpu_percent')
    medians = ('wakes_per_s', 'p99_ns')
    sums = ('doubted',)
    limits = tuple(limit for provider in PROVIDERS for limit in limits_of(provider))
    tables = (Table('', (
        ('CPU %', lambda row: words.short(row['cpu_percent'])),
        ('wakes/s', lambda row: words.short(row['wakes_per_s'])),
        ('p50, µs', lambda row: words.us(row['p50_ns'])), ('p99, µs', lambda row: words.us(row['p99_ns'])),
        ('ratio', words.ratio))),)
    plots = tuple(Plot(f'idle-{provider}', f'messages a second, over {provider}', lambda row: row['rate'], (
        ('CPU of the server, %', lambda row: row['cpu_percent']),
        ('p50, µs', lambda row: row['p50_ns'] and row['p50_ns'] / 1e3),
        ('p99, µs', lambda row: row['p99_ns'] and row['p99_ns'] / 1e3)),
        tuple(POLICIES), label=str, key=lambda row: row['policy'], when=lambda row, provider=provider:
            row['provider'] == provider and row['rate'] and row['arrival'] != 'burst') for provider in PROVIDERS)

    def begin(self, session):
        self.quick = session.options.quick
        self.quiet_s, self.silence = (3, '--interval 1s --count 3') if self.quick else (10, '--interval 10s --count 9')
        super().begin(session)

    def chooses(self, row):
        needed = f"{row.more['load']}/{row.more['policy']}" in NEEDED
        return (needed or not (self.quick or row.more['load'] == 'silence')) and super().chooses(row)

    def heading(self, row):
        return words.in_state(row['provider'], row['state'])

    def measure(self, run):
        more = run.row.more
        load, data = more['load'], {}
        run.limit_s = 300
        run.serve()
        client = None
        if load != 'none':
            client = run.start('client', run.row.client + (f' {self.silence}' if load == 'silence' else ''))
        time.sleep(SETTLE_S.get(load, WARMUP_S))
        watch = Watch(run.server_process)
        if load in ('none', 'peer'):
            time.sleep(self.quiet_s)
            watch.look()
            if client and not client.running():
                raise Failed(f'client: {client.last_words()}')
        else:
            run.watches = {'server': watch}
            run.finish(client)
            data = run.read('client')
        if load == 'silence':  # plx-ping prints no percentile of a few round trips
            data['p50_ns'] = median((low + high) / 2 for low, high, count in read_histogram(run.folder / 'client.csv')
                                    for _ in range(count))
        return {name: more[name] for name in ('policy', 'provider', 'arrival', 'rate')} | {
            'cpu_percent': watch.cpu_percent, 'wakes_per_s': watch.wakes_per_s, 'p50_ns': data.get('p50_ns'),
            'p99_ns': data.get('p99_ns'), 'count': data.get('count')}

    def describe(self, result):
        return (f"{words.short(result['cpu_percent'])} % of a CPU, {words.short(result['wakes_per_s'])} wakes/s, "
                f"p50 {words.us(result['p50_ns'])} us")
