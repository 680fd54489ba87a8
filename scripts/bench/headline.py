# SPDX-License-Identifier: BSD-3-Clause
"""A summary in a few sentences, for the end of the terminal's output and the top of the report."""
from bench.words import listed, number, rounded, size, us

MI_B = 1 << 20


def row_of(summary, part, key, size_bytes=64):
    """Rows of the state with the most runs come first."""
    return next((row for row in summary['parts'].get(part, {}).get('rows', [])
                 if (row['key'], row['size_bytes']) == (key, size_bytes)), {})


def took(summary, key, text='{}'):
    """The text with the row's median round trip, in a list; [] without it."""
    p50 = row_of(summary, 'rtt', key).get('p50_ns')
    return [] if p50 is None else [text.format(us(p50))]


def headline(summary):
    own = (took(summary, 'shm-poll', '{} µs between two processes over shared memory')
           + took(summary, 'tcp-poll', '{} µs over TCP'))
    others = took(summary, 'raw-zmq', 'ZeroMQ takes {}') + took(summary, 'raw-tcp', 'plain sockets {}')
    live = summary['parts'].get('live', {}).get('rows')
    if own:
        return f"On this host a 64 B round trip takes {listed(own)}{'; ' if others else ''}{', '.join(others)}."
    if live:
        return (f"A call of {size(live[0]['size_bytes'])} to the process that runs, and back, takes "
                f"{us(live[0]['p50_ns'])} µs.")
    return f"Measured on this host: {', '.join(summary['parts'])}."


def compared(summary):
    def both(name, shm, tcp):
        found = took(summary, shm, '{} over shared memory') + took(summary, tcp, '{} over TCP')
        return [f'{name} {listed(found)}'] if found else []

    found = (took(summary, 'raw-tcp', 'plain sockets {} µs') + both('libfabric', 'raw-fi-shm', 'raw-fi-tcp')
             + both('UCX', 'ucx-shm', 'ucx-tcp') + took(summary, 'raw-zmq', 'ZeroMQ {}'))
    return f"Compared with, 64 B round trips: {'; '.join(found)}." if found else 'Nothing else was measured.'


def rates(summary):
    """One-way messages: the throughput of a row of either part. NetIO and ZeroMQ pack small messages together."""
    def per_s(keys, size_bytes):
        found = [row_of(summary, 'stream', key, size_bytes).get('messages_per_s') for key in keys]
        found += [gbit * 1e9 / 8 / size_bytes for key in keys
                  if (gbit := row_of(summary, 'netio', key, size_bytes).get('gbit_per_s'))]
        return max((value for value in found if value), default=None)

    texts = []
    for name, *keys in (('Pollux over shared memory', 'shm-stream'), ('Pollux over TCP', 'tcp-stream'),
                        ('its NetIO sockets over TCP', 'buffered-tcp'), ('UCX over shared memory', 'ucx-shm'),
                        ('UCX over TCP', 'ucx-tcp'), ('ZeroMQ', 'zmq-in-place', 'zmq-push-pull')):
        small, large = per_s(keys, 64), per_s(keys, MI_B)
        figures = [f'{number(rounded(small / 1e6, 2))} M/s'] if small else []
        figures += [f'{number(rounded(large * MI_B / 1e9, 1))} GB/s'] if large else []
        if figures:
            texts.append(f"{name} {', '.join(figures)}")
    return [f"One way, messages of 64 B a second, and bytes in messages of 1 MiB: {'; '.join(texts)}."] if texts else []


def notes(summary):
    """Caveats of the figures."""
    cpus, lost, found = summary['cpus'], summary.get('platform_lost') or 0, []
    if lost > 0.01:
        found.append(f'This host is busy: other work took {number(rounded(lost * 100, 1))} % of a CPU before the runs '
                     'began. Medians hold; long tails and rates show it.')
    if cpus.get('near_ns'):
        found.append(f"The two CPUs were near each other at times (a cache line there and back takes "
                     f"{cpus['near_ns']} ns) and far apart at times ({cpus['far_ns']} ns), as the hypervisor moved "
                     'them. Rows are compared within one state.')
    if changed := sum(part.get('changed') or 0 for part in summary['parts'].values()):
        plural = ('s', 'are') if changed != 1 else ('', 'is')
        found.append(f'{changed} run{plural[0]} during which that state changed {plural[1]} left out.')
    return found + summary.get('notes', []) + [f'Left out: {text}' for text in summary['left_out']]
