# SPDX-License-Identifier: BSD-3-Clause
"""instructions_test.py PROGRAM BUILDTYPE: no message takes more instructions than tests/perf/instructions.json has.

The numbers are gcc 12's. A change that makes a message cheaper lowers them, so that the gain is kept."""
import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / 'scripts'))

from bench.parts.counts import LIMIT, count, known  # noqa: E402

if not shutil.which('valgrind'):
    print('skipped: valgrind is not installed')
    sys.exit(77)
program, buildtype = sys.argv[1:]
failed = False
for provider, row, number in known(buildtype):
    counted = count(program, provider, row)
    verdict = 'too many' if counted > number * LIMIT else 'fewer: lower the number' if counted < number / LIMIT else 'ok'
    failed = failed or counted > number * LIMIT
    print(f'{row} over {provider}: {counted} instructions, known {number}: {verdict}')
sys.exit(failed)
