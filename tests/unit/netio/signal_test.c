/* SPDX-License-Identifier: BSD-3-Clause */
#include "netio_fixture.h"

#include <signal.h>
#include <sys/epoll.h>

#define THREADS 4
#define FIRES   1000

static struct netio_signal bell;

static int bell_down(void **state)
{
	netio_signal_fini(&bell);
	bell = (struct netio_signal){0};
	return netio_down(state);
}

#define SIGNAL_TEST(test) PLX_TEST_WITH(test, netio_up, bell_down)

static void begin(void (*cb)(void *), uint64_t end)
{
	expect_calls(end);
	assert_int_equal(netio_signal_init(&ctx.evloop, &bell), 0);
	bell.cb = cb;
	bell.data = &calls;
}

static void *fire_often(void *arg)
{
	for (unsigned i = 0; i < FIRES; i++)
		netio_signal_fire(&bell);
	return NULL;
}

SIGNAL_TEST(each_fire_of_each_thread_makes_one_call)
{
	pthread_t threads[THREADS];

	begin(count, THREADS * FIRES);
	threads_start(threads, THREADS, fire_often, NULL, 1);
	run();
	threads_join(threads, THREADS);
	/* None remains. */
	run_once();
	assert_int_equal(calls, THREADS * FIRES);
}

static uint64_t calls_at_timer;

static void note_calls(void *data)
{
	calls_at_timer = calls;
	netio_terminate(&ctx.evloop);
}

/* A hundred thousand of them must not delay a timer. */
SIGNAL_TEST(many_fires_are_spread_over_turns)
{
	struct netio_timer timer;

	begin(count, 0);
	for (unsigned i = 0; i < 100000; i++)
		netio_signal_fire(&bell);
	assert_int_equal(netio_timer_init(&ctx.evloop, &timer), 0);
	timer.cb = note_calls;
	assert_int_equal(netio_timer_start_us(&timer, 1), 0);
	run();
	netio_timer_stop(&timer);
	assert_in_range(calls_at_timer, 1, 99999);
	assert_in_range(calls, 64, 99999);
	/* The rest follows when it runs again. */
	until = 100000;
	run_expecting(100000);
}

SIGNAL_TEST(no_callback_runs_after_netio_terminate)
{
	begin(count, 3);
	for (unsigned i = 0; i < 10; i++)
		netio_signal_fire(&bell);
	run_expecting(3);
	until = 10;
	run_expecting(10);
	/* Nor after the end of the signal. */
	netio_signal_fire(&bell);
	netio_signal_fini(&bell);
	netio_signal_fire(&bell);
	run_once();
	assert_int_equal(calls, 10);
}

static void end_itself(void *data)
{
	struct netio_signal *signal = data;

	calls++;
	netio_signal_fini(signal);
	free(signal);
	netio_post(&ctx.evloop, terminate, NULL);
}

SIGNAL_TEST(a_signal_may_be_freed_in_its_callback)
{
	struct netio_signal *signal = malloc(sizeof(*signal));

	calls = 0;
	assert_int_equal(netio_signal_init(&ctx.evloop, signal), 0);
	signal->cb = end_itself;
	signal->data = signal;
	for (unsigned i = 0; i < 200; i++)
		netio_signal_fire(signal);
	run_expecting(1);
}

static void on_usr1(int number)
{
	netio_signal_fire(&bell);
}

/* Handlers that run on the loop's thread at the worst time: after the loop has last looked whether
 * to sleep. */

int __real_epoll_pwait2(int epoll, struct epoll_event *events, int count,
			const struct timespec *timeout, const sigset_t *mask);
int __wrap_epoll_pwait2(int epoll, struct epoll_event *events, int count,
			const struct timespec *timeout, const sigset_t *mask);

static bool raises; /* in the next sleep */
static bool slept;  /* in spite of that */

int __wrap_epoll_pwait2(int epoll, struct epoll_event *events, int count,
			const struct timespec *timeout, const sigset_t *mask)
{
	static const struct timespec none;
	int ready;

	if (!raises)
		return __real_epoll_pwait2(epoll, events, count, timeout, mask);
	raises = false;
	raise(SIGUSR1);
	ready = __real_epoll_pwait2(epoll, events, count, &none, mask);
	slept = ready == 0;
	return ready;
}

static void terminate_in_handler(int number)
{
	netio_terminate(&ctx.evloop);
}

static void quit_in_handler(int number)
{
	plx_loop_quit();
}

static void stop_in_handler(int number)
{
	plx_stop();
}

SIGNAL_TEST(a_signal_handler_wakes_the_loop_of_its_thread)
{
	void (*const handlers[])(int) = {terminate_in_handler, quit_in_handler, on_usr1,
					 stop_in_handler};

	begin(count, 1);
	for (unsigned i = 0; i < PLX_ARRAY_LEN(handlers); i++) {
		const struct sigaction action = {.sa_handler = handlers[i]};

		assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
		raises = true;
		run();
		assert_false(raises);
		if (slept)
			fail_msg("the loop missed handler %u", i);
	}
	signal(SIGUSR1, SIG_DFL);
	assert_int_equal(calls, 1);
}

PLX_TEST_MAIN()
