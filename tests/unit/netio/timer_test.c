/* SPDX-License-Identifier: BSD-3-Clause */
#include "netio_fixture.h"

static struct netio_timer timer;

static int timer_down(void **state)
{
	netio_timer_stop(&timer);
	timer = (struct netio_timer){0};
	return netio_down(state);
}

#define TIMER_TEST(test) PLX_TEST_WITH(test, netio_up, timer_down)

static void begin(void (*cb)(void *), unsigned end)
{
	expect_calls(end);
	assert_int_equal(netio_timer_init(&ctx.evloop, &timer), 0);
	timer.cb = cb;
	timer.data = &calls;
}

static void run_calls(unsigned end)
{
	expect_calls(end);
	run_expecting(end);
}

TIMER_TEST(a_timer_is_periodic)
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

	begin(count, 0);
	for (unsigned i = 0; i < PLX_ARRAY_LEN(rows); i++) {
		uint64_t begin_ns = plx_now_ns(), ns;

		assert_int_equal(rows[i].start(&timer, rows[i].count), 0);
		run_calls(rows[i].times);
		ns = plx_now_ns() - begin_ns;
		/* Never early; a busy host adds delay. */
		assert_in_range(ns, rows[i].all_ns, rows[i].all_ns + 2 * PLX_NS_PER_S);
	}
}

TIMER_TEST(a_stopped_timer_is_silent_until_it_is_started)
{
	struct netio_timer end;

	begin(count, 0);
	assert_int_equal(netio_timer_start_ms(&timer, 1), 0);
	netio_timer_stop(&timer);
	netio_timer_stop(&timer);
	assert_int_equal(netio_timer_init(&ctx.evloop, &end), 0);
	end.cb = terminate;
	assert_int_equal(netio_timer_start_ms(&end, 20), 0);
	run_expecting(0);
	netio_timer_stop(&end);
	assert_int_equal(netio_timer_start_ms(&timer, 1), 0);
	run_calls(3);
}

static void free_and_end(void *data)
{
	netio_timer_stop(data);
	free(data);
	netio_post(&ctx.evloop, terminate, NULL);
}

TIMER_TEST(a_timer_may_be_freed_in_its_callback)
{
	struct netio_timer *one = malloc(sizeof(*one));

	assert_int_equal(netio_timer_init(&ctx.evloop, one), 0);
	one->cb = free_and_end;
	one->data = one;
	assert_int_equal(netio_timer_start_us(one, 1), 0);
	run();
}

TIMER_TEST(a_running_timer_may_be_restarted)
{
	begin(count, 0);
	assert_int_equal(netio_timer_start_ns(&timer, ~0ull), 0);
	assert_int_equal(netio_timer_start_ms(&timer, 1), 0);
	run_calls(2);
}

TIMER_TEST(a_period_that_is_too_long_is_capped)
{
	begin(count, 0);
	assert_int_equal(netio_timer_start_s(&timer, ~0ull), 0);
	assert_int_equal(netio_timer_start_ms(&timer, ~0ull), 0);
	assert_int_equal(netio_timer_start_us(&timer, ~0ull / 999), 0);
	run_once();
	assert_int_equal(calls, 0);
}

static void *start_elsewhere(void *arg)
{
	*(int *)arg = netio_timer_start_s(&timer, 1);
	return NULL;
}

TIMER_TEST(bad_attributes_are_refused)
{
	int rc = 0;

	begin(count, 0);
	assert_int_equal(netio_timer_start_ms(&timer, 0), -EINVAL);
	assert_int_equal(log_count("netio_timer_start: a period of 0"), 1);
	run_in_thread(start_elsewhere, &rc);
	assert_int_equal(rc, -EPERM);
}

PLX_TEST_MAIN()
