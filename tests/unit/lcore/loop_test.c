/* SPDX-License-Identifier: BSD-3-Clause */
/* A turn of the loop, its pollers, its clock and its figures. */
#include "lcores.h"

#include <unistd.h>

static void spin(uint64_t ns)
{
	uint64_t start = plx_now_ns();

	while (plx_now_ns() - start < ns)
		continue;
}

static int quit_at_zero(void *arg, uint64_t now_ns)
{
	unsigned *turns_left = arg;

	if (--*turns_left == 0)
		plx_loop_quit();
	return 0;
}

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

PLX_TEST(a_loop_needs_an_lcore_and_pollers_and_timers_a_function)
{
	uint64_t before = plx_now_ns();

	assert_fails(plx_loop_run(), -ENOENT, NOT_UP("plx_loop_run"));
	assert_fails(plx_loop_turn(), -ENOENT, NOT_UP("plx_loop_turn"));
	assert_fails(plx_poller_add("p", count, NULL, NULL), -ENOENT, NOT_UP("plx_poller_add"));
	plx_loop_quit();
	assert_true(plx_loop_now_ns() >= before);
	lcores_up(1);
	assert_fails(plx_poller_add(NULL, count, NULL, NULL), -EINVAL,
		     "a poller has a name and a function");
	assert_fails(plx_timer_start(&(struct plx_timer){0}, 1), -EINVAL,
		     "the timer has no function");
	lcores_down();
}

ONE_LCORE(plx_loop_quit_ends_the_loop_after_this_turn)
{
	unsigned turns = 100;

	assert_int_equal(plx_poller_add("quit", quit_at_zero, &turns, NULL), 0);
	plx_loop_quit(); /* no loop runs: nothing to quit */
	assert_int_equal(plx_loop_run(), 0);
	assert_int_equal(turns, 0);
	assert_int_equal(stats_of(0).idle_turns, 100);
}

PLX_COUNTS(note_leave, (*(unsigned *)arg), void *arg)

ONE_LCORE(pollers_are_notified_when_the_loop_returns)
{
	unsigned turns = 3;
	struct plx_poller *poller;

	assert_int_equal(plx_poller_add("quit", quit_at_zero, &turns, &poller), 0);
	plx_poller_set_leave(poller, note_leave);
	plx_loop_turn();
	assert_int_equal(turns, 2);
	assert_int_equal(plx_loop_run(), 0);
	assert_int_equal(turns, 1); /* once, after the last turn */
}

static int enter_again(void *arg, uint64_t now_ns)
{
	assert_true(plx_loop_in_turn());
	assert_fails(plx_loop_run(), -EBUSY, "plx_loop_run: a callback of lcore 0 makes this call");
	assert_fails(plx_loop_turn(), -EBUSY, "plx_loop_turn: a callback of lcore 0");
	assert_fails(plx_loop_until(NULL, NULL, 0), -EBUSY, "plx_loop_until: a callback of");
	assert_fails(plx_lcores_fini(0), -EBUSY, "make it when the loop has returned");
	*(bool *)arg = true;
	plx_loop_quit();
	return 0;
}

ONE_LCORE(a_loop_cannot_be_entered_twice)
{
	bool called = false;

	plx_poller_add("enter", enter_again, &called, NULL);
	assert_int_equal(plx_loop_run(), 0);
	assert_true(called);
	called = false;
	assert_int_equal(plx_loop_turn(), 0);
	assert_true(called);
}

static bool is_third_turn(void *calls)
{
	return ++*(unsigned *)calls == 3;
}

ONE_LCORE(a_loop_turns_until_a_condition_or_a_timeout)
{
	uint64_t turns = stats_of(0).turns;
	unsigned calls = 0;

	assert_int_equal(plx_loop_until(is_third_turn, &calls, PLX_NEVER), 0);
	assert_int_equal(stats_of(0).turns, turns + 2);
	calls = 3;
	assert_fails(plx_loop_until(is_third_turn, &calls, 0), -ETIMEDOUT,
		     "lcore 0: not done in 0 s");
}

static bool ends_the_lcores(void *arg)
{
	assert_works(plx_lcores_fini(PLX_NEVER));
	return false;
}

ONE_LCORE(until_ends_with_the_lcores)
{
	assert_fails(plx_loop_until(ends_the_lcores, NULL, PLX_NEVER), -ENOENT, "plx_loop_turn:");
}

/* Pollers ------------------------------------------------------------------------------------ */

static struct plx_poller *add(plx_poller_fn fn, void *arg)
{
	struct plx_poller *poller;

	assert_works(plx_poller_add("test", fn, arg, &poller));
	return poller;
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

ONE_LCORE(pollers_may_be_removed_inside_a_turn_and_outside)
{
	struct counter before = {0}, after = {0}, stays = {.work = 2}, wrong = {.work = -5};
	struct remover remover = {0};

	remover.victims[0] = add(count, &before);
	remover.victims[1] = add(remove_victims, &remover);
	remover.victims[2] = add(count, &after);
	struct plx_poller *last = add(count, &stays);
	add(count, &wrong); /* counts as no work */
	for (unsigned turn = 0; turn < 100; turn++)
		assert_int_equal(plx_loop_turn(), 2);
	assert_int_equal(before.calls, 1);
	assert_int_equal(remover.calls, 1);
	assert_int_equal(after.calls, 0);
	plx_poller_remove(last);
	plx_poller_remove(NULL);
	plx_loop_turn();
	assert_int_equal(stays.calls, 100);
}

/* More than the list has room for: it is reallocated during iteration. */
static int add_many(void *arg, uint64_t now_ns)
{
	struct counter *added = arg;

	for (unsigned i = 0; added->calls == 0 && i < 50; i++)
		add(count, arg);
	return 0;
}

ONE_LCORE(a_poller_added_inside_a_turn_runs_from_the_next_turn)
{
	struct counter added = {0}, last = {0};

	add(add_many, &added);
	add(count, &last);
	plx_loop_turn();
	assert_int_equal(added.calls, 0);
	assert_int_equal(last.calls, 1);
	plx_loop_turn();
	assert_int_equal(added.calls, 50);
	assert_int_equal(last.calls, 2);
}

/* Order ------------------------------------------------------------------------------------- */

static char order[8];

static void message(void *arg)
{
	strcat(order, "m");
}

static int poller(void *arg, uint64_t now_ns)
{
	strcat(order, "p");
	return 4;
}

static void timer_fn(struct plx_timer *timer, void *arg)
{
	strcat(order, "t");
}

ONE_LCORE(a_turn_runs_messages_then_pollers_then_timers)
{
	struct plx_timer timer;

	memset(order, 0, sizeof(order));
	plx_poller_add("order", poller, NULL, NULL);
	plx_lcore_send(0, message, NULL); /* creates the lane, which takes time */
	plx_timer_init(&timer, timer_fn, NULL);
	plx_timer_start(&timer, 0);
	spin(3 * PLX_NS_PER_US);
	/* One more if the timer first moved down from a higher level of the wheel. */
	assert_in_range(plx_loop_turn(), 6, 7);
	assert_string_equal(order, "mpt");
	struct plx_lcore_stats stats = stats_of(0);
	assert_int_equal(stats.messages, 1);
	assert_int_equal(stats.timers, 1);
}

static int look_at_clock(void *arg, uint64_t now_ns)
{
	uint64_t *seen_ns = arg;

	assert_int_equal(plx_loop_now_ns(), now_ns);
	spin(10 * PLX_NS_PER_US);
	assert_int_equal(plx_loop_now_ns(), now_ns);
	*seen_ns = now_ns;
	return 0;
}

ONE_LCORE(the_clock_is_fixed_in_a_turn)
{
	uint64_t first_ns = 0, second_ns = 0;
	uint64_t before = plx_loop_now_ns();

	plx_poller_add("first", look_at_clock, &first_ns, NULL);
	plx_poller_add("second", look_at_clock, &second_ns, NULL);
	plx_loop_turn();
	assert_int_equal(first_ns, second_ns);
	assert_true(first_ns >= before);
	/* Between turns it is the clock itself. */
	assert_true(plx_loop_now_ns() >= first_ns + 20 * PLX_NS_PER_US);
}

static int busy_then_quit(void *arg, uint64_t now_ns)
{
	unsigned *left = arg;

	if (--*left == 0)
		plx_loop_quit();
	if (*left % 2)
		return 0;
	spin(500 * PLX_NS_PER_US);
	return 1;
}

ONE_LCORE(busy_and_idle_time_add_up_to_the_whole_time)
{
	unsigned left = 20;

	plx_poller_add("busy", busy_then_quit, &left, NULL);
	uint64_t start = plx_tsc();
	assert_int_equal(plx_loop_run(), 0);
	uint64_t elapsed = plx_tsc() - start;
	struct plx_lcore_stats stats = stats_of(0);
	assert_int_equal(stats.idle_turns, 10);
	assert_true(plx_tsc_to_ns(stats.busy_cycles) >= 10 * 500 * PLX_NS_PER_US);
	/* At least half: the thread may have been off its CPU outside the loop. */
	assert_in_range(stats.busy_cycles + stats.idle_cycles, elapsed / 2, elapsed);
	assert_in_range(plx_tsc_to_ns(stats.longest_turn_cycles), 500 * PLX_NS_PER_US - 1,
			plx_tsc_to_ns(elapsed));
}

static int stand_still(void *arg, uint64_t now_ns)
{
	uint64_t *for_ns = arg;

	spin(*for_ns);
	*for_ns = 0;
	return 0;
}

ONE_LCORE(a_loop_that_stalled_knows_for_how_long)
{
	uint64_t for_ns = 0;

	plx_poller_add("still", stand_still, &for_ns, NULL);
	plx_loop_turn();
	for_ns = 120 * PLX_NS_PER_MS;
	plx_loop_turn();
	plx_loop_turn();
	assert_true(plx_loop_stood_still_ns() >= 120 * PLX_NS_PER_MS);
	loop_self->still_end_ns -= 2 * PLX_STOOD_STILL_NS;
	assert_int_equal(plx_loop_stood_still_ns(), 0);
}

TWO_LCORES(a_worker_runs_until_stop)
{
	struct plx_lcore_stats stats;
	int result = -1;

	assert_false(plx_loop_is_running(10));
	assert_false(plx_loop_is_running(11));
	assert_int_equal(plx_idle_set(10, &(struct plx_idle_conf){.mode = PLX_IDLE_POLL}), 0);
	assert_int_equal(plx_lcore_launch(10, run_loop, NULL), 0);
	wait_until(stats_of(10).turns >= 1000);
	assert_true(plx_loop_is_running(10));
	assert_false(plx_loop_is_running(0)); /* RUNNING, but not its loop */
	plx_stop();
	assert_int_equal(plx_lcore_join(10, PLX_NEVER, &result), 0);
	assert_int_equal(result, 0);
	assert_false(plx_loop_is_running(10));
	assert_fails(plx_lcore_stats_read(11, &stats), -ENOENT, "there is no lcore 11");
}

PLX_TEST_MAIN()
