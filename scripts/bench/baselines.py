# SPDX-License-Identifier: BSD-3-Clause
"""Programs of others: how they run, and how their output becomes the figures that plx-ping writes."""
import json
import math
import re
import time

from bench.rows import Row
from bench.run import Failed

# iperf3 ----------------------------------------------------------------------------------------

IPERF3 = Row('iperf3', ours=False,
             server='{iperf3} --server --one-off --bind 127.0.0.1 --port {port} --affinity {server_cpu} --forceflush',
             client='{iperf3} --client 127.0.0.1 --port {address} --time {whole_s} --length {size} '
                    '--affinity {client_cpu} --json')


def measure_iperf3(run):
    run.serve(tries=5)
    try:
        run.client(watch=('receiver', 'sender'))
        bits = json.loads(run.output())['end']['sum_received']['bits_per_second']
    except (ValueError, KeyError, Failed) as error:
        cause = re.search(r'"error":\s*"(.*)"', run.output())
        raise Failed(f'iperf3: {cause[1] if cause else error}') from None
    per_s = bits / 8 / run.size
    return {'provider': 'kernel tcp', 'count': round(per_s * run.values['whole_s']), 'messages_per_s': per_s,
            'bytes_per_s': bits / 8}


# UCX -------------------------------------------------------------------------------------------

def ucx(key, test, layer='', **more):
    """layer: options of a test of the layer below, which takes no transport from the environment."""
    transport = key.split('-')[1]
    line = f'env UCX_TLS={transport},self OMPI_MCA_btl=self {{ucx_perftest}} -p {{port}}'
    return Row(key, ours=False, server=line,
               more={'ucx': test, 'layer': layer, 'per_s': 2e6 if transport == 'shm' else 5e4}, **more)


def measure_ucx(run):
    more = run.row.more
    per_s = more['per_s'] * (1 if more['ucx'] == 'tag_lat' else 4 if run.row.key == 'ucx-shm' else 10)
    count = max(100, int(per_s * run.values['duration'] / (1 + run.size / 4096)))
    run.values['port'] = 20000 + time.time_ns() % 10000
    line = run.row.server + run.session.ucx_options
    run.start('server', line + ' -c {server_cpu}')
    for attempt in range(50):
        time.sleep(0.05)
        try:
            run.client(f"{line} 127.0.0.1 -t {more['ucx']} -s {{size}} -n {count} -w {count // 10 + 1} "
                       f"-c {{client_cpu}} -f -v {more['layer']}")
            break
        except Failed as error:  # the server may not be listening yet
            if attempt == 49 or 'refused' not in str(error) + run.output():
                raise
    return read_ucx(run.output(), more['ucx'], run.size)


def read_ucx(text, test, size):
    """From the output of ucx_perftest -f -v. Of round trips it prints half of the median, in microseconds."""
    lines = [line.replace(' ', '').split(',') for line in text.splitlines()]
    head = next((line for line in lines if line[0] == 'iterations'), None)
    figures = next((line for line in reversed(lines) if line[0].isdigit()), None)
    if not head or not figures:
        raise Failed('ucx_perftest has printed no figures')
    got = dict(zip(head, map(float, figures)))
    result = {'provider': 'ucx', 'idle': 'poll', 'count': int(got['iterations'])}
    if test == 'tag_lat':
        return result | {'p50_ns': round(got['50.0_percentile_lat'] * 2000), 'mean_ns': got['overall_lat'] * 2000}
    return result | {'messages_per_s': got['overall_mr'], 'bytes_per_s': got['overall_mr'] * size}


# perftest --------------------------------------------------------------------------------------

def read_send_lat(text, idle):
    """From the output of ib_send_lat -H, which prints half of each round trip, in microseconds. Also a histogram."""
    times = sorted(round(float(us) * 2000) for us in re.findall(r'^\d+, ([0-9.e+]+)$', text, re.MULTILINE))
    if not times:
        raise Failed('ib_send_lat has printed no times')

    def percentile(per_100k):
        """With ten round trips above it, as plx-ping."""
        return times[math.ceil(len(times) * per_100k / 1e5) - 1] if len(times) * (1e5 - per_100k) >= 1e6 else None

    result = {'provider': 'ibverbs', 'idle': idle, 'count': len(times), 'min_ns': times[0], 'max_ns': times[-1],
              'mean_ns': sum(times) / len(times), 'elapsed_ns': sum(times)}
    return result | {f'p{name}_ns': percentile(per_100k) for name, per_100k in
                     (('50', 50000), ('90', 90000), ('99', 99000), ('99_9', 99900), ('99_99', 99990))}, times
