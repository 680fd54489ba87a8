/* SPDX-License-Identifier: BSD-3-Clause */
/* Lcores that sleep at every opportunity, without a cap, and pass one message around. Nothing else
 * could wake an lcore, so a single lost wake-up stops everything. The files of lib/lcore involved
 * are built with a random delay at each step. */
#ifndef SLEEPERS_H
#define SLEEPERS_H

#include "delays.h"
#include "lcore_priv.h"
#include "lcores.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>

#define LCORES      3
#define SPIN_MAX_NS 3000
#define STILL_MAX_S 20 /* without progress before the test fails */

static uint64_t rounds; /* per test */

/* Relaxed throughout: for display only. */
static _Atomic uint64_t progress;
static _Atomic bool stands_still;

static sem_t watch_ends;

static void *watch(void *arg)
{
	uint64_t seen = 0;
	unsigned still_s = 0;

	for (;;) {
		struct timespec limit;

		clock_gettime(CLOCK_REALTIME, &limit);
		limit.tv_sec++;
		if (sem_timedwait(&watch_ends, &limit) == 0)
			return NULL;

		uint64_t now = atomic_load_explicit(&progress, memory_order_relaxed);

		still_s = now == seen ? still_s + 1 : 0;
		seen = now;
		if (still_s < STILL_MAX_S)
			continue;
		atomic_store(&stands_still, true);
		plx_stop(); /* so that it ends; it has failed */
		return NULL;
	}
}

static void went_on(void)
{
	atomic_fetch_add_explicit(&progress, 1, memory_order_relaxed);
}

/* All kinds of policies that hardly ever poll. */
static void set_policies(void)
{
	PLX_LCORE_FOREACH (id) {
		const struct plx_idle_conf confs[] = {
			{.mode = PLX_IDLE_EVENT, .sleep_max_ns = PLX_NEVER},
			{.algorithm = PLX_IDLE_LEARNED,
			 .spin_max_ns = SPIN_MAX_NS,
			 .sleep_max_ns = PLX_NEVER},
			{.algorithm = PLX_IDLE_FIXED,
			 .spin_max_ns = SPIN_MAX_NS,
			 .sleep_max_ns = PLX_NEVER},
		};

		assert_int_equal(plx_idle_set(id, &confs[id / 10 % PLX_ARRAY_LEN(confs)]), 0);
	}
}

static uint64_t sleeps(void)
{
	uint64_t sum = 0;

	PLX_LCORE_FOREACH (id) {
		struct plx_idle_stats stats;

		assert_int_equal(plx_idle_stats_read(id, &stats), 0);
		sum += stats.sleeps;
		assert_int_equal(stats.wakes[PLX_WAKE_CAP], 0);
		assert_int_equal(stats.wakes[PLX_WAKE_NAP], 0);
		assert_int_equal(stats.rescues, 0);
	}
	return sum;
}

/* Run all lcores until stopped. fn: in a thread that is not an lcore; or NULL. */
static void run_all(void *(*fn)(void *))
{
	pthread_t watcher, thread;
	int result = -1;

	assert_int_equal(sem_init(&watch_ends, 0, 0), 0);
	assert_int_equal(pthread_create(&watcher, NULL, watch, NULL), 0);
	if (fn)
		assert_int_equal(pthread_create(&thread, NULL, fn, NULL), 0);
	assert_int_equal(plx_lcore_launch_all(run_loop, NULL, &result), 0);
	assert_int_equal(result, 0);
	assert_int_equal(plx_lcore_join_all(10 * PLX_NS_PER_S, &result), 0);
	assert_int_equal(result, 0);
	if (fn)
		pthread_join(thread, NULL);
	sem_post(&watch_ends);
	pthread_join(watcher, NULL);
	sem_destroy(&watch_ends);
	assert_false(atomic_load(&stands_still));
	printf("%llu rounds, %llu sleeps\n", (unsigned long long)rounds,
	       (unsigned long long)sleeps());
	/* Most rounds must have slept, if not all. */
	assert_true(sleeps() > rounds / 8);
}

static int set_up(void **state)
{
	atomic_store(&progress, 0);
	lcores_up(LCORES);
	set_policies();
	return 0;
}

static int tear_down(void **state)
{
	lcores_down();
	return 0;
}

/* The number of rounds: the first argument; millions for a soak. */
static inline void choose_rounds(int argc, char **argv)
{
	rounds = getenv("PLX_TEST_SOAK") ? 3000000 : 20000;
	if (argc > 1)
		rounds = strtoull(argv[1], NULL, 10);
}

#endif
