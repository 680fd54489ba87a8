/* SPDX-License-Identifier: BSD-3-Clause */
#include "asleep.h"
#include "lcores.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

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

static void init_three(struct heard *a, struct heard *b, struct heard *c)
{
	init(a, 'a');
	init(b, 'b');
	init(c, 'c');
}

ONE_LCORE(fires_of_one_turn_are_told_together)
{
	struct heard heard;

	init(&heard, 'a');
	for (int i = 0; i < 5; i++)
		plx_signal_fire(&heard.signal);
	assert_int_equal(heard.calls, 0);
	assert_int_equal(plx_loop_turn(), 1);
	assert_int_equal(heard.calls, 1);
	assert_int_equal(heard.fires, 5);
	assert_int_equal(plx_loop_turn(), 0);
	plx_signal_fini(&heard.signal);
}

ONE_LCORE(they_come_in_the_order_of_their_first_fire)
{
	struct heard a, b, c;

	init_three(&a, &b, &c);
	plx_signal_fire(&b.signal);
	plx_signal_fire(&c.signal);
	plx_signal_fire(&a.signal);
	plx_signal_fire(&b.signal);
	assert_int_equal(plx_loop_turn(), 3);
	assert_string_equal(order, "bca");
	assert_int_equal(b.fires, 2);
	plx_signal_fini(&a.signal);
	plx_signal_fini(&b.signal);
	plx_signal_fini(&c.signal);
}

ONE_LCORE(one_may_be_fired_in_its_own_function)
{
	struct heard a, b;

	init(&a, 'a');
	init(&b, 'b');
	a.again = &a.signal;
	plx_signal_fire(&a.signal);
	plx_signal_fire(&b.signal);
	assert_int_equal(plx_loop_turn(), 2);
	assert_int_equal(plx_loop_turn(), 1);
	assert_int_equal(a.fires, 2);
	assert_string_equal(order, "aba");
	plx_signal_fini(&a.signal);
	plx_signal_fini(&b.signal);
}

ONE_LCORE(a_turn_takes_some_and_the_next_one_the_rest)
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

ONE_LCORE(after_fini_nothing_comes)
{
	struct heard a, b, c;

	init_three(&a, &b, &c);
	plx_signal_fire(&a.signal);
	plx_signal_fire(&b.signal);
	plx_signal_fire(&c.signal);
	plx_signal_fini(&b.signal);
	assert_int_equal(plx_loop_turn(), 2);
	assert_string_equal(order, "ac");
	assert_int_equal(b.calls, 0);
	plx_signal_fini(&b.signal); /* again, and on a zeroed one */
	plx_signal_fini(&a.signal);
	plx_signal_fini(&c.signal);
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
ONE_LCORE(every_fire_of_every_thread_counts)
{
	const struct plx_idle_conf conf = {.mode = PLX_IDLE_EVENT, .sleep_max_ns = PLX_NEVER};
	pthread_t threads[THREADS];
	struct heard heard;

	assert_int_equal(plx_idle_set(0, &conf), 0);
	heard = (struct heard){0};
	assert_int_equal(plx_signal_init(&heard.signal, 0, on_many, &heard), 0);
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, fire, &heard.signal), 0);
	assert_int_equal(plx_loop_run(), 0);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
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

ONE_LCORE(a_signal_handler_may_fire)
{
	const struct plx_idle_conf conf = {.mode = PLX_IDLE_EVENT, .sleep_max_ns = PLX_NEVER};
	struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
	struct heard heard;
	pthread_t thread;

	assert_int_equal(plx_idle_set(0, &conf), 0);
	init(&heard, 'a');
	heard.quit_at = 1;
	from_handler = &heard.signal;
	assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
	assert_int_equal(pthread_create(&thread, NULL, raise_when_asleep, NULL), 0);
	assert_int_equal(plx_loop_run(), 0);
	pthread_join(thread, NULL);
	assert_int_equal(heard.fires, 1);
	signal(SIGUSR1, SIG_DFL);
	plx_signal_fini(&heard.signal);
}

ONE_LCORE(wrong_ones_are_refused)
{
	struct plx_signal signal;

	assert_fails(plx_signal_init(&signal, 5, on_signal, NULL), -ENOENT,
		     "plx_signal_init: there is no lcore 5");
	assert_fails(plx_signal_init(&signal, 0, NULL, NULL), -EINVAL, "no function to call");
}

PLX_TEST_MAIN()
