# SPDX-License-Identifier: BSD-3-Clause
"""From a result in a folder to its plots, report.html, report.md, and the text on the terminal.

A report is a list of blocks: ('h1' or 'h2', text), ('p' or 'lead', text), ('table', heads, rows, kinds of the rows) and
('plot', path); two functions write such a list.
"""
import html
import re
import string
from pathlib import Path

from bench import limits, plots, stats


# Blocks as Markdown and as a page --------------------------------------------------------------

def as_markdown(blocks):
    said = []
    for kind, *block in blocks:
        if kind == 'table':
            heads, *lines = [list(map(str, line)) for line in (block[0], *block[1])]
            widths = [max(3, *map(len, column)) for column in zip(heads, *lines)]
            said.append('\n'.join('| ' + ' | '.join(cell.ljust(width) for cell, width in zip(line, widths)) + ' |'
                                  for line in (heads, ['-' * width for width in widths], *lines)))
        elif kind != 'plot':
            said.append({'h1': '# ', 'h2': '## ', 'h3': '### '}.get(kind, '') + block[0])
    return '\n\n'.join(said) + '\n'


def as_page(title, blocks):
    said = []
    for kind, *block in blocks:
        if kind == 'table':
            rows = [('th', block[0], ''), *(('td', *row) for row in zip(block[1], block[2] or [''] * len(block[1])))]
            said += ['<div class="wide"><table>', *(f'<tr class="{mark}">' + ''.join(
                f'<{tag}>{html.escape(str(cell), quote=False)}</{tag}>' for cell in cells) + '</tr>'
                for tag, cells, mark in rows), '</table></div>']
        elif kind != 'plot':
            tag = 'p' if kind == 'lead' else kind
            said.append(f'<{tag} class="{kind}">{html.escape(block[0], quote=False)}</{tag}>')
        elif block[0].is_file():  # inside the page
            picture = re.sub(r'^(<\?xml.*|<!DOCTYPE.*(\n.*\.dtd">)?)\n', '', block[0].read_text(), flags=re.MULTILINE)
            said.append(f'<div class="plot">\n{picture}</div>')
    template = string.Template((Path(__file__).parent / 'page.html').read_text())
    return template.substitute(title=title, body='\n'.join(said))


# In a few words --------------------------------------------------------------------------------

def label_of(key):
    """A row's label, from the part that has one."""
    from bench.parts import ALL  # parts import this package
    return next((row.label for part in ALL.values() for row in part.rows if row.key == key and row.label), key)


def headline(summary):
    """The median round trips, in the state with the most runs."""
    rows = [row for part in ('rtt', 'live') for row in summary['parts'].get(part, {}).get('rows', [])]
    texts = [text.format(stats.us(next(row['p50_ns'] for row in rows if row['key'] == key))) for key, text in (
        ('shm-poll', '{} µs between two processes over shared memory'), ('tcp-poll', '{} µs over TCP'),
        ('raw-tcp', '{} over plain sockets'), ('raw-zmq', '{} with ZeroMQ'),
        ('self-test', '{} to the process that runs, and back')) if any(row['key'] == key for row in rows)]
    own = next((row for row in rows if row['key'] == 'shm-poll'), {})
    if line := line_of(summary, own):
        texts[0] += f' ({own["p50_ns"] / line:.1f} × a bare cache line there and back, {line:.0f} ns)'
    return f"On this host a round trip of 64 B takes {', '.join(texts)}." if texts else \
        f"Measured on this host: {', '.join(summary['parts'])}."


def notes(summary):
    """Caveats of the figures."""
    cpus, lost, found = summary['cpus'], summary.get('platform_lost') or 0, []
    if lost > 0.01:
        found.append(f'This host is busy: other work took {lost * 100:.1f} % of a CPU before the runs began. Medians hold; '
                     'long tails and rates show it.')
    if cpus.get('near_ns'):
        found.append(f"The two CPUs were near each other at times (a cache line there and back takes "
                     f"{cpus['near_ns']} ns) and far apart at times ({cpus['far_ns']} ns), as the hypervisor moved "
                     'them. Rows are compared within one state.')
    if changed := sum(part.get('changed') or 0 for part in summary['parts'].values()):
        found.append(f'{changed} runs during which that state changed are left out.')
    return found + summary.get('notes', [])


def verdict(threshold):
    missed = 'missed' if threshold['gates'] else 'below' if threshold.get('least') else 'above'
    return {None: 'n/a', True: 'reached', False: missed}[threshold['ok']]


def cache_line(cpus):
    return f"{cpus['near_ns']} ns (near) and {cpus['far_ns']} ns (far)" if cpus.get('near_ns') else \
        f"{cpus.get('line_ns') or 'n/a'} ns"


def line_of(summary, row):
    """The round trip of a cache line between the two CPUs of a row of round trips; None if unknown."""
    cpus = summary['cpus']
    if row.get('cache_lines'):
        return row['p50_ns'] / row['cache_lines']
    return row.get('p50_ns') and cpus.get(f"{row['state']}_ns", cpus.get('line_ns'))


# Tables ----------------------------------------------------------------------------------------

def facts(summary):
    """What was measured where."""
    host = summary['environment']
    machine = '' if host['hypervisor'] == 'none' else f"; a virtual machine ({host['hypervisor']})"
    runs = [f"{name}: {rounds} rounds of {stats.digits(part.get('duration_s') or host.get('duration_s'))} s"
            for name, part in summary['parts'].items() if (rounds := part.get('rounds') or host.get('rounds'))]
    rows = [['date', host['date']], ['Pollux', f"{host['version']}, {host['git_revision']}"],
            ['host', f"{host['host']}, {host['cpu_model']}, CPUs {host['server_cpu']} and {host['client_cpu']} of "
             f"{host['cpu_count']}{machine}"], ['a cache line, there and back', cache_line(summary['cpus'])],
            ['measured against', host.get('peer')], ['governor', host.get('governor')],
            ['system', f"{host['system']}, {host['kernel']}, {host['compiler']}"],
            ['libraries', f"libfabric {host['libfabric_version']}, UCX {host['ucx_version']}, "
             f"ZeroMQ {host['zmq_version']}" + ''.join(f', {name} {host[field]}' for name, field in (
                 ('Open MPI', 'mpi_version'), ('iceoryx', 'iceoryx_version')) if host.get(field, 'unknown') != 'unknown')], ['kernel options', host['kernel_options']], ['runs', '; '.join(runs)],
            *([name, text] for name, texts in (('note', notes(summary)), ('left out', summary['left_out']),
                                               ('failed', summary['failures'])) for text in texts)]
    rows = [row for row in rows if row[1]]
    return [('table', ['', ''], rows, [name for name, _ in rows])]


def by_state(summary, rows, heads, cells):
    """A line for each row, with a group of columns for each state of the CPUs."""
    states = sorted({row['state'] for row in rows}, reverse=True)  # near, far
    found = {(row['key'], row['state'], row['size_bytes']): row for row in reversed(rows)}
    title = heads[:1]
    for state in states:
        line = summary['cpus'].get('line_ns' if state == stats.ONE else f'{state}_ns')
        where = '' if state == stats.ONE else f', CPUs {state}'
        where += f', cache line {line} ns' if line and state == stats.ONE else f' ({line} ns)' if line else ''
        title += [heads[1] + where, *heads[2:]]
    ours = {row['key']: 'own' if row.get('ours') else '' for row in rows}
    return 'table', title, [[label_of(key), *(cell for state in states for cell in cells(
        lambda size, key=key, state=state: found.get((key, state, size), {})))] for key in ours], list(ours.values())


def overview(summary):
    """The most important figures, with the states of the CPUs next to each other."""
    parts, blocks = summary['parts'], []
    trips = [row for part in ('rtt', 'peers') for row in parts.get(part, {}).get('rows', [])
             if row['size_bytes'] == 64 and row.get('p50_ns')]
    flows = [row | {'messages_per_s': row.get('messages_per_s') or row['mmsg_per_s'] * 1e6}
             for part in ('stream', 'netio', 'peers') for row in parts.get(part, {}).get('rows', [])
             if row.get('messages_per_s') or row.get('mmsg_per_s')]

    def rates(row):
        small, large = row(64).get('messages_per_s'), row(1 << 20).get('messages_per_s')
        return [f'{small / 1e6:.2f}' if small else '', f'{large * (1 << 20) / 1e9:.1f}' if large else '']

    def percentiles(row):
        found = [stats.us(row(64)[name]) if row(64).get(name) else '' for name in ('p50_ns', 'p90_ns', 'p99_ns')]
        line = line_of(summary, row(64))
        return [found[0], f"{row(64)['p50_ns'] / line:.1f}" if line else '', *found[1:]]
    for rows, title, heads, cells in (
            (trips, 'Round trips of 64 B, in µs', ['full round trip', 'p50', 'cache lines', 'p90', 'p99'], percentiles),
            (flows, 'One way', ['messages that arrived', '64 B, M/s', '1 MiB, GB/s'], rates)):
        blocks += [('h2', title), by_state(summary, rows, heads, cells)] if rows else []
    rows = [[one['what'], stats.digits(one['ratio']),
             ' '.join(filter(None, ('at least' if one.get('least') else 'at most', stats.digits(one['limit']),
                                    one.get('unit'), '' if one['gates'] else '(an aim)'))), verdict(one)]
            for one in summary['thresholds']]
    return blocks + ([('h2', 'Thresholds'), ('table', ['what', 'measured', 'threshold', ''], rows, [
        row[-1] for row in rows])] if rows else [])


def details(out, summary, parts):
    """All tables and plots of each part."""
    for name, result in summary['parts'].items():
        part, groups = parts[name], {}
        about = limits.section('bench', f'Part {name}').strip().partition('\n\n')[0].replace('\n', ' ')
        yield from (('h2', name), ('p', re.sub(r'\[(.*?)\]\(.*?\)|[`*]', r'\1', about)))
        for row in result['rows']:
            groups.setdefault((part.heading(row), row['figure']), []).append(row)
        for (heading, figure), rows in groups.items():
            yield from (block for block in (('h3', heading), table_of(part, figure, rows)) if block[1])
        yield from (('plot', path) for path in sorted((out / 'plots').glob(f'{name}-*.svg')))


def table_of(part, figure, rows):
    """Columns that some row has; the main figure first, with its least and greatest value."""
    names = [name for name in dict.fromkeys((figure, 'cache_lines', *part.columns)) if any(row.get(name) is not None for row in rows)]
    columns = [['', *(row['key'] for row in rows)]]
    for name in names:
        columns.append([stats.label(name), *(stats.text(row, name) for row in rows)])
        if name == figure and any(row.get('rounds', 0) > 1 and f'{name}_least' in row for row in rows):
            columns.append(['over rounds', *(' – '.join(stats.text({name: row.get(f'{name}_{end}')}, name)
                                                        for end in ('least', 'greatest')) for row in rows)])
    if any(row.get('base') for row in rows):
        columns.append(['ratio', *(f"{stats.digits(row['ratio'])} × {row['base']}" if row.get('base') else '–'
                                   for row in rows)])
    heads, *lines = zip(*columns)
    return 'table', heads, lines, ['own' if row.get('ours', True) else '' for row in rows]


def platform(summary):
    hiccups = summary['hiccups']
    return hiccups and [('h2', 'What the platform alone takes away'), (
        'p', f"Gaps above {hiccups['gap_above_ns'] / 1000:g} µs between two readings of the clock, while nothing but a spin "
        f"ran on the CPU, for {hiccups['duration_ns'] / 1e9:g} s. No percentile can be better than these."), (
        'table', ['CPU', 'gaps', 'lost, ms', 'steal, ms', 'longest, µs'], [
            [cpu['cpu'], cpu['gap_count'], stats.digits(cpu['gap_total_ns'] / 1e6), cpu['steal_ms'],
             ' '.join(f'{gap / 1000:.0f}' for gap in cpu['longest_gaps_ns'])] for cpu in hiccups['cpus']], [])] or []


# Reports ---------------------------------------------------------------------------------------

def text_of(out, summary, parts):
    caveats = [f'Note: {text}' for text in notes(summary)] or ['Nothing unusual was seen.']
    ending = [f'FAILED: {text}' for text in summary['failures']] or caveats
    return as_markdown([*details(out, summary, parts), *platform(summary), *overview(summary), ('h2', headline(summary)),
                    *(('p', text) for text in ending)])


def markdown(summary):
    return as_markdown([('h1', 'A result of `scripts/bench.sh`'), *facts(summary), *overview(summary)])


def write(out, summary, parts):
    """Draw the plots, and write the page, with everything in it, and the Markdown. What could not be drawn."""
    trouble = []
    for name, result in summary['parts'].items():
        for plot in parts[name].plots:
            trouble += plots.plot(out, f'{name}-{plot.name}', plot, result['rows'], label_of)
        if parts[name].pooled:
            trouble += plots.pooled(out, name, result['rows'], label_of)
    (out / 'report.md').write_text(markdown(summary))
    (out / 'report.html').write_text(as_page('measured', [
        ('lead', headline(summary)), *facts(summary), *overview(summary), *details(out, summary, parts),
        *platform(summary)]))
    return trouble
