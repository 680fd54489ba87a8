#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Write a man page from a Markdown page of doc/, so that each text exists once.

    man.py [--summary TEXT] [--leave-out HEADING]... PAGE.md NAME.SECTION >NAME.SECTION

The page begins with "# title" and a paragraph, whose first sentence becomes the NAME line. An indented block after
it becomes SYNOPSIS. Tables become tagged paragraphs: the first column is the tag, and a table with "option" as first
heading stands under OPTIONS. Links lose their addresses, and pages of programs become plx-ping(1).
"""
import argparse
import os
import re

PLAIN_COLUMNS = {'meaning', 'when', 'content', 'what', ''}  # cells of these need no label
ROFF = {'\\': '\\e', '-': '\\-', "'": '\\(aq', '"': '\\(dq'}


def escape(text):
    """Text without markup as roff. Dashes and quotes stay those that a shell reads."""
    return ''.join(ROFF.get(c, c) if c < '\x7f' else f'\\[u{ord(c):04X}]' for c in text)


def guard(line):
    """A dot at the start of a line would be a request of roff."""
    return re.sub(r'^\.', r'\\&.', line)


def link(match):
    """A program's page becomes name(1); other pages are named after the text, as doc/ has them."""
    text, target = match.groups()
    target = target.split('#')[0]
    if re.search(rf'(^|/){re.escape(text)}\.md$', target):
        return f'**{text}**(1)'
    if target.endswith('eal.md'):
        return '**pollux**(7)'
    return f'{text} ({os.path.basename(target)})' if target.endswith('.md') else text


def inline(text):
    """One paragraph of Markdown as one line of roff."""
    text = re.sub(r'!?\[([^]]+)\]\(([^)]+)\)', link, text.replace('\\|', '|'))
    parts = re.split(r'(`[^`]+`|\*\*[^*]+\*\*|\*[^*]+\*)', text)
    line = ''
    for part in parts:
        if part.startswith('`') or part.startswith('**'):
            line += '\\fB' + escape(part.strip('`') if part[0] == '`' else part[2:-2]) + '\\fR'
        elif part.startswith('*') and len(part) > 2:
            line += '\\fI' + escape(part[1:-1]) + '\\fR'
        else:
            line += escape(part)
    return guard(line)


def cells(row):
    return [cell.strip() for cell in re.split(r'(?<!\\)\|', row.strip().strip('|'))]


def sentence(text):
    return text[:1].upper() + text[1:] + ('' if text.endswith('.') else '.')


def table(rows):
    headings = cells(rows[0])
    out = []
    for row in map(cells, rows[2:]):
        body = []
        for heading, cell in list(zip(headings, row))[1:]:
            if cell and heading in ('of', 'for'):
                body.append(f'({cell})')
            elif cell:
                plain = heading in PLAIN_COLUMNS or len(headings) == 2
                body.append(sentence(cell if plain else f'{heading}: {cell}'))
        out += ['.TP', inline(row[0])] if row[0] else ['.IP']
        out.append(inline(' '.join(body)) or '\\&')
    return out + ['.PP']


def blocks(lines):
    """Yields (kind, lines) for each heading, table, code block, list item and paragraph."""
    kinds = (('heading', r'#'), ('table', r'\|'), ('code', r' {4}|```'), ('item', r'- |\d+\. '), ('text', r''))
    block, kind = [], None
    fenced = False
    for line in lines + ['']:
        now = next(name for name, pattern in kinds if re.match(pattern, line))
        if fenced or (line.startswith('```')):
            fenced ^= line.startswith('```')
            now = 'code'
        inside = kind == 'item' and line.startswith('  ') and not line.startswith('      ')
        new = kind is not None and (now != kind or now in ('heading', 'item')) and not inside
        if block and (new or not (line.strip() or fenced)):
            yield kind, block
            block, kind = [], None
        if line.strip() or fenced:
            block.append(line)
            kind = kind or now


def roff(kind, block):
    joined = ' '.join(line.strip() for line in block)
    if kind == 'heading':
        level = len(block[0]) - len(block[0].lstrip('#'))
        title = inline(block[0].lstrip('# '))
        return [f'.SH "{title.upper()}"' if level == 2 else f'.SS "{title}"']
    if kind == 'table':
        return table(block)
    if kind == 'item':
        mark, text = re.match(r'(-|\d+\.) (.*)', joined).groups()
        return ['.IP \\(bu 2' if mark == '-' else f'.IP {mark} 4', inline(text)]
    if kind == 'code':
        body = [escape(re.sub(r'^ {4}', '', line)) for line in block if not line.startswith('```')]
        return ['.PP', '.nf', '.RS 4', *map(guard, body), '.RE', '.fi', '.PP']
    return ['.PP', inline(joined)]


def page(body, leave_out):
    out, heading = [], None
    for kind, block in body:
        if block[0].startswith('## '):
            heading = block[0][3:]
        if heading in leave_out:
            continue
        if heading is None and kind == 'table' and cells(block[0])[0] == 'option':
            out.append('.SH "OPTIONS"')
        out += roff(kind, block)
    return out


def main():
    parser = argparse.ArgumentParser(description='Write a man page from a Markdown page of doc/.')
    parser.add_argument('--summary', help='text of the NAME line; default: the first sentence of the page')
    parser.add_argument('--leave-out', action='append', default=[], metavar='HEADING')
    parser.add_argument('page')
    parser.add_argument('name', help='such as plx-ping.1')
    args = parser.parse_args()
    name, section = args.name.rsplit('.', 1)
    with open(args.page, encoding='utf-8') as text:
        body = list(blocks(text.read().splitlines()))[1:]
    intro = re.sub(r'\[([^]]+)\]\([^)]+\)', r'\1', ' '.join(body[0][1]))
    first = re.split(r'[.:] |\.$', intro)[0]
    summary = args.summary or first[0].lower() + first[1:]
    out = [f'.\\" Made by scripts/man.py from {os.path.basename(args.page)}',
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
