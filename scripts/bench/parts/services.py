# SPDX-License-Identifier: BSD-3-Clause
"""The part services: a method call against a message and its echo: one at a time, many in flight, on a schedule."""
from bench import stats
from bench.part import Part, Row, ping, plx

PARAMETER = 'hv/rack1/voltage'
# Compared rows are adjacent. call-N: N calls in flight. quiet and half: open loops with random gaps, half of them at
# half of the rate of call-64 in the same round. params-load: 100000 parameters, 100 watchers, 10000 random sets a
# second, none of which may be lost.
ROWS = 'ping call-1 call-64 call-100 call-100000 quiet half params-echo params-get params-load'.split()
BASES = {'call-1': 'ping', 'call-100000': 'call-100', 'half': 'quiet', 'params-get': 'params-echo'}


def row(name, provider):
    key, bases = f'{name}@{provider}', (f'{BASES[name]}@{provider}',) if name in BASES else ()
    if name == 'ping':
        return ping(key, '', 'poll', provider, server='', more={'provider': provider})
    params, many = name.startswith('params-'), name.startswith('call-') and name != 'call-1'
    options = {'quiet': '--rate 10000 --arrival poisson', 'half': '--rate {rate} --arrival poisson', 'params-get': '',
               'params-echo': ''}
    method = {'params-echo': 'pollux.echo', 'params-get': 'params.get'}.get(name, 'echo')
    client = (f"{plx('plx-call', 'poll', provider, 'client')} --connect {{address}} --method {method} "
              f"{f'--data {PARAMETER}' if params else '--size {size}'} --duration {{duration}} --out {{folder}} "
              f"--name {{key}} {options.get(name, f'--in-flight {name[5:]}')}")
    server = plx('service', 'poll', provider, 'server') + ' --listen {listen}'
    if params:
        server = (plx('plx-params', 'poll', provider, 'server', '--self-test 10000000')
                  + ' --serve {folder}/params.db --listen {listen}')
    if name == 'params-load':
        client = (f"{plx('params-load', 'poll', provider, 'client')} --connect {{address}} --duration {{duration}} "
                  '--out {folder}/{key}.json')
    return Row(key, server, client, bases=bases, figure='rate_per_s' if many else '', more={'provider': provider})


class Services(Part):
    name = 'services'
    rows = tuple(row(name, provider) for name in ROWS for provider in ('tcp', 'shm'))
    sizes = (64,)
    fixed_sizes = True
    seconds = (2, 0.7)
    tries = 1
    accepts_doubt = True  # the host delayed the client past its schedule
    columns = (*stats.TRIPS, 'rate_per_s', 'watch_p50_ns', 'watch_p99_ns', 'lost')

    def prepare(self, run):
        if run.row.key.startswith('half'):
            run.values['rate'] = int(self.half(run.row.key.replace('half', 'call-64'), 'rate_per_s'))

    def measure(self, run):
        run.limit_s = 60
        try:
            run.serve()
            if run.row.key.startswith('params-get'):
                run.finish(run.start('define', f"$plx-params -l 1@{{client_cpu}} --provider {run.row.more['provider']} "
                                     f'-- --connect {{address}} --define {PARAMETER} --type real --value 1500 --unit V '
                                     '--max 2000 --alarm-high 1800'))
            run.client()
        finally:
            self.session.processes.end()
            for path in run.folder.glob('params.db*'):
                path.unlink()
        data = run.read()
        return {name: data.get(name) for name in (*self.columns, 'count')} | {
            'lost': data.get('lost', 0), 'rate_per_s': data['count'] * 1e9 / data['elapsed_ns']}
