/* SPDX-License-Identifier: BSD-3-Clause */
/* One way: messages are sent as fast as the link takes them, and nothing is answered.
 * The result counts what the peer has received. A link takes only messages that its receiver
 * granted room for, so the sender is at most a window ahead. The clock stops when the link has
 * closed in order: its FIN follows the last message, and the peer's FIN acknowledges all of them.
 * An answer to a marked last message would do the same, but a message of 0 bytes has no room for a
 * mark.
 * The clock starts with the first message after the warm-up. The receiver may still have a window
 * of warm-up messages to read, and the close takes a round trip: the figures err to the low side by
 * that. */
#include "ping.h"

static int send_message(struct ping_client *client)
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

	while (count < most && (rc = send_message(client)) == 0)
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
static void on_message(struct plx_link *link, struct plx_buf *message, void *user)
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

void ping_one_way(struct ping_client *client, struct plx_link_events *events)
{
	client->load.send_burst = send_burst;
	client->load.on_warm = on_warm;
	events->on_message = on_message;
}
