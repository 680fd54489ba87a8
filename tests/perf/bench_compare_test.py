# SPDX-License-Identifier: BSD-3-Clause
"""bench.sh --compare: ratios against their noise; reports again; and pictures."""
import contextlib
import copy
import io
import json
import shutil
import unittest

from bench_fake import HOST, BenchCase, plots, trips

from bench import cli, compare, schema
from bench.report import as_page

GNUPLOT = plots.gnuplot


class Compare(BenchCase):
    def setUp(self):
        super().setUp()
        _, session = self.bench(lambda run: trips(6000 + 100 * run.round), '--only', 'rtt', '--quick', '--sizes', '64')
        self.out, self.summary = session.out, schema.load(session.out)

    def changed(self, key, factor, spread=0.0, revision='abc', **fields):
        """The verdict on a row whose ratio changed."""
        other = copy.deepcopy(self.summary)
        other['environment']['git_revision'] = revision
        for row in other['parts']['rtt']['rows']:
            if row['key'] == key:
                row |= {'ratio': factor * row['ratio'], 'ratio_least': (factor - spread) * row['ratio_least'],
                        'ratio_greatest': (factor + spread) * row['ratio_greatest']} | fields
        result = compare.compare(self.summary, other)
        return next((row['verdict'] for row in result['rows'] if row['key'] == key), None), result

    def test_a_result_compared_with_itself_has_nothing_worse(self):
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            self.assertEqual(cli.main(['--compare', str(self.out), str(self.out)]), 0)
        result = json.loads((self.out / 'compare.json').read_text())
        self.assertTrue(result['rows'])
        self.assertEqual({row['verdict'] for row in result['rows']}, {'within the noise'})
        self.assertIn('Both results are of one commit.', said.getvalue())
        self.assertIn('0 are better in B, 0 worse', (self.out / 'compare.html').read_text())

    def test_a_change_above_the_noise_is_better_or_worse(self):
        for arguments, expected in (((1.2,), 'worse'), ((0.8,), 'better'), ((1.2, 0.3), 'within the noise'),
                                    ((1.04,), 'within the noise')):
            self.assertEqual(self.changed('tcp-poll', *arguments)[0], expected)
        self.assertEqual(self.changed('tcp-poll', 1.2, rounds=2)[0], 'noise unknown')
        self.assertIsNone(self.changed('raw-fi-tcp', 2)[0])  # other software

    def test_rows_without_rounds_have_their_own_noise(self):
        part = self.begin('instructions')
        rows = [part.summarize([{'key': 'link tcp', 'instructions': number, 'known': 1000}])['rows'][0] | {'line_ns': None}
                for number in (1000, 1020)]
        self.assertEqual(compare.verdict(*rows, 0.02, compare.noise_of(rows[0])), 'worse')

    def test_the_commits_are_named(self):
        self.assertIs(self.changed('tcp-poll', 1, revision='def')[1]['one_commit'], False)
        self.assertIs(self.changed('tcp-poll', 1, revision='abc-dirty')[1]['one_commit'], None)

    def test_cpus_in_another_state_are_not_compared(self):
        result = compare.compare(self.summary, self.summary | {'cpus': {'line_ns': 500}})
        self.assertEqual((result['rows'], result['others'] > 5), ([], True))

    def test_the_report_can_be_written_again(self):
        (self.out / 'report.html').unlink()
        with contextlib.redirect_stdout(io.StringIO()):
            self.assertEqual(cli.main(['--report', str(self.out)]), 0)
        self.assertIn(HOST['cpu_model'], (self.out / 'report.html').read_text())


@unittest.skipUnless(shutil.which('gnuplot'), 'gnuplot draws the pictures')
class Pictures(BenchCase):
    def test_six_lines_at_most_with_names_and_pictures_in_any_folder(self):
        plots.gnuplot = GNUPLOT  # until the patch is undone
        out = self.folder / "it's \\a folder"
        out.mkdir()
        series = [(f'row {index}', '#d55e00', [(64, index + 1), (1024, index + 2)]) for index in range(6)]
        self.assertEqual(plots.panels(out, 'x', 'message', plots.SIZES, [('rate', series), ('none', [])]), [])
        page = as_page('t', [('plot', out / 'plots/x.svg'), ('plot', out / 'plots/missing.svg')])
        for name, _, _ in series:
            self.assertIn(name, page)
        self.assertEqual(page.count('<?xml'), 0)
        self.assertEqual(plots.histograms(out, 'y', 'trips', [('row', '#0072b2', 105, [(100, 109, 5), (110, 119, 1)])]), [])
        self.assertTrue((out / 'plots/y.png').is_file())
        self.assertEqual(len(set(plots.colours([(key, key < 3) for key in range(6)]).values())), 6)


if __name__ == '__main__':
    unittest.main()
