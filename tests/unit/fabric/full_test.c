/* SPDX-License-Identifier: BSD-3-Clause */
/* A window larger than the shared-memory ring: the ring refuses while there is credit left, and
 * reports room later; nothing is lost. Both ends are on one lcore, so nothing is received until its
 * loop turns. And frames that wait for the next poll of their set. */
#include "fixture.h"
#include "tx.h"

#include <time.h>

#define WINDOW 200  /* receive buffers of 4 KiB: more than three rings */
#define LONG   3500 /* sent from a buffer if the ring has no room; 73 fill it */
#define SHORT  480  /* injected in that case */
#define ROUNDS 50

static uint64_t sent;

static int send_one(size_t length)
{
	uint8_t bytes[LONG] = {0};
	int rc;

	memcpy(bytes, &sent, sizeof(sent));
	rc = plx_link_send(client.link, bytes, length);
	sent += rc == 0;
	return rc;
}

/* Send until refused, which takes no credit and leaves some. */
static void send_until_full(size_t length)
{
	uint32_t credit;
	int rc;

	do {
		credit = tx_frames_left(client.link);
		rc = send_one(length);
	} while (rc == 0);
	assert_int_equal(rc, -EAGAIN);
	assert_true(credit > 0);
	assert_int_equal(tx_frames_left(client.link), credit);
}

static int start(void **state)
{
	static const struct plx_link_attr attr = {.rx_buf_count = WINDOW};

	fixture_start("shm", false);
	sent = 0;
	fixture_connect(fixture_listen(here("0"), &attr), NULL);
	server.sequenced = true;
	return 0;
}

static void expect_all(void)
{
	assert_true(pump_until(&server.messages, (unsigned)sent, 3000));
	pump_ms(0);
	assert_int_equal(server.messages, sent);
	assert_int_equal(server.sequence_errors, 0);
}

#define TEST(name) PLX_TEST_WITH(name, start, fixture_down)

/* So few messages return no credit: the loop itself detects the room. */
TEST(a_full_ring_refuses_sends_and_reports_room_once)
{
	for (unsigned round = 1; round <= ROUNDS; round++) {
		unsigned before = client.messages;

		send_until_full(LONG);
		send_until_full(SHORT);
		assert_true(pump_until(&client.writable, round, 2000));
		expect_all();
		assert_int_equal(client.writable, round);
		/* Every frame carries credit. */
		assert_int_equal(plx_link_send(server.link, "credit", 6), 0);
		assert_true(pump_until(&client.messages, before + 1, 3000));
	}
}

TEST(a_refused_buffer_stays_with_the_caller)
{
	struct plx_buf *buf = plx_buf_alloc(LONG);

	send_until_full(LONG);
	memcpy(plx_buf_append(buf, LONG), &sent, sizeof(sent));
	assert_int_equal(plx_link_send_buf(client.link, buf, NULL, NULL), -EAGAIN);
	assert_true(plx_buf_unshared(buf));
	assert_int_equal(stats_of(client.link).again, 2);
	assert_int_equal(stats_of(client.link).tx_inflight, 0);
	assert_int_equal(stats_of(client.link).tx_queued, 0);
	expect_all();
	assert_int_equal(plx_link_send_buf(client.link, buf, NULL, NULL), 0);
	sent++;
	expect_all();
}

TEST(a_close_after_a_full_ring_loses_nothing)
{
	send_until_full(LONG);
	send_until_full(SHORT);
	assert_int_equal(plx_link_close(client.link), 0);
	expect_all();
	expect_end(&client, PLX_LINK_CLOSED);
	expect_end(&server, PLX_LINK_CLOSED);
}

/* Frames that wait for the next poll of their set, to be sent together. The poll comes with the
 * next turn; without a next turn none stays unsent. The receiver is on another lcore. */

#define BURST 5

/* Heartbeats would warm the set. */
static int start_to_worker(void **state)
{
	struct plx_listen_attr attr = {.spread = PLX_SPREAD_CALLBACK, .place = place_on_lcore_1};

	fixture_start_beating(UINT64_MAX, UINT64_MAX, true);
	worker_start();
	fixture_connect(fixture_listen_as(here("0"), attr), NULL);
	return 0;
}

static void send_burst(void)
{
	for (unsigned i = 0; i < BURST; i++)
		assert_int_equal(plx_link_send(client.link, &i, sizeof(i)), 0);
}

/* Without a turn of this lcore. */
static void expect_burst(void)
{
	const struct timespec nap = {.tv_nsec = (long)PLX_NS_PER_MS};

	for (int i = 0; i < 5000 && server.messages < BURST; i++)
		nanosleep(&nap, NULL);
	assert_int_equal(server.messages, BURST);
}

#define GATHERING(name) PLX_TEST_WITH(name, start_to_worker, fixture_down_with_worker)

static void burst_and_quit(struct plx_timer *timer, void *arg)
{
	send_burst();
	plx_loop_quit();
}

/* Timers run after the last poll of a turn. */
GATHERING(a_loop_flushes_all_sends_before_it_returns)
{
	struct plx_timer timer;

	plx_timer_init(&timer, burst_and_quit, NULL);
	assert_int_equal(plx_timer_start(&timer, 5 * PLX_NS_PER_MS), 0);
	assert_int_equal(plx_loop_run(), 0);
	expect_burst();
}

GATHERING(an_aborted_link_sends_the_messages_it_accepted)
{
	send_burst();
	plx_link_abort(client.link);
	assert_true(pump_until(&client.closed, 1, 3000));
	expect_burst();
}

GATHERING(links_of_a_drained_lcore_send_the_messages_they_accepted)
{
	send_burst();
	assert_int_equal(plx_fabric_drain(5 * PLX_NS_PER_S), 0);
	assert_int_equal(client.reason, PLX_LINK_CLOSED);
	assert_int_equal(server.messages, BURST);
}

PLX_TEST_MAIN()
