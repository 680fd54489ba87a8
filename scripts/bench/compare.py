# SPDX-License-Identifier: BSD-3-Clause
"""bench.sh --compare A B: changes of the ratios of two results, judged against their noise.

A ratio is a row of Pollux over its baseline in the same round: what changes with the host or the hour changes both.
Absolute figures and rows of other software are not judged.
"""
import math

from bench import stats
from bench.report import as_markdown, as_page, cache_line
from bench.schema import load, write

NOISE_LEAST = 0.05  # of figures that are measured, not counted
ROUNDS_LEAST = 3  # for a spread to say anything
CAUTION = ('Two runs of the same code differ by more than the rounds within each: repeat both before you believe a '
           'change.')


def rows_of(summary):
    """Rows by what identifies them, with the round trip of a cache line."""
    lines = {stats.ONE: 'line_ns', 'near': 'near_ns', 'far': 'far_ns'}
    return {(part, row['key'], row['size_bytes'], row.get('base'), row['state']):
            row | {'line_ns': summary['cpus'].get(lines[row['state']])} for part, result in summary['parts'].items()
            for row in result['rows'] if row.get('ratio') and row.get('ours', True)}


def noise_of(row):
    """Of a ratio: its spread over the rounds; None if unknown."""
    if 'noise' in row:
        return row['noise']
    least, greatest = row.get('ratio_least'), row.get('ratio_greatest')
    if least is None or greatest is None or row.get('rounds', 0) < ROUNDS_LEAST:
        return None
    return max((greatest - least) / row['ratio'], NOISE_LEAST / math.sqrt(2))


def verdict(a, b, change, noise):
    """More than the noise of both, and their rounds do not overlap."""
    if noise is None:
        return 'noise unknown'
    overlap = a['ratio_least'] <= b['ratio_greatest'] and b['ratio_least'] <= a['ratio_greatest']
    if abs(change) <= noise or overlap:
        return 'within the noise'
    return 'better' if (change < 0) == a['figure'].endswith(stats.LESS_IS_BETTER) else 'worse'


def compare(a, b):
    """Rows that both have, in the same state of the CPUs."""
    old, new, rows = rows_of(a), rows_of(b), []
    for key, row in new.items():
        was = next((was for other, was in old.items() if other[:4] == key[:4]
                    and not stats.differ(was['line_ns'], row['line_ns'])), None)
        if was is None:
            continue
        noises = stats.known((noise_of(was), noise_of(row)))
        noise, change = math.hypot(*noises) if len(noises) == 2 else None, row['ratio'] / was['ratio'] - 1
        rows.append({'part': key[0], 'key': key[1], 'size_bytes': key[2], 'base': key[3], 'state': key[4],
                     'figure': row['figure'], 'a': was['ratio'], 'b': row['ratio'], 'change': change, 'noise': noise,
                     'verdict': verdict(was, row, change, noise)})
    return {'a': a['environment'] | {'cpus': a['cpus']}, 'b': b['environment'] | {'cpus': b['cpus']},
            'one_commit': one_commit(a, b), 'rows': rows, 'others': max(len(old), len(new)) - len(rows)}


def one_commit(*summaries):
    """True, False, or None if that is unknown: a tree with changes, or without git."""
    commits = {summary['environment']['git_revision'] for summary in summaries}
    if len({commit.removesuffix('-dirty') for commit in commits}) == 2:
        return False
    return None if any(commit.endswith('-dirty') or commit == 'unknown' for commit in commits) else True


COMMITS = {True: 'Both results are of one commit.', False: 'The results are of two commits.',
           None: 'It is unknown whether both results are of the same code: a tree had changes, or no git.'}


def blocks(result):
    rows = result['rows']
    count = {name: sum(row['verdict'] == name for row in rows) for name in ('better', 'worse', 'noise unknown')}
    yield 'lead', (f"Of {len(rows)} ratios {count['better']} are better in B, {count['worse']} worse, "
                   f"{count['noise unknown']} have too few rounds to be judged, and the others differ by no more than "
                   'their noise.')
    for name in ('a', 'b'):
        host = result[name]
        yield 'p', (f"{name.upper()}: {host['date']}, host {host['host']}, {host.get('cpu_model')}, Pollux "
                    f"{host['version']} ({host['git_revision']}), cache line: {cache_line(host['cpus'])}")
    yield 'p', COMMITS[result['one_commit']]
    yield 'table', ['part, row', 'size', 'over', 'A', 'B', 'change', 'noise', ''], [
        [f"{row['part']}, {row['key']}", stats.joined(stats.size(row['size_bytes']), stats.in_state(row['state'])),
         row['base'] or '–', stats.digits(row['a']), stats.digits(row['b']), f"{100 * row['change']:+.1f} %",
         '–' if row['noise'] is None else f"{100 * row['noise']:.1f} %", row['verdict']] for row in rows], [
             row['verdict'] for row in rows]
    if result['others']:
        yield 'p', f"{result['others']} ratios are only in one of them, or in another state of the CPUs."
    yield 'p', CAUTION


def run(folders, out):
    """Print the comparison, and write compare.json and compare.html."""
    result = compare(*map(load, folders))
    out.mkdir(parents=True, exist_ok=True)
    write(out / 'compare.json', result)
    (out / 'compare.html').write_text(as_page('two runs compared', blocks(result)))
    print(as_markdown(blocks(result)), f"Page: {out / 'compare.html'}", sep='\n')
    return 0
