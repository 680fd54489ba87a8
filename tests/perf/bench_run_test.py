# SPDX-License-Identifier: BSD-3-Clause
"""A run of the bench: rounds, failures, interruption, its lock, and how processes end."""
import contextlib
import io
import json
import os
import signal
import time
import unittest
from pathlib import Path
from unittest import mock

from bench_fake import ROOT, BenchCase, trips

from bench import cli, host, processes, report, schema
from bench.processes import Failed

MAIN = ('--only', 'rtt', '--quick', '--sizes', '64')


class Rounds(BenchCase):
    def test_every_row_runs_once_a_round(self):
        order = []
        status, session = self.bench(lambda run: order.append((run.round, run.row.key)) or trips(), *MAIN, '--rounds', '2')
        rows = [row.key for row in session.parts[0].chosen]
        self.assertEqual(order, [(number, key) for number in (1, 2) for key in rows])
        self.assertEqual((status, session.progress.done), (0, session.progress.steps - 1))

    def test_the_result_follows_the_schema_and_has_its_files(self):
        _, session = self.bench(lambda run: trips(), *MAIN)
        summary = schema.load(session.out)
        self.assertEqual(list(summary['parts']), ['rtt'])
        self.assertIn('every_run', json.loads((session.out / 'rtt.json').read_text()))
        self.assertRegex((session.out / 'report.md').read_text(), r'\| Pollux, TCP +\| 7.00 ')
        self.assertIn('<h2 class="h2">rtt</h2>', (session.out / 'report.html').read_text())

    def test_the_schema_refuses_what_is_no_result(self):
        _, session = self.bench(lambda run: trips(), *MAIN, '--rounds', '1')
        summary = schema.load(session.out)
        for change in ({'schema': 'pollux-bench/1'}, {'cpus': None}, {'thresholds': [{}]}, {'parts': {'rtt': {}}}):
            with self.assertRaises(processes.UsageError):
                schema.check(summary | change)
        summary['parts']['rtt']['rows'][0]['p50_ns'] = 'slow'
        self.assertRaisesRegex(processes.UsageError, 'p50_ns', schema.check, summary)

    def test_a_run_during_which_the_state_changed_is_repeated(self):
        lines, count = iter([100, 100, 500, 100]), []
        status, session = self.bench(lambda run: count.append(run.row.key) or trips(), *MAIN, '--rounds', '1',
                                     probe=lambda: next(lines, 100))
        self.assertEqual(count.count(count[0]), 1)
        self.assertEqual(count.count(count[1]), 3)
        self.assertEqual((status, session.parts[0].summarize(session.runs['rtt'])['changed']), (0, 2))

    def test_a_doubted_run_is_repeated_once_and_then_fails(self):
        count = []

        def runner(run):
            run.doubted = run.row.key == 'tcp-poll'
            count.append(run.row.key)
            return trips()
        status, session = self.bench(runner, *MAIN, '--rounds', '1')
        self.assertEqual((status, count.count('tcp-poll'), count.count('raw-tcp')), (1, 2, 1))
        self.assertIn('could not account for its time', session.failures[0])

    def test_a_late_run_gives_reasons(self):
        _, session = self.bench(lambda run: trips(), *MAIN, '--rounds', '1')
        session.progress.lost['slow starts'] = 99
        session.progress.begun = time.monotonic() - 1000
        self.assertIn('slow starts (1 min 39 s)', session.progress.why_late())
        session.progress.begun = time.monotonic()
        self.assertIsNone(session.progress.why_late())


class Failures(BenchCase):
    def failing(self, *keys):
        def runner(run):
            if run.row.key in keys:
                raise Failed('client: status 1: no memory | it ended')
            return trips()
        return self.bench(runner, *MAIN, '--rounds', '1')

    def test_a_failed_baseline_is_reported_but_does_not_fail_the_run(self):
        status, session = self.failing('raw-tcp', 'raw-fi-tcp')
        summary = schema.load(session.out)
        self.assertEqual((status, summary['failures']), (0, []))
        self.assertIn('A baseline failed: rtt, raw-tcp, 64 B, round 1: client: status 1: no memory',
                      ' '.join(summary['notes']))
        self.assertNotIn('rtt, tcp-poll over raw-tcp, p50_ns, 64 B', [one['what'] for one in summary['thresholds']])

    def test_a_failed_row_of_pollux_fails_it_with_its_cause(self):
        status, session = self.failing('tcp-poll')
        self.assertEqual(status, 1)
        self.assertRegex((session.out / 'report.md').read_text(),
                         r'failed +\| rtt, tcp-poll, 64 B, round 1: client: status 1: no memory \| it ended')

    def test_strict_judges_gates(self):
        slow = {'tcp-poll': 9000}

        def runner(run):
            return trips(slow.get(run.row.key, 7000))
        self.assertEqual(self.bench(runner, *MAIN)[0], 0)
        self.assertEqual(self.bench(runner, *MAIN, '--strict')[0], 3)

    def test_an_interrupted_run_leaves_a_report_of_what_is_complete(self):
        processes.raise_on_signals()
        self.addCleanup(signal.signal, signal.SIGINT, signal.default_int_handler)
        self.addCleanup(signal.signal, signal.SIGTERM, signal.SIG_DFL)

        def interrupt(signum):
            os.kill(os.getpid(), signum)
            time.sleep(10)
        for signum, status in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
            count = []

            def runner(run):
                count.append(run)
                if len(count) == 5:
                    interrupt(signum)
                return trips()
            got, session = self.bench(runner, *MAIN, '--rounds', '1')
            summary = schema.load(session.out)
            self.assertEqual((got, len(summary['parts']['rtt']['rows'])), (status, 4))
            self.assertIn('Interrupted after 4 of', (session.out / 'report.md').read_text())

    def test_an_interruption_of_the_last_step_leaves_a_report(self):
        processes.raise_on_signals()
        self.addCleanup(signal.signal, signal.SIGINT, signal.default_int_handler)
        write, count = report.write, []

        def interrupted(*arguments):
            count.append(1)
            if len(count) == 1:
                os.kill(os.getpid(), signal.SIGINT)
            return write(*arguments)
        with mock.patch.object(report, 'write', interrupted):
            status, session = self.bench(lambda run: trips(), *MAIN, '--rounds', '1')
        self.assertEqual((status, (session.out / 'report.html').is_file()), (130, True))


class Processes(BenchCase):
    def setUp(self):
        super().setUp()
        self.all = processes.Processes()
        self.addCleanup(self.all.end)

    def start(self, script):
        return self.all.start('x', ['bash', '-c', script], self.folder)

    def test_all_end_with_what_they_started(self):
        process = self.start('trap "" TERM; sleep 1000 & echo child $!; wait')
        child = int(process.wait_for(r'child (\d+)', 20)[1])
        begun = time.monotonic()
        self.all.end()
        self.assertLess(time.monotonic() - begun, 20)
        deadline = time.monotonic() + 30
        while not self.has_ended(child):
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)

    @staticmethod
    def has_ended(pid):
        """Without an init that reaps, it stays a zombie."""
        try:
            return Path(f'/proc/{pid}/stat').read_text().rpartition(')')[2].split()[0] == 'Z'
        except (FileNotFoundError, ProcessLookupError):
            return True

    def test_its_cause_is_the_end_of_standard_error(self):
        process = self.start('echo "  1.5 us | ####"; echo "no route" >&2; echo "try another" >&2; exit 1')
        self.assertEqual((process.wait(20), process.last_words()), (1, 'no route | try another'))

    def test_one_that_takes_too_long_is_noticed(self):
        self.assertIsNone(self.start('sleep 1000').wait(0.1))

    def test_its_cpu_time_is_watched_to_its_end(self):
        process = self.start('end=$((SECONDS + 1)); while ((SECONDS < end)); do :; done; sleep 0.3')
        watch = processes.Watch(process)
        self.assertEqual(process.wait(60, [watch]), 0)
        self.assertGreater(watch.cpu_percent, 0)
        self.assertLess(watch.cpu_percent, 100)


class Programs(BenchCase):
    """A row with programs that are made up."""
    PING = """#!/bin/bash
        [[ $* == *--listen* ]] && echo "listening on 127.0.0.1:7" && exec sleep 1000
        [[ $* == *"--connect 127.0.0.1:7 --size 64 "* ]] || exit 9
        while [[ $1 != --out ]]; do shift; done
        echo '{"p50_ns": 5, "max_ns": 7, "count": 3}' >$2/$4.json"""

    def run_once(self, key, more=''):
        program = self.folder / 'ping'
        program.write_text(self.PING + more)
        program.chmod(0o755)
        part = self.begin('rtt')
        part.session.runner = None
        part.session.use({'plx-ping': str(program), 'many_links': '/bin/false'})
        return part.run_once(next(row for row in part.rows if row.key == key), 64, 1), part.session.failures

    def test_a_row_is_a_server_and_a_client(self):
        result, failures = self.run_once('tcp-poll')
        self.assertEqual((result['p50_ns'], result['count'], failures), (5, 3, []))

    def test_a_failure_shows_its_cause(self):
        self.assertEqual(self.run_once('tcp-poll', '\necho "no luck" >&2; exit 4'),
                         (None, ['rtt, tcp-poll, 64 B, round 1: client: status 4: no luck']))
        self.assertIn('round 1: stopped', self.run_once('tcp-poll-idle')[1][0])


class Starting(BenchCase):
    def refused(self, *arguments):
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            status = cli.main(list(arguments))
        return status, said.getvalue()

    def test_wrong_arguments_are_refused_before_anything_else(self):
        alone = 'exclude each other; give one of them'
        for text, *arguments in (
                ("unknown option '--bogus'", '--bogus'), ('cannot be made', '--out', '/dev/null/x'),
                ("--only 'soak': give one of rtt stream rings", '--only', 'soak'), ("--only '': give one of", '--only', ''),
                (f'--full and --only: they {alone}', '--only', 'rtt', '--full'), (alone, '--soak', '--full'),
                (alone, '--live', 'a:1', '--connect', 'b:1'), (alone, '--serve', '--connect', 'b:1'),
                ('that part is of one host', '--only', 'rings', '--serve'),
                ('that part is of one host', '--only', 'netio', '--connect', 'host:1'),
                ('that is for the part verbs', '--only', 'rtt', '--device', 'rxe0'),
                ("--sizes '64,0': give sizes from 1 to 16M", '--sizes', '64,0'), ('the largest is 16M', '--sizes', '17M'),
                ('that is for --live', '--provider', 'tcp'), ("--connect 'host': give HOST:PORT", '--connect', 'host'),
                ("'sockets': give auto, tcp, shm or verbs", '--provider', 'sockets', '--live', 'localhost:1'),
                ('that is for --serve', '--listen', 'a:1'), ('the largest is 64K', '--live', 'h:1', '--sizes', '1M'),
                ('2 arguments', '--compare', 'x'), ('there is no summary.json', '--compare', '/nonexistent', '/nowhere'),
                ('there is no summary.json', '--report', '/nonexistent'), ('a whole number from 1', '--rounds', 'x'),
                ('--only: given twice; give it once', '--only', 'rtt', '--only', 'netio'),
                ('--report has no use for it; leave it out', '--report', '/nonexistent', '--out', 'x'),
                ('seconds above 0', '--duration', 'x'), ('seconds above 0', '--duration', '0.0'),
                ('expected one argument', '--out')):
            with mock.patch.object(host, 'lock', side_effect=AssertionError):
                status, said = self.refused(*arguments)
            self.assertEqual(status, 2, arguments)
            self.assertIn(text, said)

    def test_one_of_a_checkout_runs_at_a_time(self):
        lock = host.lock(self.folder)
        self.assertRaisesRegex(Failed, rf'in this checkout \(process {os.getpid()}, since 20.*end it', host.lock, self.folder)
        lock.close()
        host.lock(self.folder).close()
        (self.folder / 'file').mkdir()
        (self.folder / 'file/build-bench').touch()
        self.assertRaisesRegex(Failed, 'cannot be written, and bench.sh builds there', host.lock, self.folder / 'file')

    def test_a_library_that_came_after_the_build_folder_is_found(self):
        steps = []

        def run(_, command, *more):
            steps.append([*map(str, command)][:3])
            names = ['plx-ping'] + ['peer-mpi'] * (['meson', 'setup', '--reconfigure'] in steps)
            return json.dumps([{'name': name, 'type': 'executable', 'filename': [f'/b/{name}']} for name in names])
        session = self.session(None)
        with mock.patch.object(host, 'run', run), mock.patch.object(host.subprocess, 'run') as installed:
            installed.return_value.returncode = 0
            self.assertNotIn(['meson', 'setup', '--reconfigure'], host.build(session, {'plx-ping'}) and steps)
            self.assertEqual(host.build(session, {'plx-ping', 'peer-mpi'})['peer-mpi'], '/b/peer-mpi')
        self.assertIn(['meson', 'configure', '--clearcache'], steps)

    def test_help_lists_every_option(self):
        said = io.StringIO()
        with contextlib.redirect_stdout(said), self.assertRaises(SystemExit):
            cli.main(['--help'])
        page = (ROOT / 'doc/apps/bench.md').read_text()
        for option in ('--report DIR', '--compare', '--soak', '--live HOST:PORT', '--strict'):
            self.assertIn(option, said.getvalue())
            self.assertTrue(option in page, option)


if __name__ == '__main__':
    unittest.main()
