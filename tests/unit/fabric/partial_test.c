/* SPDX-License-Identifier: BSD-3-Clause */
/* Long messages that arrive in parts: memory that is returned, and messages that stall. */
#include "fabric_link.h"
#include "fixture.h"
#include "rogue.h"

#define LONG (1 << 20)

static struct plx_listener *listener;

static int start(void **state)
{
	struct plx_fabric_conf conf = {.provider = provider_to_test(),
				       .partial_bytes = PLX_PARTIAL_BYTES_MIN};

	fixture_start_as(&conf, false);
	listener = fixture_listen(here("0"), NULL);
	return 0;
}

static void await(struct rogue *rogue, const struct side *side, uint32_t bytes)
{
	uint64_t end_ns = plx_now_ns() + 5 * PLX_NS_PER_S;

	while (!side->closed && plx_now_ns() < end_ns &&
	       (!side->link->partial.buf || side->link->partial.buf->len < bytes)) {
		rogue_progress(rogue);
		plx_loop_turn();
	}
}

/* A peer that has sent that much of a message of LONG bytes; `side` gets the link. */
static struct rogue *open_partial(struct side *side, uint32_t bytes)
{
	struct rogue *rogue;
	uint32_t sent = 1000;

	rogue = rogue_open(listener, NULL);
	server_set_aside(side);
	rogue_send_first(rogue, LONG, sent);
	await(rogue, side, sent);
	for (; sent + 4000 <= bytes && !side->closed; sent += 4000) {
		rogue_send_frame(rogue, (struct frame_header){FRAME_DATA_NEXT, 0, 4000, 8});
		await(rogue, side, sent + 4000); /* no more than was granted */
	}
	return rogue;
}

#define TEST(name) PLX_TEST_WITH(name, start, fixture_down)

TEST(a_message_that_stands_still_ends_its_link)
{
	static struct side still;
	struct rogue *rogue = open_partial(&still, 9000);

	pump_ms(200);
	assert_int_equal(still.closed, 0);
	still.link->partial.moved_ns -= 31 * PLX_NS_PER_S;
	expect_end(&still, PLX_LINK_PROTOCOL);
	assert_has(still.text, "a message of 1048576 bytes stopped after 9000");
	rogue_close(rogue);
}

/* Messages that stalled for a second make room; otherwise new ones find none. */
TEST(what_has_come_is_bounded)
{
	static struct side first, second, third;
	struct rogue *rogues[3];
	uint32_t received;

	rogues[0] = open_partial(&first, 600000);
	/* Meanwhile the first peer may not send, which is not a stall, however long it takes. */
	received = first.link->rx_frames;
	first.link->rx_frames = first.link->rx_frames_granted;
	rogues[1] = open_partial(&second, 600000);
	assert_int_equal(first.closed, 0);
	expect_end(&second, PLX_LINK_LOCAL);
	assert_has(second.text, "--partial-mem");
	first.link->rx_frames = received;
	first.link->partial.moved_ns -= 2 * PLX_NS_PER_S;
	rogues[2] = open_partial(&third, 600000);
	assert_true(pump_until(&first.closed, 1, 2000));
	assert_has(first.text, "stood still");
	assert_int_equal(third.closed, 0);
	plx_link_abort(third.link);
	assert_true(pump_until(&third.closed, 1, 2000));
	for (int i = 0; i < 3; i++)
		rogue_close(rogues[i]);
}

TEST(a_message_that_was_delivered_costs_nothing_for_long)
{
	uint8_t *message = calloc(1, LONG - 1000);
	struct plx_fabric_lcore *home;

	fixture_connect(listener, NULL);
	home = server.link->home;
	for (int i = 1; i < 4; i++) {
		assert_int_equal(plx_link_send(client.link, message, LONG - 1000), 0);
		assert_true(pump_until(&server.messages, i, 5000));
		assert_int_equal(server.last_len, LONG - 1000);
	}
	assert_int_not_equal(home->assembly_bytes, 0); /* for the next one */
	pump_ms(300);
	assert_int_equal(home->assembly_bytes, 0);
	assert_null(server.link->partial.buf);
	/* A message that the user keeps belongs to the user. */
	server.keep = 1;
	assert_int_equal(plx_link_send(client.link, message, LONG - 1000), 0);
	assert_true(pump_until(&server.messages, 4, 5000));
	assert_int_equal(home->assembly_bytes, 0);
	side_release(&server, 1);
	free(message);
}

PLX_TEST_MAIN()
