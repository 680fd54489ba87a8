/* SPDX-License-Identifier: BSD-3-Clause */
/* Callbacks that keep the rest of their lcore waiting. */
#include "cpu_time.h"
#include "fixture.h"
#include "log_capture.h"

#define SLOW_MS 25

static unsigned slow_messages; /* of the next ones */

static void on_message(struct side *side, struct plx_buf *message)
{
	if (slow_messages) {
		slow_messages--;
		spin_ms(SLOW_MS);
	}
}

static void begin(void)
{
	fixture_pair(NULL);
	server.on_message = on_message;
	slow_messages = 0;
	assert_int_equal(plx_log_configure("--log-level", "fabric:info"), 0);
	log_capture();
	cpu_set_away(false);
}

static int down(void **state)
{
	plx_log_set_sink(NULL, NULL);
	assert_int_equal(plx_log_configure("--log-level", "fabric:notice"), 0);
	return fixture_down(state);
}

/* One at a time. */
static void send_slow(unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		slow_messages = 1;
		lcore_note_cpu();
		assert_int_equal(plx_link_send(client.link, "x", 1), 0);
		expect_soon(slow_messages == 0);
	}
}

static unsigned named(const char *before, const struct plx_link *link)
{
	char who[PLX_PEER_BYTES], text[sizeof(who) + 64];

	snprintf(text, sizeof(text), "%s%s took ", before, plx_link_peer_format(link, who));
	return log_count(text);
}

#define TEST(name) PLX_TEST_WITH(name, fixture_up, down)

static void send_soon(const struct side *from, const char *text)
{
	int rc;

	while ((rc = plx_link_send(from->link, text, 1)) == -EAGAIN)
		pump_ms(1);
	assert_int_equal(rc, 0);
}

/* Its messages arrive before and after those of the slow one, which is named. */
TEST(a_fast_link_is_not_blamed_for_a_slow_one)
{
	struct side slow, slow_client;

	begin();
	server_set_aside(&slow);
	slow_client = client;
	plx_link_set_user(client.link, &slow_client);
	fixture_renew_sides();
	fixture_pair(NULL);
	for (unsigned i = 0; i < 40; i++) {
		slow_messages = 1;
		lcore_note_cpu();
		for (unsigned j = 0; j < 8; j++) {
			if (j == 4)
				send_soon(&slow_client, "x");
			send_soon(&client, "y");
		}
		expect_soon(slow_messages == 0 && server.messages == 8 * (i + 1));
	}
	/* Up to 16 before the clock is read after each message. */
	assert_in_range(stats_of(slow.link).slow, 20, 40);
	/* Only if the host stops this process meanwhile. */
	assert_true(stats_of(server.link).slow < stats_of(slow.link).slow / 4);
	assert_true(named("callbacks for messages of ", slow.link) >= 1);
	free(slow.last);
	plx_link_abort(slow_client.link);
	expect_soon(slow.closed && slow_client.closed);
}

TEST(a_callback_whose_cpu_was_away_is_not_blamed)
{
	begin();
	cpu_set_away(true);
	send_slow(40);
	assert_int_equal(stats_of(server.link).slow, 0);
	assert_int_equal(log_count("callbacks for messages of"), 0);
	assert_true(named("a turn with messages of ", server.link) >= 1);
	assert_true(log_count("was without its CPU for up to ") >= 1);
}

PLX_TEST_MAIN()
