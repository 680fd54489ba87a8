/* SPDX-License-Identifier: BSD-3-Clause */
/* More messages than a link takes: the sender waits, nothing is lost, and a receiver that keeps its
 * buffers stalls only its link. */
#include "dice.h"
#include "fixture.h"

#define TEST(name)   PLX_TEST_WITH(name, fixture_up, fixture_down)
#define PAIRED(name) PLX_TEST_WITH(name, fixture_up_with_pair, fixture_down)

#define MIXED_MAX    (1u << 20)

/* Mostly short ones, so that the total is not too long for a slow host. */
static uint32_t next_size(uint64_t *random)
{
	static const uint32_t at_most[] = {256, 4200, 9000, 65536, MIXED_MAX};
	unsigned class = 0;

	while (class < PLX_ARRAY_LEN(at_most) - 1 && dice_roll(random, 8) == 0)
		class ++;
	return dice_roll(random, at_most[class] + 1);
}

static struct {
	const uint8_t *pattern; /* message n is a piece of it, starting at n % 251 */
	uint64_t random;
	unsigned wrong;
} mixed;

static void check_mixed(struct side *side, struct plx_buf *message)
{
	uint32_t size = next_size(&mixed.random);

	mixed.wrong += message->len != size ||
		       memcmp(message->data, mixed.pattern + (side->messages - 1) % 251, size) != 0;
}

/* Every third by reference, the others as a copy of memory that changes right after the call. */
static int send_mixed(unsigned number, uint32_t size)
{
	static uint8_t copy[MIXED_MAX];
	const uint8_t *bytes = mixed.pattern + number % 251;
	struct plx_buf *buf;
	int rc;

	if (number % 3) {
		memcpy(copy, bytes, size);
		rc = plx_link_send(client.link, copy, size);
		memset(copy, 0xee, size);
		return rc;
	}
	buf = plx_link_buf(client.link, size);
	if (!buf)
		return -EAGAIN;
	memcpy(plx_buf_append(buf, size), bytes, size);
	rc = plx_link_send_buf(client.link, buf, NULL, NULL);
	if (rc)
		plx_buf_unref(buf);
	return rc;
}

/* on_writable comes once per -EAGAIN. */
PAIRED(a_flood_of_mixed_sizes_gets_eagain_and_arrives_whole_and_in_order)
{
	uint8_t *bytes = fixture_pattern(MIXED_MAX + 251, 0);
	unsigned sent = 0, refused = 0, count = is_provider_given() ? 20000 : 30000;
	uint64_t random = 1;
	uint32_t size = next_size(&random);

	mixed.pattern = bytes;
	mixed.random = 1;
	mixed.wrong = 0;
	server.on_message = check_mixed;
	while (sent < count) {
		unsigned before = client.writable;
		int rc = send_mixed(sent, size);

		if (rc == 0) {
			size = next_size(&random);
			sent++;
			continue;
		}
		assert_int_equal(rc, -EAGAIN);
		refused++;
		if (!pump_until(&client.writable, before + 1, 2000))
			fail_msg("message %u of %u bytes: client '%s'", sent, size, client.text);
		pump_ms(0);
		assert_int_equal(client.writable, before + 1);
	}
	assert_true(pump_until(&server.messages, count, 20000));
	assert_int_equal(mixed.wrong, 0);
	assert_true(refused > 100);
	free(bytes);
}

/* Return: how many of a thousand messages are accepted, while the loop turns. */
static unsigned send_a_thousand(const void *bytes, size_t length)
{
	unsigned taken = 0;

	for (int i = 0; i < 1000; i++) {
		taken += plx_link_send(client.link, bytes, length) == 0;
		plx_loop_turn();
	}
	return taken;
}

TEST(a_receiver_that_keeps_its_buffers_stalls_only_its_link)
{
	static struct side first_server, other;
	struct plx_listener *listener = fixture_listen(here("0"), NULL);
	uint8_t bytes[1000] = {0};

	fixture_connect(listener, NULL);
	server_set_aside(&first_server);
	server.echo = true;
	other = (struct side){.name = "other"};
	side_connect(&other, plx_listener_address(listener), NULL);
	assert_true(pump_until(&server.opened, 1, 2000));
	assert_true(pump_until(&other.opened, 1, 2000));

	first_server.keep = 500;
	/* The window, and nothing queued beyond it. */
	assert_int_equal(send_a_thousand(bytes, sizeof(bytes)), 6);
	assert_int_equal(stats_of(client.link).tx_inflight, 0);
	assert_int_equal(stats_of(first_server.link).rx_kept, 6);
	assert_in_range(stats_of(first_server.link).rx_posted, 2,
			6); /* for control: more over iWARP */

	assert_int_equal(plx_link_send(other.link, "x", 1), 0); /* the other link still works */
	assert_true(pump_until(&other.messages, 1, 2000));

	side_release(&first_server, 3); /* three returned: three more may arrive */
	assert_in_range(send_a_thousand(bytes, sizeof(bytes)), 0, 3);

	plx_link_abort(client.link); /* the closure is noticed anyway */
	expect_end(&first_server, PLX_LINK_PEER_DOWN);
	side_release(&first_server, 500);
	free(first_server.last);
	plx_link_abort(other.link);
	assert_true(pump_until(&other.closed, 1, 2000));
	free(other.last);
}

PAIRED(kept_long_messages_are_bounded_too)
{
	uint8_t *bytes = fixture_pattern(20000, 1);
	unsigned taken = 0;

	server.keep = 500;
	for (int i = 0; i < 3; i++)
		taken += send_a_thousand(bytes, 20000);
	assert_in_range(server.kept_count, 5, 6);
	assert_in_range(taken, server.kept_count, 7);
	server.keep = 0;
	side_release(&server, 500);
	taken += send_a_thousand(bytes, 20000);
	assert_true(pump_until(&server.messages, taken, 5000));
	assert_true(taken >= 20);
	assert_memory_equal(server.last, bytes, 20000);
	free(bytes);
}

FIXTURE_MAIN("tcp", "shm", "foreign")
