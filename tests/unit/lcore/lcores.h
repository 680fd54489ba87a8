/* SPDX-License-Identifier: BSD-3-Clause */
/* A set of lcores for a test: ids 0, 10, 20, ... on the CPUs that this process may use, in turn. So
 * there may be more lcores than CPUs, and no id equals its CPU by accident. */
#ifndef LCORES_H
#define LCORES_H

#include "lcore_priv.h"
#include "plx_mem.h"
#include "plx_test.h"

#define LCORES_MAX 8

static struct {
	struct plx_topo *topo;
	struct plx_lcore_place places[LCORES_MAX];
	struct plx_lcore_map map;
	struct plx_lcore_conf conf;
} lcores;

/* The text of an error before that. */
#define NOT_UP(function) function ": Pollux is not up; call plx_eal_init or plx_app_start first"

/* Of the lanes; 0: the default. */
static uint32_t lcores_lane_slots PLX_UNUSED;

static inline void lcores_prepare(uint32_t count)
{
	unsigned cpu = PLX_CPU_MAX;

	memset(&lcores, 0, sizeof(lcores));
	assert_return_code(plx_topo_open(NULL, &lcores.topo), 0);
	for (uint32_t i = 0; i < count; i++) {
		cpu = plx_cpuset_next(plx_topo_allowed(lcores.topo), cpu + 1);
		if (cpu >= PLX_CPU_MAX)
			cpu = plx_cpuset_next(plx_topo_allowed(lcores.topo), 0);
		lcores.places[i].lcore_id = i * 10;
		plx_cpuset_add(&lcores.places[i].cpus, cpu);
	}
	lcores.map = (struct plx_lcore_map){count, lcores.places};
	lcores.conf = (struct plx_lcore_conf){.topo = lcores.topo,
					      .map = &lcores.map,
					      .main_lcore = PLX_LCORE_NONE,
					      .lane_slots = lcores_lane_slots};
}

static inline void lcores_up(uint32_t count)
{
	const struct plx_mem_conf memory = {.huge = PLX_HUGE_NONE}; /* for lanes */

	lcores_prepare(count);
	assert_works(plx_mem_init(&memory));
	assert_works(plx_lcores_init(&lcores.conf));
}

static inline void lcores_down(void)
{
	assert_works(plx_lcores_fini(10 * PLX_NS_PER_S));
	plx_mem_fini();
	plx_topo_close(lcores.topo);
}

/* Test fixtures. */
PLX_FIXTURE(one_lcore, 0, lcores_up(1))
PLX_FIXTURE(two_lcores, 0, lcores_up(2))
PLX_FIXTURE(three_lcores, 0, lcores_up(3))
PLX_FIXTURE(no_lcores, 0, lcores_down())

#define ONE_LCORE(test)    PLX_TEST_WITH(test, one_lcore, no_lcores)
#define TWO_LCORES(test)   PLX_TEST_WITH(test, two_lcores, no_lcores)
#define THREE_LCORES(test) PLX_TEST_WITH(test, three_lcores, no_lcores)

PLX_READS(struct plx_lcore_stats, stats_of, (uint32_t id),
	  assert_int_equal(plx_lcore_stats_read(id, &it), 0))

/* Run fn on a worker, and wait for it. */
static inline int run_on(uint32_t id, plx_lcore_fn fn, void *arg)
{
	int result = -1;

	assert_int_equal(plx_lcore_launch(id, fn, arg), 0);
	assert_int_equal(plx_lcore_join(id, PLX_NEVER, &result), 0);
	return result;
}

/* Sleeps until something wakes it: a missed wake-up hangs until the test's time limit. */
static const struct plx_idle_conf event_idle = {.mode = PLX_IDLE_EVENT, .sleep_max_ns = PLX_NEVER};

PLX_READS(struct plx_idle_stats, idle_stats_of, (uint32_t id),
	  assert_int_equal(plx_idle_stats_read(id, &it), 0))

/* Run the main lcore's loop until such a thread ends it. Return: the duration. */
static inline uint64_t run_until(void *(*fn)(void *), void *arg)
{
	uint64_t begin_ns = plx_now_ns();
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, fn, arg), 0);
	assert_int_equal(plx_loop_run(), 0);
	pthread_join(thread, NULL);
	return plx_now_ns() - begin_ns;
}

/* A message that ends the loop. */
static inline void quit_loop(void *arg)
{
	plx_loop_quit();
}

/* For launching. */
static inline int run_loop(void *arg)
{
	return plx_loop_run();
}

/* For launching. Returns the work done. */
static inline int turns_until_idle(void *arg)
{
	int work = 0, done;

	do {
		done = plx_loop_turn();
		work += done;
	} while (done > 0);
	return work;
}

#define ASLEEP_GAP_NS   (5 * PLX_NS_PER_MS)
#define ASLEEP_LIMIT_US 10000000 /* after that the test's assertions on the sleep fail */

/* Wait in another thread until lcore id sleeps, and ASLEEP_GAP_NS more. */
static inline void wait_until_asleep(uint32_t id)
{
	struct loop *loop = atomic_load(&lcore_get(id)->loop);

	for (unsigned us = 0; us < ASLEEP_LIMIT_US && !atomic_load(&loop->bell.sleeping); us += 100)
		usleep(100);
	usleep(ASLEEP_GAP_NS / 1000);
}

#endif
