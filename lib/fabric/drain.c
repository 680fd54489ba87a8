/* SPDX-License-Identifier: BSD-3-Clause */
/* Close the links of one lcore: before its loop ends, or because its thread leaves. */
#include "fabric_link.h"
#include "fabric_listen.h"
#include "list.h"

void fabric_end_listeners(struct plx_fabric_lcore *home)
{
	while (!LIST_EMPTY(&home->listeners))
		listener_end(LIST_FIRST(&home->listeners)->front);
}

/* Also if a C++ callback throws. */
static void stop_draining(struct plx_fabric_lcore **home)
{
	(*home)->draining = false;
}

static bool has_no_links(void *home)
{
	return LIST_EMPTY(&((struct plx_fabric_lcore *)home)->links);
}

int plx_fabric_drain(uint64_t timeout_ns)
{
	struct plx_fabric_lcore *home = fabric_home();
	int rc = plx_check_outside("plx_fabric_drain");
	struct plx_link *link;

	if (rc || !home)
		return rc;

	struct plx_fabric_lcore *draining PLX_CLEANUP(stop_draining) = home;

	fabric_end_listeners(home);
	home->draining = true;
	LIST_FOREACH (link, &home->links, of_home) {
		if (link->state < LINK_CLOSING)
			plx_link_close(link);
	}
	rc = plx_loop_until(has_no_links, home, timeout_ns);
	if (rc == -ETIMEDOUT)
		plx_fail(ETIMEDOUT, "lcore %u: some peers did not agree to close", home->id);
	return rc;
}

/* The lcore's thread leaves -------------------------------------------------------------------- */

#define LEAVE_NS (500 * PLX_NS_PER_MS)
#define REAP_NS  PLX_NS_PER_S

static void abort_links(void *arg)
{
	struct plx_fabric_lcore *home = arg;
	struct plx_link *link;

	LIST_FOREACH (link, &home->links, of_home)
		close_now(link, PLX_LINK_ABORTED, "the thread of its lcore has left");
}

/* The rest of the lcore's state stays for its next thread, or for plx_fabric_fini. */
static void on_leave(void)
{
	struct plx_fabric_lcore *home = fabric_home();

	if (!home)
		return;
	if (plx_fabric_drain(LEAVE_NS) == -ETIMEDOUT) {
		plx_loop_run_inside(abort_links, home);
		plx_loop_until(has_no_links, home, REAP_NS);
	}
	home->draining = true; /* a request may still come from another lcore */
}

static void on_join(void)
{
	if (fabric_home())
		fabric_home()->draining = false;
}

static struct lcore_leave_hook leave_hook = {.leave = on_leave, .join = on_join};

PLX_CONSTRUCTOR static void add_leave_hook(void)
{
	lcore_leave_hook_add(&leave_hook);
}
