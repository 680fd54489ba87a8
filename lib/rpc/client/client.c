/* SPDX-License-Identifier: BSD-3-Clause */
/* Create and destroy clients; statistics. */
#include "rpc_client.h"

#include <inttypes.h>
#include <stdlib.h>

static int check_attr(const struct plx_rpc_client_attr *attr, struct plx_rpc_client *client,
		      struct plx_connector_attr *session_out)
{
	struct plx_rpc_client_attr *out = &client->attr;

	if (attr)
		*out = *attr;
	out->reply_max = out->reply_max ?: UINT64_C(16) << 20;
	out->deadline_ns = out->deadline_ns ?: PLX_RPC_DEADLINE_NS_DEFAULT;
	out->calls_max = out->calls_max ?: UINT32_C(128) << 10;
	out->waiting_max = out->waiting_max ?: UINT64_C(64) << 20;
	out->identity = out->identity ?: plx_random_id();
	if (out->reply_max > PLX_RPC_PAYLOAD_MAX)
		return plx_fail(EINVAL, "reply_max %" PRIu64 ": give 1 to %" PRIu64, out->reply_max,
				PLX_RPC_PAYLOAD_MAX);
	*session_out = (struct plx_connector_attr){
		.link = out->link,
		.reconnect_min_ns = out->reconnect_min_ns,
		.reconnect_max_ns = out->reconnect_max_ns,
	};
	return plx_connector_check_attr(session_out);
}

static int check_addresses(const char *const *addresses, uint32_t *count_out)
{
	uint32_t count = 0;
	int rc = 0;

	while (rc == 0 && addresses[count])
		rc = plx_address_check("service address", addresses[count++]);
	*count_out = count;
	if (rc == 0 && (count == 0 || count > RPC_CHANNELS_MAX))
		rc = plx_fail(EINVAL, "%u addresses: a client takes 1 to %d", count,
			      RPC_CHANNELS_MAX);
	return rc;
}

int plx_rpc_client_create(const char *const *addresses, const struct plx_rpc_client_attr *attr,
			  struct plx_rpc_client **client_out)
{
	struct plx_connector_attr session;
	struct plx_rpc_client *client;
	uint32_t count;
	int rc = check_addresses(addresses, &count);

	if (rc)
		return rc;
	if (plx_lcore_id() == PLX_LCORE_NONE)
		return plx_fail_no_lcore("plx_rpc_client_create");
	client = calloc(1, sizeof(*client) + count * sizeof(struct channel));
	if (!client)
		return plx_fail(ENOMEM, "out of memory");
	client->holds = 1;
	client->lcore = plx_lcore_id();
	rc = check_attr(attr, client, &session) ?: hedge_init(client);
	rc = rc ?: waiters_init(&client->waiters); /* last: a signal must not be freed */
	if (rc) {
		plx_hist_fini(&client->hedge.times);
		free(client);
		return rc;
	}
	TAILQ_INIT(&client->waiting);
	TAILQ_INIT(&client->refused);
	plx_backoff_init(&client->backoff, REFUSED_NS_MIN, REFUSED_NS_MAX, plx_now_ns());
	STAILQ_INIT(&client->completed);
	client->log_limit.burst = 1; /* retries would repeat the message */
	plx_task_init(&client->deliver, client_deliver, client);
	for (uint32_t i = 0; rc == 0 && i < count; i++)
		rc = client_add_channel(client, &session, addresses[i]);
	if (rc)
		plx_rpc_client_destroy(client);
	else
		*client_out = client;
	return rc;
}

static void end(struct plx_rpc_client *client)
{
	for (uint32_t i = 0; i < client->channel_count; i++) {
		rpc_tx_fini(&client->channels[i].tx);
		channel_drop_rests(&client->channels[i]);
		plx_connector_fini(&client->channels[i].session);
	}
	plx_task_cancel(&client->deliver);
	plx_signal_fini(&client->waiters.arrived);
	client->ended = true;
	client->holds--; /* the program's */
}

void client_free(struct plx_rpc_client *client)
{
	client_free_calls(client);
	rpc_slab_free(&client->saved_blocks);
	send_queue_free(client);
	plx_hist_fini(&client->hedge.times);
	pthread_mutex_destroy(&client->waiters.lock);
	free(client);
}

static void cancel_all(void *client)
{
	client_cancel_all(client);
}

void plx_rpc_client_destroy(struct plx_rpc_client *client)
{
	if (!client || plx_is_forked())
		return;
	ASSERT_OWNER(client->lcore);

	struct plx_rpc_client *held PLX_CLEANUP(client_unhold) = client_hold(client);

	client->ending = true;
	plx_loop_run_inside(cancel_all, client);
	if (!client->ended) /* by one of these callbacks */
		end(client);
}

void client_send_waiting(struct plx_rpc_client *client)
{
	for (uint32_t i = 0; i < client->channel_count; i++)
		saved_send_retries(&client->channels[i]);
	send_queue_flush(client);
	saved_send_waiting(client);
}

bool plx_rpc_client_is_up(const struct plx_rpc_client *client)
{
	bool is_up = false;

	ASSERT_OWNER(client->lcore);
	for (uint32_t i = 0; i < client->channel_count; i++)
		is_up |= channel_is_up(&client->channels[i]) && !client->channels[i].draining;
	return is_up;
}

const char *plx_rpc_client_trouble(const struct plx_rpc_client *client)
{
	ASSERT_OWNER(client->lcore);
	for (uint32_t i = 0; i < client->channel_count; i++) {
		if (client->channels[i].trouble[0])
			return client->channels[i].trouble;
	}
	return "";
}

const struct plx_link *plx_rpc_client_link(const struct plx_rpc_client *client)
{
	ASSERT_OWNER(client->lcore);
	for (uint32_t i = 0; i < client->channel_count; i++) {
		if (channel_is_up(&client->channels[i]))
			return client->channels[i].session.link;
	}
	return NULL;
}

const char *plx_rpc_client_provider(const struct plx_rpc_client *client)
{
	const struct plx_link *link = plx_rpc_client_link(client);

	return link ? plx_link_fi_provider(link) : "";
}

void plx_rpc_client_stats_read(const struct plx_rpc_client *client,
			       struct plx_rpc_client_stats *stats_out)
{
	ASSERT_OWNER(client->lcore);
	*stats_out = client->counts;
	stats_out->open = client->open;
	stats_out->waiting = client->waiting_count;
	for (uint32_t i = 0; i < client->channel_count; i++) {
		const struct channel *channel = &client->channels[i];

		stats_out->links += channel_is_up(channel);
		stats_out->batches += channel->tx.messages;
	}
}
