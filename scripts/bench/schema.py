# SPDX-License-Identifier: BSD-3-Clause
"""The one schema of results: summary.json, PART.json, and its rows and thresholds."""
import json

from bench.processes import UsageError

NUMBER = (int, float)
MAYBE = (*NUMBER, type(None))
VERSION = 'pollux-bench/2'
ROW = {'key': str, 'size_bytes': int, 'figure': str, 'state': str}
THRESHOLD = {'what': str, 'ratio': MAYBE, 'limit': NUMBER, 'ok': (bool, type(None)), 'gates': bool}
PART = {'schema': str, 'part': str, 'rows': [ROW], 'states': [{'state': str, 'runs': int}], 'changed': int,
        'thresholds': [THRESHOLD]}
SUMMARY = {'schema': str, 'environment': {'date': str, 'version': str, 'git_revision': str, 'host': str},
           'platform_lost': MAYBE, 'cpus': {}, 'failures': [str], 'left_out': [str], 'hiccups': (dict, type(None)),
           'thresholds': [THRESHOLD], 'parts': {}}


def validate(value, schema, path='result'):
    """A dict names the fields that an object must have; a list has the schema of each element; others are types."""
    if not isinstance(value, schema if isinstance(schema, (type, tuple)) else type(schema)):
        raise UsageError(f'{path}: {json.dumps(value)[:60]} has the wrong type')
    if isinstance(schema, dict):
        for name, of_field in schema.items():
            if name not in value:
                raise UsageError(f'{path}: {name} is missing')
            validate(value[name], of_field, f'{path}.{name}')
    elif isinstance(schema, list):
        for index, element in enumerate(value):
            validate(element, schema[0], f'{path}[{index}]')


def check(summary):
    """Refuse what is no result of this version."""
    validate(summary, SUMMARY)
    if summary['schema'] != VERSION:
        raise UsageError(f"result.schema: {summary['schema']}; this bench.sh reads {VERSION}")
    for name, part in summary['parts'].items():
        validate(part, PART, f'result.parts.{name}')
        for row in part['rows']:
            validate(row.get(row['figure']), MAYBE, f"result.parts.{name}.{row['key']}.{row['figure']}")
    return summary


def load(folder):
    try:
        return check(json.loads((folder / 'summary.json').read_text()))
    except (OSError, ValueError, UsageError) as error:
        raise UsageError(f'{folder}/summary.json: {error}') from None


def write(path, value):
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + '\n')
