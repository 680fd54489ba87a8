#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Every file, heading and test that a documentation page names exists.

Names are looked for from the page's folder and from the root: targets of links, with their headings; words that begin
with a folder of the root; and in backticks names of sources, also by the end of their path alone. Capitals and <> stand
for something else, and * for any text; apps/pages stands for that test.
"""
import os
import re
import sys
import tempfile
from collections import Counter
from posixpath import dirname, join, normpath

TOPS = {'apps', 'config', 'doc', 'drivers', 'lib', 'scripts', 'tests'}
SOURCE = re.compile(r'[a-z][^<>A-Z]*\.(c|h|cc|sh|md|build|conf|jq|awk|pml|py|gp|service)')
PAGE = re.compile(r'(README|CONTRIBUTING)\.md|(doc|apps)/.*\.(md|1|7)')
WORD = re.compile(r'[\w./*<>{}-]+', re.ASCII)
FENCE = re.compile(r' *```')
HEADING = re.compile(r'#+ (.*)')

# External names, or files made by the reader: page, name.
EXCEPTIONS = {('doc/getting-started.md', 'hello.c')} | {
    ('doc/design/receives.md', name)
    for name in ('verbs_cm.c', 'verbs_cq.c', 'verbs_ep.c', 'verbs_info.c', 'xnet.h', 'xnet_cq.c', 'xnet_progress.c',
                 'xnet_srx.c')}


def slug(heading):
    """The anchor that GitHub makes."""
    text = re.sub(r'\]\([^)]*\)', '', heading.lower())
    return re.sub(r'[^a-z0-9 _\x80-\U0010ffff-]', '', text).replace(' ', '-')


def fits(pattern, paths):
    one = re.compile(re.escape(pattern).replace(r'\*', '[^/]*'))
    return any(one.fullmatch(path) for path in paths)


def without_places(word):
    """Up to a part of a path that stands for others."""
    first, *rest = word.split('/')
    for part in rest:
        if re.search('[<>{}]', part) or re.fullmatch('[A-Z]+', part):
            break
        first += '/' + part
    return first


class Tree:
    def __init__(self, root):
        self.root = root
        self.files = []
        for folder, folders, names in os.walk(root):
            folders[:] = [name for name in folders if name != '.git' and not name.startswith('build')]
            self.files += [normpath(join(os.path.relpath(folder, root), name)) for name in names]
        self.known, self.ends = set(self.files), set()
        for path in self.files:
            parts = path.split('/')
            self.known.update('/'.join(parts[:i]) for i in range(1, len(parts)))
            self.ends.update('/'.join(parts[i:]) for i in range(len(parts)))
        self.pages = {path: self.lines(path) for path in sorted(self.files) if PAGE.fullmatch(path)}
        self.headings = {path: self.headings_of(path) for path in self.pages}

    def lines(self, path):
        """Its lines, each with whether it is inside a fence."""
        fenced, out = False, []
        with open(join(self.root, path), encoding='utf-8') as file:
            for line in file.read().splitlines():
                fenced ^= bool(FENCE.match(line))
                out.append((line, fenced))
        return out

    def headings_of(self, path):
        seen, out = Counter(), set()
        for line, fenced in self.pages[path]:
            if not fenced and (match := HEADING.match(line)):
                name = slug(match[1])
                out.add(f'{name}-{seen[name]}' if seen[name] else name)
                seen[name] += 1
        return out

    def has(self, page, name):
        if '*' in name:
            return fits(normpath(name), self.known)
        return normpath(join(dirname(page), name)) in self.known or normpath(name) in self.known

    def link_is_wrong(self, page, target):
        if re.match('[a-z]+:', target):
            return None
        file, _, anchor = target.partition('#')
        file = normpath(join(dirname(page), file)) if file else page
        if file not in self.known:
            return f'no file {target}'
        if anchor and self.headings.get(file) and anchor not in self.headings[file]:
            return f'no heading {target}'
        return None

    def word_is_there(self, page, word):
        word = word.rstrip('.,')
        return ('/' not in word or word.split('/')[0] not in TOPS or self.has(page, without_places(word)) or
                (page, word) in EXCEPTIONS or fits(f'tests/{word}_test.*', self.known))

    def name_is_there(self, page, name):
        return (not SOURCE.fullmatch(name) or name.split('/')[0] in TOPS or (page, name) in EXCEPTIONS or
                self.has(page, name) or name in self.ends or ('*' in name and fits(name, self.ends)))

    def missing(self):
        """Names in its pages that do not exist, as page:line: what."""
        for page, lines in self.pages.items():
            for number, (line, fenced) in enumerate(lines, 1):
                links = [] if fenced else re.findall(r'\]\(([^)]+)\)', line)
                wrong = [self.link_is_wrong(page, target) for target in links]
                wrong += [f'no file {name}' for code in line.split('`')[1::2] for name in WORD.findall(code)
                          if not self.name_is_there(page, name)]
                wrong += [f'no file {word}' for word in WORD.findall(re.sub(r'\]\([^)]+\)', ']', line))
                          if not self.word_is_there(page, word)]
                yield from (f'{page}:{number}: {what}' for what in wrong if what)


def main():
    root = os.environ['PLX_SOURCE_ROOT']
    tree = Tree(root)
    failures = list(tree.missing())

    # The tests that show what a page of the guide states: "<!-- tests/FILE words in it -->".
    for page, lines in tree.pages.items():
        for line, _ in lines if page.startswith('doc/guide/') else []:
            for file, text in re.findall(r'<!-- (tests/\S*) ?(.*) -->', line):
                path = join(root, file)
                if not os.path.isfile(path) or text not in open(path, encoding='utf-8').read():
                    failures.append(f'{page}: no test {file} {text}')

    # A tree whose pages are correct except for lines 4 to 9 of one.
    with tempfile.TemporaryDirectory() as temp:
        files = {'tests/apps/pages_test.py': '', 'lib/mem/pool.c': '', 'lib/ring/ring.c': '', 'lib/mem/plx_mem.h': '',
                 'doc/guide/index.md': '# Guide\n## What *is* there?\n'
                                       '[back](../../README.md), [mem](../../lib/mem), ../README.md\n',
                 'README.md': '''# A tree
[guide](doc/guide/index.md#what-is-there), [itself](#a-tree), [elsewhere](https://example.org/x), `pool.c`, `mem/pool.c`
lib/mem/pool.c and lib/ring, `lib/*/plx_*.h`, `lib/<name>/`, lib/NAME/x, build/lib/none, `apps/pages`
[gone](doc/guide/gone.md)
[no heading](doc/guide/index.md#what-was-there)
in lib/mem/gone.c, as a sentence.
`gone.c`
lib/gone/
`lib/*/gone_*.h`
'''}
        for path, text in files.items():
            os.makedirs(join(temp, dirname(path)), exist_ok=True)
            with open(join(temp, path), 'w', encoding='utf-8') as file:
                file.write(text)
        found = [one.rsplit(': ')[0] for one in Tree(temp).missing()]
        if found != [f'README.md:{line}' for line in range(4, 10)]:
            failures.append(f'in a tree with six wrong lines there are: {found}')

    print('\n'.join(failures))
    return bool(failures)


if __name__ == '__main__':
    sys.exit(main())
