# SPDX-License-Identifier: BSD-3-Clause
"""From a result in a folder to its plots, report.html, report.md, and the text on the terminal."""
import html
import re
import string
from pathlib import Path

from bench import plots, words
from bench.headline import MI_B, compared, headline, notes, rates, row_of

DOC = Path(__file__).parents[2] / 'doc/apps/bench.md'
CHART = ('shm-poll', ('ucx-shm', 'raw-fi-shm'), 'raw-tcp', 'tcp-poll', ('ucx-tcp', 'raw-fi-tcp'), 'raw-zmq')


def label_of(key):
    """A row's label, from the part that has one."""
    from bench.parts import ALL  # parts import this package
    return next((row.label for part in ALL.values() for row in part.rows if row.key == key and row.label), key)


def draw(out, summary, parts):
    """Sentences about plots that could not be drawn."""
    trouble = []
    for name, result in summary['parts'].items():
        rows = parts[name].plot_rows(result['rows'])
        for plot in parts[name].plots:
            trouble += plots.plot(out, plot, rows, label_of)
        if parts[name].pooled:
            trouble += plots.pooled(out, name, rows, label_of, parts[name].lines)
    return trouble


def tables_of(part, result):
    """(title, heading, heads, [(row, cells)]) of each group of rows with one heading."""
    for table in part.tables:
        groups = {}
        for row in filter(table.when, result['rows']):
            groups.setdefault(part.heading(row), []).append(row)
        for heading, rows in groups.items():
            yield (table.title, heading, [head for head, _ in table.columns],
                   [(row, [text(row) for _, text in table.columns]) for row in rows])


# The terminal ----------------------------------------------------------------------------------

def align(lines):
    widths = [max(map(len, column)) for column in zip(*lines)]
    return '\n'.join('  '.join(f'{cell:<{width}}' if not index else f'{cell:>{width}}'
                               for index, (cell, width) in enumerate(zip(line, widths))).rstrip() for line in lines)


def text_of(summary, parts, hiccups=''):
    """Tables, thresholds, and the end: the result, what it was compared with, and caveats."""
    said = []
    for name, result in summary['parts'].items():
        said.append(f'\n{parts[name].title}. {parts[name].explained}')
        for title, heading, heads, rows in tables_of(parts[name], result):
            said += ['', ', '.join(filter(None, (title, heading))),
                     align([['', *heads], *([row['key'], *cells] for row, cells in rows)])]
        said += parts[name].notes(result)
    said += ['', hiccups.rstrip(), '']
    for threshold in summary['thresholds']:
        note = f"; {threshold['note']}" if threshold.get('note') else ''
        said.append(f"{words.verdict(threshold):<8} {threshold['what']}: {words.number(threshold['ratio']) or '-'} "
                    f"({words.limit(threshold)}{'' if threshold['gates'] else '; an aim'}{note})")
    said += ['', headline(summary), compared(summary), *(rates(summary) or ['No rates were measured.'])]
    failures, caveats = summary['failures'], [note for note in notes(summary) if not note.startswith('Left out')]
    said += ([f'FAILED: {text}' for text in failures] or [f'Note: {note}' for note in caveats]
             or ['Nothing unusual was seen.'])
    return '\n'.join(said)


# Markdown --------------------------------------------------------------------------------------

def states_of(summary):
    """The states of the rows; of two, both."""
    states = sorted({row.get('state', words.RESULT_STATE_ONE) for part in summary['parts'].values()
                     for row in part['rows']})
    return ['near', 'far'] if 'near' in states else states[:1]


def markdown_table(lines):
    return [f"| {' | '.join(map(str, lines[0]))} |", '|' + '---|' * len(lines[0]),
            *(f"| {' | '.join(map(str, line))} |" for line in lines[1:])]


def by_state(summary, rows, heads, cells):
    """A line for each row, with a group of columns for each state."""
    states = states_of(summary)
    found = {(row['key'], row.get('state'), row['size_bytes']): row for row in reversed(rows)}
    keys = list(dict.fromkeys(row['key'] for row in rows))
    title = [heads[0]]
    for state in states:
        where = '' if state == words.RESULT_STATE_ONE else f", CPUs {state} ({summary['cpus'].get(state + '_ns')} ns)"
        title += [heads[1] + where, *heads[2:]]
    return [title] + [[label_of(key), *(cell for state in states for cell in cells(
        lambda size, key=key, state=state: found.get((key, state, size), {})))] for key in keys]


def markdown(summary):
    """What was measured where, with both states of the CPUs next to each other."""
    host, cpus, parts = summary['environment'], summary['cpus'], summary['parts']
    machine = '' if host['hypervisor'] == 'none' else f"; a virtual machine ({host['hypervisor']})"
    line = (f"{cpus['near_ns']} ns (near) and {cpus['far_ns']} ns (far)" if cpus.get('near_ns')
            else f"{cpus.get('line_ns') or 'n/a'} ns")
    facts = [['date', host['date']], ['Pollux', f"{host['version']}, {host['git_revision']}"],
             ['host', f"{host['cpu_model']}, CPUs {host['server_cpu']} and {host['client_cpu']} of {host['cpu_count']}"
                      + machine],
             ['a cache line, there and back', line],
             ['system', f"{host['system']}, {host['kernel']}, {host['compiler']}"],
             ['libraries', f"libfabric {host['libfabric_version']}, UCX {host['ucx_version']}, "
                           f"ZeroMQ {host['zmq_version']}"],
             ['kernel options', host['kernel_options']],
             ['runs', f"{host['rounds']} rounds of {words.number(host['duration_s'])} s"],
             *(['note', note] for note in notes(summary)), *(['failed', text] for text in summary['failures'])]
    said = ['# A result of `scripts/bench.sh`', '', *markdown_table([['', '']] + [fact for fact in facts if fact[1]])]

    trips = [row for row in parts.get('rtt', {}).get('rows', []) if row['size_bytes'] == 64]
    if trips:
        said += ['', '## Round trips of 64 B, in µs', '', *markdown_table(by_state(
            summary, trips, ['full round trip', 'p50', 'p90', 'p99'], lambda row: [
                words.us(row(64).get(name)) if row(64).get(name) is not None else '' for name in
                ('p50_ns', 'p90_ns', 'p99_ns')]))]
    flows = parts.get('stream', {}).get('rows', []) + [
        row | {'messages_per_s': row['mmsg_per_s'] * 1e6} for row in parts.get('netio', {}).get('rows', [])
        if row.get('mmsg_per_s')]

    def rates_of(row):
        small, large = row(64).get('messages_per_s'), row(MI_B).get('messages_per_s')
        return [words.number(words.rounded(small / 1e6, 2)) if small else '',
                words.number(words.rounded(large * MI_B / 1e9, 1)) if large else '']
    if flows:
        said += ['', '## One way', '', *markdown_table(by_state(
            summary, flows, ['messages that arrived', '64 B, M/s', '1 MiB, GB/s'], rates_of))]
    if summary['thresholds']:
        said += ['', '## Thresholds', '', *markdown_table([['what', 'measured', 'threshold', '']] + [
            [one['what'], words.number(one['ratio']) or 'n/a', words.limit(one), words.verdict(one)]
            for one in summary['thresholds']])]
    return '\n'.join(said) + '\n'


# HTML ------------------------------------------------------------------------------------------

def escape(value):
    return html.escape(str(value), quote=False)


def paragraphs(texts, kind=''):
    return [f'<p class="{kind}">{escape(text)}</p>' for text in texts]


def html_table(heads, rows):
    """rows: (class, first cell as HTML, other cells)."""
    return ['<div class="wide"><table>', '<tr>' + ''.join(f'<th>{escape(head)}</th>' for head in heads) + '</tr>',
            *(f'<tr class="{kind}"><td>{first}</td>' + ''.join(f'<td>{escape(cell)}</td>' for cell in cells) + '</tr>'
              for kind, first, cells in rows), '</table></div>']


def svg(path):
    """A plot inside the page."""
    text = re.sub(r'^(<\?xml.*|<!DOCTYPE.*(\n.*\.dtd">)?)\n', '', path.read_text(), flags=re.MULTILINE)
    return f'<div class="plot">\n{text}</div>'


def chart(summary):
    """The most important round trips as bars."""
    keys = [key if isinstance(key, str) else next((some for some in key if row_of(summary, 'rtt', some)), key[0])
            for key in CHART]
    rows = [row for key in keys if (row := row_of(summary, 'rtt', key)).get('p50_ns')]
    if not rows:
        return []
    most = max(row['p50_ns'] for row in rows)
    bars = [f'<div class="bar{" own" if row["key"].endswith("-poll") else ""}">'
            f'<span>{escape(label_of(row["key"]))}</span>'
            f'<span><i style="width: {100 * row["p50_ns"] / most:.1f}%"></i></span>'
            f'<b>{words.us(row["p50_ns"])}</b></div>' for row in rows]
    return ['<div class="chart" role="img" aria-label="Round trips of 64 B, median">',
            '<p class="caption">Round trip of 64 B between two processes of this host, median, µs</p>',
            *bars, '</div>']


def meanings_of(name):
    """What rows mean, from the tables of a part in doc/apps/bench.md."""
    section = (DOC.read_text() + '\n## ').partition(f'\n## Part {name}\n')[2].partition('\n## ')[0]
    found = re.findall(r'^\| (`.*?) \| (.*) \|$', re.sub(r'\[(.*?)\]\(.*?\)', r'\1', section), re.MULTILINE)
    return {row: f": {escape(text.replace('`', ''))}" for rows, text in found for row in re.findall('`(.*?)`', rows)}


def html_parts(out, summary, parts):
    for name, result in summary['parts'].items():
        part, meanings = parts[name], meanings_of(name)
        yield f'<h2>{escape(part.title)}</h2>'
        yield from paragraphs([part.explained])
        for title, heading, heads, rows in tables_of(part, result):
            yield f"<h3>{escape(', '.join(filter(None, (title, heading))))}</h3>"
            yield from html_table(['', *heads], [
                ('own' if row.get('ours', True) else '', f"{escape(part.label(row))}<small>{escape(row['key'])}"
                 f"{meanings.get(row['key'].split('@')[0], '')}</small>", cells) for row, cells in rows])
        yield from paragraphs(part.notes(result))
        pictures = [plot.name for plot in part.plots] + sorted(
            path.stem for kind in ('histogram', 'percentiles')
            for path in (out / 'plots').glob(f'{kind}-{name}-*.svg'))
        yield from (svg(path) for picture in pictures if (path := out / f'plots/{picture}.svg').is_file())


def html_end(summary):
    if summary['thresholds']:
        yield ('<h2>Thresholds</h2><p>Ratios that the project requires of its code: doc/apps/thresholds.md. They gate '
               'a run with --strict alone.</p>')
        yield from html_table(['what', 'measured', 'threshold', ''], [
            (words.verdict(one), escape(one['what'] + (f" ({one['note']})" if one.get('note') else '')),
             [words.number(one['ratio']) or '–', words.limit(one),
              words.verdict(one) + ('' if one['gates'] else ' (an aim)')]) for one in summary['thresholds']])
    if hiccups := summary['hiccups']:
        yield (f"<h2>What the platform alone takes away</h2><p>Gaps above {hiccups['gap_above_ns'] / 1000:g} µs "
               'between two readings of the clock, while nothing but a spin ran on the CPU, for '
               f"{hiccups['duration_ns'] / 1e9:g} s before the runs. No percentile can be better than these.</p>")
        yield from html_table(['CPU', 'gaps', 'lost, ms', 'steal, ms', 'longest, µs'], [
            ('', cpu['cpu'], [cpu['gap_count'], words.rounded(cpu['gap_total_ns'] / 1e6, 2), cpu['steal_ms'],
                              ' '.join(str(words.rounded(gap / 1000)) for gap in cpu['longest_gaps_ns'])])
            for cpu in hiccups['cpus']])
    yield '<h2>Environment</h2>'
    yield from html_table(['', ''], [
        ('', escape(name.replace('_', ' ')), [', '.join(value) if isinstance(value, list) else value])
        for name, value in summary['environment'].items()])


def page(title, lines):
    template = string.Template((Path(__file__).parent / 'page.html').read_text())
    return template.substitute(title=title, body='\n'.join(lines))


def write(out, summary, parts):
    """The page, everything in it, and the Markdown."""
    host = summary['environment']
    machine = '' if host['hypervisor'] == 'none' else f" (virtual machine, {host['hypervisor']})"
    top = [*paragraphs([headline(summary)], 'lead'), *chart(summary), *paragraphs(
        [f"{host['date']} · host {host['host']} · {host['cpu_model']}, CPUs {host['server_cpu']} and "
         f"{host['client_cpu']} of {host['cpu_count']}{machine} · Pollux {host['version']} ({host['git_revision']})"],
        'meta'),
        *paragraphs(rates(summary)), *paragraphs(notes(summary), 'notes'),
        *paragraphs([f'Failed: {text}' for text in summary['failures']], 'bad')]
    (out / 'report.html').write_text(page('measured', [*top, *html_parts(out, summary, parts), *html_end(summary)]))
    (out / 'report.md').write_text(markdown(summary))
