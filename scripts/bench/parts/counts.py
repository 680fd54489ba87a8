# SPDX-License-Identifier: BSD-3-Clause
"""Parts without rounds. rings: rings, pools and messages between lcores, by plx-perf, next to DPDK's if the build found
it. instructions: instructions per message, which callgrind counts, next to the numbers in the tree."""
import json
import os
import re
import subprocess
import tempfile
from pathlib import Path

from bench import stats
from bench.part import Part, Plot, Row
from bench.processes import Failed

KNOWN = Path(__file__).resolve().parents[3] / 'tests/perf/instructions.json'
MESSAGES = 3200
LIMIT = 1.03    # over the known number
EXACT = 0.01    # how much counts of one program differ
LIMIT_S = 300


def row(key, figure, size, values, **more):
    return {'key': key, 'figure': figure, 'size_bytes': size, 'state': stats.ONE, 'ours': True, 'base': None,
            'ratio': None} | values | more


def ratios(least, greatest, peer):
    """Of a figure over its peer's: what its rounds show of the noise."""
    return {'ratio_least': least / peer, 'ratio_greatest': greatest / peer} if peer and least else {}


class Rings(Part):
    name = 'rings'
    timed = False
    programs = ('plx-perf', 'plx-perf-dpdk')
    sizes = (8,)
    fixed_sizes = True
    columns = ('cycles_per_elem', 'peer_cycles_per_elem', 'hop_ns', 'hop_p99_ns', 'kib_at_4_lcores')
    plots = tuple(Plot(f'{lcores}-lcores', 'burst', ('cycles_per_elem', 'peer_cycles_per_elem'),
                       ('spsc', 'mpsc', 'mpmc'), by='variant', when=lambda row, lcores=lcores:
                       row['key'].startswith('ring') and row['lcores'] == lcores) for lcores in (1, 2))

    def begin(self, session):
        options, (perf, against) = session.options, ('plx-perf-dpdk', '--compare dpdk')
        if perf not in session.programs:
            perf, against = 'plx-perf', ''
            session.leave_out("rings: DPDK's: libdpdk-dev was not there when build-bench was made; remove that folder and run again")
        self.few = min(options.rounds_given or (5 if options.quick else 15), 101)
        short, long, self.start_s = ('10ms', '100ms', 6) if options.quick else ('40ms', '500ms', 40)
        # The memory of caches is measured with four lcores; the last two use the pool once, and sleep.
        self.rows = [
            Row(mode, rounds=1, client=f'${perf} {mode} --log-level error -l 0@{{server_cpu}},1@{{client_cpu}}{lcores} '
                f'-- --rounds {self.few} {rest} --json {{folder}}/{{key}}.json') for mode, lcores, rest in (
                    ('ring', '', f'--duration {short} {against}'),
                    ('pool', ',2@{server_cpu},3@{client_cpu}', f'--duration {short} {against}'),
                    ('hop', '', f'--duration {long} --with-idle-tcp --histogram {{folder}}/hop.hgrm'))]
        self.programs, self.seconds = (), (0, 0)  # plx-perf has its own rounds
        super().begin(session)

    def prepare(self, run):
        run.limit_s = LIMIT_S

    def summarize(self, runs):
        """A row counts in the state with the most rounds: plx-perf compares within one."""
        rows = []
        for one in sorted((one for run in runs for one in run.get('rows', [])), key=lambda one: -one['rounds']):
            least, greatest, peer = one['cycles_least'], one['cycles_greatest'], one.get('peer_cycles_per_elem')
            rows.append(row(f"{one['name']}-{one['variant']}-{one['lcores']}-lcore-burst-{one['burst']}",
                            'cycles_per_elem', 8, one, base=one.get('peer'), cycles_per_elem_least=least,
                            cycles_per_elem_greatest=greatest, **ratios(least, greatest, peer)))
        hop, caches = (next((run[name] for run in runs if run.get(name)), {}) for name in ('hop', 'caches'))
        for name, values in hop.items():
            if not isinstance(values, dict):
                continue
            p50, ratio, least, greatest = map(values.get, ('p50_ns', 'ratio', 'p50_least_ns', 'p50_greatest_ns'))
            found = {'hop_ns': p50, 'hop_p99_ns': values.get('p99_ns'), 'ratio': ratio, 'hop_ns_least': least,
                     'hop_ns_greatest': greatest} | ratios(least, greatest, ratio and p50 / ratio)
            if 'cold_poll_wait_ns' in values:  # plx-perf compares each round with that round's bare line
                found['ratio_without_polls'] = (p50 - values['cold_poll_wait_ns']) / hop['bare_ns']
            rows.append(row(f'hop-{name}', 'hop_ns', 8, found, base='bare' if ratio else None, rounds=self.few))
        if caches.get('bytes'):
            rows.append(row('caches-of-a-pool', 'kib_at_4_lcores', 8, {
                'kib_at_4_lcores': caches['bytes'] / caches['lcores'] * 4 / 1024}))
        return self.summary(rows, rounds=self.few)


def known(buildtype):
    """The numbers in the tree: (provider, row, instructions)."""
    return [(provider, row, number) for provider, rows in json.loads(KNOWN.read_text()).get(buildtype, {}).items()
            for row, number in rows.items()]


def count(program, provider, row):
    """Instructions per message. Symbols are bound before, not in the first call."""
    with tempfile.NamedTemporaryFile() as out:
        ran = subprocess.run(['valgrind', '--tool=callgrind', '--instr-atstart=no', f'--callgrind-out-file={out.name}',
                              program, provider, row, str(MESSAGES)], env=os.environ | {'LD_BIND_NOW': '1'}, text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, timeout=LIMIT_S)
        total = re.search(r'^totals: (\d+)', Path(out.name).read_text(), re.M)
    if ran.returncode or not total or int(total[1]) < MESSAGES:
        raise Failed(f'status {ran.returncode}: {ran.stdout.strip()[-400:]}')
    return round(int(total[1]) / MESSAGES)


class Instructions(Part):
    name = 'instructions'
    timed = False
    programs = ('instructions',)
    rows = tuple(Row(f'{name} {provider}', rounds=1, ours=name != 'raw', more={'known': number})
                 for provider, name, number in known('release'))
    sizes = (64,)
    fixed_sizes = True
    seconds = (0, 0)
    start_s = 2
    columns = ('instructions', 'known')

    def measure(self, run):
        name, provider = run.row.key.split()
        return {'instructions': count(run.values['instructions'], provider, name)}

    def summarize(self, runs):
        return self.summary([row(
            run['key'], 'instructions', 64, run, ours=not run['key'].startswith('raw'), base='known', noise=EXACT,
            ratio=run['instructions'] / run['known'], **ratios(run['instructions'], run['instructions'], run['known']))
                             for run in runs])
