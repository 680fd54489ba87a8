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
from bench.part import Part, Plot
from bench.processes import Failed

KNOWN = Path(__file__).resolve().parents[3] / 'tests/perf/instructions.json'
MESSAGES = 3200
LIMIT = 1.03    # over the known number
EXACT = 0.01    # how much counts of one program differ
LIMIT_S = 300


class Counts(Part):
    """`steps` are measured once each; `measure` returns what to keep."""
    timed = False
    fixed_sizes = True
    steps = ()
    step_s = 2

    def begin(self, session):
        self.session, self.chosen = session, session.has_programs(self.name, self.programs)
        session.progress.expect(self.name, len(self.steps), self.step_s)

    def run(self):
        for step in self.steps if self.chosen else ():
            self.session.progress.step(self.name, f'{self.name}, {step}')
            try:
                self.session.keep(self.name, self.measure(step))
            except (Failed, OSError, ValueError, KeyError, subprocess.TimeoutExpired) as cause:
                self.session.fail(f'{self.name}, {step}: {cause}')

    def row(self, key, figure, size, values, **more):
        return {'key': key, 'figure': figure, 'size_bytes': size, 'state': stats.ONE, 'ours': True, 'base': None,
                'ratio': None} | values | more


def ratios(values, peer, names):
    """Of a figure over its peer's, with what its rounds say of the noise."""
    return {'ratio_least': values[names[0]] / peer, 'ratio_greatest': values[names[1]] / peer} if peer else {}


class Rings(Counts):
    name = 'rings'
    programs = ('plx-perf', 'plx-perf-dpdk')
    columns = ('cycles_per_elem', 'peer_cycles_per_elem', 'hop_ns', 'hop_p99_ns', 'kib_at_4_lcores')
    # The memory of caches is measured with four lcores; the last two use the pool once, and sleep.
    steps = ('ring', 'pool', 'hop')
    plots = tuple(Plot(f'{lcores}-lcores', 'burst', ('cycles_per_elem', 'peer_cycles_per_elem'), ('spsc', 'mpsc', 'mpmc'),
                       by='variant', when=lambda row, lcores=lcores: row['key'].startswith('ring')
                       and row['lcores'] == lcores) for lcores in (1, 2))

    def begin(self, session):
        options = session.options
        self.programs = ('plx-perf-dpdk' if 'plx-perf-dpdk' in session.programs else 'plx-perf',)
        if self.programs == ('plx-perf',):
            session.leave_out("rings: DPDK's: libdpdk-dev was not there when the build folder was configured")
        self.few = min(options.rounds_given or (5 if options.quick else 15), 101)
        self.step_s = 6 if options.quick else 40
        super().begin(session)

    def measure(self, mode):
        short, long = ('10ms', '100ms') if self.session.options.quick else ('40ms', '500ms')
        dpdk = f" --duration {short}{' --compare dpdk' if self.programs[0].endswith('dpdk') else ''}"
        options = {'ring': dpdk, 'pool': ',2@{server_cpu},3@{client_cpu}' + dpdk,
                   'hop': f' --duration {long} --with-idle-tcp --histogram {{out}}/runs/hop.hgrm'}[mode].split(' ', 1)
        self.session.say(self.session.run_program(f'rings-{mode}', f'${self.programs[0]} {mode} --log-level error -l '
                         f'0@{{server_cpu}},1@{{client_cpu}}{options[0]} -- --rounds {self.few} {options[1]} '
                         f'--json {{out}}/runs/{mode}.json', LIMIT_S).rstrip())
        return {'mode': mode} | json.loads((self.session.out / f'runs/{mode}.json').read_text())

    def summarize(self, runs):
        """A row counts in the state with the most rounds: plx-perf compares within one."""
        rows = []
        for row in sorted((row for run in runs for row in run.get('rows', [])), key=lambda row: -row['rounds']):
            key = f"{row['name']}-{row['variant']}-{row['lcores']}-lcore-burst-{row['burst']}"
            rows.append(self.row(key, 'cycles_per_elem', 8, row, base=row.get('peer'),
                                 cycles_per_elem_least=row['cycles_least'],
                                 cycles_per_elem_greatest=row['cycles_greatest'],
                                 **ratios(row, row.get('peer_cycles_per_elem'), ('cycles_least', 'cycles_greatest'))))
        hop, caches = (next((run[name] for run in runs if run.get(name)), {}) for name in ('hop', 'caches'))
        for name, values in hop.items():
            if not isinstance(values, dict):
                continue
            found = {'hop_ns': values['p50_ns'], 'hop_p99_ns': values.get('p99_ns'), 'ratio': values.get('ratio'),
                     'hop_ns_least': values.get('p50_least_ns'), 'hop_ns_greatest': values.get('p50_greatest_ns')}
            if 'cold_poll_wait_ns' in values:  # plx-perf compares each round with that round's bare line
                found['ratio_without_polls'] = (values['p50_ns'] - values['cold_poll_wait_ns']) / hop['bare_ns']
            if values.get('ratio') and found['hop_ns_least']:
                found |= ratios(found, values['p50_ns'] / values['ratio'], ('hop_ns_least', 'hop_ns_greatest'))
            rows.append(self.row(f'hop-{name}', 'hop_ns', 8, found, base='bare' if values.get('ratio') else None,
                                 rounds=self.few))
        if caches.get('bytes'):
            rows.append(self.row('caches-of-a-pool', 'kib_at_4_lcores', 8, {
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


class Instructions(Counts):
    name = 'instructions'
    programs = ('instructions',)
    columns = ('instructions', 'known')
    steps = tuple(f'{row} {provider} {number}' for provider, row, number in known('release'))

    def measure(self, step):
        row, provider, number = step.split()
        counted = count(self.session.programs['instructions'], provider, row)
        self.session.say(f'    {counted} instructions, known {number}')
        return {'key': f'{row} {provider}', 'instructions': counted, 'known': int(number)}

    def summarize(self, runs):
        rows = []
        for run in runs:
            ratio = run['instructions'] / run['known']
            rows.append(self.row(run['key'], 'instructions', 64, run, ours=not run['key'].startswith('raw'), base='known',
                                 ratio=ratio, ratio_least=ratio, ratio_greatest=ratio, noise=EXACT))
        return self.summary(rows)
