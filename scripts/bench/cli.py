# SPDX-License-Identifier: BSD-3-Clause
"""From the command line to a report."""
import shutil
import sys
from pathlib import Path

from bench import compare, host, options, report, schema, stats
from bench.parts import ALL
from bench.processes import Failed, Stopped, raise_on_signals
from bench.session import Session

ROOT = Path(__file__).resolve().parents[2]


def main(arguments):
    try:
        chosen = options.parse(arguments)
        raise_on_signals()
        if chosen.compare:
            return compare.run([Path(folder) for folder in chosen.compare], chosen.out)
        if chosen.report:
            summary = schema.load(chosen.out)
            return int(publish(print, chosen.out, summary, {name: ALL[name]() for name in summary['parts']}))
        return bench(Session(chosen, ROOT))
    except Failed as error:
        print(f'bench.sh: {error}', file=sys.stderr)
        return error.status
    except Stopped as stopped:
        return stopped.status


def publish(say, out, summary, parts):
    """Plots, pages, and the text on the terminal. Whether a plot could not be drawn."""
    trouble = report.write(out, summary, parts)
    say('\n'.join([report.text_of(out, summary, parts), *(f'FAILED: {text}' for text in trouble),
                   f"Report: {out / 'report.html'}"]))
    return bool(trouble)


def bench(session):
    """Set up, measure, report."""
    if len(session.cpus) < 2:
        raise Failed(f'this process may use only one CPU ({session.cpus[0]}). Both ends of a round trip\n  spin, '
                     'so they need one each: on a shared one a round trip takes milliseconds. Widen the cpuset.')
    lock, serves = host.lock(ROOT), session.options.mode == 'serve'
    try:
        if serves:
            session.out = ROOT / host.FOLDER / 'serve'
        (session.out / 'runs').mkdir(parents=True, exist_ok=True)
        parts = [ALL[name] for name in session.options.parts]
        wanted = [program for part in parts for row in part.rows for program in row.programs()]
        session.use(host.build(session, {*wanted, 'hiccup', 'cache-line'}.union(*(part.programs for part in parts))))
        if serves:  # its client may be in this checkout
            lock.close()
        return measure(session)
    finally:
        session.processes.end()


def measure(session):
    """Everything after the set-up; the status of the run."""
    for name in session.options.parts:
        session.parts.append(ALL[name]())
        session.parts[-1].begin(session)
    if session.failures:
        raise Failed(session.failures[0])
    if session.options.mode == 'serve':
        return session.serve(session.parts[0])
    for old in ('runs/lines', 'hiccups.json'):
        (session.out / old).unlink(missing_ok=True)
    for old in ('plots', 'pooled'):
        shutil.rmtree(session.out / old, ignore_errors=True)
    session.environment = host.environment(session.root, session.cpus) | {'peer': session.options.peer or 'this host'}
    try:
        session.measure()
        session.progress.step('report', 'tables, plots, report')
        return finish(session)
    except Stopped as stopped:  # the first signal, also if it comes while the report is written
        session.processes.end()
        session.notes.append(f'Interrupted after {session.progress.done - 1} of {session.progress.steps} steps: this '
                             'is what was complete.')
        finish(session)
        return stopped.status


def finish(session):
    """Sum up and write the report, also of an interrupted run; the status."""
    hiccups = session.hiccups or {'cpus': []}
    parts = {part.name: part.summarize(session.runs[part.name]) for part in session.parts}
    for name, part in parts.items():
        schema.write(session.out / f'{name}.json', part | {'every_run': session.runs[name]})
    summary = schema.check({
        'schema': schema.VERSION, 'environment': session.environment,
        # the largest share of a CPU that other processes took while only the clock was read
        'platform_lost': max((cpu['gap_total_ns'] / hiccups['duration_ns'] for cpu in hiccups['cpus']), default=None),
        'cpus': stats.describe_cpus(session.lines), 'failures': session.failures, 'left_out': session.left_out,
        'notes': session.notes + stats.known([session.progress.why_late()]), 'hiccups': session.hiccups,
        'thresholds': [threshold for part in parts.values() for threshold in part['thresholds']], 'parts': parts})
    schema.write(session.out / 'summary.json', summary)
    trouble = publish(session.say, session.out, summary, {part.name: part for part in session.parts})
    missed = any(one['gates'] and one['ok'] is False for one in summary['thresholds'])
    return 1 if session.failures or trouble else 3 if session.options.strict and missed else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
