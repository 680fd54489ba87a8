# SPDX-License-Identifier: BSD-3-Clause
"""From the command line to a report."""
import shutil
import sys
from pathlib import Path

from bench import compare, environment, options, report, schema
from bench.build import Lock, SetupError, set_up
from bench.parts import ALL
from bench.processes import Stopped, raise_on_signals
from bench.run import Failed
from bench.session import Session, UsageError
from bench.summary import summarize

ROOT = Path(__file__).resolve().parents[2]


def main(arguments):
    try:
        chosen = options.parse(arguments)
        raise_on_signals()
        if chosen.compare:
            return compare.run([Path(folder) for folder in chosen.compare], chosen.out)
        if chosen.report:
            return report_again(Path(chosen.report))
        return bench(Session(chosen, ROOT))
    except (UsageError, schema.Invalid) as error:
        print(f'bench.sh: {error}', file=sys.stderr)
        return 2
    except (SetupError, Failed) as error:
        print(f'bench.sh: {error}', file=sys.stderr)
        return 1
    except Stopped as stopped:
        return stopped.status


def report_again(out):
    """The report and the plots of a result."""
    summary = schema.load(out)
    parts = {name: ALL[name]() for name in summary['parts']}
    trouble = report.draw(out, summary, parts)
    report.write(out, summary, parts)
    print(report.text_of(summary, parts), *(f'FAILED: {text}' for text in trouble), f"Report: {out / 'report.html'}",
          sep='\n')
    return 1 if trouble else 0


def bench(session):
    """Set up, measure, report."""
    if len(session.cpus) < 2:
        raise SetupError(f'this process may use only one CPU ({session.cpus[0]}). Both ends of a round trip\n  spin, '
                         'so they need one each: on a shared one a round trip takes milliseconds. Widen the cpuset.')
    lock = Lock(ROOT, session.say)
    try:
        serves = session.options.mode == 'serve'
        if serves:
            session.out = ROOT / 'build-bench/serve'
        (session.out / 'runs').mkdir(parents=True, exist_ok=True)
        session.use(set_up(session))
        if serves:
            lock.release()
        return measure(session)
    finally:
        session.processes.end()


def measure(session):
    """Everything after the set-up; the status of the run."""
    for name in session.options.parts:
        part = ALL[name]()
        part.begin(session)
        session.parts.append(part)
    if session.failures:
        raise SetupError(session.failures[0])
    if session.options.mode == 'serve':
        return session.serve(session.parts[0])
    for old in ('lines', *(f'{part.name}.ndjson' for part in session.parts)):
        (session.out / 'runs' / old).unlink(missing_ok=True)
    for old in ('plots', 'pooled'):
        shutil.rmtree(session.out / old, ignore_errors=True)
    for old in session.out.glob('hiccups.*'):
        old.unlink()
    described = environment.describe(session.root, session.cpus)
    stopped = None
    try:
        session.measure()
    except Stopped as signal:
        stopped = signal
        session.processes.end()
        session.notes.append(f'Interrupted after {session.progress.done - 1} of {session.progress.steps} steps: this '
                             'is what was complete.')
    if late := session.progress.why_late():
        session.notes.append(late)
    return finish(session, described, stopped)


def finish(session, described, stopped):
    """Sum up and write the report, also of an interrupted run."""
    if not stopped:
        session.progress.step('report', 'tables, plots, report')
    summary = summarize(session, described)
    parts = {part.name: part for part in session.parts}
    trouble = report.draw(session.out, summary, parts)
    report.write(session.out, summary, parts)
    hiccups = session.out / 'hiccups.txt'
    session.say(report.text_of(summary, parts, hiccups.read_text() if hiccups.is_file() else ''))
    for text in trouble:
        session.say(f'FAILED: {text}')
    session.say(f"Report: {session.out / 'report.html'}")
    if stopped:
        return stopped.status
    if session.failures or trouble:
        return 1
    missed = any(one['gates'] and one['ok'] is False for one in summary['thresholds'])
    return 3 if session.options.strict and missed else 0


