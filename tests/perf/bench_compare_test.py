# SPDX-License-Identifier: BSD-3-Clause
"""bench.sh --compare: ratios against their noise; and pictures."""
import contextlib
import copy
import io
import json
import shutil
import unittest
from unittest import mock

from bench_fake import HOST, BenchCase, trips

from bench import cli, compare, plots, schema
from bench.report import svg


class Compare(BenchCase):
    def setUp(self):
        super().setUp()
        self.enterContext(mock.patch.object(plots, 'gnuplot', lambda *_: ['no gnuplot']))
        _, session = self.bench(lambda run: trips(6000 + 100 * run.round), '--only', 'rtt', '--quick', '--sizes', '64')
        self.out, self.summary = session.out, schema.load(session.out)

    def changed(self, key, factor, spread=0.0, revision='abc'):
        """The verdict on a row whose ratio changed."""
        other = copy.deepcopy(self.summary)
        other['environment']['git_revision'] = revision
        for row in other['parts']['rtt']['rows']:
            if row['key'] == key:
                row |= {'ratio': factor * row['ratio'], 'ratio_least': (factor - spread) * row['ratio_least'],
                        'ratio_greatest': (factor + spread) * row['ratio_greatest']}
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
        self.assertEqual(self.changed('tcp-poll', 1.2)[0], 'worse')
        self.assertEqual(self.changed('tcp-poll', 0.8)[0], 'better')
        self.assertEqual(self.changed('tcp-poll', 1.2, spread=0.3)[0], 'within the noise')
        self.assertEqual(self.changed('tcp-poll', 1.04)[0], 'within the noise')

    def test_rows_of_other_software_and_absolute_figures_are_not_judged(self):
        self.assertIsNone(self.changed('raw-fi-tcp', 2)[0])
        slower = copy.deepcopy(self.summary)
        for row in slower['parts']['rtt']['rows']:
            row['p50_ns'] *= 3
        self.assertEqual({row['verdict'] for row in compare.compare(self.summary, slower)['rows']}, {'within the noise'})

    def test_the_commits_are_named(self):
        self.assertIs(self.changed('tcp-poll', 1, revision='def')[1]['one_commit'], False)
        self.assertIs(self.changed('tcp-poll', 1, revision='abc-dirty')[1]['one_commit'], None)

    def test_cpus_in_another_state_are_not_compared(self):
        far = copy.deepcopy(self.summary)
        far['cpus'] = {'line_ns': 500}
        result = compare.compare(self.summary, far)
        self.assertEqual((result['rows'], bool(result['only_a']), bool(result['only_b'])), ([], True, True))

    def test_two_rounds_are_too_few(self):
        few = copy.deepcopy(self.summary)
        for row in few['parts']['rtt']['rows']:
            row['rounds'] = 2
        self.assertEqual({row['verdict'] for row in compare.compare(few, few)['rows']}, {'noise unknown'})

    def test_the_report_can_be_written_again(self):
        (self.out / 'report.html').unlink()
        with contextlib.redirect_stdout(io.StringIO()):
            self.assertEqual(cli.main(['--report', str(self.out)]), 0)
        self.assertIn(HOST['cpu_model'], (self.out / 'report.html').read_text())


@unittest.skipUnless(shutil.which('gnuplot'), 'gnuplot draws the pictures')
class Pictures(BenchCase):
    def test_six_lines_at_most_with_names_and_pictures_in_any_folder(self):
        out = self.folder / "it's \\a folder"
        out.mkdir()
        series = [(f'row {index}', '#d55e00', [(64, index + 1), (1024, index + 2)]) for index in range(6)]
        self.assertEqual(plots.panels(out, 'x', 'message', plots.SIZES, [('rate', series), ('none', [])]), [])
        text = svg(out / 'plots/x.svg')
        for name, _, _ in series:
            self.assertIn(name, text)
        self.assertEqual(text.count('<?xml'), 0)
        self.assertEqual(plots.histograms(out, 'y', 'trips', [('row', '#0072b2', 105, [(100, 109, 5), (110, 119, 1)])]), [])
        self.assertTrue((out / 'plots/y.png').is_file())
        self.assertEqual(len(set(plots.colours([(key, key < 3) for key in range(6)]).values())), 6)


if __name__ == '__main__':
    unittest.main()
