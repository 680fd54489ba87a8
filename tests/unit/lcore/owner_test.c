/* SPDX-License-Identifier: BSD-3-Clause */
#include "lcores.h"
#include "misuse.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>

static struct plx_timer timer;
static struct plx_task task;
static struct plx_signal fired;
static struct plx_poller *poller;
static struct plx_fd *watched;

static void on_timer(struct plx_timer *the_timer, void *arg)
{
}
static void on_task(struct plx_task *the_task, void *arg)
{
}
static void on_signal(struct plx_signal *signal, uint64_t fires, void *arg)
{
}
static void on_fd(int fd, uint32_t events, void *arg)
{
}
static int poll_nothing(void *arg, uint64_t now_ns)
{
	return 0;
}

static void set_up(void)
{
	lcores_up(2);
	plx_timer_init(&timer, on_timer, NULL);
	plx_timer_start(&timer, PLX_NS_PER_S);
	plx_task_init(&task, on_task, NULL);
	plx_task_schedule(&task);
	plx_signal_init(&fired, 0, on_signal, NULL);
	plx_poller_add("nothing", poll_nothing, NULL, &poller);
	plx_fd_add(eventfd(0, EFD_CLOEXEC), EPOLLIN, on_fd, NULL, &watched);
}

MISUSE(plx_timer_stop, &timer)
MISUSE(plx_timer_set_lax, &timer, true)
MISUSE(plx_task_schedule, &task)
MISUSE(plx_task_cancel, &task)
MISUSE(plx_signal_fini, &fired)
MISUSE(plx_poller_remove, poller)
MISUSE(plx_fd_modify, watched, EPOLLOUT)
MISUSE(plx_fd_remove, watched)

PLX_TEST(the_error_names_the_calling_lcore_and_the_owner)
{
	assert_misuses(set_up);
}

static int stop_timer_without_lcore(void)
{
	set_up();
	plx_lcore_id_tls = PLX_LCORE_NONE;
	plx_timer_stop(&timer);
	return 0;
}

static int stop_another_lcores_timer(void *arg)
{
	plx_timer_stop(&timer);
	return 0;
}

static int worker_stops_timer_of_main(void)
{
	set_up();
	return run_on(10, stop_another_lcores_timer, NULL);
}

PLX_TEST(other_threads_and_workers_may_not_use_objects_of_others)
{
	static const struct fatal_case cases[] = {
		{stop_timer_without_lcore, "plx_timer_stop: called on a thread that is not an "
					   "lcore, but lcore 0 owns the object"},
		{worker_stops_timer_of_main, "called on lcore 10, but lcore 0 owns"},
	};

	assert_fatal(cases, PLX_ARRAY_LEN(cases));
}

PLX_TEST_MAIN()
