# SPDX-License-Identifier: BSD-3-Clause
"""The parts of the bench: what they read from programs, their thresholds, and their command lines."""
import collections
import os
import unittest
from unittest import mock

from bench_fake import BenchCase, trips

from bench import baselines, host, limits, report, schema
from bench.parts import ALL, verbs
from bench.processes import Failed
from bench.session import Run, fill


class Reading(unittest.TestCase):
    def test_half_round_trips_of_ucx_are_doubled(self):
        text = ('iterations,50.0_percentile_lat,avg_lat,overall_lat,avg_bw,overall_bw,avg_mr,overall_mr\n'
                ' 200,0.145,0.463,0.463,131.9,131.9,2161121,2161121\n')
        self.assertEqual(baselines.read_ucx(text, True, 64)['p50_ns'], 290)
        got = baselines.read_ucx(text, False, 64)
        self.assertEqual((got['messages_per_s'], got['bytes_per_s'], got['count']), (2161121, 138311744, 200))
        self.assertRaisesRegex(Failed, 'no figures', baselines.read_ucx, 'Address in use', True, 64)

    def test_half_round_trips_of_ib_send_lat_are_doubled(self):
        text = '\n'.join(['#, usec', *(f'{number}, {number}' for number in range(1, 1001)), '1000  1.00'])
        got, buckets = baselines.read_send_lat(text)
        self.assertEqual([got[name] for name in ('count', 'min_ns', 'p50_ns', 'p90_ns', 'p99_ns', 'p99_9_ns', 'max_ns')],
                         [1000, 2000, 1000000, 1800000, 1980000, None, 2000000])
        self.assertEqual(len(buckets), 1000)
        self.assertRaisesRegex(Failed, 'no times', baselines.read_send_lat, 'Unexpected CM event')


class Netio(BenchCase):
    def figures(self, key, data, least=None):
        part = self.begin('netio')
        run = Run(part.session, part, next(row for row in part.rows if row.key == key), 64, 1)
        (run.folder / 'subscribers.json').write_text('{"messages_per_s_least": %s}' % ('null' if least is None else least))
        return collections.defaultdict(type(None), part.read(run, data))

    def test_what_its_programs_write(self):
        for key, data, expected in (
                ('buffered-tcp', [{'messages': 7, 'mmsg_per_s': 3.5, 'gbit_per_s': 1.75}], (7, 3.5, 1.75, None, None)),
                ('ping-tcp', [{'round_trips': 5, 'p50_ns': 9000, 'p99_ns': 9900}], (5, None, None, 9000, None)),
                ('zmq-in-place', {'provider': 'zmq', 'messages_per_s': 2e6, 'bytes_per_s': 128e6, 'count': 9},
                 (9, 2, 1.024, None, None)),
                ('publish-buffered-4', {'mmsg_per_s': 14, 'gbit_per_s': 7.2, 'cycles_per_copy': 177, 'copies': 8},
                 (8, 14, 7.2, None, 177))):
            got = self.figures(key, data)
            self.assertEqual(tuple(got[name] for name in ('count', 'mmsg_per_s', 'gbit_per_s', 'p50_ns',
                                                          'cycles_per_copy')), expected)
        for data in ([], {}, {'error': 'unable to connect'}):
            self.assertRaisesRegex(Failed, 'nothing was measured', self.figures, 'buffered-tcp', data)

    def test_the_kept_share_is_what_all_received_and_was_published(self):
        data = {'messages': 1000, 'messages_per_s': 1.98e6, 'rate_asked': 2e6, 'cycles_per_copy': 177}
        self.assertEqual(self.figures('beside-drop-old', data, 2.1e6)['kept'], 0.99)
        got = self.figures('beside-drop-old', data, 1.9e6)
        self.assertEqual((got['kept'], got['mmsg_per_s'], got['count']), (0.95, 7.6, 4000))
        self.assertRaisesRegex(Failed, 'subscribers have measured nothing', self.figures, 'beside-drop-old', data)


class Thresholds(BenchCase):
    """A row for each kind of threshold: part, runs, what, and what is expected."""
    P50, RATE, GBIT = 'p50_ns', 'messages_per_s', 'gbit_per_s'
    CASES = (
        ('rtt', P50, {'tcp-poll': 1100, 'raw-tcp': 1000}, 64, 'tcp-poll over raw-tcp, p50_ns, 64 B', (1.1, True, True)),
        ('rtt', P50, {'tcp-poll': 1101, 'raw-tcp': 1000}, 64, 'tcp-poll over raw-tcp, p50_ns, 64 B', (1.101, False, True)),
        ('rtt', P50, {'shm-poll': 1101, 'raw-fi-plxshm': 1000}, 64, 'shm-poll minus raw-fi-plxshm, p50_ns, 64 B',
         (101, False, False)),
        ('stream', RATE, {'raw-fi-plxshm': 149, 'raw-fi-shm-nocma': 100}, 1 << 20,
         'raw-fi-plxshm over raw-fi-shm-nocma, messages_per_s, 1 MiB', (1.49, False, True)),
        ('stream', RATE, {'tcp-stream': 120, 'iperf3': 100, 'ucx-tcp': 60}, 65536,
         'tcp-stream over iperf3 and ucx-tcp, messages_per_s, 64 KiB', (1.2, True, False)),
        ('stream', RATE, {'tcp-stream': 5e6}, 64, 'tcp-stream, messages_per_s, 64 B', (5, True, False)),
        ('netio', 'kept', {'beside-conflate': 0.99}, 64, 'beside-conflate, kept', (0.99, True, False)),
        ('idle', 'wakes_per_s', {'none/balanced@shm': 2.1}, 64, 'none/balanced@shm, wakes_per_s', (2.1, False, True)),
        ('links', 'bytes_per_link', {'links-10000': 16384}, 4, 'links-10000, bytes_per_link', (16, True, True)),
        ('links', 'cpu_percent', {'links-1': 0.1, 'links-10000': 0.7}, 4, 'links-10000 minus links-1, cpu_percent',
         (0.6, False, True)),
        ('services', P50, {'call-1@tcp': 104, 'ping@tcp': 100}, 64, 'call-1@tcp over ping@tcp, p50_ns', (1.04, True, False)),
        ('services', 'lost', {'params-load@tcp': 0}, 64, 'params-load@tcp, lost', (0, True, False)),
        ('soak', 'alarms', {'buffered-tcp': 1}, 64, 'buffered-tcp, alarms', (1, False, True)))

    def test_just_reached_and_just_missed(self):
        for name, figure, values, size, what, expected in self.CASES:
            got = self.summary(name, *((key, size, {figure: value, 'max_ns': 9}) for key, value in values.items()))
            found = [(one['ratio'], one['ok'], one['gates']) for one in got['thresholds'] if one['what'] == f'{name}, {what}']
            self.assertEqual(found, [expected], [one['what'] for one in got['thresholds']])

    def test_each_is_of_a_row_that_exists(self):
        for name, part in ALL.items():
            for limit in limits.table(name):
                sizes = part.sizes or (8,)
                self.assertTrue(name in ('rings', 'instructions', 'verbs') or any(
                    limit.of({'key': row.key, 'size_bytes': size}) for row in part.rows for size in sizes), limit)

    def test_each_is_for_its_sizes(self):
        got = self.summary('rtt', *((key, size, trips()) for key in ('tcp-poll', 'raw-fi-tcp') for size in (64, 1024)))
        self.assertEqual([one['what'] for one in got['thresholds']], ['rtt, tcp-poll over raw-fi-tcp, p50_ns, 1 KiB'])

    def test_rings(self):
        ring = {'name': 'ring', 'variant': 'spsc', 'lcores': 2, 'burst': 1, 'cycles_per_elem': 10, 'cycles_least': 9,
                'cycles_greatest': 11, 'peer': 'rte_ring', 'peer_cycles_per_elem': 30}
        part = self.begin('rings')
        got = part.summarize([
            {'rows': [ring | {'state': 'far', 'rounds': 2, 'ratio': 9}, ring | {'state': 'near', 'rounds': 3, 'ratio': 0.3}]},
            {'hop': {'bare_ns': 100, 'bare': {'p50_ns': 100}, 'hot': {'p50_ns': 140, 'ratio': 1.4},
                     'quiet': {'p50_ns': 271, 'ratio': 2.71},
                     'idle-tcp': {'p50_ns': 170, 'ratio': 1.7, 'cold_poll_wait_ns': 30}}},
            {'caches': {'lcores': 2, 'bytes': 12288}}])
        self.assertEqual([(one['ratio'], one['ok']) for one in got['thresholds']],
                         [(0.3, True), (24, True), (1.4, True), (2.71, False), (1.4, True)])
        self.assertEqual(part.summarize([])['thresholds'], [])

    def test_instructions(self):
        got = self.begin('instructions').summarize([{'key': 'link tcp', 'instructions': 104, 'known': 100}])
        self.assertEqual([(one['ratio'], one['ok'], one['gates']) for one in got['thresholds']], [(1.04, False, True)])

    def test_one_counts_in_the_state_of_most_runs(self):
        part = self.begin('rtt')
        part.session.lines = [140, 140, 560, 560]
        runs = [{'key': key, 'size_bytes': 64, 'round': number, 'line_ns': [line], 'run': 'none'} | trips(p50)
                for key, number, line, p50 in (('raw-tcp', 1, 140, 1000), ('tcp-poll', 1, 140, 1100),
                                               ('raw-tcp', 2, 150, 1000), ('tcp-poll', 3, 560, 9000))]
        got = part.summarize(runs)
        self.assertEqual([(one['ratio'], one['state']) for one in got['thresholds']], [(1.1, 'near')])
        got = part.summarize([runs[0], runs[3]])
        self.assertEqual([(one['ratio'], one['ok'], one['note']) for one in got['thresholds']],
                         [(None, None, 'n/a: CPU state changed')])


class Peers(BenchCase):
    RATES = {'shm-stream': 10e9, 'ucx-tag-bw': 8e9, 'ucx-am-bw': 12e9, 'mpi-bw': 11e9, 'mpi-bw-cma': 12e9,
             'ucx-tag-bw-cma': 9e9, 'netio-unbuffered': 9e9, 'netio-buffered': 9.4e9}

    def made_up(self, run):
        trips_ns = {'shm-poll': 700, 'bare': 300}.get(run.row.key, 900)
        return trips(trips_ns) if run.row.figure else {'count': 1, 'bytes_per_s': self.RATES.get(run.row.key, 1e9)}

    def test_each_row_runs_and_is_compared(self):
        status, session = self.bench(self.made_up, '--only', 'peers', '--quick', '--rounds', '1')
        result = schema.load(session.out)['parts']['peers']
        row = {(row['key'], row['size_bytes']): row for row in result['rows']}
        self.assertEqual((status, len(row)), (0, 68))
        self.assertEqual([round(row[key][field], 3) for key, field in (
            (('mpi-lat', 64), 'ratio'), (('mpi-lat', 64), 'cache_lines'), (('shm-stream', 4096), 'ratio'),
            (('mpi-bw-cma', 65536), 'ratio'))], [1.286, 9, 1.25, 1.2])
        self.assertEqual({one['what'].removeprefix('peers, '): (one['ratio'], one['ok']) for one in result['thresholds']
                          if '4 KiB' in one['what'] or '64 KiB' in one['what'] or 'shm-poll' in one['what']}, {
            'shm-poll over ucx-am-lat and mpi-lat, p50_ns, 64 B': (0.7778, True),
            'shm-stream over ucx-tag-bw, bytes_per_s, 4 KiB': (1.25, False),
            'shm-stream over ucx-am-bw, bytes_per_s, 4 KiB': (0.8333, False),
            'shm-stream over mpi-bw and ucx-tag-bw, bytes_per_s, 64 KiB': (0.9091, False),
            'shm-stream over mpi-bw-cma and ucx-tag-bw-cma, bytes_per_s, 64 KiB': (0.8333, False),
            'netio-unbuffered over shm-stream, bytes_per_s, 64 KiB': (0.9, False)})
        page = (session.out / 'report.md').read_text()
        self.assertRegex(page, r'full round trip +\| p50, cache line 100 ns +\| cache lines ')
        self.assertRegex(page, r'\| Pollux, shared memory +\| 0.70 +\| 7.0 +\|')

    def test_rows_of_missing_software_are_left_out_with_what_installs_it(self):
        names = {name for row in ALL['peers'].rows for name in row.programs()} - {'peer-mpi', 'iox-roudi'}
        for chosen, count in ((('--only', 'peers'), 13), (('--full',), 13)):
            session = self.session(None, *chosen)
            session.use(dict.fromkeys(names, '/bin/false'))
            part = ALL['peers']()
            part.begin(session)
            self.assertEqual((len(part.chosen), session.failures, session.left_out), (count, [], [
                *(f'peers: {key}: {host.MPI}' if 'mpi' in key else f'peers: {key}: {host.ICEORYX}'
                  for key in ('mpi-lat', 'iceoryx-lat', 'mpi-bw', 'mpi-bw-cma', 'iceoryx-bw'))]))
            self.assertIn('scripts/setup.sh --for peers', session.left_out[0])
        session.use(dict.fromkeys(names - {'peer-iceoryx'}, '/bin/false'))
        session.left_out.clear()
        part.begin(session)
        self.assertEqual((part.chosen, session.left_out), ([], [f'peers: {host.MPI} and {host.ICEORYX}']))

    def test_each_end_has_its_cpu_and_its_transport(self):
        lines = {}

        def runner(run):
            programs = {name: name for name in run.row.programs()}
            lines[run.row.key, run.size] = [' '.join(fill(line, programs | run.values | {'address': 'A', 'port': 7}))
                                            for line in (run.row.server, run.row.client)]
            return self.made_up(run)
        self.bench(runner, '--only', 'peers', '--quick', '--rounds', '1')
        job = lines['mpi-bw', 64][1]
        self.assertRegex(job, 'mechanism none --mca smsc .* --listen pollux-peers --cpu 0 --size 64 --one-way : -np 1 .* peer-mpi '
                              '--connect pollux-peers --size 64 .* --cpu 1 --one-way$')
        self.assertIn('single_copy_mechanism cma -np', lines['mpi-bw-cma', 65536][1])
        self.assertIn('UCX_TLS=posix,cma,self', lines['ucx-tag-bw-cma', 65536][0])
        self.assertRegex(lines['netio-unbuffered', 64][0], '--rx-buf 65536')
        self.assertRegex(lines['iceoryx-lat', 256][0], '^peer-iceoryx --listen pollux-peers --size 256 .*--cpu 0$')

    def test_figures_of_netios_sockets_are_bytes(self):
        part = self.begin('peers')
        run = Run(part.session, part, next(row for row in part.rows if row.key == 'netio-buffered'), 64, 1)
        for text, expected in (('[{"messages": 7, "mmsg_per_s": 2}]', {'count': 7, 'messages_per_s': 2e6, 'bytes_per_s': 128e6}),
                               ('{"p50_ns": 5}', {'p50_ns': 5})):
            (run.folder / 'netio-buffered.json').write_text(text)
            self.assertEqual(part.read(run), expected)
        (run.folder / 'netio-buffered.json').write_text('[]')
        self.assertRaisesRegex(Failed, 'nothing was measured', part.read, run)


class HyperThreads(BenchCase):
    """The row between two hyper-threads of one core, and its own cache line."""
    def topology(self, **threads):
        for cpu, text in threads.items():
            folder = self.folder / cpu / 'topology'
            folder.mkdir(parents=True)
            (folder / 'thread_siblings_list').write_text(text + '\n')
        return str(self.folder)

    def test_siblings_are_two_allowed_cpus_of_one_core(self):
        root = self.topology(cpu0='0,4', cpu1='1,5', cpu5='1,5', cpu2='2', cpu3='3,7')
        for cpus, expected in (([0, 1, 4, 5], [0, 4]), ([0, 1, 5], [1, 5]), ([0, 1, 2, 3], []), ([9], [])):
            self.assertEqual(host.siblings(cpus, root), expected)

    def run_rtt(self, siblings):
        seen = {}

        def runner(run):
            seen[run.row.key] = run.values['server_cpu'], run.values['client_cpu']
            return trips(100) | ({'pair_ns': 50} if run.row.key == 'shm-poll-smt' else {})
        with mock.patch.object(host, 'siblings', lambda cpus: siblings):
            _, session = self.bench(runner, '--only', 'rtt', '--quick', '--rounds', '1', '--sizes', '64',
                                    probe=lambda: 400)
        return seen, session

    def test_its_ends_run_there_and_its_ratio_is_over_the_line_between_them(self):
        seen, session = self.run_rtt([3, 7])
        self.assertEqual((seen['shm-poll-smt'], seen['shm-poll']), ((3, 7), tuple(session.cpus[:2])))
        summary = schema.load(session.out)
        rows = {row['key']: row for row in summary['parts']['rtt']['rows']}
        self.assertEqual([rows[key]['cache_lines'] for key in ('shm-poll', 'shm-poll-smt')], [0.25, 2])
        self.assertIn('0.10 µs between two processes over shared memory (0.2 × a bare cache line there and back, 400 ns)',
                      report.headline(summary))

    def test_without_such_cpus_it_is_left_out(self):
        seen, session = self.run_rtt([])
        self.assertNotIn('shm-poll-smt', seen)
        self.assertEqual(session.left_out, ['rtt: shm-poll-smt: no two of the allowed CPUs are hyper-threads of one core'])

    def test_if_the_rows_run_there_a_note_says_it(self):
        cpus = sorted(os.sched_getaffinity(0))[:2]
        self.assertIn('are hyper-threads of one core', ' '.join(self.run_rtt(cpus)[1].notes))


class Verbs(BenchCase):
    def device(self, name, addresses, active=True, usable=True, gids=()):
        port = {'active': active, 'link_layer': 'Ethernet', 'rate': 'r', 'mtu_bytes': 4096, 'addresses': addresses,
                'gids': [{'gid': gid} for gid in gids]}
        return {'name': name, 'transport': 'InfiniBand', 'cpus': '2-3,9', 'usable': usable, 'node': 0, 'ports': [port]}

    def test_devices_with_an_active_port_and_an_ip_address_are_taken(self):
        info = {'rdma_cm': 'open', 'rdma': [
            self.device('a0', ['fe80::1', '2001:db8::1', '10.0.0.1']), self.device('vlan0', [], gids=['::ffff:10.0.2.1']),
            self.device('down0', ['10.0.3.1'], active=False), self.device('bare0', ['fe80::2']),
            self.device('dead0', ['10.0.4.1'], usable=False)]}
        self.assertEqual([(one['device'], one['address'], one['transport']) for one in verbs.usable_devices(info)],
                         [('a0', '10.0.0.1', 'RoCE'), ('vlan0', '10.0.2.1', 'RoCE')])
        self.assertEqual(verbs.usable_devices(info | {'rdma_cm': 'absent'}), [])

    def test_its_rows_run_on_each_device(self):
        info, lines = {'rdma_cm': 'open', 'rdma': [self.device('d0', ['10.0.0.1'])]}, {}

        def runner(run):
            lines[run.values['key']] = ' '.join(fill(run.row.server, run.values | {'port': 7} | dict.fromkeys(
                run.row.programs(), 'x')))
            return trips(11500 if 'verbs-poll' in run.row.key else 10000)
        with mock.patch.object(verbs.Verbs, 'info', lambda self, session: info):
            status, session = self.bench(runner, '--only', 'verbs', '--quick', '--rounds', '1', '--sizes', '64,1K')
        result = schema.load(session.out)['parts']['verbs']
        self.assertEqual((status, [(row['key'], row['size_bytes']) for row in result['rows']]), (0, [
            *((f'{name}@d0', 64) for name in ('ib-send-lat', 'raw-fi-verbs', 'verbs-poll', 'ib-send-lat-event',
                                              'raw-fi-verbs-event', 'verbs-event')),
            *((f'{name}@d0', 1024) for name in ('ib-send-lat', 'raw-fi-verbs', 'verbs-poll'))]))
        self.assertEqual([(one['what'], one['ratio'], one['ok']) for one in result['thresholds']], [
            ('verbs, verbs-poll@d0 over raw-fi-verbs, p50_ns, 64 B', 1.15, True),
            ('verbs, verbs-event@d0 over raw-fi-verbs-event, p50_ns, 64 B', 1, True)])
        self.assertIn('-d d0 -p 7 -s 64 -n 2000 -e', lines['ib-send-lat-event'])
        self.assertIn('--provider verbs', lines['verbs-poll'])


class CommandLines(BenchCase):
    VALUES = collections.defaultdict(lambda: '1', folder="it's \\a folder")

    def test_every_command_line_can_be_filled(self):
        for part in ALL.values():
            for row in part.rows:
                for line in (row.server, row.client):
                    self.assertFalse(any(character in ' '.join(fill(line, self.VALUES)) for character in '{$'))

    def test_a_folder_with_any_name_is_one_word(self):
        row = next(row for row in ALL['rtt'].rows if row.key == 'tcp-poll')
        self.assertIn("it's \\a folder", fill(row.client, self.VALUES))

    def test_a_quick_run_of_idle_measures_what_its_thresholds_need(self):
        part = self.begin('idle', '--only', 'idle', '--quick')
        rows = {row.key.split('@')[0] for row in part.chosen}
        self.assertTrue(len(rows) == 12 and {'none/balanced', 'silence/event', 'burst-1000/poll'} <= rows, rows)


if __name__ == '__main__':
    unittest.main()
