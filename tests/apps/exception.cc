/* SPDX-License-Identifier: BSD-3-Clause */
/* Callbacks of C++ that throw, which they must not do: the program catches it around the loop, runs
 * the loop again, and ends as if nothing had been. Here tasks; unit_ends has each callback. */
#include "exception_turns.h"
#include "plx_eal.h"

static unsigned ran;

static void on_task(struct plx_task *, void *)
{
	ran++;
	throw std::runtime_error("out of a task");
}

static void quit_by_task(struct plx_task *, void *)
{
	ran++;
	plx_loop_quit();
}

static bool throws(int (*run)())
{
	try {
		run();
	} catch (const std::runtime_error &) {
		return true;
	}
	return false;
}

int main()
{
	struct plx_eal_conf conf = {};
	struct plx_task thrower, next;

	conf.huge = PLX_HUGE_NONE;
	if (plx_eal_init(&conf) != 0)
		return fail("plx_eal_init");
	plx_task_init(&thrower, on_task, nullptr);
	plx_task_init(&next, quit_by_task, nullptr);
	plx_task_schedule(&thrower);
	plx_task_schedule(&next);
	if (!throws(plx_loop_run) || plx_loop_is_running(plx_lcore_id()))
		return fail("a task in plx_loop_run");
	if (plx_loop_run() != 0 || ran != 2)
		return fail("a task that follows one that threw");
	plx_task_schedule(&thrower);
	if (!throws(plx_loop_turn))
		return fail("a task in plx_loop_turn");
	return plx_eal_fini() == 0 ? 0 : fail("plx_eal_fini");
}
