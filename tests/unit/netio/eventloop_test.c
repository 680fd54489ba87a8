/* SPDX-License-Identifier: BSD-3-Clause */
#include "netio_fixture.h"

static char said[64]; /* one letter per event */

static void say(const char *letter)
{
	strncat(said, letter, sizeof(said) - strlen(said) - 1);
}

PLX_FIXTURE(up, netio_up(state), said[0] = '\0')

static void begin(void)
{
	say("b");
}

static void begin_and_end(void)
{
	say("b");
	netio_terminate(&ctx.evloop);
}

static void letter(void *arg)
{
	say(arg);
}

#define TEST(test) PLX_TEST_WITH(test, up, netio_down)

TEST(cb_init_runs_first)
{
	ctx.evloop.cb_init = begin;
	assert_int_equal(netio_post(&ctx.evloop, letter, "p"), 0);
	run_once();
	assert_string_equal(said, "bp");
}

TEST(cb_init_may_terminate_the_loop)
{
	ctx.evloop.cb_init = begin_and_end;
	assert_int_equal(netio_post(&ctx.evloop, letter, "p"), 0);
	run();
	assert_string_equal(said, "b"); /* no turn was made */
	run();
	assert_string_equal(said, "bb");
}

TEST(a_terminated_loop_may_run_again)
{
	ctx.evloop.cb_init = begin;
	for (unsigned i = 0; i < 3; i++)
		run_once();
	assert_string_equal(said, "bbb");
}

static void *terminate_later(void *arg)
{
	usleep(50000); /* asleep by then or not; both cases should occur */
	netio_terminate(&ctx.evloop);
	return NULL;
}

TEST(another_thread_may_terminate_the_loop)
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, terminate_later, NULL), 0);
	run();
	pthread_join(thread, NULL);
}

static void *terminate_now(void *arg)
{
	netio_terminate(&ctx.evloop);
	return NULL;
}

TEST(netio_terminate_before_netio_run_ends_the_loop)
{
	ctx.evloop.cb_init = begin;
	netio_terminate(&ctx.evloop);
	run();
	run_in_thread(terminate_now, NULL);
	run();
	assert_string_equal(said, "bb");
}

static pthread_t posted_on;

static void note_thread(void *arg)
{
	posted_on = pthread_self();
	terminate(NULL);
}

static void *post(void *arg)
{
	assert_int_equal(netio_post(&ctx.evloop, note_thread, NULL), 0);
	return NULL;
}

TEST(a_post_runs_on_the_loop)
{
	run_in_thread(post, NULL);
	run();
	assert_true(pthread_equal(posted_on, pthread_self()));
	assert_int_equal(netio_post(&ctx.evloop, NULL, NULL), -EINVAL);
}

static void nothing(void *arg)
{
}

TEST(too_many_posts_are_refused)
{
	unsigned count = 0;
	int rc;

	while ((rc = netio_post(&ctx.evloop, nothing, NULL)) == 0)
		assert_true(++count < 1000000);
	assert_int_equal(rc, -EAGAIN);
	assert_int_equal(log_count("netio:"), 0);
	netio_terminate(&ctx.evloop);
	run();
}

static void *run_elsewhere(void *arg)
{
	*(int *)arg = netio_run(&ctx.evloop);
	return NULL;
}

TEST(only_the_thread_of_a_loop_may_run_it)
{
	int rc = 0;

	run_in_thread(run_elsewhere, &rc);
	assert_int_equal(rc, -EPERM);
	assert_int_equal(log_count("netio_run: the event loop is lcore 0's"), 1);
}

TEST(an_uninitialized_loop_is_refused)
{
	struct netio_eventloop none = {0};
	struct netio_signal signal;
	struct netio_timer timer;
	struct netio_fd watch = {0};

	assert_int_equal(netio_run(&none), -EINVAL);
	assert_int_equal(netio_post(&none, nothing, NULL), -EINVAL);
	assert_int_equal(netio_signal_init(&none, &signal), -EINVAL);
	netio_signal_fire(&signal);
	netio_signal_fini(&signal);
	assert_int_equal(netio_timer_init(&none, &timer), -EINVAL);
	assert_int_equal(netio_timer_start_s(&timer, 1), -EINVAL);
	netio_timer_stop(&timer);
	assert_int_equal(netio_fd_init(&none, &watch, 0, 0), -EINVAL);
	netio_fd_fini(&watch);
	netio_terminate(&none);
	assert_int_equal(netio_eventloop_fini(&none), 0);
	assert_int_equal(log_count("the event loop is not set up"), 6);
}

static struct netio_eventloop second;

static void *terminate_second(void *arg)
{
	netio_terminate(&second);
	return NULL;
}

static void heard(void *data)
{
	say("s");
	if (strlen(said) == 3)
		netio_terminate(&ctx.evloop);
}

/* A second loop of the thread: its events are served while the first one runs, even after it was
 * told to end. */
TEST(two_loops_of_a_thread_share_its_lcore)
{
	struct netio_signal signal;

	assert_int_equal(netio_eventloop_init(&second), 0);
	assert_int_equal(netio_signal_init(&second, &signal), 0);
	signal.cb = heard;
	for (unsigned i = 0; i < 3; i++)
		netio_signal_fire(&signal);
	netio_terminate(&second);
	run_in_thread(terminate_second, NULL);
	run();
	assert_string_equal(said, "sss");
	netio_signal_fini(&signal);
	second.cb_init = begin;
	assert_int_equal(netio_run(&second), 0); /* meant for it */
	assert_string_equal(said, "sssb");
	assert_int_equal(netio_eventloop_fini(&second), 0);
	assert_int_equal(plx_lcore_count(), 1); /* the first one's */
}

PLX_TEST_MAIN()
