# SPDX-License-Identifier: BSD-3-Clause
"""The parts of the bench: what they read from programs, their thresholds, and their command lines."""
import unittest
from unittest import mock

from bench_fake import BenchCase, trips

from bench import baselines, rows, schema
from bench.parts import ALL, idle, verbs
from bench.run import Failed, Run


class Reading(unittest.TestCase):
    def test_half_round_trips_of_ucx_are_doubled(self):
        text = ('iterations,50.0_percentile_lat,avg_lat,overall_lat,avg_bw,overall_bw,avg_mr,overall_mr\n'
                ' 200,0.145,0.463,0.463,131.9,131.9,2161121,2161121\n')
        self.assertEqual(baselines.read_ucx(text, 'tag_lat', 64)['p50_ns'], 290)
        got = baselines.read_ucx(text, 'tag_bw', 64)
        self.assertEqual((got['messages_per_s'], got['bytes_per_s'], got['count']), (2161121, 138311744, 200))
        self.assertRaisesRegex(Failed, 'no figures', baselines.read_ucx, 'Address in use', 'tag_bw', 64)

    def test_half_round_trips_of_ib_send_lat_are_doubled(self):
        text = '\n'.join(['#, usec', *(f'{number}, {number}' for number in range(1, 1001)), '1000  1.00'])
        got, times = baselines.read_send_lat(text, 'poll')
        self.assertEqual([got[name] for name in ('count', 'min_ns', 'p50_ns', 'p90_ns', 'p99_ns', 'p99_9_ns', 'max_ns')],
                         [1000, 2000, 1000000, 1800000, 1980000, None, 2000000])
        self.assertEqual(len(times), 1000)
        self.assertRaisesRegex(Failed, 'no times', baselines.read_send_lat, 'Unexpected CM event', 'poll')


class Netio(BenchCase):
    def figures(self, key, data, least=None, size=64):
        session = self.session(lambda run: {}, '--only', 'netio')
        part = ALL['netio']()
        part.begin(session)
        row = next(row for row in part.rows if row.key == key)
        run = Run(session, part, row, size, 1)
        (run.folder / 'subscribers.json').write_text('{"messages_per_s_least": %s}' % ('null' if least is None else least))
        return part.figures(run, data)

    def test_what_its_programs_write(self):
        got = self.figures('buffered-tcp', [{'messages': 7, 'mmsg_per_s': 3.5, 'gbit_per_s': 1.75}])
        self.assertEqual((got['provider'], got['mmsg_per_s'], got['gbit_per_s'], got['count']), ('tcp', 3.5, 1.75, 7))
        got = self.figures('ping-tcp', [{'round_trips': 5, 'p50_ns': 9000, 'p99_ns': 9900}])
        self.assertEqual((got['p50_ns'], got['count'], got.get('mmsg_per_s')), (9000, 5, None))
        got = self.figures('zmq-in-place', {'provider': 'zmq', 'messages_per_s': 2e6, 'bytes_per_s': 128e6, 'count': 9})
        self.assertEqual((got['provider'], got['mmsg_per_s'], got['gbit_per_s']), ('zmq', 2, 1.024))
        got = self.figures('publish-buffered-4', {'mmsg_per_s': 14, 'gbit_per_s': 7.2, 'cycles_per_copy': 177, 'copies': 8})
        self.assertEqual((got['cycles_per_copy'], got['subscribers'], got['count']), (177, 4, 8))

    def test_the_kept_share_is_what_all_received_and_was_published(self):
        data = {'messages': 1000, 'messages_per_s': 1.98e6, 'rate_asked': 2e6, 'cycles_per_copy': 177}
        self.assertEqual(self.figures('beside-drop-old', data, 2.1e6)['kept'], 0.99)
        got = self.figures('beside-drop-old', data, 1.9e6)
        self.assertEqual((got['kept'], got['mmsg_per_s'], got['count']), (0.95, 7.6, 4000))
        self.assertRaisesRegex(Failed, 'subscribers have measured nothing', self.figures, 'beside-drop-old', data)

    def test_nothing_is_no_run(self):
        for data in ([], {}, {'error': 'unable to connect'}):
            self.assertRaisesRegex(Failed, 'nothing was measured', self.figures, 'buffered-tcp', data)


class Thresholds(BenchCase):
    def judged(self, name, what, *figures, **more):
        """(ratio, ok, gates) of a threshold, after one round of (key, size, figures)."""
        part = self.part(name, [(key, size, 1, {'count': 1, 'provider': 'p', 'min_ns': 1, 'max_ns': 9} | figure)
                                for key, size, figure in figures], '--only', name, **more)
        found = [one for one in part['thresholds'] if one['what'] == what]
        self.assertEqual(len(found), 1, [one['what'] for one in part['thresholds']])
        return found[0]['ratio'], found[0]['ok'], found[0]['gates']

    def test_just_reached_and_just_missed(self):
        for own, ok in ((1100, True), (1101, False)):
            self.assertEqual(self.judged('rtt', 'tcp-poll over raw-tcp, p50, 64 B', ('tcp-poll', 64, trips(own)),
                                         ('raw-tcp', 64, trips(1000)))[1:], (ok, True))
            self.assertEqual(self.judged('rtt', 'shm-poll over raw-fi-plxshm, p50, 64 B, 100 ns more', (
                'shm-poll', 64, trips(own)), ('raw-fi-plxshm', 64, trips(1000)))[1:], (ok, False))
        for own, ok in ((150, True), (149, False)):
            self.assertEqual(self.judged('stream', 'one way, raw-fi-plxshm over raw-fi-shm-nocma, 1 MiB', *(
                (key, 1 << 20, {'messages_per_s': value, 'bytes_per_s': 1}) for key, value in
                (('raw-fi-plxshm', own), ('raw-fi-shm-nocma', 100))))[1:], (ok, True))

    def test_the_best_of_several_baselines_counts(self):
        rates = (('tcp-stream', 120), ('iperf3', 100), ('ucx-tcp', 60))
        self.assertEqual(self.judged('stream', 'one way, tcp-stream over the best of iperf3 and ucx-tcp, 64 KiB', *(
            (key, 65536, {'messages_per_s': value, 'bytes_per_s': 1}) for key, value in rates)), (1.2, True, False))

    def test_netio(self):
        def row(key, size, **figures):
            return key, size, {'test': 't', 'subscribers': None} | figures
        for what, gates, base, own, ok in (
                ('netio, publish-buffered-16 over publish-buffered-1, 64 B, cycles/copy', True, 400, 461, False),
                ('netio, publish-unbuffered-16 over publish-unbuffered-4, 64 KiB, cycles/copy', False, 100, 110, True)):
            key, base_key = what[7:].split(',')[0].split(' over ')
            size = 64 if '64 B' in what else 65536
            self.assertEqual(self.judged('netio', what, row(key, size, cycles_per_copy=own),
                                         row(base_key, size, cycles_per_copy=base))[1:], (ok, gates))
        self.assertEqual(self.judged('netio', 'netio, beside-conflate over publish-buffered-4, 64 B, kept of half its rate',
                                     row('beside-conflate', 64, kept=0.99)), (0.99, True, False))
        self.assertEqual(self.judged('netio', 'netio, ping-shm over shm-poll, 64 B, p50', row('ping-shm', 64, p50_ns=501),
                                     row('shm-poll', 64, p50_ns=400))[1:], (False, False))

    def test_links(self):
        figures = {'longest_turn_ns': 6e6, 'bytes_per_link': 16384, 'cpu_percent': 0.1, 'wakes_per_s': 9, 'links': 1}
        found = [(f'links-{count}', 4, figures | {'turn_ns': ns}) for count, ns in ((1, 100), (10000, 120), (15000, 1))]
        for what, expected in (
                ('links, an idle turn with 10000 idle links over one with 1', (1.2, True, True)),
                ('links, KiB of memory of an idle link', (16, True, True)),
                ('links, CPU % with 10000 idle links above that with 1', (0, True, True)),
                ('links, the longest turn while 15000 come, ms of CPU time', (6, False, False))):
            self.assertEqual(self.judged('links', what, *found), expected)

    def test_idle(self):
        def row(key, p50=None, **figures):
            return key, 64, {'p50_ns': p50, 'doubted': False, 'rate': 0, 'arrival': 'x', 'policy': 'x'} | figures
        self.assertEqual(self.judged('idle', 'idle, shm, balanced, wakes/s with nobody there',
                                     row('none/balanced@shm', wakes_per_s=2.1, cpu_percent=0)), (2.1, False, True))
        queue = [row('poisson-1000/poll@tcp', 1000), row('burst-1000/poll@tcp', 3000), row('burst-1000/balanced@tcp', 6000)]
        what = 'idle, tcp, balanced over poll, p50, bursts of 100'
        self.assertEqual(self.judged('idle', what, *queue), (2, False, False))
        part = self.part('idle', [(key, size, 1, figure) for key, size, figure in queue], '--only', 'idle')
        self.assertIn("messages queue: 3 times poll's p50", next(
            one for one in part['thresholds'] if one['what'] == what)['note'])

    def test_services(self):
        rates = {'call-64@tcp': 2e6, 'call-100@tcp': 6.5e6, 'call-100000@tcp': 5e6}
        runs = [(key, 64, {'rate_per_s': rate, 'p50_ns': 1, 'lost': 0, 'doubted': False}) for key, rate in rates.items()]
        self.assertEqual(self.judged('services', 'services over tcp, 100000 open over 100, time per call', *runs),
                         (1.3, True, False))
        self.assertEqual(self.judged('services', 'services over tcp, 64 open, calls per second', *runs), (2e6, True, False))
        gaps = {'duration_ns': 1000, 'cpus': [{'gap_total_ns': 10, 'longest_ns': 7}, {'gap_total_ns': 25, 'longest_ns': 5}]}
        part = self.part('services', [(f'{key}@shm', 64, 1, {'p50_ns': 1, 'p99_ns': 9, 'rate_per_s': 1, 'lost': 0,
                                                            'doubted': False}) for key in ('half', 'quiet')],
                         '--only', 'services', hiccups=gaps)
        self.assertEqual(part['platform'], {'held_up_percent': 2.5, 'met_percent': 7, 'longest_ns': 7})
        self.assertIn('7 % of such calls', part['thresholds'][0]['note'])

    def test_rings(self):
        ring = {'name': 'ring', 'variant': 'spsc', 'lcores': 2, 'burst': 1, 'cycles_per_elem': 10, 'cycles_least': 9,
                'cycles_greatest': 11, 'peer': 'rte_ring'}
        part = ALL['rings']()
        got = part.summarize([
            {'rows': [ring | {'state': 'far', 'rounds': 2, 'ratio': 9},
                      ring | {'state': 'near', 'rounds': 3, 'ratio': 0.3}]},
            {'hop': {'bare_ns': 100, 'hot': {'p50_ns': 140, 'ratio': 1.4}, 'quiet': {'p50_ns': 271, 'ratio': 2.71},
                     'idle-tcp': {'p50_ns': 170, 'ratio': 1.7, 'cold_poll_wait_ns': 30}}},
            {'caches': {'lcores': 2, 'bytes': 12288}}])
        self.assertEqual([(one['ratio'], one['ok']) for one in got['thresholds']],
                         [(0.3, True), (24, True), (1.4, True), (2.71, False), (1.4, True)])
        self.assertEqual(part.summarize([])['thresholds'], [])


class States(BenchCase):
    def test_a_threshold_counts_in_the_state_of_most_runs(self):
        session = self.session(lambda run: {}, '--only', 'rtt')
        session.lines = [140, 560]
        part = ALL['rtt']()
        part.begin(session)
        runs = [{'key': key, 'size_bytes': 64, 'round': number, 'line_ns': [line], 'run': 'none'} | trips(p50)
                for key, number, line, p50 in (('raw-tcp', 1, 140, 1000), ('tcp-poll', 1, 140, 1100),
                                               ('raw-tcp', 2, 150, 1000), ('tcp-poll', 3, 560, 9000))]
        got = part.summarize(runs)
        self.assertEqual([(one['ratio'], one['state']) for one in got['thresholds']], [(1.1, 'near')])
        got = part.summarize([runs[0], runs[3]])
        self.assertEqual([(one['ratio'], one['ok'], one['note']) for one in got['thresholds']],
                         [(None, None, 'n/a: CPU state changed')])


class Verbs(BenchCase):
    def device(self, name, addresses, active=True, usable=True, gids=()):
        return {'name': name, 'transport': 'InfiniBand', 'cpus': '2-3,9', 'usable': usable, 'node': 0,
                'inline_max_bytes': 220, 'ports': [{'active': active, 'link_layer': 'Ethernet', 'rate': 'r', 'mtu_bytes': 4096, 'netdev': 'ens1',
                           'addresses': addresses, 'gids': [{'gid': gid, 'netdev': 'ens1.7'} for gid in gids]}]}

    def test_devices_with_an_active_port_and_an_ip_address_are_taken(self):
        info = {'rdma_cm': 'open', 'rdma': [
            self.device('a0', ['fe80::1', '2001:db8::1', '10.0.0.1']), self.device('vlan0', [], gids=['::ffff:10.0.2.1']),
            self.device('down0', ['10.0.3.1'], active=False), self.device('bare0', ['fe80::2']),
            self.device('dead0', ['10.0.4.1'], usable=False)]}
        self.assertEqual([(one['device'], one['address'], one['transport']) for one in verbs.usable_devices(info)],
                         [('a0', '10.0.0.1', 'RoCE'), ('vlan0', '10.0.2.1', 'RoCE')])
        self.assertEqual(verbs.usable_devices(info | {'rdma_cm': 'absent'}), [])

    def test_without_one_the_reason_is_given(self):
        self.assertEqual(verbs.why_none({'rdma': []}), 'this host has no RDMA device')
        self.assertEqual(verbs.why_none({'rdma': [1], 'doctor': [{'id': 'rdma-port', 'seen': 'no port'},
                                                                {'id': 'smt', 'seen': 'x'}]}), 'no port')

    def test_its_rows_run_on_each_device(self):
        info = {'rdma_cm': 'open', 'rdma': [self.device('d0', ['10.0.0.1'])]}
        lines = {}

        def runner(run):
            run.part.prepare(run)
            run.values |= {'address': '10.0.0.1:7', 'port': 7}
            lines[run.values['key']] = ' '.join(rows.fill(run.row.server, run.values | dict.fromkeys(run.row.programs(), 'x')))
            return trips(11500 if 'verbs-poll' in run.row.key else 10000) | {'device': 'd0', 'name': run.values['key']}
        with mock.patch.object(verbs.Verbs, 'info', lambda self: info):
            status, session = self.bench(runner, '--only', 'verbs', '--quick', '--rounds', '1', '--sizes', '64,1K')
        result = schema.load(session.out)['parts']['verbs']
        self.assertEqual(status, 0)
        self.assertEqual([(row['key'], row['size_bytes']) for row in result['rows']], [
            *((f'{name}@d0', 64) for name in ('ib-send-lat', 'raw-fi-verbs', 'verbs-poll', 'ib-send-lat-event',
                                              'raw-fi-verbs-event', 'verbs-event')),
            *((f'{name}@d0', 1024) for name in ('ib-send-lat', 'raw-fi-verbs', 'verbs-poll'))])
        self.assertEqual([(one['what'], one['ratio'], one['ok']) for one in result['thresholds']], [
            ('verbs on d0, verbs-poll over raw-fi-verbs, 64 B, p50', 1.15, True),
            ('verbs on d0, verbs-event over raw-fi-verbs-event, 64 B, p50', 1, True)])
        self.assertIn('-d d0 -p 7 -s 64 -n 2000 -e', lines['ib-send-lat-event'])
        self.assertIn('--provider verbs', lines['verbs-poll'])


class CommandLines(BenchCase):
    def test_every_command_line_can_be_filled(self):
        values = dict.fromkeys(rows.VALUES, '1')
        for part in ALL.values():
            for row in part.rows:
                for line in (row.server, row.client):
                    words = rows.fill(line, values | {name: f'/bin/{name}' for name in row.programs()})
                    self.assertNotIn('{', ' '.join(words))

    def test_a_folder_with_any_name_is_one_word(self):
        row = next(row for row in ALL['rtt'].rows if row.key == 'tcp-poll')
        values = dict.fromkeys(rows.VALUES, '1') | {'folder': "it's \\a folder", 'plx-ping': 'ping'}
        self.assertIn("it's \\a folder", rows.fill(row.client, values))

    def test_a_quick_run_of_idle_measures_what_its_thresholds_need(self):
        session = self.session(lambda run: {}, '--only', 'idle', '--quick')
        part = ALL['idle']()
        part.begin(session)
        self.assertEqual({row.key.split('@')[0] for row in part.chosen}, set(idle.NEEDED))


if __name__ == '__main__':
    unittest.main()
