/* SPDX-License-Identifier: BSD-3-Clause */
/* The budget of a turn: links share it with whatever else receives on their lcore. */
#include "fabric_link.h"
#include "fixture.h"
#include "rogue.h"

#include <unistd.h>

static unsigned turns;

static int count_turn(void *arg, uint64_t now_ns)
{
	turns++;
	return 0;
}

static struct plx_poller *turn_counter;

static void start(const struct plx_fabric_conf *conf)
{
	struct plx_fabric_conf given = *conf;

	given.provider = given.provider ?: fixture_provider;
	fixture_start_as(&given, false);
	turns = 0;
	assert_works(plx_poller_add("turns", count_turn, NULL, &turn_counter));
}

static int start_with_one(void **state)
{
	start(&(struct plx_fabric_conf){.turn_max = 1});
	return 0;
}

static int start_pair(void **state)
{
	start(&(struct plx_fabric_conf){0});
	fixture_pair(NULL);
	return 0;
}

PLX_FIXTURE(stop, 0, (plx_poller_remove(turn_counter), fixture_stop()))

#define TEST(name)      PLX_TEST_WITH(name, start_with_one, stop)
#define TEST_BARE(name) PLX_TEST_WITH(name, NULL, stop)
#define PAIRED(name)    PLX_TEST_WITH(name, start_pair, stop)

/* Unlike expect_soon, it stops after the turn in which the condition holds. */
#define turn_until(condition)                                       \
	do {                                                        \
		uint64_t end_ns_ = plx_now_ns() + 5 * PLX_NS_PER_S; \
                                                                    \
		while (!(condition) && plx_now_ns() < end_ns_)      \
			plx_loop_turn();                            \
		if (!(condition))                                   \
			fail_msg("not in time: %s", #condition);    \
	} while (0)

#define COUNT 24

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

/* Also in the turn that was to take them all. */
TEST(a_link_that_closes_delivers_all_before_on_close)
{
	fixture_pair(&takes_all);
	send_numbers();
	assert_works(plx_link_close(client.link));
	expect_end(&server, PLX_LINK_CLOSED);
	assert_int_equal(server.messages, COUNT);
	assert_int_equal(server.sequence_errors, 0);
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

TEST(a_callback_may_end_its_link_while_messages_wait)
{
	struct plx_listener *listener = fixture_pair(&takes_all);

	server.on_message = close_at_10;
	send_numbers();
	expect_both_end();
	assert_int_equal(server.messages, COUNT);

	fixture_renew_sides();
	fixture_connect(listener, &takes_all);
	server.on_message = abort_at_10;
	send_numbers();
	expect_both_end();
	assert_int_equal(server.messages, 10);
}

/* Otherwise a peer whose heartbeat waits there would be given up. */
static void check_emptied(struct side *side, struct plx_buf *message)
{
	const struct plx_set *set = side->link->set;

	if (!set->read.left)
		return;
	assert_true(set->emptied_ns < set->read.read_ns);
	side->unfinished++;
}

TEST(what_waits_is_not_counted_as_taken)
{
	fixture_pair(&takes_all);
	server.on_message = check_emptied;
	send_numbers();
	expect_soon(server.messages == COUNT);
	assert_in_range(server.unfinished, 1, COUNT);
	expect_soon(server.link->set->emptied_ns > server.link->set->read.read_ns);
}

/* Receivers that take turns ------------------------------------------------------------------- */

struct receiver {
	struct turn_rest rest; /* first */
	unsigned done, calls;
	unsigned left; /* then it ends */
};

static int take_some(struct turn_rest *rest)
{
	struct receiver *receiver = (struct receiver *)rest;
	struct turn *turn = turn_of(client.link);

	receiver->calls++;
	do {
		receiver->done++;
		if (--receiver->left == 0)
			turn_end(rest);
	} while (turn_goes_on(turn) && receiver->left);
	return 1;
}

static void begin_to_wait(struct receiver *receiver, unsigned count)
{
	*receiver = (struct receiver){.rest.go_on = take_some, .left = count};
	turn_wait(&receiver->rest, server.link, false);
	turn_wait(&receiver->rest, server.link, false); /* has no effect */
}

TEST_BARE(receivers_share_the_turns_with_links)
{
	struct receiver first, second;

	start(&(struct plx_fabric_conf){.turn_max = 4});
	fixture_pair(NULL);
	begin_to_wait(&first, 1000000);
	begin_to_wait(&second, 1000000);
	for (unsigned i = 0; i < 300; i++)
		plx_loop_turn();
	assert_in_range(first.done, second.done - 4, second.done + 4);
	assert_in_range(first.done + second.done, 4 * 150, 4 * 300);
	assert_int_equal(first.done, 4 * first.calls);
	/* Links have their part. */
	expect_arrival("x", 1);
	turn_end(&first.rest);
	turn_end(&second.rest);
	turn_end(&second.rest); /* has no effect */
}

/* What links use of a turn is missing to another receiver each time. */
TEST_BARE(no_receiver_pays_for_links_alone)
{
	struct receiver each[3];
	unsigned sum = 0;

	start(&(struct plx_fabric_conf){.turn_max = 4});
	fixture_pair(NULL);
	server.echo = client.echo = true;
	assert_works(plx_link_send(client.link, "back and forth", 14));
	for (unsigned i = 0; i < PLX_ARRAY_LEN(each); i++)
		begin_to_wait(&each[i], 1000000);
	for (unsigned i = 0; i < 4000; i++)
		plx_loop_turn();
	for (unsigned i = 0; i < PLX_ARRAY_LEN(each); i++)
		sum += each[i].done;
	for (unsigned i = 0; i < PLX_ARRAY_LEN(each); i++) {
		assert_in_range(each[i].done * 3, sum - sum / 20, sum + sum / 20);
		turn_end(&each[i].rest);
	}
	assert_true(server.messages > 100);
}

static int take_slowly(struct turn_rest *rest)
{
	struct receiver *receiver = (struct receiver *)rest;

	receiver->calls++;
	do {
		receiver->done++;
		stand_still(200 * PLX_NS_PER_US);
	} while (turn_goes_on(turn_of(client.link)));
	return 1;
}

/* A turn is as long as one of its callbacks, also if those of others are short. */
PAIRED(slow_messages_come_one_a_turn)
{
	struct receiver slow, fast;
	unsigned calls, done;

	begin_to_wait(&fast, 100000000);
	begin_to_wait(&slow, 1);
	slow.rest.go_on = take_slowly;
	turn_until(slow.calls >= 2);
	calls = slow.calls;
	done = slow.done;
	turn_until(slow.calls >= calls + 50);
	assert_int_equal(slow.done - done, 50);
	assert_true(fast.done > 50 * 8);
	turn_end(&fast.rest);
	turn_end(&slow.rest);
}

static int take_a_millisecond(struct turn_rest *rest)
{
	do {
		stand_still(PLX_NS_PER_MS);
	} while (turn_goes_on(turn_of(server.link)));
	return 1;
}

#define BUSY 8

static struct turn_rest busy[BUSY];

static void begin_to_be_busy(void)
{
	for (unsigned i = 0; i < BUSY; i++) {
		busy[i] = (struct turn_rest){.go_on = take_a_millisecond};
		turn_wait(&busy[i], server.link, false);
	}
}

static void end_to_be_busy(void)
{
	for (unsigned i = 0; i < BUSY; i++)
		turn_end(&busy[i]);
}

/* Otherwise a busy lcore would give up peers that it does not hear. It looks for quiet links every
 * some turns or polls, which take long now. */
static void expect_to_hear_at_once(void)
{
	unsigned before;

	begin_to_be_busy();
	for (unsigned i = 0; i < 8; i++) {
		before = turns;
		expect_arrival("x", 1);
		assert_in_range(turns - before, 1, 4 * (BUSY + 1));
		for (unsigned j = 0; j < 5; j++)
			plx_loop_turn();
	}
	end_to_be_busy();
}

PAIRED(a_busy_lcore_hears_quiet_links_at_once)
{
	pump_ms(20); /* nothing is polled often now */
	expect_to_hear_at_once();
}

TEST_BARE(a_busy_lcore_hears_quiet_links_among_others)
{
	static struct side others[2]; /* until the fixture stops */
	struct plx_listener *listener;

	start(&(struct plx_fabric_conf){0});
	listener = fixture_pair(NULL);
	for (unsigned i = 0; i < 2; i++) {
		struct side *mine = i ? &client : &server;

		free(others[i].last); /* of the run before */
		others[i] = (struct side){
			.name = i ? "one" : "other", .echo = true, .link = mine->link};
		plx_link_set_user(mine->link, &others[i]);
	}
	memset(&server, 0, sizeof(server));
	memset(&client, 0, sizeof(client));
	fixture_connect(listener, NULL);
	assert_works(plx_link_send(others[0].link, "back and forth", 14));
	pump_ms(50); /* only these are polled often now */
	expect_to_hear_at_once();
}

/* Otherwise its peers would not hear it. */
TEST_BARE(what_a_busy_lcore_sends_leaves_in_the_next_turn)
{
	struct rogue *rogue;
	unsigned frames;

	start(&(struct plx_fabric_conf){0});
	rogue = rogue_open(fixture_listen(here("0"), NULL), NULL);
	pump_ms(5);
	frames = rogue_frames(rogue);
	begin_to_be_busy();
	for (unsigned i = 0; i < 6; i++) {
		assert_works(plx_link_send(server.link, "x", 1));
		plx_loop_turn();
		frames++;
		for (unsigned looks = 0; rogue_frames(rogue) < frames && looks < 1000; looks++)
			usleep(100);
		assert_int_equal(rogue_frames(rogue), frames);
	}
	end_to_be_busy();
	rogue_close(rogue);
}

TEST_BARE(receivers_end_in_their_turn)
{
	struct receiver each[5];

	start(&(struct plx_fabric_conf){.turn_max = 16});
	fixture_pair(NULL);
	for (unsigned i = 0; i < PLX_ARRAY_LEN(each); i++)
		begin_to_wait(&each[i], i + 1);
	plx_loop_turn();
	plx_loop_turn();
	for (unsigned i = 0; i < PLX_ARRAY_LEN(each); i++) {
		assert_int_equal(each[i].done, i + 1);
		assert_null(each[i].rest.home);
	}
	assert_int_equal(client.link->home->rest_count, 0);
	assert_int_equal(plx_loop_turn(), 0);
}

/* The rest of a link ------------------------------------------------------------------------- */

static int take_nothing(struct turn_rest *rest)
{
	return 0;
}

/* Longer than the peer waits for the disconnect, and than it may be silent. */
TEST_BARE(a_closed_link_waits_for_its_rest_however_long_that_takes)
{
	struct turn_rest rest = {.go_on = take_nothing};
	struct plx_link_attr attr = {.close_timeout_ns = 300 * PLX_NS_PER_MS};

	for (unsigned round = 0; round < 2; round++) {
		struct side *holder = round ? &client : &server;

		start(&(struct plx_fabric_conf){.heartbeat_ns = 20 * PLX_NS_PER_MS,
						.dead_after_ns = 100 * PLX_NS_PER_MS});
		fixture_pair(&attr);
		turn_wait(&rest, holder->link, true);
		assert_works(plx_link_close(client.link));
		pump_ms(900);
		assert_int_equal(holder->closed, 0);
		turn_end(&rest);
		expect_both_end();
		assert_int_equal(server.reason, PLX_LINK_CLOSED);
		assert_int_equal(client.reason, PLX_LINK_CLOSED);
		if (round == 0)
			stop(NULL);
	}
}

PAIRED(a_broken_link_waits_for_its_rest)
{
	struct turn_rest rest = {.go_on = take_nothing};

	turn_wait(&rest, server.link, true);
	plx_link_abort(client.link);
	expect_end(&client, PLX_LINK_ABORTED);
	pump_ms(100);
	assert_int_equal(server.closed, 0);
	turn_end(&rest);
	expect_end(&server, PLX_LINK_PEER_DOWN);
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
	turn_until(server.messages >= 2);
	assert_true(server.messages < COUNT / 2);
	plx_fabric_fini();
	assert_int_equal(server.closed + client.closed, 2);
}

FIXTURE_MAIN("tcp", "shm")
