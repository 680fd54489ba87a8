# SPDX-License-Identifier: BSD-3-Clause
"""The bench's arithmetic: medians of pairs, the states of the CPUs, histograms, and figures as text."""
import unittest

from bench_fake import ROOT, BenchCase, trips

from bench import report, schema, stats


def run(key, number, line_ns=(), size=64, **more):
    return {'key': key, 'size_bytes': size, 'round': number, 'line_ns': list(line_ns)} | more


class Figures(unittest.TestCase):
    def test_a_row_has_the_median_with_the_least_and_the_greatest(self):
        self.assertEqual(stats.combine([{'x': 3, 'max_ns': 1}, {'x': None}, {'x': 1, 'max_ns': 7}, {'x': 2, 't': 'a'}]),
                         {'x': 2, 'x_least': 1, 'x_greatest': 3, 'max_ns': 7, 't': 'a'})

    def test_pairs_are_of_one_round_or_else_of_medians(self):
        runs = [run('a', 1, f=2), run('b', 1, f=1), run('a', 2, f=3), run('b', 2, f=3), run('a', 3, f=999)]
        self.assertEqual(stats.pairs(runs, 'a', 'b', 64, 'f'), [(2, 1), (3, 3)])
        self.assertEqual(stats.pairs([run('a', 1, f=6), run('b', 2, f=2)], 'a', 'b', 64, 'f'), [(6, 2)])
        self.assertEqual(stats.pairs([run('a', 1, f=6)], 'a', 'b', 64, 'f'), [])

    def test_as_text(self):
        for form, value, text in ((stats.us, 12345, '12.35'), (stats.us, 1234567, '1235'), (stats.us, None, 'n/a'),
                                  (stats.digits, 0.00373691, '0.003737'), (stats.digits, 24.8904, '24.89'),
                                  (stats.size, 65536, '64 KiB'), (stats.size, 1500, '1500 B'),
                                  (stats.seconds, 75, '1 min 15 s')):
            self.assertEqual(form(value), text)


class States(unittest.TestCase):
    def test_two_states_are_distinguished_if_they_differ_by_enough(self):
        self.assertIsNone(stats.between([340, 561, 420, None]))
        self.assertAlmostEqual(stats.between([140, 150, 565, 570, None]), 291.1, places=1)

    def test_an_outlier_is_no_state_and_moves_no_border(self):
        self.assertAlmostEqual(stats.between([140, 150, 565, 570, 9000]), 291.1, places=1)
        self.assertIsNone(stats.between([140, 150, 145, 9000]))

    def test_a_run_during_which_the_state_changed_is_left_out(self):
        runs = [run('a', 1, (140, 150)), run('a', 2, (140, 565)), run('a', 3, (565, 570)), run('b', 1, (140, 140))]
        self.assertEqual({state: len(some) for state, some in stats.by_state(runs, 281).items()}, {'near': 2, 'far': 1})

    def test_round_trips_of_the_cache_line(self):
        self.assertEqual(stats.describe_cpus([140, None, 150, 570, 570]), {'near_ns': 145, 'far_ns': 570})
        self.assertEqual(stats.describe_cpus([140, 150, 160]), {'line_ns': 150})
        self.assertEqual(stats.describe_cpus([None]), {})


class Histograms(BenchCase):
    def test_percentiles_need_ten_values_above_them(self):
        got = stats.percentiles([(100, 109, 50), (110, 119, 30), (120, 129, 20)], 128)
        self.assertEqual((got['p50_ns'], got['p90_ns'], got['p99_ns']), (109, 128, None))

    def test_percentiles_of_a_row_are_those_of_all_rounds_in_one(self):
        def runner(run):
            (run.folder / f'{run.row.key}.csv').write_text(
                f'low,high,count\n{run.round}00,{run.round}09,50\n300,309,1\n')
            return trips(count=51)
        _, session = self.bench(runner, '--only', 'rtt', '--rounds', '2', '--sizes', '64')
        row = next(row for row in schema.load(session.out)['parts']['rtt']['rows'] if row['key'] == 'shm-poll')
        self.assertEqual((row['count'], row['p50_ns'], row['rounds']), (102, 209, 2))
        self.assertEqual((session.out / row['histogram']).read_text(),
                         'low,high,count\n100,109,50\n200,209,50\n300,309,2\n')


class KeptResults(unittest.TestCase):
    """The results in doc/results: each report is what the bench writes, and README.md quotes one."""

    def test_reports_are_what_their_summaries_say(self):
        found = list((ROOT / 'doc/results').glob('*/summary.json'))
        self.assertTrue(found)
        for path in found:
            self.assertEqual(report.markdown(schema.load(path.parent)), path.with_name('report.md').read_text())

    def test_rows_of_the_readme_are_in_the_report_that_it_names(self):
        section = (ROOT / 'README.md').read_text().partition('\n## How fast')[2].partition('\n## ')[0]
        named = section.partition('](doc/results/')[2].partition(')')[0]
        lines = [' '.join(line.split()) for line in (ROOT / 'doc/results' / named).read_text().splitlines()]
        rows = [' '.join(line.replace('*', '').split()) for line in section.splitlines() if line.startswith('|')
                and any(map(str.isdigit, line)) and not line.startswith(('| full', '| messages'))]
        self.assertGreaterEqual(len(rows), 10)
        for row in rows:
            self.assertIn(row, lines)


if __name__ == '__main__':
    unittest.main()
