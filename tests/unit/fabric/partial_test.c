/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages that come in several frames: how slow they may be, and which link pays when those of an
 * lcore use all the memory that they may have. */
#include "fabric_link.h"
#include "fixture.h"
#include "log_capture.h"
#include "rogue.h"

#include <unistd.h>

#define LONG   (1 << 20) /* also the bound: PLX_PARTIAL_BYTES_MIN */
#define HONEST 100000
#define FRAME  4000

static struct plx_listener *listener;

static int start(void **state)
{
	struct plx_fabric_conf conf = {.provider = provider_to_test(),
				       .partial_bytes = PLX_PARTIAL_BYTES_MIN};

	fixture_start_as(&conf, false);
	listener = fixture_listen(here("0"), NULL);
	return 0;
}

#define TEST(name) PLX_TEST_WITH(name, start, fixture_down)

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

	*side = (struct side){0};
	rogue = rogue_open(listener, NULL);
	server_set_aside(side);
	rogue_send_first(rogue, LONG, sent);
	await(rogue, side, sent);
	for (; sent + FRAME <= bytes && !side->closed; sent += FRAME) {
		rogue_send_frame(rogue, (struct frame_header){FRAME_DATA_NEXT, 0, FRAME, 8});
		await(rogue, side, sent + FRAME); /* no more than was granted */
	}
	return rogue;
}

/* Begin to send a message of that length from the client. */
static void send_long(struct side *from, uint32_t bytes)
{
	struct plx_buf *message = plx_buf_alloc(bytes);

	assert_non_null(message);
	memset(plx_buf_append(message, bytes), 1, bytes);
	assert_int_equal(plx_link_send_buf(from->link, message, NULL, NULL), 0);
}

/* Slow ---------------------------------------------------------------------------------------- */

TEST(a_peer_without_credit_is_not_slow)
{
	static struct side still;
	uint32_t received;

	open_partial(&still, 9000);
	received = still.link->rx_frames;
	still.link->rx_frames = still.link->rx_frames_granted;
	still.link->partial.pace.counted_ns += 10 * PLX_NS_PER_S;
	pump_ms(300);
	assert_int_equal(still.closed, 0);
	still.link->rx_frames = received;
	expect_end(&still, PLX_LINK_PROTOCOL);
	assert_has(still.text, "too slow: of a message of 1048576 bytes, 9000 came");
}

/* Many ---------------------------------------------------------------------------------------- */

TEST(long_messages_arrive_although_another_address_fills_the_memory)
{
	static struct side drips[3];
	unsigned ended = 0;

	skip_if_provider_given();
	if (access("/proc/net/if_inet6", R_OK) != 0)
		skip();
	for (unsigned i = 0; i < 2; i++)
		open_partial(&drips[i], 520000);
	open_partial(&drips[2], 5000);
	fixture_connect(fixture_listen("[::1]:0", NULL), NULL);
	for (unsigned i = 1; i <= 20; i++) {
		send_long(&client, HONEST);
		if (!pump_until(&server.messages, i, 5000))
			fail_msg("message %u did not arrive: '%s'", i, server.text);
		assert_int_equal(server.last_len, HONEST);
	}
	for (unsigned i = 0; i < 3; i++) {
		ended += drips[i].closed;
		if (!drips[i].closed)
			continue;
		assert_int_equal(drips[i].reason, PLX_LINK_LOCAL);
		assert_has(drips[i].text, "all 1024 KiB of partial_bytes (--partial-mem)");
		assert_has(drips[i].text, "127.0.0.1 holds most, 10");
		assert_has(drips[i].text, "loses this one of 1048576 bytes");
	}
	assert_int_equal(ended, 1); /* which made room for all that followed */
	assert_int_equal(drips[2].closed, 0);
}

TEST(the_address_that_holds_most_waits_for_its_own_messages)
{
	static struct side first;
	struct rogue *rogue = open_partial(&first, 600000);

	fixture_connect(listener, NULL);
	log_capture();
	send_long(&client, 600000);
	pump_ms(300);
	assert_has(log_text, "use all 1024 KiB that they may have (--partial-mem), and 1 wait");
	assert_has(log_text, " holds most, 10");
	assert_int_equal(server.messages, 0);
	assert_int_equal(server.closed + first.closed, 0);
	rogue_close(rogue);
	assert_true(pump_until(&server.messages, 1, 5000));
	assert_int_equal(server.last_len, 600000);
	send_long(&client, 900000);
	assert_true(pump_until(&server.messages, 2, 5000));
	assert_int_equal(server.closed, 0);
}

TEST(a_message_longer_than_the_bound_ends_its_link)
{
	fixture_connect(listener, NULL);
	send_long(&client, 2 * LONG);
	expect_end(&server, PLX_LINK_LOCAL);
	assert_has(server.text, "loses this one of 2097152 bytes");
}

TEST(the_memory_of_a_delivered_message_is_freed_soon)
{
	uint8_t *message = calloc(1, LONG - 1000);
	struct partials *partials;

	fixture_connect(listener, NULL);
	partials = &server.link->home->partials;
	for (int i = 1; i < 4; i++) {
		assert_int_equal(plx_link_send(client.link, message, LONG - 1000), 0);
		assert_true(pump_until(&server.messages, i, 5000));
		assert_int_equal(server.last_len, LONG - 1000);
	}
	assert_int_not_equal(partials->bytes, 0); /* for the next one */
	pump_ms(300);
	assert_int_equal(partials->bytes, 0);
	assert_null(server.link->partial.buf);
	/* A message that the user keeps belongs to the user. */
	server.keep = 1;
	assert_int_equal(plx_link_send(client.link, message, LONG - 1000), 0);
	assert_true(pump_until(&server.messages, 4, 5000));
	assert_int_equal(partials->bytes, 0);
	side_release(&server, 1);
	free(message);
}

PLX_TEST_MAIN()
