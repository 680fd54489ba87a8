# SPDX-License-Identifier: BSD-3-Clause
"""The part verbs: round trips over RDMA devices, through Pollux, libfabric alone and perftest's ib_send_lat."""
import json
import time

from bench import stats
from bench.baselines import read_send_lat
from bench.host import cpus_of
from bench.part import Part, Row, baseline, only, ping
from bench.processes import Failed

# The port of each server: the first port plus this. ib_send_lat serves one size at each port.
PORTS = {'raw-fi-verbs': 0, 'raw-fi-verbs-event': 1, 'verbs-poll': 2, 'verbs-event': 3, 'ib-send-lat': 4,
         'ib-send-lat-event': 4}


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
                    'cpus': device['cpus'], 'address': addresses[0]})
    return list(found.values())


def why_none(info):
    """Why there is no usable device."""
    if info.get('rdma') == []:
        return 'this host has no RDMA device'
    return '; '.join(check['seen'] for check in info.get('doctor', []) if check['id'].startswith('rdma')) or \
        'plx-info shows none'


def rows_of(device):
    """Compared rows are adjacent."""
    name, rows = device['device'], []
    for suffix, idle, option in (('', 'poll', ''), ('-event', 'event', ' -e')):
        more = {'port': 0, 'more': {'device': name, 'idle': idle}} | ({'has': only(64)} if suffix else {})
        send_lat = 'taskset -c {cpu} $ib_send_lat -R -F -H -d {device} -p {port} -s {size} -n {trips}' + option
        rows += [
            Row(f'ib-send-lat{suffix}@{name}', send_lat, send_lat, ours=False, **more),
            baseline(f'raw-fi-verbs{suffix}@{name}', '', '$raw-fi', f'--provider verbs --idle {idle}',
                     bases=(f'ib-send-lat{suffix}@{name}',), **more),
            ping(f'verbs-{idle}@{name}', '', idle, 'verbs', bases=(f'raw-fi-verbs{suffix}@{name}',), **more)]
    return rows


class Verbs(Part):
    name = 'verbs'
    programs = ('raw-fi', 'plx-ping', 'plx-info')
    sizes = (64, 1 << 10, 64 << 10, 1 << 20)
    seconds = (2, 0.5)
    warmups = (1000, 50, 50)
    pooled = True

    def begin(self, session):
        self.session, info = session, self.info(session)
        devices = usable_devices(info)
        if not devices:
            why = f'verbs: no RDMA device with an active port and an IP address: {why_none(info)}'
            if session.options.parts == ['verbs']:
                raise Failed(why)
            session.leave_out(why)
        else:
            devices = self.chosen_devices(devices, session.options)
        self.devices = {device['device']: device for device in devices}
        self.rows = [row for device in devices for row in rows_of(device)]
        super().begin(session)
        for device in devices:
            server, client = self.cpus(device)
            session.say(f"verbs on {device['device']} ({device['transport']}): CPU {server} serves, CPU {client} "
                        'measures')

    @staticmethod
    def info(session):
        try:
            return json.loads(session.run_program('plx-info', '$plx-info --format json', 60, allowed=range(3)))
        except (Failed, KeyError, ValueError):
            return {}

    def chosen_devices(self, devices, options):
        """All on one host; between hosts the one of --device, or that of the address of --listen."""
        host, _, port = options.listen.rpartition(':')
        wanted = [device for device in devices if device['device'] == options.device or not options.device and (
            options.mode != 'serve' or host.strip('[]') in ('0.0.0.0', '::', '*', device['address']))]
        names = ' '.join(device['device'] for device in devices)
        if not wanted:
            raise Failed(f'verbs: no device is {options.device or host}; with an active port and an IP address there '
                         f'are: {names}')
        if len(wanted) > 1 and options.mode != 'local':
            raise Failed(f'verbs: there are several RDMA devices: {names}; give --device')
        if options.mode == 'serve':
            options.listen = self.at(wanted[0], port)
        return wanted

    @staticmethod
    def at(device, port):
        return f"[{device['address']}]:{port}" if ':' in device['address'] else f"{device['address']}:{port}"

    def cpus(self, device):
        """Two CPUs near the device, if this process may use two there."""
        near = [cpu for cpu in cpus_of(device['cpus'] or '') if cpu in self.session.cpus]
        return near[:2] if len(near) > 1 else self.session.cpus[:2]

    def port(self, row, size):
        name = row.key.split('@')[0]
        offset = {'ib-send-lat': self.chosen_sizes.index(size), 'ib-send-lat-event': len(self.chosen_sizes)}
        return PORTS[name] + offset.get(name, 0)

    def serving(self):
        return [(row, size, 'client_cpu' if row.key.startswith('verbs-poll') else 'server_cpu') for row in self.chosen
                for size in self.chosen_sizes if row.has(size) and
                (row.key.startswith('ib-') or size == max(filter(row.has, self.chosen_sizes)))]

    def prepare(self, run):
        device = self.devices[run.row.more['device']]
        server, client = self.cpus(device)
        # The duration of ib_send_lat cannot be set, and both of its ends need the number of round trips.
        count = 2000 if 'event' in run.row.key else 10000 if run.size <= 4096 else 1000 if run.size <= 65536 else 200
        run.values |= {'device': device['device'], 'server_cpu': server, 'client_cpu': client, 'cpu': server,
                       'trips': count, 'listen': self.at(device, 0)}

    def awaits(self, run, process):
        """Until a server listens. ib_send_lat prints nothing then."""
        if not run.row.key.startswith('ib-'):
            return super().awaits(run, process)
        time.sleep(1)
        run.values['address'] = f":{run.values['port']}"
        return process.running()

    def measure(self, run):
        if not run.row.key.startswith('ib-'):
            return super().measure(run)
        options = run.session.options
        host = options.peer if options.mode == 'connect' else self.at(self.devices[run.row.more['device']], 0)
        run.serve()
        run.values |= {'cpu': run.values['client_cpu'], 'port': run.values['address'].rpartition(':')[2]}
        run.client_soon(f"{run.row.client} {host.rpartition(':')[0]}", 5, 0.5)
        result, buckets = read_send_lat(run.output())
        stats.write_histogram(run.folder / f"{run.values['key']}.csv", buckets)
        return result

    def summarize(self, runs):
        return super().summarize(runs) | {'devices': list(self.devices.values()), 'peer': self.session.options.peer}

    def notes(self, summary):
        return [f"{device['device']}: {device['transport']}, {device['rate']}, MTU {device['mtu_bytes']}, "
                f"{device['address']}, NUMA node {device['node']}." for device in summary['devices']]
