/* SPDX-License-Identifier: BSD-3-Clause */
#include "lcore_priv.h"
#include "lcores.h"

static struct pollers pollers;

struct counter {
	unsigned calls;
	int work;
	uint64_t now_ns;
};

static int count(void *arg, uint64_t now_ns)
{
	struct counter *counter = arg;

	counter->calls++;
	counter->now_ns = now_ns;
	return counter->work;
}

static struct plx_poller *add(plx_poller_fn fn, void *arg)
{
	const struct plx_poller model = {.name = "test", .fn = fn, .arg = arg};
	struct plx_poller *poller;

	assert_int_equal(pollers_add(&pollers, &model, &poller), 0);
	return poller;
}

PLX_FIXTURE(tear_down, 0, pollers_fini(&pollers))

#define TEST(name) PLX_TEST_WITH(name, NULL, tear_down)

TEST(pollers_run_every_turn)
{
	struct counter first = {.work = 2}, second = {.work = 5};

	add(count, &first);
	assert_int_equal(pollers_run(&pollers, 1000), 2);
	add(count, &second);
	assert_int_equal(pollers_run(&pollers, 1001), 7);
	assert_int_equal(second.now_ns, 1001);
	assert_int_equal(first.calls, 2);
	assert_int_equal(second.calls, 1);
}

struct remover {
	struct plx_poller *victims[3];
	unsigned calls;
};

static int remove_victims(void *arg, uint64_t now_ns)
{
	struct remover *remover = arg;

	remover->calls++;
	for (unsigned i = 0; i < 3; i++) {
		plx_poller_remove(remover->victims[i]);
		remover->victims[i] = NULL;
	}
	return 0;
}

TEST(a_poller_may_remove_itself_and_others_inside_a_turn)
{
	struct counter before = {0}, after = {0}, stays = {0};
	struct remover remover = {0};

	remover.victims[0] = add(count, &before);
	remover.victims[1] = add(remove_victims, &remover);
	remover.victims[2] = add(count, &after);
	add(count, &stays);
	for (unsigned turn = 1; turn <= 100; turn++)
		pollers_run(&pollers, turn);
	assert_int_equal(before.calls, 1);
	assert_int_equal(remover.calls, 1);
	assert_int_equal(after.calls, 0);
	assert_int_equal(stays.calls, 100);
	assert_int_equal(pollers.count, 1);
}

TEST(pollers_may_be_removed_outside_a_turn)
{
	struct counter a = {0}, b = {0};
	struct plx_poller *poller = add(count, &a);

	add(count, &b);
	plx_poller_remove(NULL);
	plx_poller_remove(poller);
	pollers_run(&pollers, 1);
	assert_int_equal(a.calls, 0);
	assert_int_equal(b.calls, 1);
}

static int add_many(void *arg, uint64_t now_ns)
{
	/* More than the list has room for: it is reallocated during iteration. */
	for (unsigned i = 0; now_ns == 1 && i < 50; i++)
		add(count, arg);
	return 0;
}

TEST(a_poller_added_inside_a_turn_runs_from_the_next_turn)
{
	struct counter added = {0}, last = {0};

	add(add_many, &added);
	add(count, &last);
	pollers_run(&pollers, 1);
	assert_int_equal(added.calls, 0);
	assert_int_equal(last.calls, 1);
	pollers_run(&pollers, 2);
	assert_int_equal(added.calls, 50);
	assert_int_equal(last.calls, 2);
}

TEST(a_negative_result_counts_as_no_work)
{
	struct counter wrong = {.work = -5}, right = {.work = 3};

	add(count, &wrong);
	add(count, &right);
	assert_int_equal(pollers_run(&pollers, 1), 3);
}

PLX_TEST(a_poller_needs_an_lcore_a_name_and_a_function)
{
	assert_fails(plx_poller_add("p", count, NULL, NULL), -ENOENT, NOT_UP("plx_poller_add"));
	lcores_up(1);
	assert_fails(plx_poller_add(NULL, count, NULL, NULL), -EINVAL,
		     "a poller has a name and a function");
	assert_fails(plx_poller_add("p", NULL, NULL, NULL), -EINVAL,
		     "a poller has a name and a function");
	lcores_down();
}

PLX_TEST_MAIN()
