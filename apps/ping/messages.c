/* SPDX-License-Identifier: BSD-3-Clause */
/* What is measured on a link: round trips, or messages one way. */
#include "ping.h"

#include <inttypes.h>
#include <string.h>

/* Round trips. Stamps are raw TSC reads, immediately before the send and first thing in the receive
 * callback; the loop's cached time is older than the provider's work. */

static int send_by_reference(struct ping_client *client)
{
	struct plx_buf *buf = plx_buf_get(client->pool);

	if (!buf)
		return -EAGAIN;

	uint8_t *data = plx_buf_append(buf, (uint32_t)client->conf->size_bytes);

	if (client->conf->verify)
		ping_fill(data, client->conf->size_bytes, client->load.sent);

	int rc = plx_link_send_buf(client->link, buf, NULL, NULL);

	if (rc)
		plx_buf_unref(buf);
	return rc;
}

static int send_message(struct plx_load *load, struct plx_flight *flight)
{
	struct ping_client *client = (struct ping_client *)load;
	const struct ping_conf *conf = client->conf;
	int rc;

	if (conf->size_bytes > PING_COPY_MAX) {
		flight->sent_tsc = plx_tsc();
		rc = send_by_reference(client);
	} else {
		if (conf->verify)
			ping_fill(client->payload, conf->size_bytes, load->sent);
		flight->sent_tsc = plx_tsc();
		rc = plx_link_send(client->link, client->payload, conf->size_bytes);
	}
	return rc == -ENOTCONN ? -EAGAIN : rc; /* on_close reports it, with the reason */
}

static bool is_right(struct ping_client *client, const struct plx_buf *message)
{
	uint64_t size = client->conf->size_bytes;

	if (client->load.answered == client->load.sent || message->len != size)
		return false;
	if (!client->conf->verify)
		return true;
	ping_fill(client->payload, size, client->load.answered);
	return memcmp(client->payload, message->data, size) == 0;
}

/* The next answer is expected after the smoothed round trip; an adaptive lcore does not sleep past
 * it. */
static void expect_answer(struct ping_client *client, uint64_t trip_tsc)
{
	client->trip_tsc += ((int64_t)trip_tsc - client->trip_tsc) / 8;
	if (client->load.kind == PLX_LOAD_CLOSED)
		plx_loop_expect(plx_loop_now_ns() + plx_tsc_to_ns((uint64_t)client->trip_tsc));
}

static void on_message(struct plx_link *link, struct plx_buf *message, void *user)
{
	uint64_t now_tsc = plx_tsc_after_loads();
	struct ping_client *client = user;
	struct plx_flight *flight = plx_load_oldest(&client->load);

	if (plx_unlikely(!is_right(client, message))) {
		char text[128];

		snprintf(text, sizeof(text), "message %" PRIu64 " came back changed",
			 client->load.answered);
		plx_load_fail(&client->load, text);
		return;
	}
	expect_answer(client, now_tsc - flight->sent_tsc);
	plx_load_reply(&client->load, flight, now_tsc, PLX_REPLY_GOOD);
}

/* One way: messages are sent as fast as the link takes them, and nothing is answered.
 * The result counts what the peer has received. A link takes only messages that its receiver
 * granted room for, so the sender is at most a window ahead. The clock stops when the link has
 * closed in order: its FIN follows the last message, and the peer's FIN acknowledges all of them.
 * An answer to a marked last message would do the same, but a message of 0 bytes has no room for a
 * mark.
 * The clock starts with the first message after the warm-up. The receiver may still have a window
 * of warm-up messages to read, and the close takes a round trip: the figures err to the low side by
 * that. */

static int send_same(struct ping_client *client)
{
	if (!client->message)
		return plx_link_send(client->link, client->payload, client->conf->size_bytes);

	int rc = plx_link_send_buf(client->link, plx_buf_ref(client->message), NULL, NULL);

	if (rc)
		plx_buf_unref(client->message);
	return rc;
}

/* The poller runs after that of the links, so it uses the room that they report in the same turn.
 */
static unsigned send_burst(struct plx_load *load, unsigned most)
{
	struct ping_client *client = (struct ping_client *)load;
	unsigned count = 0;
	int rc = 0;

	while (count < most && (rc = send_same(client)) == 0)
		count++;
	if (count)
		load->last_tsc = plx_tsc();
	load->blocked = rc != 0; /* until on_writable, or on_close if it is closing */
	if (rc && rc != -EAGAIN && rc != -ENOTCONN)
		plx_load_fail(load, plx_error());
	return count;
}

/* How often the link has had no room for a message. */
static uint64_t refused(const struct ping_client *client)
{
	struct plx_link_stats stats;

	plx_link_stats_read(client->link, &stats);
	return stats.again;
}

static void on_warm(struct plx_load *load, uint64_t now_tsc)
{
	struct ping_client *client = (struct ping_client *)load;

	client->again_before = refused(client);
	plx_load_begin(load, now_tsc);
}

/* Answering takes time, so this would not be a one-way figure. */
static void on_answer(struct plx_link *link, struct plx_buf *message, void *user)
{
	struct ping_client *client = user;

	plx_load_fail(&client->load, "--one-way: the server sends messages back; start it as "
				     "plx-ping --listen ADDR --sink");
	client->load.first_tsc = 0;
	plx_link_abort(link);
}

void ping_one_way_closed(struct ping_client *client, enum plx_link_reason reason, uint64_t now_tsc)
{
	if (!client->load.first_tsc)
		return;
	client->load.again = refused(client) - client->again_before;
	if (reason == PLX_LINK_CLOSED) /* everything has arrived by now */
		client->load.last_tsc = now_tsc;
}

void ping_set_load(struct ping_client *client, struct plx_link_events *events)
{
	client->load.send = send_message;
	client->load.send_burst = send_burst;
	client->load.on_warm = client->conf->one_way ? on_warm : NULL;
	events->on_message = client->conf->one_way ? on_answer : on_message;
}
