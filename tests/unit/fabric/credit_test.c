/* SPDX-License-Identifier: BSD-3-Clause */
/* What a sender learns about its peer's credit: how much is left, that some was returned, and how
 * many messages are unfinished, until the very end of the link. Over tcp and shm; both ends are on
 * one lcore. */
#include "fixture.h"

#define WINDOW    4
#define BUF_BYTES 1024
#define LONG      (2 * BUF_BYTES) /* takes three frames */

static struct plx_link_events events;
static unsigned told;

static void on_credit(struct plx_link *link, void *user)
{
	assert_ptr_equal(link, client.link);
	assert_true(plx_link_is_open(link));
	told++;
}

static void connect_them(void)
{
	static const struct plx_link_attr sizes = {.rx_buf_count = WINDOW,
						   .rx_buf_bytes = BUF_BYTES};
	struct plx_link_attr attr = {.events = &events, .user = &client};

	fixture_renew_sides();
	told = 0;
	events = side_events;
	events.on_credit = on_credit;
	assert_works(plx_link_connect(plx_listener_address(fixture_listen(here("0"), &sizes)),
				      &attr, &client.link));
	assert_int_equal(plx_link_credit(client.link), 0); /* not open yet */
	expect_open();
}

PLX_FIXTURE(start, 0, (fixture_up(state), connect_them()))

static void send_some(unsigned count, size_t len)
{
	static uint8_t bytes[LONG];

	for (unsigned i = 0; i < count; i++)
		assert_int_equal(plx_link_send(client.link, bytes, len), 0);
}

static void expect(uint32_t credit, uint32_t unfinished)
{
	expect_soon(plx_link_credit(client.link) == credit &&
		    plx_link_unfinished(client.link) == unfinished);
}

/* Over iWARP a heartbeat reports finished messages, and an lcore sends none to itself. */
static void skip_over_iwarp(void)
{
	if (is_over_iwarp())
		skip();
}

#define TEST(name) PLX_TEST_WITH(name, start, fixture_down)

TEST(a_message_holds_credit_until_the_peer_releases_it)
{
	skip_over_iwarp();
	expect(WINDOW, 0);
	server.keep = WINDOW;
	send_some(1, 8);
	assert_int_equal(plx_link_credit(client.link), WINDOW - 1);
	send_some(WINDOW - 1, 8);
	expect(0, WINDOW);
	assert_int_equal(plx_link_send(client.link, "x", 1), -EAGAIN);
	assert_true(pump_until(&server.messages, WINDOW, 3000));
	pump_ms(5);
	told = 0; /* bytes come back before frames do */
	side_release(&server, 1);
	expect(1, WINDOW - 1);
	assert_int_equal(told, 1);
	side_release(&server, WINDOW);
	expect(WINDOW, 0);
	assert_true(told > 1);
}

/* A message longer than a buffer: all its frames except the last are returned while it is kept; it
 * is unfinished until its last frame was sent. */
TEST(a_kept_long_message_counts_as_one_unfinished_message)
{
	skip_over_iwarp();
	server.keep = 2;
	send_some(1, LONG);
	assert_int_equal(plx_link_credit(client.link), WINDOW - 3);
	assert_in_range(plx_link_unfinished(client.link), 1, 3);
	assert_true(pump_until(&server.messages, 1, 3000));
	expect(WINDOW - 1, 1);
	send_some(1, LONG);
	assert_int_equal(plx_link_credit(client.link), 0);
	assert_in_range(plx_link_unfinished(client.link), 2, 4);
	expect(WINDOW - 2, 2);
	send_some(1, LONG); /* of which two frames are sent */
	assert_int_equal(plx_link_credit(client.link), 0);
	assert_int_equal(plx_link_unfinished(client.link), 5);
	assert_true(pump_until(&server.messages, 3, 3000));
	side_release(&server, 2);
	expect(WINDOW, 0);
}

TEST(unfinished_messages_are_counted_when_a_link_breaks)
{
	server.keep = 3;
	send_some(3, 8);
	assert_true(pump_until(&server.messages, 3, 3000));
	side_release(&server, 1);
	expect(2, 2);
	plx_link_abort(server.link);
	expect_end(&client, PLX_LINK_PEER_DOWN);
	assert_int_equal(client.unfinished, 2);
	/* Of the second message one frame has been sent. */
	connect_them();
	send_some(2, LONG);
	plx_link_abort(client.link);
	assert_true(pump_until(&client.closed, 1, 3000));
	assert_int_equal(client.unfinished, WINDOW + 1);
}

/* The closing side's last frames report what it has finished; the other side learns that everything
 * arrived. */
TEST(a_close_reports_which_messages_are_finished)
{
	server.keep = 1;
	send_some(3, 8);
	assert_true(pump_until(&server.messages, 3, 3000));
	pump_ms(5);
	assert_int_equal(plx_link_close(server.link), 0);
	/* What it receives after that does not count. */
	send_some(1, 8);
	side_release(&server, 1);
	expect_end(&client, PLX_LINK_CLOSED);
	assert_int_equal(client.unfinished, 2);

	connect_them();
	server.keep = 2;
	send_some(3, 8);
	assert_true(pump_until(&server.messages, 3, 3000));
	assert_int_equal(plx_link_close(client.link), 0);
	assert_int_equal(plx_link_credit(client.link), 0);
	expect_end(&client, PLX_LINK_CLOSED);
	assert_int_equal(client.unfinished, 0);
}

FIXTURE_MAIN("tcp", "shm")
