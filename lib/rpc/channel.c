/* SPDX-License-Identifier: BSD-3-Clause */
/* A client's way to one address: a link, greetings, and another link when it has ended. */
#include "client.h"

#include <stdio.h>

/* Not worth a timer of its own: a service that greets does so with its first message. */
#define GREETING_NS (2 * PLX_NS_PER_S)

/* What comes of it is told no more. */
void channel_end(struct channel *channel)
{
	plx_timer_stop(&channel->timer);
	if (channel->out.link)
		rpc_out_fini(&channel->out);
	if (!channel->link)
		return;
	plx_link_set_user(channel->link, NULL);
	if (channel->state == CHANNEL_UP)
		plx_link_close(channel->link);
	else if (channel->state != CHANNEL_ENDING)
		plx_link_abort(channel->link);
}

/* refused_here: by a process of this host, or the lack of one. */
static void down(struct channel *channel, bool refused_here)
{
	channel->batches += channel->out.messages;
	if (channel->out.link)
		rpc_out_fini(&channel->out);
	channel->out.messages = 0;
	if (channel->up_ns &&
	    plx_time_since(channel->up_ns, plx_loop_now_ns()) >= channel->backoff.max_ns)
		plx_backoff_reset(&channel->backoff); /* it has lasted */
	channel->up_ns = 0;
	channel->state = CHANNEL_DOWN;

	channel->link = NULL;
	channel->draining = false;
	client_channel_down(channel);
	if (!channel->client->ending)
		plx_timer_start(&channel->timer,
				refused_here ? plx_backoff_next_same_host_ns(&channel->backoff)
					     : plx_backoff_next_ns(&channel->backoff));
}

void channel_throw_out(struct channel *channel, const char *why)
{
	struct plx_rpc_client *client = channel->client;

	if (channel->state == CHANNEL_ENDING)
		return;
	client->counts.protocol++;
	snprintf(channel->trouble, sizeof(channel->trouble), "%s: %s", channel->address, why);
	if (plx_log_allowed(&client->log_limit, plx_loop_now_ns()))
		plx_log(&rpc_log, PLX_LOG_WARNING, "service %s: %s; the link to it ends",
			channel->address, why);
	channel->state = CHANNEL_ENDING;
	plx_link_abort(channel->link);
}

/* The service drains, and nothing is owed by it any more. */
void channel_look_at_drain(struct channel *channel)
{
	if (channel->state != CHANNEL_UP || !channel->draining || channel->open)
		return;
	rpc_out_flush(&channel->out);
	snprintf(channel->trouble, sizeof(channel->trouble), "%s: the service drains",
		 channel->address);
	channel->state = CHANNEL_ENDING;
	plx_timer_stop(&channel->timer);
	plx_link_close(channel->link);
}

/* The link ------------------------------------------------------------------------------------- */

static void on_open(struct plx_link *link, void *user)
{
	struct channel *channel = user;
	const struct plx_rpc_client *client = channel ? channel->client : NULL;
	uint8_t greeting[RPC_GREETING_BYTES];

	if (!client) { /* it was tried by another way, behind the client's end */
		plx_link_abort(link);
		return;
	}
	rpc_greeting_write(greeting, &(struct rpc_greeting){
					     .version_min = RPC_VERSION_MIN,
					     .version_max = RPC_VERSION_MAX,
					     .role = RPC_CLIENT,
					     .payload_max = client->attr.reply_max,
					     .identity = client->identity,
				     });
	if (rpc_out_init(&channel->out, link) != 0 ||
	    plx_link_send(link, greeting, sizeof(greeting)) != 0) {
		plx_link_abort(link);
		return;
	}
	channel->state = CHANNEL_GREETING;
	plx_timer_start(&channel->timer, GREETING_NS);
}

/* No rule was broken: there may be room when it is tried again. */
static void turned_away(struct channel *channel)
{
	snprintf(channel->trouble, sizeof(channel->trouble),
		 "%s: the service has as many clients as it takes", channel->address);
	channel->state = CHANNEL_ENDING;
	plx_link_abort(channel->link);
}

static void be_greeted(struct channel *channel, const struct plx_buf *message)
{
	struct rpc_greeting greeting;
	const char *wrong = rpc_greeting_read(message->data, message->len, RPC_SERVER, &greeting);

	if (wrong) {
		channel_throw_out(channel, wrong);
		return;
	}
	if (greeting.open_max == 0) {
		turned_away(channel);
		return;
	}
	plx_timer_stop(&channel->timer);
	if (greeting.identity != channel->identity)
		kept_end_again(channel);
	channel->identity = greeting.identity;
	channel->key_ns = greeting.key_ms * PLX_NS_PER_MS;
	channel->state = CHANNEL_UP;
	channel->open_max = greeting.open_max;
	channel->request_max = rpc_payload_max(channel->link, greeting.payload_max);
	channel->up_ns = plx_loop_now_ns();
	channel->trouble[0] = '\0';
	client_send_waiting(channel->client);
}

static void on_message(struct plx_link *link, struct plx_buf *message, void *user)
{
	struct channel *channel = user;

	if (plx_unlikely(!channel))
		return;
	if (plx_likely(channel->state == CHANNEL_UP))
		answer_batch(channel, message);
	else if (channel->state == CHANNEL_GREETING)
		be_greeted(channel, message);
	if (plx_likely(channel->state == CHANNEL_UP)) {
		rpc_out_flush(&channel->out);
		channel_look_at_drain(channel);
	}
}

static void on_writable(struct plx_link *link, void *user)
{
	struct channel *channel = user;

	if (!channel || channel->state != CHANNEL_UP)
		return;
	rpc_out_writable(&channel->out);
	client_send_waiting(channel->client);
}

static void on_close(struct plx_link *link, enum plx_link_reason reason, const char *text,
		     void *user)
{
	struct channel *channel = user;

	if (!channel) /* its client is gone */
		return;
	if (channel->state == CHANNEL_GREETING &&
	    (reason == PLX_LINK_PEER_DOWN || reason == PLX_LINK_CLOSED))
		snprintf(channel->trouble, sizeof(channel->trouble),
			 "%s: it went away before it greeted: is it a service?", channel->address);
	else if (channel->state != CHANNEL_ENDING)
		snprintf(channel->trouble, sizeof(channel->trouble), "%s", text);
	plx_log(&rpc_log, PLX_LOG_INFO, "service %s: %s", channel->address,
		plx_link_without_peer(link, text));
	plx_timer_stop(&channel->timer);
	down(channel, reason == PLX_LINK_REFUSED && plx_link_is_same_host(link));
}

static const struct plx_link_events events = {
	.on_open = on_open,
	.on_message = on_message,
	.on_writable = on_writable,
	.on_close = on_close,
};

int channel_connect(struct channel *channel)
{
	struct plx_link_attr attr = channel->client->attr.link;
	int rc;

	attr.events = &events;
	attr.user = channel;
	attr.protocol = PLX_PROTOCOL_RPC;
	channel->state = CHANNEL_CONNECTING;
	rc = plx_link_connect(channel->address, &attr, &channel->link);
	if (rc == 0)
		return 0;
	snprintf(channel->trouble, sizeof(channel->trouble), "%s", plx_error());
	plx_log(&rpc_log, PLX_LOG_INFO, "%s", channel->trouble);
	down(channel, false);
	return rc;
}

void channel_on_timer(struct plx_timer *timer, void *arg)
{
	struct channel *channel = arg;

	if (channel->state == CHANNEL_DOWN)
		channel_connect(channel);
	else if (channel->state == CHANNEL_GREETING)
		channel_throw_out(channel, "it did not greet: it is no Pollux service");
}
