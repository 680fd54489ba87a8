# SPDX-License-Identifier: BSD-3-Clause
"""From the runs of a session to summary.json and PART.json."""
import json

from bench import environment, schema, stats


def summarize(session, described):
    """Of what is complete, if the run was interrupted."""
    shares = [cpu['gap_total_ns'] / session.hiccups['duration_ns'] for cpu in session.hiccups['cpus']] \
        if session.hiccups else []
    parts = {part.name: part.summarize(session.runs[part.name]) for part in session.parts}
    summary = {
        'schema': schema.VERSION, 'environment': environment.finish(described, session),
        # the largest share of a CPU that other processes took while only the clock was read
        'platform_lost': stats.round3(max(shares, default=None)), 'cpus': stats.describe_cpus(session.lines),
        'failures': session.failures, 'left_out': session.left_out, 'notes': session.notes, 'hiccups': session.hiccups,
        'thresholds': [threshold for part in parts.values() for threshold in part['thresholds']], 'parts': parts}
    for name, part in parts.items():
        write(session.out / f'{name}.json', part | {'every_run': session.runs[name]})
    write(session.out / 'summary.json', schema.check(summary))
    return summary


def write(path, value):
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + '\n')
