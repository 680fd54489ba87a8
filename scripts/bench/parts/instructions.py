# SPDX-License-Identifier: BSD-3-Clause
"""The part instructions: instructions per message, which callgrind counts, next to the numbers in the tree."""
import json
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from bench import words
from bench.limits import Figures, Limit, judge
from bench.part import SCHEMA, Part, Table
from bench.run import Failed

KNOWN = Path(__file__).resolve().parents[3] / 'tests/perf/instructions.json'
MESSAGES = 3200
LIMIT = 1.03  # over the known number
LIMIT_S = 100


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
    title = 'Instructions per message'
    unit = 'instructions per message of 64 B, both ends on one lcore'
    explained = ('As callgrind counts them. raw is libfabric alone; a buffered or published message shares a page with 31 '
                 'others; a call is a request and its reply. Known are the numbers in tests/perf/instructions.json.')
    timed = False
    programs = ('instructions',)
    tables = (Table('', (
        ('instructions', lambda row: words.whole(row['instructions'])), ('known', lambda row: words.whole(row['known'])),
        ('ratio', lambda row: words.digits(row['ratio'])))),)

    def begin(self, session):
        self.session, self.chosen, self.chosen_sizes, self.duration = session, (), (64,), 0
        session.need(self.name, 'instructions')
        session.progress.expect(self.name, len(known('release')), 2)

    def run(self):
        session = self.session
        if not shutil.which('valgrind'):
            session.fail('instructions: valgrind is not installed')
            return
        for provider, row, number in known('release'):
            session.progress.step(self.name, f'instructions, {row} over {provider}')
            try:
                counted = count(session.programs['instructions'], provider, row)
            except (Failed, OSError, KeyError, subprocess.TimeoutExpired) as cause:
                session.fail(f'instructions, {row} over {provider}: {cause}')
                continue
            session.say(f'    {counted} instructions, known {number}')
            session.keep(self.name, {'key': f'{row} {provider}', 'instructions': counted, 'known': number})

    def summarize(self, runs):
        state = words.RESULT_STATE_ONE
        rows = [run | {'size_bytes': 64, 'state': state, 'ours': not run['key'].startswith('raw'), 'base': 'known',
                       'figure': 'instructions', 'ratio': run['instructions'] / run['known']} for run in runs]
        figures = Figures([], rows)
        limits = [Limit(f"{row['key']} over its known number", LIMIT, lambda _figures, row=row: row['ratio'], gates=True)
                  for row in rows]
        return {'schema': SCHEMA, 'part': self.name, 'unit': self.unit, 'rows': rows, 'states': [], 'changed': 0,
                'thresholds': judge(limits, [(state, figures)], figures)}

    def row_words(self, result):
        return result['key'], ''

    def heading(self, row):
        return words.in_state('', row['state']).strip(', ')
