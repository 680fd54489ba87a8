# SPDX-License-Identifier: BSD-3-Clause
"""The part verbs: round trips over RDMA devices, through Pollux, libfabric alone and perftest's ib_send_lat."""
import collections
import json
import re
import shutil
import socket
import subprocess
import time

from bench import words
from bench.baselines import read_send_lat
from bench.limits import Limit, ratio
from bench.part import Part, Table, trips
from bench.rows import Row, baseline, only, ping
from bench.run import SILENT_START_S, Failed
from bench.session import UsageError, cpus_of

EVENT_SIZE = 64  # the one size of rows that sleep
PORTS = {'raw-fi-verbs': 0, 'raw-fi-verbs-event': 1, 'verbs-poll': 2, 'verbs-event': 3, 'ib-send-lat': 4,
         'ib-send-lat-event': 4}  # ib_send_lat serves one size at each port
SOURCE = ("J. Schumacher's talk on NetIO's event-driven reimplementation: two hosts with ConnectX-5, RoCE at 100 Gb/s, "
          'one switch')
REFERENCES = [{'name': f'netio-talk-{idle}', 'ns': ns, 'idle': idle, 'source': SOURCE,
               'what': f'{ns // 1000 if ns % 1000 == 0 else ns / 1000} us, twice the {half} us of ib_send_lat{option}, '
                       'average, size not given'}
              for idle, ns, half, option in (('poll', 3200, 1.6, ''), ('event', 8000, 4, ' -e'))]


def usable_devices(info):
    """From plx-info --format json: devices with an active port and an IP address."""
    found = {}
    for device in info.get('rdma', []) if info.get('rdma_cm') == 'open' else []:
        for port in device['ports'] if device['usable'] else []:
            mapped = [gid['gid'].removeprefix('::ffff:') for gid in port['gids'] if gid['gid'].startswith('::ffff:')]
            addresses = sorted((address for address in port['addresses'] + mapped if not address.startswith('fe80:')),
                               key=lambda address: ':' in address)
            if port['active'] and addresses:
                over_ethernet = device['transport'] == 'InfiniBand' and port['link_layer'] == 'Ethernet'
                found.setdefault(device['name'], {
                    'device': device['name'], 'transport': 'RoCE' if over_ethernet else device['transport'],
                    'rate': port['rate'], 'mtu_bytes': port['mtu_bytes'], 'node': device['node'],
                    'cpus': device['cpus'], 'inline_max_bytes': device['inline_max_bytes'], 'address': addresses[0],
                    'netdevs': sorted({port['netdev'], *(gid['netdev'] for gid in port['gids'])} - {None})})
    return list(found.values())


def why_none(info):
    """Why there is no usable device."""
    if not info:
        return 'plx-info shows none'
    if info.get('rdma') == []:
        return 'this host has no RDMA device'
    return '; '.join(check['seen'] for check in info.get('doctor', []) if check['id'].startswith('rdma'))


def netdev_to(host):
    """The network interface on the route to a host."""
    try:
        address = socket.getaddrinfo(host.strip('[]'), None)[0][4][0]
        route = subprocess.run(['ip', '-j', 'route', 'get', address], capture_output=True, timeout=10, check=True)
        return json.loads(route.stdout)[0].get('dev')
    except (OSError, ValueError, IndexError, subprocess.SubprocessError):
        return None


def rows_of(device):
    """Compared rows are adjacent."""
    name, rows = device['device'], []
    for suffix, idle, option in (('', 'poll', ''), ('-event', 'event', ' -e')):
        more = {'port': 0, 'more': {'device': device, 'idle': idle}} | ({'has': only(EVENT_SIZE)} if suffix else {})
        bases = (f'ib-send-lat{suffix}@{name}',)
        send_lat = ('taskset -c {cpu} {ib_send_lat} -R -F -H -d {device} -p {port} -s {size} -n {rounds}' + option)
        rows += [
            Row(f'ib-send-lat{suffix}@{name}', ours=False, server=send_lat, client=send_lat, **more),
            baseline(f'raw-fi-verbs{suffix}@{name}', '{raw-fi}', f'--provider verbs --idle {idle}', bases=bases,
                     **more),
            ping(f'verbs-{idle}@{name}', idle, 'verbs', bases=(f'raw-fi-verbs{suffix}@{name}',), **more)]
    return rows


class Verbs(Part):
    name = 'verbs'
    title = 'Round trips over RDMA devices'
    explained = ('Full round trips in microseconds, each device to itself or to another host. event rows sleep for '
                 'every message, on both ends. ib_send_lat reports half round trips, which are doubled here.')
    programs = ('raw-fi', 'plx-ping', 'plx-info')
    sizes = (64, 1 << 10, 64 << 10, 1 << 20)
    seconds = (2, 0.5)
    warmups = (1000, 50, 50)
    keep = ('provider', 'idle', 'device', 'name')
    medians = ('mean_ns',)
    sums = ('count',)
    pooled = True
    tables = (Table('', (
        *trips('min', 'p50', 'p90', 'p99', 'p99_9', 'max'),
        ('p50 of rounds', lambda row: words.least_to_greatest(words.us, row, 'p50_ns')), ('ratio', words.ratio))),)

    def begin(self, session):
        self.session, self.devices, self.rows = session, [], []
        info = self.info()
        self.devices = usable_devices(info)
        if self.devices:
            self.choose_devices(session.options)
        else:
            why = f'verbs: no RDMA device with an active port and an IP address: {why_none(info)}'
            if session.options.parts == ['verbs']:
                raise SystemExit(f'bench.sh: {why}')
            session.leave_out(why)
        self.rows = [row for device in self.devices for row in rows_of(device)]
        super().begin(session)
        if session.options.mode == 'connect':
            self.meet_peer()
        for device in self.devices:
            server, client = self.cpus(device)
            session.say(f"verbs on {device['device']} ({device['transport']}): CPU {server} serves, CPU {client} "
                        'measures')

    def info(self):
        try:
            return json.loads(self.session.run_program('plx-info', '{plx-info} --format json', 60, any_status=True))
        except (Failed, KeyError, ValueError):
            return {}

    def choose_devices(self, options):
        """The requested device, the listening one, or the one that leads to the peer."""
        names, wanted = [device['device'] for device in self.devices], options.device
        if options.mode == 'serve' and not wanted:
            host = options.listen.rpartition(':')[0].strip('[]')
            wanted = next((device['device'] for device in self.devices if device['address'] == host), None)
        if options.mode == 'connect' and not wanted:
            host = options.peer.rpartition(':')[0]
            netdev = netdev_to(host)
            wanted = next((device['device'] for device in self.devices
                           if device['address'] == host or netdev in device['netdevs']), None)
        if wanted and wanted not in names:
            raise UsageError(f'--device {wanted}: that is none with an active port and an IP address; there are: '
                             f"{' '.join(names)}")
        if not wanted and options.mode != 'local' and len(names) > 1:
            raise UsageError(f"there are several RDMA devices: {' '.join(names)}; give --device, or to --serve an "
                             'address of one by --listen')
        self.devices = [device for device in self.devices if wanted in (None, device['device'])]
        if options.mode == 'serve' and options.listen.rpartition(':')[0] in ('0.0.0.0', '[::]', '*'):
            options.listen = self.at(self.devices[0], options.listen.rpartition(':')[2])

    @staticmethod
    def at(device, port):
        return f"[{device['address']}]:{port}" if ':' in device['address'] else f"{device['address']}:{port}"

    def cpus(self, device):
        """Two CPUs near the device, if this process may use two there."""
        near = [cpu for cpu in cpus_of(device['cpus'] or '') if cpu in self.session.cpus]
        return near[:2] if len(near) > 1 else self.session.cpus[:2]

    def meet_peer(self):
        """A server must be up; reported now instead of by every row."""
        try:
            self.session.run_program('meet', '{raw-fi} --connect ' + self.session.options.peer +
                                     ' --provider verbs --count 1 --warmup 0', 40, doubt=True)
        except Failed as cause:
            raise SystemExit(f"bench.sh: --connect {self.session.options.peer}: {cause}\n  Is 'scripts/bench.sh --only "
                             f"verbs --serve --listen {self.session.options.peer}' running there?") from None

    def port(self, row, size):
        name = row.key.split('@')[0]
        offset = {'ib-send-lat': self.chosen_sizes.index(size), 'ib-send-lat-event': len(self.chosen_sizes)}
        return PORTS[name] + offset.get(name, 0)

    def serving(self):
        """A server of ib_send_lat serves one size."""
        return [(row, size, 'client_cpu' if row.key.startswith('verbs-poll') else 'server_cpu') for row in self.chosen
                for size in self.chosen_sizes if row.has(size) and
                (row.key.startswith('ib-') or size == max(filter(row.has, self.chosen_sizes)))]

    def prepare(self, run):
        device = run.row.more['device']
        server, client = self.cpus(device)
        # The duration of ib_send_lat cannot be set, and both of its ends need the number of round trips.
        count = 2000 if 'event' in run.row.key else 10000 if run.size <= 4096 else 1000 if run.size <= 65536 else 200
        run.values |= {'device': device['device'], 'server_cpu': server, 'client_cpu': client, 'cpu': server,
                       'rounds': count, 'listen': self.at(device, 0)}

    def awaits(self, run, process):
        """Until a server listens. ib_send_lat prints nothing then."""
        if not run.row.key.startswith('ib-'):
            return super().awaits(run, process)
        if not shutil.which('rdma'):
            time.sleep(1)
            run.values['address'] = f":{run.values['port']}"
            return process.running()
        listens = re.compile(rf"^link {run.values['device']}/.* LISTEN .*:{run.values['port']} ", re.MULTILINE)
        deadline = time.monotonic() + SILENT_START_S
        while process.running() and time.monotonic() < deadline:
            shown = subprocess.run(['rdma', 'resource', 'show', 'cm_id'], capture_output=True, text=True, check=False)
            if listens.search(shown.stdout):
                run.values['address'] = f":{run.values['port']}"
                return True
            time.sleep(0.1)
        return False

    def measure(self, run):
        device = run.row.more['device']['device']
        own = {'device': device, 'name': run.row.key.split('@')[0]}
        if not run.row.key.startswith('ib-'):
            return super().measure(run) | own
        connects = run.session.options.mode == 'connect'
        host = (run.session.options.peer if connects else self.at(run.row.more['device'], 0)).rpartition(':')[0]
        run.serve()
        run.values |= {'cpu': run.values['client_cpu'], 'port': run.values['address'].rpartition(':')[2]}
        for attempt in range(5):
            try:
                run.client(f'{run.row.client} {host}')
                break
            except Failed:  # it fails or crashes if the server is not up yet
                if attempt == 4 or not (connects or run.server_process.running()):
                    raise
                time.sleep(0.5)
        result, times = read_send_lat(run.output(), run.row.more['idle'])
        (run.folder / f"{own['name']}.csv").write_text('low,high,count\n' + ''.join(
            f'{ns},{ns},{count}\n' for ns, count in sorted(collections.Counter(times).items())))
        return result | own

    def limits_of(self, _figures):
        """Software devices and busy hosts miss them regardless: aims."""
        return [Limit(f"verbs on {device['device']}, {own} over {base}, 64 B, p50", 1.15,
                      ratio(f"{own}@{device['device']}", f"{base}@{device['device']}"))
                for device in self.devices for own, base in
                (('verbs-poll', 'raw-fi-verbs'), ('verbs-event', 'raw-fi-verbs-event'))]

    def heading(self, row):
        return f"{row['device']}, {super().heading(row)}"

    def extras(self):
        return {'devices': self.devices, 'references': REFERENCES, 'peer': self.session.options.peer}

    def notes(self, summary):
        if not summary['rows']:
            return []
        devices = [f"{device['device']}: {device['transport']}, {device['rate']}, MTU {device['mtu_bytes']}, "
                   f"{device['address']}, NUMA node {device['node']}." for device in summary['devices']]
        return devices + [f"{other['name']}, of other hosts: {words.us(other['ns'])} µs: {other['what']}; "
                          f"{other['source']}." for other in summary['references']]
