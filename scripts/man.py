#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Write a man page from a Markdown page of doc/, so that each text exists once.

    man.py [--summary TEXT] [--leave-out HEADING]... PAGE.md NAME.SECTION >NAME.SECTION

The page begins with "# title" and a paragraph, whose first sentence becomes the NAME line. An indented block after
it becomes SYNOPSIS. Tables become tagged paragraphs: the first column is the tag, and a table with "option" as first
heading stands under OPTIONS. Links lose their addresses, and pages of programs become plx-ping(1).
"""
import argparse
import re
from pathlib import Path

PLAIN_COLUMNS = {'meaning', 'when', 'content', 'what', ''}  # cells of these need no label
ROFF = {'\\': '\\e', '-': '\\-', "'": '\\(aq', '"': '\\(dq'}
KINDS = (('heading', '#'), ('table', r'\|'), ('code', ' {4}'), ('item', '- '), ('text', ''))


def escape(text):
    """Text without markup as roff. Dashes and quotes stay those that a shell reads."""
    return ''.join(ROFF.get(c, c) if c < '\x7f' else f'\\[u{ord(c):04X}]' for c in text)


def guard(line):
    """A dot at the start of a line would be a request of roff."""
    return re.sub(r'^\.', r'\\&.', line)


def link(match):
    """A program's page becomes name(1); other pages are named after the text, as doc/ has them."""
    text, target = match[1], match[2].split('#')[0]
    if re.search(rf'(^|/){re.escape(text)}\.md$', target):
        return f'**{text}**(1)'
    if target.endswith('eal.md'):
        return '**pollux**(7)'
    return f'{text} ({Path(target).name})' if target.endswith('.md') else text


def inline(text):
    """One paragraph of Markdown as one line of roff."""
    text = re.sub(r'!?\[([^]]+)\]\(([^)]+)\)', link, text.replace('\\|', '|'))
    line = ''
    for part in re.split(r'(`[^`]+`|\*\*[^*]+\*\*|\*[^*]+\*)', text):
        marked = re.fullmatch(r'(`|\*\*?)(.+)\1', part)
        line += f"\\f{'I' if marked[1] == '*' else 'B'}{escape(marked[2])}\\fR" if marked else escape(part)
    return guard(line)


def cells(row):
    return [cell.strip() for cell in re.split(r'(?<!\\)\|', row.strip().strip('|'))]


def sentence(text):
    return text[:1].upper() + text[1:] + ('' if text.endswith('.') else '.')


def table(rows):
    headings, out = cells(rows[0]), []
    for tag, *others in map(cells, rows[2:]):
        body = []
        for heading, cell in zip(headings[1:], others):
            if cell and heading in ('of', 'for'):
                body.append(f'({cell})')
            elif cell:
                plain = heading in PLAIN_COLUMNS or len(headings) == 2
                body.append(sentence(cell if plain else f'{heading}: {cell}'))
        out += ['.TP', inline(tag)] if tag else ['.IP']
        out.append(inline(' '.join(body)) or '\\&')
    return out + ['.PP']


def blocks(text):
    """(kind, lines) of each heading, table, code block, list item and paragraph. Fenced code must be left out."""
    found, last = [], ''
    for line in text.splitlines():
        kind = line.strip() and next(name for name, pattern in KINDS if re.match(pattern, line))
        if kind == 'text' and last == 'item':
            kind = last
        elif kind and (kind != last or kind in ('heading', 'item')):
            found.append((kind, []))
        if kind:
            found[-1][1].append(line)
        last = kind
    return found


def roff(kind, block):
    joined = ' '.join(line.strip() for line in block)
    if kind == 'heading':
        title = inline(joined.lstrip('# '))
        return [f'.SS "{title}"' if joined.startswith('###') else f'.SH "{title.upper()}"']
    if kind == 'table':
        return table(block)
    if kind == 'item':
        return ['.IP \\(bu 2', inline(joined[2:])]
    if kind == 'code':
        return ['.PP', '.nf', '.RS 4', *(guard(escape(line[4:])) for line in block), '.RE', '.fi', '.PP']
    return ['.PP', inline(joined)]


def page(body, leave_out):
    out, heading = [], None
    for kind, block in body:
        if block[0].startswith('## '):
            heading = block[0][3:]
        if heading is None and kind == 'table' and cells(block[0])[0] == 'option':
            out.append('.SH "OPTIONS"')
        out += roff(kind, block) if heading not in leave_out else []
    return out


def main():
    parser = argparse.ArgumentParser(description='Write a man page from a Markdown page of doc/.')
    parser.add_argument('--summary', help='text of the NAME line; default: the first sentence of the page')
    parser.add_argument('--leave-out', action='append', default=[], metavar='HEADING')
    parser.add_argument('page', type=Path)
    parser.add_argument('name', help='such as plx-ping.1')
    args = parser.parse_args()
    name, section = args.name.rsplit('.', 1)
    body = blocks(args.page.read_text(encoding='utf-8'))[1:]
    first = re.split(r'[.:] |\.$', re.sub(r'\[([^]]+)\]\([^)]+\)', r'\1', ' '.join(body[0][1])))[0]
    summary = args.summary or first[0].lower() + first[1:]
    out = [f'.\\" Made by scripts/man.py from {args.page.name}',
           f'.TH {escape(name.upper())} {section} "" Pollux',
           '.SH NAME', f'{escape(name)} \\- {escape(summary)}']
    if len(body) > 1 and body[1][0] == 'code':
        out += ['.SH SYNOPSIS', *roff(*body.pop(1))]
    out += ['.SH DESCRIPTION', *page(body, args.leave_out)]
    names = sorted(set(re.findall(r'\\fB([a-z\\-]+)\\fR\((\d)\)', '\n'.join(out))) - {(escape(name), section)})
    if names:
        out += ['.SH "SEE ALSO"', ', '.join(f'\\fB{n}\\fR({s})' for n, s in names)]
    print('\n'.join(out))


if __name__ == '__main__':
    main()
