/* SPDX-License-Identifier: BSD-3-Clause */
/* Essential events are delivered even when memory has run out. */
#include "prov_meet.h"

static bool runs_out;
static unsigned left; /* allocations that still succeed */

static bool may_allocate(void)
{
	return !runs_out || (left > 0 && left--);
}

/* The provider calls these instead of malloc(3) and others: see meson.build. */
#define ALLOCATOR(name, parameters, arguments)                          \
	void *__real_##name parameters;                                 \
	void *__wrap_##name parameters;                                 \
	void *__wrap_##name parameters                                  \
	{                                                               \
		return may_allocate() ? __real_##name arguments : NULL; \
	}

ALLOCATOR(malloc, (size_t size), (size))
ALLOCATOR(calloc, (size_t count, size_t size), (count, size))
ALLOCATOR(aligned_alloc, (size_t alignment, size_t size), (alignment, size))

static void allow(unsigned allocations)
{
	runs_out = true;
	left = allocations;
}

static void allow_all(void)
{
	runs_out = false;
}

/* Also after a failed test. */
static int recover(void **state)
{
	allow_all();
	return teardown(state);
}

#define TEST(name) PLX_TEST_WITH(name, setup, recover)

TEST(connections_open_and_close_without_memory)
{
	one = dial("question", 8);
	assert_int_equal(cm_wait(server.eq, FI_CONNREQ, &event), 8);
	two = request_ep();
	assert_int_equal(fi_enable(two), 0);
	allow(0);
	assert_int_equal(fi_accept(two, "answer", 6), 0);
	cm_wait(server.eq, FI_CONNECTED, &event);
	assert_ptr_equal(event.cm.fid, &two->fid);
	assert_int_equal(cm_wait(client.eq, FI_CONNECTED, &event), 6);
	assert_ptr_equal(event.cm.fid, &one->fid);
	assert_memory_equal(event.cm.data, "answer", 6);
	assert_int_equal(fi_shutdown(two, 0), 0);
	cm_wait(server.eq, FI_SHUTDOWN, &event);
	assert_ptr_equal(event.cm.fid, &two->fid);
	cm_wait(client.eq, FI_SHUTDOWN, &event);
	assert_ptr_equal(event.cm.fid, &one->fid);
	allow_all();
}

/* Returns whether the request was reported. */
static bool ask(unsigned allocations)
{
	struct fid_ep *ep = dial(NULL, 0);
	bool told;

	allow(allocations);
	for (int i = 0; i < 10; i++) {
		eq_progress((struct prov_eq *)client.eq);
		eq_progress((struct prov_eq *)server.eq);
	}
	allow_all();
	told = !TAILQ_EMPTY(&((struct prov_eq *)server.eq)->events);
	if (told)
		reject_next(NULL, 0);
	expect_refused(ep);
	close_ep(ep);
	return told;
}

TEST(a_request_that_finds_no_memory_is_refused)
{
	unsigned allocations = 0;

	while (!ask(allocations))
		allocations++;
	assert_in_range(allocations, 2, 8); /* the request, and its event */
	assert_int_equal(cm_requests(pep), 0);
}

TESTED_MAIN()
