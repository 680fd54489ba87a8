/* SPDX-License-Identifier: BSD-3-Clause */
/* A loop, its posts, its timers and the descriptors that it watches. */
#include "netio_fixture.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>

static char said[64]; /* one letter per event */
static struct netio_timer timer;
static struct netio_fd watch;
static int fd;
static uint32_t seen;

static void say(const char *letter)
{
	strncat(said, letter, sizeof(said) - strlen(said) - 1);
}

static int up(void **state)
{
	said[0] = '\0';
	calls = seen = 0;
	fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	assert_true(fd >= 0);
	return netio_up(state);
}

static int down(void **state)
{
	netio_timer_stop(&timer);
	netio_fd_fini(&watch);
	timer = (struct netio_timer){0};
	watch = (struct netio_fd){0};
	close(fd);
	return netio_down(state);
}

#define TEST(test) PLX_TEST_WITH(test, up, down)

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

TEST(cb_init_runs_first_each_time)
{
	ctx.evloop.cb_init = begin;
	assert_int_equal(netio_post(&ctx.evloop, letter, "p"), 0);
	run_once();
	run_once();
	assert_string_equal(said, "bpb");
}

TEST(cb_init_may_terminate_the_loop)
{
	ctx.evloop.cb_init = begin_and_end;
	assert_int_equal(netio_post(&ctx.evloop, letter, "p"), 0);
	run();
	assert_string_equal(said, "b"); /* no turn was made */
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

	threads_start(&thread, 1, terminate_later, NULL, 1);
	run();
	threads_join(&thread, 1);
}

TEST(netio_terminate_before_netio_run_ends_the_loop)
{
	ctx.evloop.cb_init = begin;
	netio_terminate(&ctx.evloop);
	run();
	run_in_thread(terminate_later, NULL);
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

TEST(too_many_posts_are_refused)
{
	unsigned posted = 0;
	int rc;

	while ((rc = netio_post(&ctx.evloop, letter, "")) == 0)
		assert_true(++posted < 1000000);
	assert_int_equal(rc, -EAGAIN);
	assert_int_equal(log_count("netio:"), 0);
	netio_terminate(&ctx.evloop);
	run();
}

static void *use_elsewhere(void *arg)
{
	assert_int_equal(netio_run(&ctx.evloop), -EPERM);
	assert_int_equal(netio_timer_start_s(&timer, 1), -EPERM);
	assert_int_equal(netio_fd_init(&ctx.evloop, &watch, fd, EPOLLIN), -EPERM);
	return NULL;
}

TEST(only_the_thread_of_a_loop_may_use_it)
{
	assert_int_equal(netio_timer_init(&ctx.evloop, &timer), 0);
	run_in_thread(use_elsewhere, NULL);
	assert_int_equal(log_count("netio_run: the event loop is lcore 0's"), 1);
}

TEST(an_uninitialized_loop_is_refused)
{
	struct netio_eventloop none = {0};
	struct netio_signal signal;

	assert_int_equal(netio_run(&none), -EINVAL);
	assert_int_equal(netio_post(&none, letter, NULL), -EINVAL);
	assert_int_equal(netio_signal_init(&none, &signal), -EINVAL);
	netio_signal_fire(&signal);
	netio_signal_fini(&signal);
	assert_int_equal(netio_timer_init(&none, &timer), -EINVAL);
	assert_int_equal(netio_timer_start_s(&timer, 1), -EINVAL);
	assert_int_equal(netio_fd_init(&none, &watch, 0, 0), -EINVAL);
	netio_terminate(&none);
	assert_int_equal(netio_eventloop_fini(&none), 0);
	assert_int_equal(log_count("the event loop is not set up"), 6);
}

static struct netio_eventloop second;

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
	run();
	assert_string_equal(said, "sss");
	netio_signal_fini(&signal);
	second.cb_init = begin;
	assert_int_equal(netio_run(&second), 0); /* meant for it */
	assert_string_equal(said, "sssb");
	assert_int_equal(netio_eventloop_fini(&second), 0);
	assert_int_equal(plx_lcore_count(), 1); /* the first one's */
}

/* Timers --------------------------------------------------------------------------------------- */

static void begin_timer(void)
{
	assert_int_equal(netio_timer_init(&ctx.evloop, &timer), 0);
	timer.cb = count;
	timer.data = &calls;
}

static void run_calls(unsigned end)
{
	expect_calls(end);
	run_expecting(end);
}

TEST(a_timer_is_periodic)
{
	static const struct {
		int (*start)(struct netio_timer *, unsigned long long);
		unsigned long long count;
		unsigned times;
		uint64_t all_ns;
	} rows[] = {
		{netio_timer_start_s, 1, 1, PLX_NS_PER_S},
		{netio_timer_start_ms, 20, 5, 100 * PLX_NS_PER_MS},
		{netio_timer_start_us, 500, 40, 20 * PLX_NS_PER_MS},
		{netio_timer_start_ns, 100000, 100, 10 * PLX_NS_PER_MS},
	};

	begin_timer();
	for (unsigned i = 0; i < PLX_ARRAY_LEN(rows); i++) {
		uint64_t begin_ns = plx_now_ns(), ns;

		assert_int_equal(rows[i].start(&timer, rows[i].count), 0);
		run_calls(rows[i].times);
		ns = plx_now_ns() - begin_ns;
		/* Never early; a busy host adds delay. */
		assert_in_range(ns, rows[i].all_ns, rows[i].all_ns + 2 * PLX_NS_PER_S);
	}
}

TEST(a_period_is_more_than_0_and_one_that_is_too_long_is_capped)
{
	begin_timer();
	assert_int_equal(netio_timer_start_ms(&timer, 0), -EINVAL);
	assert_int_equal(log_count("netio_timer_start: a period of 0"), 1);
	assert_int_equal(netio_timer_start_s(&timer, ~0ull), 0);
	assert_int_equal(netio_timer_start_us(&timer, ~0ull / 999), 0);
	run_once();
	assert_int_equal(calls, 0);
	assert_int_equal(netio_timer_start_ms(&timer, 1), 0); /* while it runs */
	run_calls(2);
}

/* Descriptors ---------------------------------------------------------------------------------- */

static void note(int from, uint32_t events, void *data)
{
	assert_int_equal(from, fd);
	assert_ptr_equal(data, &calls);
	calls++;
	seen = events;
	netio_terminate(&ctx.evloop);
}

static void begin_watch(uint32_t events)
{
	watch.cb = note;
	watch.data = &calls;
	assert_int_equal(netio_fd_init(&ctx.evloop, &watch, fd, events), 0);
}

static void *write_later(void *arg)
{
	usleep(20000);
	assert_int_equal(eventfd_write(fd, 1), 0);
	return NULL;
}

TEST(a_callback_runs_when_its_descriptor_is_ready)
{
	pthread_t thread;

	begin_watch(EPOLLIN);
	threads_start(&thread, 1, write_later, NULL, 1);
	run();
	threads_join(&thread, 1);
	assert_int_equal(calls, 1);
	assert_int_equal(seen, EPOLLIN);
	assert_int_equal(netio_fd_modify(&watch, EPOLLOUT), 0);
	run();
	assert_int_equal(seen, EPOLLOUT);
}

TEST(bad_descriptors_and_events_are_refused)
{
	assert_int_equal(netio_fd_init(&ctx.evloop, &watch, -1, EPOLLIN), -EBADF);
	assert_int_equal(netio_fd_init(&ctx.evloop, &watch, fd, 1u << 27), -EINVAL);
	assert_int_equal(netio_fd_modify(&watch, EPOLLIN), -EINVAL);
	begin_watch(EPOLLIN);
	assert_int_equal(netio_fd_modify(&watch, 1u << 27), -EINVAL);
}

PLX_TEST_MAIN()
