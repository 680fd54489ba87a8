/* SPDX-License-Identifier: BSD-3-Clause */
/* Round trips. Stamps are raw TSC reads, immediately before the send and first thing in the receive
 * callback; the loop's cached time is older than the provider's work. */
#include "ping.h"
#include "plx_lcore.h"

#include <inttypes.h>
#include <string.h>

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

void ping_round_trips(struct ping_client *client, struct plx_link_events *events)
{
	client->load.send = send_message;
	events->on_message = on_message;
}
