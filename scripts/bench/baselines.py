# SPDX-License-Identifier: BSD-3-Clause
"""Programs of others: how they run, and how their output becomes the figures that plx-ping writes."""
import json
import random
import re

from bench import stats
from bench.part import Row
from bench.processes import Failed


def measure_iperf3(run):
    run.serve(tries=5)
    try:
        run.client()
        bits = json.loads(run.output())['end']['sum_received']['bits_per_second']
    except (ValueError, KeyError, Failed) as error:
        cause = re.search(r'"error":\s*"(.*)"', run.output())
        raise Failed(f'iperf3: {cause[1] if cause else error}') from None
    per_s = bits / 8 / run.size
    return {'provider': 'kernel tcp', 'count': round(per_s * run.values['whole_s']), 'messages_per_s': per_s,
            'bytes_per_s': bits / 8, 'gbit_per_s': bits / 1e9}


def iperf3(**more):
    return Row('iperf3', ours=False, measure=measure_iperf3, **more,
               server='$iperf3 --server --one-off --bind 127.0.0.1 --port {port} --affinity {server_cpu} --forceflush',
               client='$iperf3 --client 127.0.0.1 --port {address} --time {whole_s} --length {size} '
                      '--affinity {client_cpu} --json')


def ucx(key, label, test, layer='', transports='', **more):
    """layer: options of a test of the layer below, which takes no transport from the environment."""
    transports, once = transports or key.split('-')[1], test.endswith('_lat')
    per_s = (5e4 if transports == 'tcp' else 2e6) * (1 if once else 10 if transports == 'tcp' else 4)
    line = f'env UCX_TLS={transports},self OMPI_MCA_btl=self $ucx_perftest -p {{port}}'

    def measure(run):
        count = max(100, int(per_s * run.values['duration'] / (1 + run.size / 4096)))
        run.values['port'] = random.randrange(20000, 30000)
        run.start('server', line + ' -c {server_cpu}')
        run.client_soon(f'{line} 127.0.0.1 -t {test} -s {{size}} -n {count} -w {count // 10 + 1} -c {{client_cpu}} -f -v '
                        f'{layer}', 50, 0.05, 'refused')
        return read_ucx(run.output(), once, run.size)
    return Row(key, server=line, label=label, ours=False, measure=measure, **more)


def read_ucx(text, once, size):
    """From the output of ucx_perftest -f -v. Of round trips it prints half of the median, in microseconds."""
    lines = [line.replace(' ', '').split(',') for line in text.splitlines()]
    head = next((line for line in lines if line[0] == 'iterations'), None)
    numbers = next((line for line in reversed(lines) if line[0].isdigit()), None)
    if not head or not numbers:
        raise Failed('ucx_perftest has printed no figures')
    got = dict(zip(head, map(float, numbers)))
    return {'provider': 'ucx', 'idle': 'poll', 'count': int(got['iterations'])} | (
        {'p50_ns': round(got['50.0_percentile_lat'] * 2000), 'mean_ns': got['overall_lat'] * 2000} if once else
        {'messages_per_s': got['overall_mr'], 'bytes_per_s': got['overall_mr'] * size})


def read_send_lat(text):
    """From the output of ib_send_lat -H, which prints half of each round trip, in microseconds: also a histogram."""
    times = sorted(round(float(us) * 2000) for us in re.findall(r'^\d+, ([0-9.e+]+)$', text, re.MULTILINE))
    if not times:
        raise Failed('ib_send_lat has printed no times')
    buckets = stats.pool((ns, ns, 1) for ns in times)
    return {'provider': 'ibverbs', 'count': len(times), 'min_ns': times[0], 'max_ns': times[-1],
            'mean_ns': sum(times) / len(times)} | stats.percentiles(buckets, times[-1]), buckets
