# SPDX-License-Identifier: BSD-3-Clause
"""From a result in a folder to its plots, report.html, report.md, and the text on the terminal."""
from bench import figures, plots
from bench.document import Heading, Paragraph, Picture, Table, as_markdown, as_page, as_text
from bench.stats import ONE, known

MI_B = 1 << 20


def label_of(key):
    """A row's label, from the part that has one."""
    from bench.parts import ALL  # parts import this package
    return next((row.label for part in ALL.values() for row in part.rows if row.key == key and row.label), key)


def draw(out, summary, parts):
    """Sentences about plots that could not be drawn."""
    trouble = []
    for name, result in summary['parts'].items():
        for plot in parts[name].plots:
            trouble += plots.plot(out, plot, result['rows'], label_of)
        if parts[name].pooled:
            trouble += plots.pooled(out, name, result['rows'], label_of, parts[name].lines)
    return trouble


# In a few words --------------------------------------------------------------------------------

def took(summary, key):
    """The median round trip of a row, in the state with the most runs."""
    rows = [row for part in ('rtt', 'live') for row in summary['parts'].get(part, {}).get('rows', [])]
    return next((figures.us(row.get('p50_ns')) for row in rows if row['key'] == key), None)


def headline(summary):
    texts = [text.format(value) for key, text in (
        ('shm-poll', '{} µs between two processes over shared memory'), ('tcp-poll', '{} µs over TCP'),
        ('raw-tcp', '{} over plain sockets'), ('raw-zmq', '{} with ZeroMQ'),
        ('self-test', '{} to the process that runs, and back')) if (value := took(summary, key))]
    if texts:
        return f"On this host a round trip of 64 B takes {', '.join(texts)}."
    return f"Measured on this host: {', '.join(summary['parts'])}."


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
        found.append(f"{changed} run{'s' if changed > 1 else ''} during which that state changed "
                     f"{'are' if changed > 1 else 'is'} left out.")
    return found + summary.get('notes', [])


def verdict(threshold):
    if threshold['ok'] is None:
        return 'n/a'
    if threshold['ok']:
        return 'reached'
    return 'missed' if threshold['gates'] else 'below' if threshold.get('least') else 'above'


# Tables ----------------------------------------------------------------------------------------

def cache_line(cpus):
    if cpus.get('near_ns'):
        return f"{cpus['near_ns']} ns (near) and {cpus['far_ns']} ns (far)"
    return f"{cpus.get('line_ns') or 'n/a'} ns"


def facts(summary):
    """What was measured where."""
    host = summary['environment']
    machine = '' if host['hypervisor'] == 'none' else f"; a virtual machine ({host['hypervisor']})"
    runs = [f"{name}: {rounds} rounds of {figures.digits(part.get('duration_s') or host.get('duration_s'))} s"
            for name, part in summary['parts'].items() if (rounds := part.get('rounds') or host.get('rounds'))]
    rows = [['date', host['date']], ['Pollux', f"{host['version']}, {host['git_revision']}"],
            ['host', f"{host['host']}, {host['cpu_model']}, CPUs {host['server_cpu']} and {host['client_cpu']} of "
             f"{host['cpu_count']}{machine}"], ['a cache line, there and back', cache_line(summary['cpus'])],
            ['system', f"{host['system']}, {host['kernel']}, {host['compiler']}"],
            ['libraries', f"libfabric {host['libfabric_version']}, UCX {host['ucx_version']}, "
             f"ZeroMQ {host['zmq_version']}"], ['kernel options', host['kernel_options']], ['runs', '; '.join(runs)],
            *(['note', note] for note in notes(summary)), *(['left out', text] for text in summary['left_out']),
            *(['failed', text] for text in summary['failures'])]
    rows = [row for row in rows if row[1]]
    return [Table(['', ''], rows, ['bad' if name == 'failed' else '' for name, _ in rows])]


def by_state(summary, rows, heads, cells):
    """A line for each row, with a group of columns for each state of the CPUs."""
    states = sorted({row['state'] for row in rows}, reverse=True)  # near, far
    found = {(row['key'], row['state'], row['size_bytes']): row for row in reversed(rows)}
    title = heads[:1]
    for state in states:
        where = '' if state == ONE else f", CPUs {state} ({summary['cpus'].get(state + '_ns')} ns)"
        title += [heads[1] + where, *heads[2:]]
    keys = list(dict.fromkeys(row['key'] for row in rows))
    return Table(title, [[label_of(key), *(cell for state in states for cell in cells(
        lambda size, key=key, state=state: found.get((key, state, size), {})))] for key in keys],
        ['own' if any(row.get('ours') for row in rows if row['key'] == key) else '' for key in keys])


def overview(summary):
    """The most important figures, with the states of the CPUs next to each other."""
    parts, blocks = summary['parts'], []
    trips = [row for row in parts.get('rtt', {}).get('rows', []) if row['size_bytes'] == 64]
    if trips:
        blocks += [Heading('Round trips of 64 B, in µs'), by_state(
            summary, trips, ['full round trip', 'p50', 'p90', 'p99'], lambda row: [
                figures.us(row(64)[name]) if row(64).get(name) is not None else '' for name in
                ('p50_ns', 'p90_ns', 'p99_ns')])]
    flows = [row | {'messages_per_s': row.get('messages_per_s') or row['mmsg_per_s'] * 1e6}
             for part in ('stream', 'netio') for row in parts.get(part, {}).get('rows', [])
             if row.get('messages_per_s') or row.get('mmsg_per_s')]

    def rates(row):
        small, large = row(64).get('messages_per_s'), row(MI_B).get('messages_per_s')
        return [f'{small / 1e6:.2f}' if small else '', f'{large * MI_B / 1e9:.1f}' if large else '']
    if flows:
        blocks += [Heading('One way'), by_state(summary, flows, ['messages that arrived', '64 B, M/s', '1 MiB, GB/s'],
                                                rates)]
    return blocks


def thresholds(summary):
    rows = [[one['what'], figures.digits(one['ratio']),
             ' '.join(filter(None, ('at least' if one.get('least') else 'at most', figures.digits(one['limit']),
                                    one.get('unit'), '' if one['gates'] else '(an aim)'))), verdict(one)]
            for one in summary['thresholds']]
    return [Heading('Thresholds'), Table(['what', 'measured', 'threshold', ''], rows, [row[-1] for row in rows])] if rows \
        else []


def details(out, summary, parts):
    """All tables and plots of each part."""
    for name, result in summary['parts'].items():
        part, groups = parts[name], {}
        yield Heading(f'{part.title}. {part.explained}' if not out else part.title)
        if out:
            yield Paragraph(part.explained)
        for row in result['rows']:
            groups.setdefault((part.heading(row), row['figure']), []).append(row)
        for (heading, figure), rows in groups.items():
            yield Heading(heading, 3)
            yield table_of(part, figure, rows)
        yield from map(Paragraph, part.notes(result))
        if out:
            names = [plot.name for plot in part.plots] + sorted(
                path.stem for path in (out / 'plots').glob(f'*s-{name}-*.svg'))
            yield from (Picture(out / f'plots/{picture}.svg') for picture in names)


def table_of(part, figure, rows):
    """Columns that some row has; the main figure first, with its least and greatest value."""
    names = [name for name in dict.fromkeys((figure, *part.columns)) if any(known(row.get(name) for row in rows))]
    spread = figure + '_least'
    heads, lines = [''], [[row['key']] for row in rows]
    for name in names:
        heads.append(figures.label(name))
        lines = [line + [figures.text(row, name)] for line, row in zip(lines, rows)]
        if name == figure and any(row.get('rounds', 0) > 1 and spread in row for row in rows):
            heads.append('over rounds')
            lines = [line + [' – '.join(figures.text({figure: row.get(f'{figure}_{end}')}, figure)
                                        for end in ('least', 'greatest'))] for line, row in zip(lines, rows)]
    if any(row.get('base') for row in rows):
        heads.append('ratio')
        lines = [line + [f"{figures.digits(row['ratio'])} × {row['base']}" if row.get('base') else '–']
                 for line, row in zip(lines, rows)]
    return Table(heads, lines, ['own' if row.get('ours', True) else '' for row in rows])


def platform(summary):
    hiccups = summary['hiccups']
    if not hiccups:
        return []
    return [Heading('What the platform alone takes away'), Paragraph(
        f"Gaps above {hiccups['gap_above_ns'] / 1000:g} µs between two readings of the clock, while nothing but a spin ran "
        f"on the CPU, for {hiccups['duration_ns'] / 1e9:g} s before the runs. No percentile can be better than these."),
        Table(['CPU', 'gaps', 'lost, ms', 'steal, ms', 'longest, µs'], [
            [cpu['cpu'], cpu['gap_count'], figures.digits(cpu['gap_total_ns'] / 1e6), cpu['steal_ms'],
             ' '.join(f'{gap / 1000:.0f}' for gap in cpu['longest_gaps_ns'])] for cpu in hiccups['cpus']])]


# Documents -------------------------------------------------------------------------------------

def text_of(summary, parts):
    failures = [Paragraph(f'FAILED: {text}') for text in summary['failures']]
    caveats = [Paragraph(f'Note: {text}') for text in notes(summary)] or [Paragraph('Nothing unusual was seen.')]
    return as_text([*details(None, summary, parts), *platform(summary), *thresholds(summary), Paragraph(''),
                    Paragraph(headline(summary)), *(failures or caveats)])


def markdown(summary):
    return as_markdown([Heading('A result of `scripts/bench.sh`', 1), *facts(summary), *overview(summary),
                        *thresholds(summary)])


def write(out, summary, parts):
    """The page, everything in it, and the Markdown."""
    environment = [[name.replace('_', ' '), ', '.join(value) if isinstance(value, list) else value]
                   for name, value in summary['environment'].items()]
    (out / 'report.html').write_text(as_page('measured', [
        Paragraph(headline(summary), 'lead'), *facts(summary), *overview(summary), *details(out, summary, parts),
        *thresholds(summary), *platform(summary), Heading('Environment'), Table(['', ''], environment)]))
    (out / 'report.md').write_text(markdown(summary))
