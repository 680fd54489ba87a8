/* SPDX-License-Identifier: BSD-3-Clause */
#include "lcores.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#define LOOKS 70 /* turns that poll descriptors at least once */

/* A descriptor and its events. */
struct watch {
	int fd;
	struct plx_fd *handle;
	uint32_t events;
	unsigned calls;
	bool drains, quits;
	struct watch *removes;  /* removed in its callback */
	struct watch *modifies; /* waits for nothing from then on */
};

static void on_fd(int fd, uint32_t events, void *arg)
{
	struct watch *watch = arg;
	uint64_t count;

	assert_int_equal(fd, watch->fd);
	watch->calls++;
	watch->events = events;
	if (watch->drains)
		assert_int_equal(eventfd_read(fd, &count), 0);
	if (watch->quits)
		plx_loop_quit();
	if (watch->removes) {
		plx_fd_remove(watch->removes->handle);
		watch->removes->handle = NULL;
	}
	if (watch->modifies)
		assert_int_equal(plx_fd_modify(watch->modifies->handle, 0), 0);
}

static void add(struct watch *watch, uint32_t events)
{
	watch->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	assert_true(watch->fd >= 0);
	assert_works(plx_fd_add(watch->fd, events, on_fd, watch, &watch->handle));
}

static void done(struct watch *watch)
{
	plx_fd_remove(watch->handle);
	close(watch->fd);
}

static void ring(const struct watch *watch)
{
	assert_int_equal(eventfd_write(watch->fd, 1), 0);
}

static void turns(unsigned count)
{
	while (count--)
		plx_loop_turn();
}

ONE_LCORE(a_level_is_reported_until_it_is_read_and_an_edge_once)
{
	struct watch level = {0}, edge = {0};

	add(&level, EPOLLIN);
	add(&edge, EPOLLIN | EPOLLET);
	ring(&level);
	ring(&edge);
	turns(5 * LOOKS);
	assert_in_range(level.calls, 5, 10);
	assert_int_equal(level.events, EPOLLIN);
	assert_int_equal(edge.calls, 1);
	ring(&edge);
	turns(LOOKS);
	assert_int_equal(edge.calls, 2);
	done(&level);
	done(&edge);
}

static struct watch first, second; /* both are due in one turn */

static void ring_both(void)
{
	add(&first, EPOLLIN);
	add(&second, EPOLLIN);
	ring(&first);
	ring(&second);
	turns(LOOKS / 2);
	turns(LOOKS);
	assert_true(!first.calls != !second.calls);
}

ONE_LCORE(a_watch_may_remove_another_that_is_due)
{
	first = (struct watch){.removes = &second};
	second = (struct watch){.removes = &first};
	ring_both();
	done(&first);
	done(&second);
}

ONE_LCORE(an_event_that_is_due_and_no_longer_wanted_is_not_reported)
{
	first = (struct watch){.modifies = &second};
	second = (struct watch){.modifies = &first};
	ring_both();
	/* What is wanted again is reported again. */
	first.modifies = second.modifies = NULL;
	assert_int_equal(plx_fd_modify((first.calls ? &second : &first)->handle, EPOLLIN), 0);
	turns(LOOKS);
	assert_true(first.calls && second.calls);
	done(&first);
	done(&second);
}

ONE_LCORE(a_watch_may_remove_itself)
{
	struct watch watch = {0};

	watch.removes = &watch;
	add(&watch, EPOLLIN);
	ring(&watch);
	turns(3 * LOOKS);
	assert_int_equal(watch.calls, 1);
	assert_null(watch.handle);
	close(watch.fd);
}

static void *ring_when_asleep(void *arg)
{
	wait_until_asleep(0);
	ring(arg);
	return NULL;
}

ONE_LCORE(a_level_and_an_edge_wake_a_sleeping_loop)
{
	static const uint32_t events[] = {EPOLLIN, EPOLLIN | EPOLLET};

	assert_int_equal(plx_idle_set(0, &event_idle), 0);
	for (unsigned i = 0; i < PLX_ARRAY_LEN(events); i++) {
		struct watch watch = {.drains = true, .quits = true};

		add(&watch, events[i]);
		run_until(ring_when_asleep, &watch);
		assert_int_equal(watch.calls, 1);
		assert_int_equal(idle_stats_of(0).wakes[PLX_WAKE_FD], i + 1);
		assert_int_equal(idle_stats_of(0).spurious, 0);
		done(&watch);
	}
}

ONE_LCORE(bad_descriptors_and_events_are_refused)
{
	struct watch watch = {0};
	struct plx_fd *fd;
	int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	add(&watch, EPOLLIN);
	assert_fails(plx_fd_add(watch.fd, EPOLLIN, on_fd, NULL, &fd), -EEXIST,
		     "watched already; use plx_fd_modify");
	assert_fails(plx_fd_add(file, EPOLLIN, on_fd, NULL, &fd), -EPERM, "epoll cannot watch it");
	assert_int_equal(plx_fd_add(-1, EPOLLIN, on_fd, NULL, &fd), -EBADF);
	assert_fails(plx_fd_add(watch.fd, EPOLLEXCLUSIVE, on_fd, NULL, &fd), -EINVAL,
		     "those that may be asked for are EPOLLIN");
	assert_fails(plx_fd_add(watch.fd, EPOLLIN, NULL, NULL, &fd), -EINVAL,
		     "no function to call");
	assert_int_equal(plx_fd_modify(watch.handle, 1u << 20), -EINVAL);
	close(file);
	done(&watch);
	lcores_down();
	assert_fails(plx_fd_add(0, EPOLLIN, on_fd, NULL, &fd), -ENOENT, NOT_UP("plx_fd_add"));
	plx_fd_remove(NULL);
	lcores_up(1);
}

PLX_TEST_MAIN()
