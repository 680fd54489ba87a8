/* SPDX-License-Identifier: BSD-3-Clause */
/* What stress programs share: how much they do, dice for each thread, and a watch. Their threads
 * use cmocka's checks too: one that fails ends the program. */
#ifndef STRESS_H
#define STRESS_H

#include "dice.h"
#include "plx_test.h"

#include <stdatomic.h>

#define STRESS_STILL_S 100

/* The program's unit: rounds, messages... */
static uint64_t stress_amount;

/* Relaxed: only the watch reads it. */
static _Atomic uint64_t stress_progress PLX_UNUSED;

static inline void stress_went_on(void)
{
	atomic_fetch_add_explicit(&stress_progress, 1, memory_order_relaxed);
}

static inline uint64_t stress_count(void)
{
	return atomic_load_explicit(&stress_progress, memory_order_relaxed);
}

/* What is lost would block forever. This ends a program that makes no progress for `limit_s`, or
 * that runs for that long if it does not count its progress. */
static inline void *stress_watch(void *arg)
{
	uint64_t still_s = 0, limit_s = *(const unsigned *)arg;

	for (uint64_t seen = 0; still_s < limit_s; still_s++, sleep(1)) {
		if (stress_count() == seen)
			continue;
		seen = stress_count();
		still_s = 0;
	}
	fprintf(stderr, "no progress for %u s\n", (unsigned)limit_s);
	abort();
}

/* Arguments: the amount, and the seconds of the watch. */
static inline int stress_run(int argc, char **argv, uint64_t usual, uint64_t soak,
			     CMFixtureFunction setup)
{
	static unsigned limit_s;
	pthread_t watch;

	stress_amount = argc > 1 ? strtoull(argv[1], NULL, 10)
				 : (getenv("PLX_TEST_SOAK") ? soak : usual);
	limit_s = argc > 2 ? (unsigned)atoi(argv[2]) : STRESS_STILL_S;
	if (pthread_create(&watch, NULL, stress_watch, &limit_s) || pthread_detach(watch))
		return 1;
	return plx_test_run("stress", setup, NULL);
}

#define STRESS_MAIN(usual, soak) STRESS_MAIN_WITH(usual, soak, NULL)
#define STRESS_MAIN_WITH(usual, soak, setup)                       \
	int main(int argc, char **argv)                            \
	{                                                          \
		return stress_run(argc, argv, usual, soak, setup); \
	}

/* Dice of this thread; its first number depends on the thread. */
static __thread uint64_t stress_dice;

static inline uint32_t dice(uint32_t sides)
{
	if (!stress_dice)
		stress_dice = (uint64_t)(uintptr_t)&stress_dice | 1;
	return dice_roll(&stress_dice, sides);
}

static inline void yield_at_times(void)
{
	if (dice(32) == 0)
		sched_yield();
}

#endif
