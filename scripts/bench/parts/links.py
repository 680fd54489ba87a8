# SPDX-License-Identifier: BSD-3-Clause
"""The part links: the cost of thousands of idle TCP links for the lcore that accepted them, measured by link-idle."""
import resource

from bench import words
from bench.limits import Limit, difference, value, ratio
from bench.part import Part, Table
from bench.rows import Row

SPARE_FILES = 500
UNLIMITED = '--links-max none --links-per-host none --accepts-per-s none --handshakes-max none'
BYTES = 4  # of the one message that each link has


def links(count, memory='', **more):
    return Row(f'links-{count}', has=lambda size: size == BYTES, more={'links': count}, **more,
               server=f'{{link-idle}} -l 0@{{server_cpu}} --idle event --provider tcp {UNLIMITED} {memory} -- '
                      f'--listen {{listen}} --links {count} --duration {{duration}} --out {{folder}}/{{key}}.json',
               client='{many_links} -l 1@{client_cpu} --provider tcp --socket-mem 1G --receive-mem 4G -- '
                      f'--connect {{address}} --links {count}')


class Links(Part):
    name = 'links'
    title = 'Idle links'
    explained = ('Of one lcore that accepted them, over tcp, with heartbeats. Times of turns are CPU time: "turn" with '
                 'nothing to do, "longest" while they came. Memory is that of the process for each link, with receive '
                 'buffers of 256 B.')
    # The longest turn is measured once, with memory from the start: clearing 2 MiB of new memory makes a long turn.
    rows = (links(1, rounds=3), links(10000, rounds=3, bases=('links-1',)),
            links(15000, '--socket-mem 512M', rounds=1))
    sizes = (BYTES,)
    fixed_sizes = True
    seconds = (5, 2)
    start_s = 10
    tries = 1
    figure = 'turn_ns'
    keep = ('provider', 'links')
    spreads = ('turn_ns',)
    medians = ('bytes_per_link', 'cpu_percent', 'wakes_per_s')
    maxima = ('longest_turn_ns',)
    limits = (
        Limit('links, an idle turn with 10000 idle links over one with 1', 1.2,
              ratio('links-10000', 'links-1', BYTES, 'turn_ns'), gates=True),
        Limit('links, KiB of memory of an idle link', 16,
              value('links-10000', 'bytes_per_link', BYTES, 1 / 1024), gates=True),
        # Heartbeats are per process: the figure of one link includes their cost.
        Limit('links, CPU % with 10000 idle links above that with 1', 0.5,
              difference('links-10000', 'links-1', 'cpu_percent', BYTES), gates=True),
        Limit('links, the longest turn while 15000 come, ms of CPU time', 5,
              value('links-15000', 'longest_turn_ns', BYTES, 1e-6)))
    tables = (Table('', (
        ('turn, ns', lambda row: words.short(row['turn_ns'])),
        ('longest, ms', lambda row: words.short(row['longest_turn_ns'] / 1e6)),
        ('KiB a link', lambda row: words.short(row['bytes_per_link'] and row['bytes_per_link'] / 1024)),
        ('CPU % asleep', lambda row: words.short(row['cpu_percent'])),
        ('wakes/s', lambda row: words.short(row['wakes_per_s'])), ('ratio', words.ratio))),)

    def chooses(self, row):
        needs, files = row.more['links'] + SPARE_FILES, resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        if files not in (resource.RLIM_INFINITY, -1) and files < needs:
            self.session.leave_out(f'links: {row.key}, which needs ulimit -Hn {needs}, and it is {files}')
            return False
        return super().chooses(row)

    def measure(self, run):
        run.limit_s = 330
        run.serve()
        run.start('client', run.row.client)
        run.finish(run.server_process)
        result = run.read()
        if run.row.more['links'] != 10000:  # the process's one-time cost; memory that was allocated before
            result['bytes_per_link'] = None
        return result

    def describe(self, result):
        return (f"a turn {words.whole(result['turn_ns'])} ns, the longest "
                f"{words.short(result['longest_turn_ns'] / 1e6)} ms, asleep "
                f"{words.short(result['cpu_percent'])} % of a CPU")
