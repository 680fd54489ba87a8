/* SPDX-License-Identifier: BSD-3-Clause */
#include "lcores.h"

#include <signal.h>

#define THREADS 3
#define FIRES   20000

struct heard {
	struct plx_signal signal;
	uint64_t fires, calls;
	uint64_t quit_at; /* fires */
	char mark;
	struct plx_signal *again; /* fired in the callback, once */
};

static char order[40];

static void on_signal(struct plx_signal *signal, uint64_t fires, void *arg)
{
	struct heard *heard = arg;

	assert_ptr_equal(signal, &heard->signal);
	heard->fires += fires;
	heard->calls++;
	strncat(order, &heard->mark, 1);
	if (heard->again) {
		plx_signal_fire(heard->again);
		heard->again = NULL;
	}
	if (heard->fires == heard->quit_at)
		plx_loop_quit();
}

static void init(struct heard *heard, char mark)
{
	*heard = (struct heard){.mark = mark};
	assert_int_equal(plx_signal_init(&heard->signal, 0, on_signal, heard), 0);
	order[0] = '\0';
}

static struct heard a, b, c;

static int start(void **state)
{
	one_lcore(state);
	init(&a, 'a');
	init(&b, 'b');
	init(&c, 'c');
	return 0;
}

static int end(void **state)
{
	plx_signal_fini(&a.signal);
	plx_signal_fini(&b.signal);
	plx_signal_fini(&c.signal);
	return no_lcores(state);
}

#define TEST(test) PLX_TEST_WITH(test, start, end)

TEST(signals_arrive_in_the_order_of_their_first_fire)
{
	plx_signal_fire(&b.signal);
	plx_signal_fire(&c.signal);
	plx_signal_fire(&a.signal);
	plx_signal_fire(&b.signal);
	assert_int_equal(plx_loop_turn(), 3);
	assert_string_equal(order, "bca"); /* b once, for both */
	assert_int_equal(b.fires, 2);
}

TEST(a_signal_may_be_fired_in_its_own_function)
{
	a.again = &a.signal;
	plx_signal_fire(&a.signal);
	plx_signal_fire(&b.signal);
	assert_int_equal(plx_loop_turn(), 2);
	assert_int_equal(plx_loop_turn(), 1);
	assert_int_equal(a.fires, 2);
	assert_string_equal(order, "aba");
}

ONE_LCORE(a_turn_runs_some_fires_and_the_next_turn_the_rest)
{
	static struct heard many[SIGNALS_TURN_MAX + 3];

	for (unsigned i = 0; i < PLX_ARRAY_LEN(many); i++) {
		init(&many[i], 'm');
		plx_signal_fire(&many[i].signal);
	}
	assert_int_equal(plx_loop_turn(), SIGNALS_TURN_MAX);
	assert_int_equal(plx_loop_turn(), 3);
	assert_int_equal(plx_loop_turn(), 0);
	for (unsigned i = 0; i < PLX_ARRAY_LEN(many); i++) {
		assert_int_equal(many[i].fires, 1);
		plx_signal_fini(&many[i].signal);
	}
}

TEST(no_function_runs_after_plx_signal_fini)
{
	plx_signal_fire(&a.signal);
	plx_signal_fire(&b.signal);
	plx_signal_fire(&c.signal);
	plx_signal_fini(&b.signal);
	assert_int_equal(plx_loop_turn(), 2);
	assert_string_equal(order, "ac");
	assert_int_equal(b.calls, 0);
	plx_signal_fini(&b.signal); /* again, and on a zeroed one */
}

/* Written before each fire: a reader that sees all fires sees all of them. */
static bool written[THREADS][FIRES];
static _Atomic unsigned threads_begun;

static void *fire(void *arg)
{
	bool *mine = written[atomic_fetch_add(&threads_begun, 1)];

	for (unsigned i = 0; i < FIRES; i++) {
		mine[i] = true;
		plx_signal_fire(arg);
	}
	return NULL;
}

static void on_many(struct plx_signal *signal, uint64_t fires, void *arg)
{
	struct heard *heard = arg;

	heard->fires += fires;
	if (heard->fires < (uint64_t)THREADS * FIRES)
		return;
	for (unsigned i = 0; i < THREADS; i++)
		for (unsigned j = 0; j < FIRES; j++)
			heard->calls += written[i][j];
	plx_loop_quit();
}

/* The loop sleeps in between, without a cap. */
ONE_LCORE(every_fire_of_every_thread_is_counted)
{
	pthread_t threads[THREADS];
	struct heard heard = {0};

	assert_int_equal(plx_idle_set(0, &event_idle), 0);
	assert_int_equal(plx_signal_init(&heard.signal, 0, on_many, &heard), 0);
	threads_start(threads, THREADS, fire, &heard.signal, 0);
	assert_int_equal(plx_loop_run(), 0);
	threads_join(threads, THREADS);
	assert_int_equal(heard.fires, THREADS * FIRES);
	assert_int_equal(heard.calls, THREADS * FIRES);
	plx_signal_fini(&heard.signal);
}

static struct plx_signal *from_handler;

static void handler(int number)
{
	plx_signal_fire(from_handler);
}

static void *raise_when_asleep(void *arg)
{
	wait_until_asleep(0);
	kill(getpid(), SIGUSR1);
	return NULL;
}

TEST(a_signal_handler_may_fire)
{
	struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};

	assert_int_equal(plx_idle_set(0, &event_idle), 0);
	a.quit_at = 1;
	from_handler = &a.signal;
	assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
	run_until(raise_when_asleep, NULL);
	assert_int_equal(a.fires, 1);
	signal(SIGUSR1, SIG_DFL);
}

ONE_LCORE(a_signal_needs_an_lcore_and_a_function)
{
	struct plx_signal signal;

	assert_fails(plx_signal_init(&signal, 5, on_signal, NULL), -ENOENT,
		     "plx_signal_init: there is no lcore 5");
	assert_fails(plx_signal_init(&signal, 0, NULL, NULL), -EINVAL, "no function to call");
}

PLX_TEST_MAIN()
