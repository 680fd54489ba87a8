/* SPDX-License-Identifier: BSD-3-Clause */
/* A sleeping lcore misses nothing from other lcores, other threads or signals. */
#include "sleepers.h"

static struct plx_timer timers[LCORES];

/* Pass on the single message: at once, by a timer, or to the lcore itself. */
static void throw(void *arg);

static void throw_later(struct plx_timer *timer, void *arg)
{
	throw(NULL);
}

static void catch (void *arg)
{
	uint32_t random = roll();

	went_on();
	if (atomic_load_explicit(&progress, memory_order_relaxed) >= rounds)
		plx_stop();
	else if (random % 8 == 0)
		plx_timer_start(&timers[plx_lcore_id() / 10], random >> 8 & 0xffff);
	else
		throw(NULL);
}

static void throw(void *arg)
{
	assert_int_equal(plx_lcore_send(roll() % LCORES * 10, catch, NULL), 0);
}

PLX_TEST_WITH(nothing_between_lcores_is_slept_through, set_up, tear_down)
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
	went_on();
	sem_post(&answered);
}

static void on_signal(struct plx_signal *signal, uint64_t fires, void *arg)
{
	if (fires != 1)
		atomic_store(&stands_still, true);
	answer(NULL);
}

/* Until it arrives, or the watch has given up. */
static void wait_for_answer(void)
{
	struct timespec limit;

	do {
		clock_gettime(CLOCK_REALTIME, &limit);
		limit.tv_sec++;
	} while (sem_timedwait(&answered, &limit) != 0 && !plx_stopping());
}

static void *ask(void *arg)
{
	for (uint64_t i = 0; i < rounds && !plx_stopping(); i++) {
		uint32_t to = roll() % LCORES;

		if (roll() % 2)
			plx_signal_fire(&signals[to]);
		else
			plx_lcore_send(to * 10, answer, NULL);
		wait_for_answer();
	}
	plx_stop();
	return NULL;
}

PLX_TEST_WITH(nothing_of_other_threads_is_slept_through, set_up, tear_down)
{
	assert_int_equal(sem_init(&answered, 0, 0), 0);
	for (unsigned i = 0; i < LCORES; i++)
		assert_int_equal(plx_signal_init(&signals[i], i * 10, on_signal, NULL), 0);
	run_all(ask);
	for (unsigned i = 0; i < LCORES; i++)
		plx_signal_fini(&signals[i]);
	sem_destroy(&answered);
}

int main(int argc, char **argv)
{
	choose_rounds(argc, argv);
	return plx_test_run("tests", NULL, NULL);
}
