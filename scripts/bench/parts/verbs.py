# SPDX-License-Identifier: BSD-3-Clause
"""The part verbs: round trips over RDMA devices, through Pollux, libfabric alone and perftest's ib_send_lat."""
import json

from bench import stats
from bench.baselines import read_send_lat
from bench.host import cpus_of, output
from bench.part import Part, Row, baseline, only, ping
from bench.processes import Failed


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


def rows_of(device):
    """Compared rows are adjacent."""
    name, rows = device['device'], []
    for number, (suffix, idle, option) in enumerate((('', 'poll', ''), ('-event', 'event', ' -e'))):
        more = {'more': {'device': name, 'idle': idle}} | ({'has': only(64)} if suffix else {})
        send_lat = 'taskset -c {cpu} $ib_send_lat -R -F -H -d {device} -p {port} -s {size} -n {trips}' + option
        rows += [
            Row(f'ib-send-lat{suffix}@{name}', send_lat, send_lat, ours=False, port=5 - number, silent=True,
                each_size=not suffix, measure=measure_send_lat, **more),
            baseline(f'raw-fi-verbs{suffix}@{name}', '', '$raw-fi', f'--provider verbs --idle {idle}', port=number,
                     bases=(f'ib-send-lat{suffix}@{name}',), **more),
            ping(f'verbs-{idle}@{name}', '', idle, 'verbs', bases=(f'raw-fi-verbs{suffix}@{name}',), port=2 + number,
                 **more)]
    return rows


def measure_send_lat(run):
    run.serve()
    host, _, run.values['port'] = run.values['address'].rpartition(':')
    run.values['cpu'] = run.values['client_cpu']
    run.client_soon(f'{run.row.client} {host}', 5, 0.5)
    result, buckets = read_send_lat(run.output())
    stats.write_histogram(run.folder / f"{run.values['key']}.csv", buckets)
    return result


class Verbs(Part):
    name = 'verbs'
    programs = ('raw-fi', 'plx-ping', 'plx-info')
    sizes = (64, 1 << 10, 64 << 10, 1 << 20)
    seconds = (2, 0.5)
    warmups = (1000, 50, 50)
    pooled = True
    between_cpus = False  # but between those near the device

    def begin(self, session):
        self.session, devices = session, usable_devices(self.info(session))
        if not devices:
            why = 'verbs: no RDMA device with an active port and an IP address; see plx-info --doctor'
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
            session.notes.append(
                f"{device['device']}: {device['transport']}, {device['rate']}, MTU {device['mtu_bytes']}, "
                f"{device['address']}, NUMA node {device['node']}; CPU {server} serves, CPU {client} measures.")
            session.say(session.notes[-1])

    @staticmethod
    def info(session):
        try:
            return json.loads(output(session.programs['plx-info'], '--format', 'json', check=False))
        except (KeyError, ValueError):
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

    def prepare(self, run):
        device = self.devices[run.row.more['device']]
        server, client = self.cpus(device)
        # The duration of ib_send_lat cannot be set, and both of its ends need the number of round trips.
        count = 2000 if 'event' in run.row.key else 10000 if run.size <= 4096 else 1000 if run.size <= 65536 else 200
        run.values |= {'device': device['device'], 'server_cpu': server, 'client_cpu': client, 'cpu': server,
                       'trips': count, 'listen': self.at(device, 0)}
