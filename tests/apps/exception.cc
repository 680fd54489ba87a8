/* SPDX-License-Identifier: BSD-3-Clause */
/* Callbacks of C++ that throw, which they must not do: the program catches it around the loop, runs
 * the loop again, and ends as if nothing had been. */
#include "netio/netio.h"
#include "plx_eal.h"

#include <cstdio>
#include <stdexcept>

static void on_timer(struct plx_timer *, void *)
{
	throw std::runtime_error("out of a timer");
}

static int poll(void *, uint64_t)
{
	throw std::runtime_error("out of a poller");
}

static void on_task(struct plx_task *, void *)
{
	throw std::runtime_error("out of a task");
}

static void quit(struct plx_timer *, void *)
{
	plx_loop_quit();
}

static void quit_by_task(struct plx_task *, void *)
{
	plx_loop_quit();
}

static int fail(const char *what)
{
	std::fprintf(stderr, "%s: %s\n", what, plx_error());
	return 1;
}

/* Whether run throws. */
static bool throws(int (*run)())
{
	try {
		for (int i = 0; i < 100000000; i++) {
			if (run() < 0)
				return false;
		}
	} catch (const std::runtime_error &) {
		return true;
	}
	return false;
}

static void throw_at_start()
{
	throw std::runtime_error("out of cb_init");
}

static int check_tasks()
{
	struct plx_task thrower, next;

	plx_task_init(&thrower, on_task, nullptr);
	plx_task_init(&next, quit_by_task, nullptr);
	plx_task_schedule(&thrower);
	plx_task_schedule(&next);
	if (!throws(plx_loop_run))
		return fail("a task in plx_loop_run");
	if (plx_loop_run() != 0)
		return fail("a task that follows one that threw");
	return 0;
}

static struct netio_context netio;

static int run_netio()
{
	return netio_run(&netio.evloop);
}

static int check_netio()
{
	if (netio_init(&netio) != 0)
		return fail("netio_init");
	netio.evloop.cb_init = throw_at_start;
	if (!throws(run_netio))
		return fail("netio_run");
	if (netio_fini(&netio) != 0)
		return fail("netio_fini");
	return 0;
}

int main()
{
	struct plx_eal_conf conf = {};
	struct plx_poller *poller;
	struct plx_timer timer;

	conf.huge = PLX_HUGE_NONE;
	if (plx_eal_init(&conf) != 0)
		return fail("plx_eal_init");
	plx_timer_init(&timer, on_timer, nullptr);
	plx_timer_start(&timer, 1000000);
	if (!throws(plx_loop_run))
		return fail("a timer in plx_loop_run");
	plx_timer_start(&timer, 1000000);
	if (!throws(plx_loop_turn))
		return fail("a timer in plx_loop_turn");
	if (check_tasks() != 0)
		return 1;
	if (plx_poller_add("thrower", poll, nullptr, &poller) != 0 || !throws(plx_loop_run))
		return fail("a poller in plx_loop_run");
	plx_poller_remove(poller);
	if (plx_loop_is_running(plx_lcore_id()))
		return fail("plx_loop_is_running");
	plx_timer_init(&timer, quit, nullptr);
	plx_timer_start(&timer, 1000000);
	if (plx_loop_run() != 0)
		return fail("plx_loop_run");
	if (plx_eal_fini() != 0)
		return fail("plx_eal_fini");
	return check_netio();
}
