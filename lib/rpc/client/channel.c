/* SPDX-License-Identifier: BSD-3-Clause */
/* A client's session with one address, and its HELLO. */
#include "rpc_client.h"

#include <stdio.h>

static struct channel *of(struct plx_connector *session)
{
	return (struct channel *)session;
}

static void set_trouble(struct channel *channel, const char *why)
{
	snprintf(channel->trouble, sizeof(channel->trouble), "%s", why);
}

void channel_reject(struct channel *channel, const char *why)
{
	struct plx_rpc_client *client = channel->client;

	if (!channel_is_up(channel))
		return;
	client->counts.protocol++;
	if (plx_log_allowed(&client->log_limit, plx_loop_now_ns()))
		plx_log(rpc_log, PLX_LOG_WARNING, "service %s: %s; the link to it ends",
			channel->session.address, why);
	plx_connector_fail(&channel->session, PLX_LINK_PROTOCOL, why);
}

/* Close if the service drains and owes no reply. */
void channel_check_drain(struct channel *channel)
{
	if (!channel_is_up(channel) || !channel->draining || channel->open)
		return;
	rpc_tx_flush(&channel->tx);
	snprintf(channel->trouble, sizeof(channel->trouble), "%s: the service drains",
		 channel->session.address);
	plx_connector_renew(&channel->session);
}

/* Selection --------------------------------------------------------------------------------- */

static inline bool is_better(const struct channel *channel, const struct channel *other)
{
	uint64_t now_ns = plx_loop_now_ns();
	bool is_full = channel->overloaded_until_ns > now_ns;
	bool other_full = other->overloaded_until_ns > now_ns;

	return is_full != other_full ? other_full : channel->open < other->open;
}

struct channel *channel_choose(struct plx_rpc_client *client, const struct channel *other,
			       uint64_t length)
{
	struct channel *best = NULL, *too_small = NULL;
	bool one_accepts = false;

	for (uint32_t i = 0; i < client->channel_count; i++) {
		struct channel *channel = &client->channels[i];
		bool accepts;

		if (channel == other || !channel_is_up(channel))
			continue;
		accepts = length <= channel->request_max;
		one_accepts |= accepts;
		if (!channel_has_room(channel))
			continue;
		if (!accepts)
			too_small = channel;
		else if (!best || is_better(channel, best))
			best = channel;
	}
	return best || one_accepts ? best : too_small;
}

static const char *on_hello(struct plx_connector *session, struct plx_link *link,
			    const uint8_t *hello, uint32_t length)
{
	struct rpc_greeting greeting;
	const char *wrong = rpc_greeting_read(hello, length, RPC_SERVER, &greeting);

	if (wrong)
		of(session)->client->counts.protocol++;
	return wrong;
}

static void on_opened(struct plx_connector *session)
{
	struct channel *channel = of(session);
	struct rpc_greeting greeting = rpc_peer_greeting(session->link, RPC_SERVER);

	if (rpc_tx_init(&channel->tx, session->link) != 0) {
		plx_connector_fail(session, PLX_LINK_LOCAL, "out of memory");
		return;
	}
	if (greeting.identity != channel->identity)
		saved_fail_retries(channel);
	channel->identity = greeting.identity;
	channel->key_ns = greeting.key_ms * PLX_NS_PER_MS;
	channel->open_max = greeting.open_max;
	channel->request_max = rpc_payload_max(session->link, greeting.payload_max);
	channel->trouble[0] = '\0';
	client_send_waiting(channel->client);
}

static void on_message(struct plx_link *link, struct plx_buf *message, void *user)
{
	struct channel *channel = user;

	if (plx_unlikely(!channel || !channel_is_up(channel)))
		return;
	receive_batch(channel, message);
	if (plx_likely(channel_is_up(channel))) {
		rpc_tx_flush(&channel->tx);
		channel_check_drain(channel);
	}
}

static void on_writable(struct plx_link *link, void *user)
{
	struct channel *channel = user;

	if (!channel || !channel_is_up(channel))
		return;
	rpc_tx_writable(&channel->tx);
	client_send_waiting(channel->client);
}

static void on_ended(struct plx_connector *session)
{
	struct channel *channel = of(session);

	rpc_tx_fini(&channel->tx);
	channel->draining = false;
	client_channel_down(channel);
}

static bool on_refused(struct plx_connector *session, enum plx_link_reason reason, const char *why)
{
	set_trouble(of(session), why);
	return true; /* reported by plx_rpc_client_trouble */
}

static void on_closed(struct plx_connector *session, enum plx_link_reason reason, const char *why)
{
	struct channel *channel = of(session);

	if (!channel->trouble[0])
		set_trouble(channel, why);
	plx_log(rpc_log, PLX_LOG_INFO, "service %s: %s", session->address, channel->trouble);
}

static const struct plx_link_events events = {
	PLX_CONNECTOR_EVENTS,
	.on_message = on_message,
	.on_writable = on_writable,
};

static const struct plx_connector_owner owner = {
	.hello = on_hello,
	.opened = on_opened,
	.refused = on_refused,
	.closed = on_closed,
	.ended = on_ended,
};

void channel_init(struct channel *channel, struct plx_rpc_client *client)
{
	struct plx_connector_attr attr = client->session;

	channel->client = client;
	TAILQ_INIT(&channel->retries);
	rpc_describe_link(&attr.link, &events, client->attr.reply_max,
			  &(struct rpc_greeting){
				  .version_min = RPC_VERSION_MIN,
				  .version_max = RPC_VERSION_MAX,
				  .role = RPC_CLIENT,
				  .payload_max = client->attr.reply_max,
				  .identity = client->identity,
			  });
	plx_connector_init(&channel->session, &owner, &attr);
}

int channel_connect(struct channel *channel, const char *address)
{
	int rc = plx_connector_open(&channel->session, address);

	if (rc == 0)
		return 0;
	set_trouble(channel, plx_error());
	plx_log(rpc_log, PLX_LOG_INFO, "%s", channel->trouble);
	plx_connector_try_later(&channel->session);
	return rc;
}
