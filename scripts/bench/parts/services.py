# SPDX-License-Identifier: BSD-3-Clause
"""The part services: a method call against a message and its echo: one at a time, many in flight, on a schedule."""
from bench import words
from bench.limits import Limit, difference, ratio, value
from bench.part import Part, Table, trips
from bench.rows import Row, ping, plx
from bench.run import Failed

PARAMETER = 'hv/rack1/voltage'
# Compared rows are adjacent. call-N: N calls in flight. quiet and half: open loops with random gaps, half of them at
# half of the rate of call-64 in the same round. params-load: 100000 parameters, 100 watchers, 10000 random sets a
# second, none of which may be lost.
ROWS = 'ping call-1 call-64 call-100 call-100000 quiet half params-echo params-get params-load'.split()
BASES = {'call-1': 'ping', 'call-100000': 'call-100', 'half': 'quiet', 'params-get': 'params-echo'}


def row(name, provider):
    more = {'key': f'{name}@{provider}', 'bases': (f'{BASES[name]}@{provider}',) if name in BASES else ()}
    if name == 'ping':
        return ping(more.pop('key'), 'poll', provider, server='', **more)
    if name.startswith('call-') and name != 'call-1':
        more['figure'] = 'rate_per_s'
    options = {'quiet': '--rate 10000 --arrival poisson', 'half': '--rate {rate} --arrival poisson'}
    data = f'--data {PARAMETER}' if name.startswith('params-') else '--size {size}'
    method = {'params-echo': 'pollux.echo', 'params-get': 'params.get'}.get(name, 'echo')
    client = (f"{plx('plx-call', 'poll', provider, 'client')} --connect {{address}} --method {method} {data} "
              f'--duration {{duration}} --out {{folder}} --name {{key}} '
              + options.get(name, '' if 'params' in name else f'--in-flight {name[5:]}'))
    server = plx('service', 'poll', provider, 'server') + ' --listen {listen}'
    if name.startswith('params-'):
        server = (plx('plx-params', 'poll', provider, 'server', '--self-test 10000000')
                  + ' --serve {folder}/params.db --listen {listen}')
    if name == 'params-load':
        client = (f"{plx('params-load', 'poll', provider, 'client')} --connect {{address}} --duration {{duration}} "
                  '--out {folder}/{key}.json')
    return Row(server=server, client=client, **more)


def limits_of(provider, least):
    """What depends on the host's speed and other load is an aim."""
    def key(name):
        return f'{name}@{provider}'

    def limit(text, most, measure, **more):
        return Limit(f'services over {provider}, {text}', most, measure, **more)

    def per_call(figures):
        rate = figures.ratio(key('call-100000'), key('call-100'), figure='rate_per_s')
        return rate and 1 / rate

    # Over tcp, runs differ by more than 150 ns.
    return ((limit('a call over plx-ping, p50, ns', 150, difference(key('call-1'), key('ping'))) if provider == 'shm'
             else limit('a call over a message and its echo, p50', 1.04, ratio(key('call-1'), key('ping')))),
            limit('64 open, calls per second', least, value(key('call-64'), 'rate_per_s'), least=True),
            limit('100000 open over 100, time per call', 1.3, per_call),
            limit('half of the greatest rate over 10000/s, p99', 2, ratio(key('half'), key('quiet'), figure='p99_ns')),
            limit('a parameter over an echo, p50, ns', 300, difference(key('params-get'), key('params-echo'))),
            limit('10000 sets/s, 100000 parameters, 100 watchers: lost', 0, value(key('params-load'), 'lost')))


class Services(Part):
    name = 'services'
    title = 'Calls of services'
    explained = ('Calls of a method that sends the request back, 64 B, one client and one service on a lcore each, in '
                 'microseconds; medians over the interleaved rounds. In open loops times are from when a call should '
                 'have been made.')
    rows = tuple(row(name, provider) for name in ROWS for provider in ('tcp', 'shm'))
    sizes = (64,)
    fixed_sizes = True
    seconds = (2, 0.7)
    tries = 1
    accepts_doubt = True  # the host delayed the client past its schedule
    keep = ('provider',)
    spreads = ('p50_ns', 'rate_per_s')
    medians = ('p90_ns', 'p99_ns', 'p99_9_ns', 'watch_p50_ns', 'watch_p99_ns', 'scheduled_per_s')
    maxima = ('max_ns',)
    sums = ('lost', 'doubted')
    limits = limits_of('shm', 5000000) + limits_of('tcp', 2000000)
    tables = (Table('', (
        *trips('p50', 'p90', 'p99', 'p99_9', 'max'),
        ('M/s', lambda row: words.short(row['rate_per_s'] / 1e6)), ('ratio', words.ratio))),)

    def heading(self, row):
        return words.in_state(row['provider'], row['state'])

    def measure(self, run):
        run.limit_s = 60
        database = run.folder / 'params.db'
        if run.row.key.startswith('half'):
            run.values['rate'] = self.half_rate(run.row.key)
        self.remove(database)
        try:
            run.serve()
            if run.row.key.startswith('params-get'):
                provider = run.row.key.split('@')[1]
                run.finish(run.start('define', f'{{plx-params}} -l 1@{{client_cpu}} --provider {provider} -- --connect '
                                     f'{{address}} --define {PARAMETER} --type real --value 1500 --unit V --max 2000 '
                                     '--alarm-high 1800'))
            run.client()
        finally:
            self.session.processes.end()
            self.remove(database)
        data = run.read()
        return {name: data.get(name) for name in ('count', 'p50_ns', 'p90_ns', 'p99_ns', 'p99_9_ns', 'max_ns',
                                                  'watch_p50_ns', 'watch_p99_ns')} | {
            'provider': run.row.key.split('@')[1], 'fi_provider': data.get('provider'), 'lost': data.get('lost', 0),
            'rate_per_s': data['count'] * 1e9 / data['elapsed_ns'], 'scheduled_per_s': data.get('rate')}

    def half_rate(self, key):
        rates = [run['rate_per_s'] for run in self.session.runs[self.name]
                 if run['key'] == key.replace('half', 'call-64')]
        if not rates:
            raise Failed('call-64, of whose rate it takes half, was not measured')
        return int(rates[-1] / 2)

    @staticmethod
    def remove(database):
        for path in database.parent.glob(database.name + '*'):
            path.unlink()

    def describe(self, result):
        return f"p50 {words.us(result['p50_ns'])} us, {words.short(result['rate_per_s'] / 1e6)} M/s"

    def notes(self, summary):
        notes = [f"{row['key']}: a change reached 100 watchers in {words.us(row['watch_p50_ns'])} µs at the median, "
                 f"p99 {words.us(row['watch_p99_ns'])} µs; lost: {row['lost']}." for row in summary['rows']
                 if row.get('watch_p50_ns')]
        if platform := summary['platform']:
            notes.append(f"The platform alone holds up a CPU for {platform['held_up_percent']} % of the time, up to "
                         f"{words.us(platform['longest_ns'])} µs: at half of the greatest rate "
                         f"{platform['met_percent']} % of the calls meet such a gap, or what queued up in it.")
        return notes

    def extras(self):
        return {'platform': platform(self.session.hiccups)}

    def summarize(self, runs):
        """A p99 belongs to the platform if more than 1 % of the calls meet its gaps."""
        summary = super().summarize(runs)
        met = (summary['platform'] or {}).get('met_percent', 0)
        for threshold in summary['thresholds']:
            if met > 1 and threshold['what'].endswith('p99'):
                threshold.setdefault('note', f"{met} % of such calls meet a gap of the platform, so it is that one's")
        return summary


def platform(hiccups):
    """A lower bound for every program on this host. met_percent: of calls at half of the highest rate, the share in a
    gap of either CPU, or while its backlog is worked off, which takes as long again."""
    if not hiccups:
        return None
    shares = [cpu['gap_total_ns'] / hiccups['duration_ns'] * 100 for cpu in hiccups['cpus']]
    return {'held_up_percent': words.rounded(max(shares), 3),
            'met_percent': words.rounded(min(sum(shares) * 2, 100), 3),
            'longest_ns': max(cpu['longest_ns'] for cpu in hiccups['cpus'])}
