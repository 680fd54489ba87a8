/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections that fail on this side, through a driver whose provider takes few receives. */
#include "fixture.h"

#define FEW 4

static struct side other_server, other_client;
static bool inside, nested;
static int result;

static void connect_in_vain(struct side *side, struct plx_buf *message)
{
	struct plx_link_attr attr = {.events = &side_events, .user = &client, .rx_buf_count = FEW};
	struct plx_link *link;

	inside = true;
	assert_int_equal(plx_link_send(other_client.link, "x", 1), 0); /* it may arrive at once */
	result = plx_link_connect(here("1"), &attr, &link);
	inside = false;
}

static void note_nesting(struct side *side, struct plx_buf *message)
{
	nested |= inside;
}

static void open_other(struct plx_listener *listener, const struct plx_link_attr *sizes)
{
	struct plx_link_attr attr = *sizes;

	other_server = (struct side){.on_message = note_nesting};
	other_client = (struct side){.name = "other"};
	attr.events = &side_events;
	attr.user = &other_client;
	server.opened = 0;
	assert_works(plx_link_connect(plx_listener_address(listener), &attr, &other_client.link));
	assert_true(pump_until(&server.opened, 1, 2000));
	assert_true(pump_until(&other_client.opened, 1, 2000));
	plx_link_set_user(server.link, &other_server);
}

PLX_TEST(a_connect_that_fails_in_a_callback_runs_no_other_callback)
{
	static struct plx_fabric_driver sparing;
	static const struct plx_fabric_driver *table[] = {&sparing, NULL};
	struct plx_link_attr few = {.rx_buf_count = FEW - 2};
	struct plx_listener *listener;
	struct plx_link *first;
	uint32_t open;

	sparing = plx_driver_tcp;
	sparing.rx_size = FEW;
	fixture_start_with(table, false);
	listener = fixture_pair(&few);
	first = server.link;
	open_other(listener, &few);
	server.link = first;
	server.on_message = connect_in_vain;
	open = plx_fabric_open_count();
	expect_arrival("go", 2);
	assert_fails(result, -EIO, "posting receives failed");
	assert_true(pump_until(&other_server.messages, 1, 2000));
	assert_false(nested);
	expect_soon(plx_fabric_open_count() == open); /* nothing remains of it */
	assert_int_equal(client.closed, 0);           /* and no callback ran */
	fixture_stop();
	free(other_server.last);
}

PLX_TEST_MAIN()
