# SPDX-License-Identifier: BSD-3-Clause
"""Figures as text, for the terminal and the report."""
import math

RESULT_STATE_ONE = 'one'  # the CPUs had a single state


def rounded(value, places=0):
    """Halves are rounded up, whatever the digit before them."""
    scale = 10 ** places
    value = math.floor(value * scale + 0.5) / scale
    return int(value) if value == int(value) else value


def number(value):
    """15.0 becomes 15."""
    if value is None:
        return ''
    if isinstance(value, float):
        return str(int(value)) if value == int(value) else repr(value)
    return str(value)


def us(ns):
    """Nanoseconds as microseconds."""
    if ns is None:
        return 'n/a'
    return str(rounded(ns / 1000)) if ns >= 1e6 else f'{rounded(ns / 10) / 100:.2f}'


def short(value):
    return 'n/a' if value is None else number(rounded(value, 3))


def whole(value):
    return '–' if value is None else str(rounded(value))


def digits(value):
    """Four digits, wherever the point is."""
    if not value:
        return '–' if value is None else '0'
    return number(rounded(value, 3 - math.floor(math.log10(abs(value)))))


def least_to_greatest(form, row, figure):
    return f"{form(row.get(figure + '_least'))} – {form(row.get(figure + '_greatest'))}"


def size(count):
    for unit, name in ((1 << 20, 'MiB'), (1 << 10, 'KiB')):
        if count >= unit and count % unit == 0:
            return f'{count // unit} {name}'
    return f'{count} B'


def seconds(value):
    return f'{int(value) // 60} min {int(value) % 60} s' if value >= 60 else f'{math.ceil(value)} s'


def listed(items):
    return ' and '.join(filter(None, (', '.join(items[:-1]), items[-1]))) if items else ''


def in_state(text, state):
    return text if state in (None, RESULT_STATE_ONE) else f'{text}, CPUs {state}'


def ratio(row):
    """A row compared with its base."""
    base = row.get('base')
    if base is None:
        return '–'
    return 'n/a' if row.get('ratio') is None else f"{number(row['ratio'])} × {base}"


def verdict(threshold):
    if threshold['ok'] is None:
        return 'n/a'
    if threshold['ok']:
        return 'reached'
    if threshold['gates']:
        return 'missed'
    return 'below' if threshold.get('least') else 'above'


def limit(threshold):
    return f"at {'least' if threshold.get('least') else 'most'} {number(threshold['limit'])}"
