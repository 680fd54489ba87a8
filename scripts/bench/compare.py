# SPDX-License-Identifier: BSD-3-Clause
"""bench.sh --compare A B: changes of the ratios of two results, judged against their noise.

A ratio is a row of Pollux over its baseline in the same round: what changes with the host or the hour changes both.
Absolute figures and rows of other software are not judged.
"""
import math

from bench import plots, report, stats, words
from bench.schema import load
from bench.summary import write

NOISE_LEAST = 0.05
ROUNDS_LEAST = 3  # for a spread to say anything
CAUTION = ('Two runs of the same code differ by more than the rounds within each: repeat both before you believe a '
           'change.')
LESS_IS_BETTER = ('_ns', '_percent', 'cycles_per_copy', 'cycles_per_elem')  # ends of names of figures


def rows_of(summary):
    """Rows by what identifies them, with the round trip of a cache line."""
    found = {}
    for part, result in summary['parts'].items():
        for row in result['rows']:
            if row.get('ratio') and row.get('ours', True):
                state = row.get('state', words.RESULT_STATE_ONE)
                line = summary['cpus'].get('line_ns' if state == words.RESULT_STATE_ONE else f'{state}_ns')
                found[part, row['key'], row['size_bytes'], row.get('base'), state] = row | {'line_ns': line}
    return found


def noise_of(row):
    """Of a ratio: its spread over the pairs; None if unknown."""
    least, greatest = row.get('ratio_least'), row.get('ratio_greatest')
    if least is None or greatest is None or row.get('rounds', 0) < ROUNDS_LEAST:
        return None
    return (greatest - least) / row['ratio']


def verdict(a, b, change, noise):
    """More than the noise of both, and their pairs do not overlap."""
    if noise is None:
        return 'noise unknown'
    overlap = a['ratio_least'] <= b['ratio_greatest'] and b['ratio_least'] <= a['ratio_greatest']
    if abs(change) <= noise or overlap:
        return 'within the noise'
    return 'better' if (change < 0) == a['figure'].endswith(LESS_IS_BETTER) else 'worse'


def compare(a, b):
    """Rows that both have, in the same state of the CPUs."""
    old, new, rows = rows_of(a), rows_of(b), []
    for key, row in new.items():
        was = next((was for other, was in old.items() if other[:4] == key[:4]
                    and not stats.differ(was['line_ns'], row['line_ns'])), None)
        if was is None:
            continue
        known = stats.known((noise_of(was), noise_of(row)))
        noise = max(math.hypot(*known), NOISE_LEAST) if len(known) == 2 else None
        change = row['ratio'] / was['ratio'] - 1
        rows.append({'part': key[0], 'key': key[1], 'size_bytes': key[2], 'base': key[3], 'state': key[4],
                     'figure': row['figure'], 'a': was['ratio'], 'b': row['ratio'], 'change': change, 'noise': noise,
                     'verdict': verdict(was, row, change, noise)})
    common = {(row['part'], row['key'], row['size_bytes'], row['base']) for row in rows}
    only = [[' '.join(map(str, key[:3])) for key in result if key[:4] not in common] for result in (old, new)]
    return {'a': a['environment'] | {'cpus': a['cpus']}, 'b': b['environment'] | {'cpus': b['cpus']},
            'one_commit': one_commit(a, b), 'rows': rows, 'only_a': only[0], 'only_b': only[1]}


def one_commit(a, b):
    """True, False, or None if that is unknown: a tree with changes, or without git."""
    first, second = (result['environment']['git_revision'] for result in (a, b))
    if first.removesuffix('-dirty') != second.removesuffix('-dirty'):
        return False
    return None if first.endswith('-dirty') or second.endswith('-dirty') or first == 'unknown' else True


COMMITS = {True: 'Both results are of one commit.', False: 'The results are of two commits.',
           None: 'It is unknown whether both results are of the same code: a tree had changes, or no git.'}


def facts(result):
    for name in ('a', 'b'):
        host, cpus = result[name], result[name]['cpus']
        line = f"near ({cpus['near_ns']} ns) and far ({cpus['far_ns']} ns)" if cpus.get('near_ns') else \
            f"{cpus.get('line_ns', 'n/a')} ns"
        yield (f"{name.upper()}: {host['date']}, host {host['host']}, {host.get('cpu_model')}, Pollux "
               f"{host['version']} ({host['git_revision']}), cache line: {line}")
    yield COMMITS[result['one_commit']]


def counted(rows):
    count = {name: sum(row['verdict'] == name for row in rows) for name in ('better', 'worse', 'noise unknown')}
    unknown = f", {count['noise unknown']} have too few rounds to be judged" if count['noise unknown'] else ''
    return (f"Of {len(rows)} ratios {count['better']} are better in B, {count['worse']} worse{unknown}, and the others "
            'differ by no more than their noise.')


def cells(row):
    def percent(value):
        return '–' if value is None else f'{words.number(words.rounded(value * 100, 1))} %'
    return [words.in_state(words.size(row['size_bytes']), row['state']), row['base'] or '–', words.digits(row['a']),
            words.digits(row['b']), percent(row['change']), percent(row['noise']), row['verdict']]


HEADS = ['part, row', 'size', 'over', 'A', 'B', 'change', 'noise', '']


def run(folders, out):
    """Print the comparison, and write compare.json and compare.html."""
    result = compare(*map(load, folders))
    rows = result['rows']
    out.mkdir(parents=True, exist_ok=True)
    write(out / 'compare.json', result)
    trouble = plots.changes(out, rows) if rows else []
    lines = [*report.paragraphs([counted(rows)], 'lead'), *report.paragraphs(facts(result), 'meta'),
             *report.html_table(HEADS, [(row['verdict'], report.escape(f"{row['part']}, {row['key']}"), cells(row))
                                        for row in rows]), *report.paragraphs([CAUTION])]
    if rows and not trouble:
        lines.append(report.svg(out / 'plots/compare.svg'))
    (out / 'compare.html').write_text(report.page('two runs compared', lines))
    print(*facts(result), '', report.align([HEADS, *([f"{row['part']}, {row['key']}", *cells(row)] for row in rows)]),
          *(f'only in {name}, or in another state of the CPUs: {text}' for name, only in
            (('A', result['only_a']), ('B', result['only_b'])) for text in only),
          *(f'FAILED: {text}' for text in trouble), '', counted(rows), CAUTION,
          f"Page: {out / 'compare.html'}", sep='\n')
    return 0
