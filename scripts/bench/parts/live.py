# SPDX-License-Identifier: BSD-3-Clause
"""The part live, run only by --live HOST:PORT: calls of the self-test of a running, busy Pollux process."""
from bench.part import Part, Table, trips
from bench.rows import Row

class Live(Part):
    name = 'live'
    title = 'Calls of the self-test'
    explained = 'Of a running process, in microseconds.'
    rows = (Row('self-test', label='self-test', port=0,
                client='{plx-ping} -l 0@{client_cpu} --idle poll --provider {provider} -- --process {client}'),)
    sizes = (64, 1024, 16384)
    seconds = (5, 0.5)
    sums = ('count',)
    pooled = True
    tables = (Table('', (
        *trips('min', 'p50', 'p90', 'p99', 'p99_9', 'max'),
        ('calls', lambda row: str(row['count'])), ('provider', lambda row: row['provider']))),)

    def measure(self, run):
        options = run.session.options
        run.values |= {'address': options.peer, 'provider': options.provider or 'auto'}
        run.client()
        return run.read()

    def extras(self):
        return {'at': self.session.options.peer}
