/* SPDX-License-Identifier: BSD-3-Clause */
/* Idle turns of one lcore among many:
 *
 *     idle_turn_cost LCORES TURNS
 *
 * Every other lcore has already sent one message, so its lane exists. count_turns then makes the
 * turns; a profiler can count its instructions. */
#include "plx_lcore.h"
#include "plx_mem.h"

#include <stdio.h>
#include <stdlib.h>

#define ID_STEP      4 /* ids 0, 4, 8, ...: spread 64 lcores over the whole range */
#define LCORES_MAX   (PLX_LCORE_MAX / ID_STEP)
#define COLD_TURNS   2000 /* enough for all doorbells to fall silent */
#define FINI_TIME_NS (20 * PLX_NS_PER_S)

void count_turns(unsigned turns); /* not static: it must keep its name */

_Noreturn static void fail(const char *what)
{
	fprintf(stderr, "idle_turn_cost: %s: %s\n", what, plx_error());
	exit(1);
}

static struct plx_lcore_place places[LCORES_MAX];

static void start(struct plx_topo *topo, uint32_t count)
{
	struct plx_mem_conf mem = {.huge = PLX_HUGE_NONE, .numa = PLX_NUMA_ANY};
	struct plx_lcore_map map = {.count = count, .places = places};
	struct plx_lcore_conf conf = {.topo = topo, .map = &map, .main_lcore = 0};
	const struct plx_cpuset *cpus = plx_topo_allowed(topo);
	unsigned cpu = PLX_CPU_MAX;

	for (uint32_t i = 0; i < count; i++) {
		cpu = plx_cpuset_next(cpus, cpu + 1);
		if (cpu >= PLX_CPU_MAX)
			cpu = plx_cpuset_next(cpus, 0);
		places[i].lcore_id = i * ID_STEP;
		plx_cpuset_add(&places[i].cpus, cpu);
	}
	if (plx_mem_init(&mem) || plx_lcores_init(&conf))
		fail("start");
}

static void nothing(void *arg)
{
}

static int send_one(void *arg)
{
	return plx_lcore_send(plx_lcore_main(), nothing, NULL);
}

/* Create the lane from each lcore to this one. */
static void send_from_all(void)
{
	PLX_LCORE_FOREACH_WORKER (id) {
		int result = 0;

		if (plx_lcore_launch(id, send_one, NULL) ||
		    plx_lcore_join(id, PLX_NEVER, &result) || result)
			fail("a message from each lcore");
	}
}

PLX_NOINLINE void count_turns(unsigned turns)
{
	for (unsigned i = 0; i < turns; i++)
		plx_loop_turn();
}

/* Check that the measured turns were idle, on an lcore with all those lanes. */
static void check(const struct plx_lcore_stats *before, uint32_t count, unsigned turns)
{
	struct plx_lcore_stats after;

	plx_lcore_stats_read(0, &after);
	if (before->messages == count - 1 && before->lanes == count - 1 &&
	    after.idle_turns - before->idle_turns == turns && after.turns - before->turns == turns)
		return;
	fprintf(stderr, "idle_turn_cost: %u lanes, %llu messages, %llu idle turns of %u\n",
		before->lanes, (unsigned long long)before->messages,
		(unsigned long long)(after.idle_turns - before->idle_turns), turns);
	exit(1);
}

static void measure(uint32_t count, unsigned turns)
{
	struct plx_lcore_stats before;

	send_from_all();
	for (unsigned i = 0; i < COLD_TURNS; i++)
		plx_loop_turn();
	plx_lcore_stats_read(0, &before);
	count_turns(turns);
	check(&before, count, turns);
}

int main(int argc, char **argv)
{
	uint32_t count = argc == 3 ? (uint32_t)strtoul(argv[1], NULL, 10) : 0;
	unsigned turns = argc == 3 ? (unsigned)strtoul(argv[2], NULL, 10) : 0;
	struct plx_topo *topo;

	if (count < 1 || count > LCORES_MAX || turns == 0) {
		fprintf(stderr, "usage: idle_turn_cost LCORES TURNS; lcores 1 to %d\n", LCORES_MAX);
		return 2;
	}
	if (plx_topo_open(NULL, &topo))
		fail("start");
	start(topo, count);
	measure(count, turns);
	if (plx_lcores_fini(FINI_TIME_NS))
		fail("end");
	plx_mem_fini();
	plx_topo_close(topo);
	return 0;
}
