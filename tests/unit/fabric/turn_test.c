/* SPDX-License-Identifier: BSD-3-Clause */
/* The budget of a turn: links share it with whatever else receives on their lcore. */
#include "fabric_link.h"
#include "fixture.h"

static unsigned turns;

static int count_turn(void *arg, uint64_t now_ns)
{
	turns++;
	return 0;
}

static struct plx_poller *turn_counter;

static void start(struct plx_fabric_conf conf)
{
	conf.provider = fixture_provider;
	fixture_start_as(&conf, false);
	turns = 0;
	assert_works(plx_poller_add("turns", count_turn, NULL, &turn_counter));
}

static int start_with_one(void **state)
{
	start((struct plx_fabric_conf){.turn_max = 1});
	return 0;
}

static int start_pair(void **state)
{
	start((struct plx_fabric_conf){0});
	fixture_pair(NULL);
	return 0;
}

PLX_FIXTURE(stop, 0, (plx_poller_remove(turn_counter), fixture_stop()))

#define TEST(name)      PLX_TEST_WITH(name, start_with_one, stop)
#define TEST_BARE(name) PLX_TEST_WITH(name, NULL, stop)
#define PAIRED(name)    PLX_TEST_WITH(name, start_pair, stop)

#define COUNT           24

static const struct plx_link_attr takes_all = {.rx_buf_count = COUNT + 2};

/* Send COUNT numbered messages to the server at once. */
static void send_numbers(void)
{
	server.sequenced = true;
	for (uint64_t i = 0; i < COUNT; i++)
		assert_works(plx_link_send(client.link, &i, sizeof(i)));
}

static unsigned last_turn, crowded;

static void note_turn(struct side *side, struct plx_buf *message)
{
	crowded += turns == last_turn;
	last_turn = turns;
}

/* Runs once a turn. */
static unsigned task_runs, timer_runs;

static void run_again(struct plx_task *task, void *arg)
{
	task_runs++;
	plx_task_schedule(task);
}

static void fire_again(struct plx_timer *timer, void *arg)
{
	timer_runs++;
	plx_timer_start(timer, 0);
}

TEST(a_turn_gives_one_message_and_runs_timers_and_tasks)
{
	struct plx_timer timer;
	struct plx_task task;
	unsigned from;

	fixture_pair(&takes_all);
	plx_task_init(&task, run_again, NULL);
	plx_timer_init(&timer, fire_again, NULL);
	last_turn = UINT32_MAX;
	crowded = 0;
	server.on_message = note_turn;
	send_numbers();
	plx_task_schedule(&task);
	plx_timer_start(&timer, 0);
	assert_true(pump_until(&server.messages, 1, 5000));
	from = turns;
	task_runs = timer_runs = 0;
	assert_true(pump_until(&server.messages, COUNT, 5000));
	assert_true(turns >= from + COUNT - 1);
	assert_int_equal(server.sequence_errors, 0);
	assert_int_equal(crowded, 0);
	assert_in_range(task_runs, turns - from - 1, turns - from + 1);
	assert_in_range(timer_runs, 1, turns - from + 1); /* its wheel is coarser than a turn */
	plx_task_cancel(&task);
	plx_timer_stop(&timer);
}

static void close_at_10(struct side *side, struct plx_buf *message)
{
	if (side->messages == 10)
		assert_works(plx_link_close(side->link));
}

static void abort_at_10(struct side *side, struct plx_buf *message)
{
	if (side->messages == 10)
		plx_link_abort(side->link);
}

/* At the peer in the turn that was to take them all, or in a callback. */
TEST(a_link_may_end_while_messages_wait)
{
	struct plx_listener *listener = fixture_listen(here("0"), &takes_all);

	for (int i = 0; i < 3; i++) {
		fixture_renew_sides();
		fixture_connect(listener, &takes_all);
		server.on_message = i == 1 ? close_at_10 : i == 2 ? abort_at_10 : NULL;
		send_numbers();
		if (i == 0)
			assert_works(plx_link_close(client.link));
		expect_both_end();
		assert_int_equal(server.messages, i == 2 ? 10 : COUNT);
		assert_int_equal(server.sequence_errors, 0);
	}
}

/* Receivers that take turns ------------------------------------------------------------------- */

struct receiver {
	struct turn_rest rest; /* first */
	unsigned done;
};

static int take_some(struct turn_rest *rest)
{
	do {
		((struct receiver *)rest)->done++;
	} while (turn_goes_on(turn_of(client.link)));
	return 1;
}

/* What links use of a turn is missing to another receiver each time. */
TEST_BARE(receivers_share_the_turns_with_links)
{
	struct receiver each[3];
	unsigned sum = 0;

	start((struct plx_fabric_conf){.turn_max = 4});
	fixture_pair(NULL);
	server.echo = client.echo = true;
	assert_works(plx_link_send(client.link, "back and forth", 14));
	for (unsigned i = 0; i < PLX_ARRAY_LEN(each); i++) {
		each[i] = (struct receiver){.rest.go_on = take_some};
		turn_wait(&each[i].rest, server.link, false);
		turn_wait(&each[i].rest, server.link, false); /* has no effect */
	}
	for (unsigned i = 0; i < 4000; i++)
		plx_loop_turn();
	for (unsigned i = 0; i < PLX_ARRAY_LEN(each); i++)
		sum += each[i].done;
	for (unsigned i = 0; i < PLX_ARRAY_LEN(each); i++) {
		assert_in_range(each[i].done * 3, sum - sum / 20, sum + sum / 20);
		turn_end(&each[i].rest);
		turn_end(&each[i].rest); /* has no effect */
	}
	assert_true(server.messages > 100);
}

static int take_a_millisecond(struct turn_rest *rest)
{
	do {
		stand_still(PLX_NS_PER_MS);
	} while (turn_goes_on(turn_of(server.link)));
	return 1;
}

#define BUSY 8

/* Otherwise a busy lcore would give up peers that it does not hear. It looks for quiet links every
 * some turns or polls, which take long now. */
PAIRED(a_busy_lcore_hears_quiet_links_at_once)
{
	struct turn_rest busy[BUSY];

	pump_ms(20); /* nothing is polled often now */
	for (unsigned i = 0; i < BUSY; i++) {
		busy[i] = (struct turn_rest){.go_on = take_a_millisecond};
		turn_wait(&busy[i], server.link, false);
	}
	for (unsigned i = 0; i < 8; i++) {
		unsigned before = turns;

		expect_arrival("x", 1);
		assert_in_range(turns - before, 1, 4 * (BUSY + 1));
		for (unsigned j = 0; j < 5; j++)
			plx_loop_turn();
	}
	for (unsigned i = 0; i < BUSY; i++)
		turn_end(&busy[i]);
}

/* The rest of a link ------------------------------------------------------------------------- */

static int take_nothing(struct turn_rest *rest)
{
	return 0;
}

/* Longer than the peer waits for the disconnect, and than it may be silent. */
static void waits_for_rest(struct side *holder, bool aborts)
{
	struct turn_rest rest = {.go_on = take_nothing};
	struct plx_link_attr attr = {.close_timeout_ns = 300 * PLX_NS_PER_MS};

	start((struct plx_fabric_conf){.heartbeat_ns = 20 * PLX_NS_PER_MS,
				       .dead_after_ns = 100 * PLX_NS_PER_MS});
	fixture_pair(&attr);
	turn_wait(&rest, holder->link, true);
	if (aborts)
		plx_link_abort(client.link);
	else
		assert_works(plx_link_close(client.link));
	pump_ms(900);
	assert_int_equal(holder->closed, 0);
	turn_end(&rest);
	expect_both_end();
	assert_int_equal(server.reason, aborts ? PLX_LINK_PEER_DOWN : PLX_LINK_CLOSED);
	assert_int_equal(client.reason, aborts ? PLX_LINK_ABORTED : PLX_LINK_CLOSED);
	stop(NULL);
}

PLX_TEST(an_ended_link_waits_for_its_rest_however_long_that_takes)
{
	waits_for_rest(&server, false);
	waits_for_rest(&client, false);
	waits_for_rest(&server, true);
}

/* Its link is freed: fixture_stop finds no buffers of it. */
PAIRED(a_rest_does_not_outlive_the_fabric)
{
	struct turn_rest rest = {.go_on = take_nothing};

	turn_wait(&rest, server.link, true);
	plx_fabric_fini();
	assert_int_equal(server.closed, 1);
	assert_int_equal(server.reason, PLX_LINK_ABORTED);
	assert_null(rest.home);
}

/* A read would overwrite them, and the provider would never return their operations. */
TEST(completions_that_wait_end_with_the_fabric)
{
	fixture_pair(&takes_all);
	send_numbers();
	wait_doing(server.messages >= 2, plx_loop_turn());
	assert_true(server.messages < COUNT / 2);
	plx_fabric_fini();
	assert_int_equal(server.closed + client.closed, 2);
}

FIXTURE_MAIN("tcp", "shm")
