/* SPDX-License-Identifier: BSD-3-Clause */
#include "netio_fixture.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>

static struct netio_fd watch;
static int fd;
static uint32_t seen;

static int up(void **state)
{
	watch = (struct netio_fd){0};
	calls = seen = 0;
	fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	assert_true(fd >= 0);
	return netio_up(state);
}

static int down(void **state)
{
	netio_fd_fini(&watch);
	close(fd);
	return netio_down(state);
}

static void note(int from, uint32_t events, void *data)
{
	uint64_t value;

	assert_int_equal(from, fd);
	assert_ptr_equal(data, &calls);
	calls++;
	seen = events;
	if (events & EPOLLIN)
		assert_int_equal(read(fd, &value, sizeof(value)), sizeof(value));
	netio_terminate(&ctx.evloop);
}

static void begin(uint32_t events)
{
	watch.cb = note;
	watch.data = &calls;
	assert_int_equal(netio_fd_init(&ctx.evloop, &watch, fd, events), 0);
}

static void *write_later(void *arg)
{
	uint64_t one = 1;

	usleep(20000);
	assert_int_equal(write(fd, &one, sizeof(one)), sizeof(one));
	return NULL;
}

#define TEST(test) PLX_TEST_WITH(test, up, down)

TEST(the_callback_runs_when_the_descriptor_is_ready)
{
	pthread_t thread;

	begin(EPOLLIN);
	assert_int_equal(pthread_create(&thread, NULL, write_later, NULL), 0);
	run();
	pthread_join(thread, NULL);
	assert_int_equal(calls, 1);
	assert_int_equal(seen, EPOLLIN);
}

TEST(the_watched_events_may_be_changed)
{
	begin(EPOLLIN);
	assert_int_equal(netio_fd_modify(&watch, EPOLLOUT), 0);
	run();
	assert_int_equal(seen, EPOLLOUT);
}

static struct netio_fd other;

/* Both are due: the first one to be called takes the events of both. */
static void take_events(int from, uint32_t events, void *data)
{
	calls++;
	assert_int_equal(netio_fd_modify(&watch, 0), 0);
	assert_int_equal(netio_fd_modify(&other, 0), 0);
	netio_post(&ctx.evloop, terminate, NULL);
}

TEST(events_that_were_taken_out_are_not_reported)
{
	int other_fd = eventfd(1, EFD_NONBLOCK | EFD_CLOEXEC);

	assert_true(other_fd >= 0);
	other.cb = take_events;
	begin(EPOLLOUT);
	watch.cb = take_events;
	assert_int_equal(netio_fd_init(&ctx.evloop, &other, other_fd, EPOLLIN), 0);
	run_expecting(1);
	netio_fd_fini(&other);
	close(other_fd);
}

static void *init_elsewhere(void *arg)
{
	*(int *)arg = netio_fd_init(&ctx.evloop, &watch, fd, EPOLLIN);
	return NULL;
}

TEST(bad_attributes_are_refused)
{
	int rc = 0;

	assert_int_equal(netio_fd_init(&ctx.evloop, &watch, -1, EPOLLIN), -EBADF);
	assert_int_equal(netio_fd_init(&ctx.evloop, &watch, fd, 1u << 27), -EINVAL);
	assert_int_equal(netio_fd_modify(&watch, EPOLLIN), -EINVAL);
	run_in_thread(init_elsewhere, &rc);
	assert_int_equal(rc, -EPERM);
	begin(EPOLLIN);
	assert_int_equal(netio_fd_modify(&watch, 1u << 27), -EINVAL);
}

PLX_TEST_MAIN()
