# SPDX-License-Identifier: BSD-3-Clause
"""A document of headings, paragraphs, tables and pictures, as text, Markdown or a page."""
import html
import re
import string
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Heading:
    text: str
    level: int = 2


@dataclass(frozen=True)
class Paragraph:
    text: str
    kind: str = ''


@dataclass(frozen=True)
class Table:
    """kinds: of each row: own, reached, missed, better, worse."""
    heads: list
    rows: list
    kinds: list = ()


@dataclass(frozen=True)
class Picture:
    path: Path


def as_text(blocks):
    said = []
    for block in blocks:
        if isinstance(block, Heading):
            said.append('\n' + block.text)
        elif isinstance(block, Paragraph):
            said.append(block.text)
        elif isinstance(block, Table):
            lines = [block.heads, *block.rows]
            widths = [max(len(str(cell)) for cell in column) for column in zip(*lines)]
            said += ['  '.join(f'{cell:{">" if index else "<"}{width}}' for index, (cell, width) in
                               enumerate(zip(map(str, line), widths))).rstrip() for line in lines]
    return '\n'.join(said)


def as_markdown(blocks):
    said = []
    for block in blocks:
        if isinstance(block, Heading):
            said.append(f"{'#' * block.level} {block.text}")
        elif isinstance(block, Paragraph):
            said.append(block.text)
        elif isinstance(block, Table):
            lines = [f"| {' | '.join(map(str, line))} |" for line in (block.heads, *block.rows)]
            said.append('\n'.join([lines[0], '|' + '---|' * len(block.heads), *lines[1:]]))
    return '\n\n'.join(said) + '\n'


def as_page(title, blocks):
    said = []
    for block in blocks:
        if isinstance(block, Heading):
            said.append(f'<h{block.level}>{escape(block.text)}</h{block.level}>')
        elif isinstance(block, Paragraph):
            said.append(f'<p class="{block.kind}">{escape(block.text)}</p>')
        elif isinstance(block, Table):
            kinds = block.kinds or [''] * len(block.rows)
            said += ['<div class="wide"><table>', table_row('th', block.heads, ''),
                     *(table_row('td', *row) for row in zip(block.rows, kinds)), '</table></div>']
        elif block.path.is_file():  # inside the page
            picture = re.sub(r'^(<\?xml.*|<!DOCTYPE.*(\n.*\.dtd">)?)\n', '', block.path.read_text(), flags=re.MULTILINE)
            said.append(f'<div class="plot">\n{picture}</div>')
    template = string.Template((Path(__file__).parent / 'page.html').read_text())
    return template.substitute(title=title, body='\n'.join(said))


def table_row(tag, cells, kind):
    return f'<tr class="{kind}">' + ''.join(f'<{tag}>{escape(cell)}</{tag}>' for cell in cells) + '</tr>'


def escape(value):
    return html.escape(str(value), quote=False)
