/* SPDX-License-Identifier: BSD-3-Clause */
/* A sleeping lcore misses nothing from other lcores, other threads or signals. */
#include "sleepers.h"

#include <semaphore.h>

static struct plx_timer timers[LCORES];

/* Pass on the single message: at once, by a timer, or to the lcore itself. */
static void throw(void *arg);

static void throw_later(struct plx_timer *timer, void *arg)
{
	throw(NULL);
}

static void catch (void *arg)
{
	stress_went_on();
	if (is_last())
		plx_stop();
	else if (dice(8) == 0)
		plx_timer_start(&timers[plx_lcore_id() / 10], dice(65536));
	else
		throw(NULL);
}

static void throw(void *arg)
{
	assert_int_equal(plx_lcore_send(dice(LCORES) * 10, catch, NULL), 0);
}

SLEEPERS_TEST(nothing_between_lcores_is_slept_through)
{
	for (unsigned i = 0; i < LCORES; i++)
		plx_timer_init(&timers[i], throw_later, NULL);
	catch (NULL);
	run_all(NULL);
}

static sem_t answered;
static struct plx_signal signals[LCORES];

static void answer(void *arg)
{
	stress_went_on();
	sem_post(&answered);
}

static void on_signal(struct plx_signal *signal, uint64_t fires, void *arg)
{
	assert_int_equal(fires, 1);
	answer(NULL);
}

static void *ask(void *arg)
{
	for (uint64_t i = 0; i < stress_amount; i++) {
		uint32_t to = dice(LCORES);

		if (dice(2))
			plx_signal_fire(&signals[to]);
		else
			plx_lcore_send(to * 10, answer, NULL);
		sem_wait(&answered);
	}
	plx_stop();
	return NULL;
}

SLEEPERS_TEST(nothing_of_other_threads_is_slept_through)
{
	assert_int_equal(sem_init(&answered, 0, 0), 0);
	for (unsigned i = 0; i < LCORES; i++)
		assert_int_equal(plx_signal_init(&signals[i], i * 10, on_signal, NULL), 0);
	run_all(ask);
	for (unsigned i = 0; i < LCORES; i++)
		plx_signal_fini(&signals[i]);
	sem_destroy(&answered);
}

STRESS_MAIN(20000, 3000000)
