# SPDX-License-Identifier: BSD-3-Clause
"""The part rings: rings, pools and messages between lcores, by plx-perf, next to DPDK's if the build found it."""
import json

from bench import words
from bench.limits import Figures, Limit, judge
from bench.part import SCHEMA, Part, Plot, Table
from bench.run import Failed

RING_LIMITS = {('spsc', 2): (0.3, 0.65, 0.65), ('mpmc', 2): (0.25, 0.6, 0.6), ('spsc', 1): (1, 1, 1),
               ('mpmc', 1): (1.25, 1.5, 1.25)}  # at bursts of 1, 8 and 32
LIMIT_S = 300


def key_of(name, variant, lcores, burst):
    return f'{name}-{variant}-{lcores}-lcore-burst-{burst}'


def over_dpdk(name, variant, lcores, burst, limit, peer):
    where = 'two lcores' if lcores == 2 else 'one lcore'
    return Limit(f'{variant} {name}, {where}, burst {burst}, over {peer}', limit,
                 lambda figures: figures.of(key_of(name, variant, lcores, burst), 'ratio', 8), gates=True)


def hop_limits(hop):
    """plx-perf compares each round with that round's bare line. Of tcp the wait for its polls is subtracted."""
    idle = hop.get('idle-tcp')
    found = (('hop, hot, over a bare cache line', hop.get('hot', {}).get('ratio'), 1.4),
             ('hop, first after quiet, over a bare cache line', hop.get('quiet', {}).get('ratio'), 2.7),
             (f"hop next to an idle tcp link, less {words.whole(idle and idle['cold_poll_wait_ns'])} ns in its polls, "
              'over a bare cache line', idle and (idle['p50_ns'] - idle['cold_poll_wait_ns']) / hop['bare_ns'], 1.4))
    return [Limit(what, limit, lambda figures, value=value: value, gates=True) for what, value, limit in found]


class Rings(Part):
    name = 'rings'
    title = 'Rings, pools and messages between lcores'
    explained = ("Cycles of the clock per element, and DPDK's in the same run. Hops are nanoseconds there and back: "
                 'bare is a cache line between the same CPUs, quiet the first message after a while without one, '
                 'idle-tcp while both lcores poll an idle tcp link.')
    programs = ('plx-perf',)
    tables = (
        Table('', (
            ('lcores', lambda row: str(row['lcores'])), ('burst', lambda row: str(row['burst'])),
            ('cycles', lambda row: words.digits(row['cycles_per_elem'])),
            ('over rounds', lambda row: words.least_to_greatest(words.digits, row, 'cycles_per_elem')),
            ("DPDK's", lambda row: words.digits(row.get('peer_cycles_per_elem'))),
            ('ratio', lambda row: words.digits(row.get('ratio')))), lambda row: row['name'] != 'hop'),
        Table('Hops', (
            ('p50, ns', lambda row: words.whole(row['p50_ns'])),
            ('over rounds', lambda row: words.least_to_greatest(words.whole, row, 'p50_ns')),
            ('p99, ns', lambda row: words.whole(row.get('p99_ns'))),
            ('over bare', lambda row: words.digits(row.get('ratio')))), lambda row: row['name'] == 'hop'))
    plots = (Plot('rings', 'burst', lambda row: row['burst'], tuple(
        (f'cycles per element, {where}', lambda row, lcores=lcores: row['lcores'] == lcores and row['figure_of'])
        for lcores, where in ((1, 'on one lcore'), (2, 'between two lcores'))),
        ('spsc', 'mpsc', 'mpmc', "spsc, DPDK's", "mpsc, DPDK's", "mpmc, DPDK's"), label=str,
        key=lambda row: row['line']),)

    def begin(self, session):
        self.session, options = session, session.options
        self.chosen, self.chosen_sizes, self.duration = (), (8,), 0
        self.program = 'plx-perf-dpdk' if 'plx-perf-dpdk' in session.programs else 'plx-perf'
        if self.program == 'plx-perf':
            session.leave_out("rings: DPDK's: libdpdk-dev was not there when the build folder was configured")
        session.need(self.name, self.program)
        self.few = min(options.rounds_given or (5 if options.quick else 15), 101)
        session.progress.expect(self.name, 3, 6 if options.quick else 40)

    def run(self):
        quick, session = self.session.options.quick, self.session
        lcores = '0@{server_cpu},1@{client_cpu}'
        compare = ' --compare dpdk' if self.program.endswith('dpdk') else ''
        short, long = ('10ms', '100ms') if quick else ('40ms', '500ms')
        # The memory of caches is measured with four lcores; the last two use the pool once, and sleep.
        modes = {'ring': (lcores, f'--duration {short}{compare}'),
                 'pool': (lcores + ',2@{server_cpu},3@{client_cpu}', f'--duration {short}{compare}'),
                 'hop': (lcores, f'--duration {long} --with-idle-tcp --histogram {{out}}/runs/hop.hgrm')}
        for mode, (cores, options) in modes.items():
            session.progress.step(self.name, f'rings, plx-perf {mode}')
            try:
                got = session.run_program(f'rings-{mode}', f'{{{self.program}}} {mode} -l {cores} --log-level error -- '
                                          f'--rounds {self.few} {options} --json {{out}}/runs/{mode}.json', LIMIT_S)
                session.say(got.rstrip())
                session.keep(self.name, {'mode': mode} | json.loads((session.out / f'runs/{mode}.json').read_text()))
            except (Failed, OSError, ValueError) as cause:
                session.fail(f'plx-perf {mode}: {cause}')

    def summarize(self, runs):
        """Of each mode's results. A row counts in the state with the most rounds: plx-perf compares within one."""
        rows = [row | {'key': key_of(row['name'], row['variant'], row['lcores'], row['burst']), 'size_bytes': 8,
                       'state': row.get('state', words.RESULT_STATE_ONE), 'ours': True, 'base': row.get('peer'),
                       'figure': 'cycles_per_elem', 'cycles_per_elem_least': row['cycles_least'],
                       'cycles_per_elem_greatest': row['cycles_greatest'], 'ratio': row.get('ratio')}
                for run in runs for row in run.get('rows', [])]
        hop, caches = ({} | next((run[name] for run in runs if run.get(name)), {}) for name in ('hop', 'caches'))
        best = sorted(rows, key=lambda row: -row['rounds'])
        peer = next((row['peer'] for row in rows if row.get('peer')), None)
        limits = [over_dpdk('ring', *ring, burst, limit, peer) for ring, of_bursts in RING_LIMITS.items()
                  for burst, limit in zip((1, 8, 32), of_bursts)]
        limits += [over_dpdk('pool', 'shared', 1, burst, 0.7, 'rte_mempool') for burst in (1, 32)]
        if caches.get('bytes'):
            limits.append(Limit('caches of a pool at 4 lcores, KiB', 24, lambda figures:
                                caches['bytes'] / caches['lcores'] * 4 / 1024, gates=True))
        limits += hop_limits(hop)
        rows += [value | {'key': f'hop-{name}', 'name': 'hop', 'size_bytes': 8, 'state': words.RESULT_STATE_ONE,
                          'ours': True, 'base': None, 'figure': 'p50_ns', 'p50_ns_least': value.get('p50_least_ns'),
                          'p50_ns_greatest': value.get('p50_greatest_ns')}
                 for name, value in hop.items() if isinstance(value, dict)]
        figures = Figures([], best)
        return {'schema': SCHEMA, 'part': self.name, 'unit': self.explained, 'rows': rows, 'states': [], 'changed': 0,
                'environment': next((run['environment'] for run in runs if run.get('environment')), None),
                'hop': hop or None, 'caches': caches or None,
                'thresholds': judge(limits, [(words.RESULT_STATE_ONE, figures)], figures)}

    def label(self, result):
        return result['key'] if result['name'] == 'hop' else f"{result['name']} {result['variant']}"

    def heading(self, row):
        return words.in_state('', row['state']).strip(', ')

    def plot_rows(self, rows):
        """A line for each kind, and one for DPDK's."""
        return [row | {'line': row['variant'] + suffix, 'figure_of': row[name]} for row in rows if row['name'] == 'ring'
                for suffix, name in (('', 'cycles_per_elem'), (", DPDK's", 'peer_cycles_per_elem')) if row.get(name)]

    def notes(self, summary):
        caches = summary.get('caches')
        if not caches:
            return []
        peer = f"; those of rte_mempool {caches['peer_bytes']}" if caches.get('peer_bytes') else ''
        return [f"Caches of a shared pool at {caches['lcores']} lcores take {caches['bytes']} bytes{peer}."]
