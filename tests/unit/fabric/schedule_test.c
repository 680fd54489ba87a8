/* SPDX-License-Identifier: BSD-3-Clause */
/* Links that want service in the same turn, more than its budget is for. */
#include "fabric_link.h"
#include "fixture.h"

#include <sys/mman.h>

#define LINKS       1000
#define PAGE        ((size_t)4096)
#define CALLBACK_NS (5 * PLX_NS_PER_US)
#define TURN_MAX    200 /* links whose callbacks fit a turn, at most */

static_assert(sizeof(struct plx_link) <= PAGE, "one link a page");

static struct plx_fabric_lcore *home;
static char *pages; /* of the links */
static unsigned served;

static struct plx_link *link_at(unsigned i)
{
	return (struct plx_link *)(pages + i * PAGE);
}

static void on_credit(struct plx_link *link, void *user)
{
	stand_still(CALLBACK_NS);
	link->user = (void *)(uintptr_t)++served; /* in this order */
}

static const struct plx_link_events events = {.on_credit = on_credit};

static void ask(unsigned i)
{
	*link_at(i) = (struct plx_link){.home = home, .state = LINK_OPEN, .events = &events};
	link_schedule(link_at(i), WANT_ON_CREDIT);
}

static int start(void **state)
{
	fixture_start("tcp", false);
	assert_int_equal(fabric_here("start", &home), 0);
	pages = mmap(NULL, LINKS * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		     0);
	assert_ptr_not_equal(pages, MAP_FAILED);
	served = 0;
	return 0;
}

static int stop(void **state)
{
	munmap(pages, LINKS * PAGE);
	return fixture_down(state);
}

#define TEST(name) PLX_TEST_WITH(name, start, stop)

/* With a walk in each turn, thousands of links that end together would take quadratic time. */
TEST(a_turn_does_not_touch_links_that_it_leaves_for_later)
{
	for (unsigned i = 0; i < LINKS; i++)
		ask(i); /* the newest is served first */
	assert_int_equal(mprotect(pages, (LINKS - TURN_MAX) * PAGE, PROT_NONE), 0);
	assert_true(link_run_scheduled(home) > 0);
	assert_in_range(served, 1, TURN_MAX);
	assert_int_equal(mprotect(pages, LINKS * PAGE, PROT_READ | PROT_WRITE), 0);
	for (unsigned turns = 0; served < LINKS && turns < LINKS; turns++)
		assert_true(link_run_scheduled(home) > 0);
	assert_int_equal(served, LINKS);
	assert_int_equal(link_run_scheduled(home), 0);
}

TEST(links_left_for_later_come_before_those_that_ask_meanwhile)
{
	for (unsigned i = 1; i < LINKS; i++)
		ask(i);
	assert_true(link_run_scheduled(home) > 0);
	assert_true(served < LINKS - 1);
	ask(0);
	for (unsigned turns = 0; served < LINKS && turns < LINKS; turns++)
		assert_true(link_run_scheduled(home) > 0);
	assert_int_equal((uintptr_t)link_at(0)->user, LINKS);
}

PLX_TEST_MAIN()
