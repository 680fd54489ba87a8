/* SPDX-License-Identifier: BSD-3-Clause */
/* A client's session with one address: its HELLO, and batches of replies. */
#include "rpc_client.h"

#include <stdio.h>
#include <stdlib.h>

#define FEW_CHUNKS 4 /* 512 KiB of slots: less than a core's cache */

static void reject(struct channel *channel, const char *why)
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

/* Replies: hot path ------------------------------------------------------------------------- */

/* A reply must name an open call of this channel. Otherwise it is late, a duplicate or forged, and
 * is counted and dropped. */
static inline bool is_on(const struct call *call, const struct channel *channel)
{
	return plx_likely(call->channel == channel) ||
	       (call->saved && call->saved->second == channel);
}

/* Return: NULL, or the error as text. */
static inline const char *handle_reply(struct channel *channel, const struct rpc_record *record,
				       struct plx_buf *message)
{
	struct plx_rpc_client *client = channel->client;
	const struct rpc_header *header = &record->header;
	struct call *call = call_find(client, header->call);
	enum plx_rpc_status status = header->status;
	bool is_reply = status <= PLX_RPC_ERROR;

	if (plx_unlikely(!call || call->state != CALL_SENT || !is_on(call, channel))) {
		client->counts.strays++;
		return NULL;
	}
	if (plx_unlikely(status >= PLX_RPC_STATUS_COUNT || header->length > client->attr.reply_max))
		return "it sent a reply that makes no sense";
	if (plx_unlikely(status != PLX_RPC_OK))
		channel_note_failure(channel, header, plx_loop_now_ns());
	else if (plx_unlikely(channel->failed != 0))
		channel_note_success(channel);
	if (plx_unlikely(call->saved != NULL) && saved_continues(channel, call, header))
		return NULL;
	if (plx_unlikely(status == PLX_RPC_DRAINING && !header->handler_ns && call_link_lost(call)))
		status = PLX_RPC_PEER_DOWN; /* DRAINING would mean a retry elsewhere is safe */
	call_finish(client, call,
		    &(struct plx_rpc_result){
			    .status = status,
			    .code = status == PLX_RPC_ERROR ? header->code : 0,
			    .data = is_reply ? record->payload : NULL,
			    .length = is_reply ? header->length : 0,
			    .message = message,
			    .handler_ns = header->handler_ns,
			    .retry_after_ns = is_reply ? 0 : header->retry_us * PLX_NS_PER_US,
			    .may_have_run = is_reply || header->handler_ns || call_link_lost(call),
		    });
	return NULL;
}

static inline const char *handle_record(struct channel *channel, const struct rpc_record *record,
					struct plx_buf *message)
{
	switch (record->header.kind) {
	case RPC_REPLY:
		return handle_reply(channel, record, message);
	case RPC_DRAIN:
		channel->draining = true;
		return NULL;
	default:
		return "it sent something that is neither a reply nor a farewell";
	}
}

/* With many calls the slots are not cached: prefetch the slot of a later record. */
static inline void fetch_call(struct plx_rpc_client *client, const struct plx_buf *message,
			      size_t offset)
{
	const struct rpc_header *header = (const struct rpc_header *)(message->data + offset);

	if (client->chunk_count > FEW_CHUNKS && offset + RPC_RECORD_BYTES <= message->len)
		call_prefetch(client, le64toh(header->call));
}

/* The rest of a batch that the turn had no time for, or whose callback threw. */
struct rest {
	STAILQ_ENTRY(rest) link;
	struct plx_buf *message;
	size_t offset; /* of the next record */
};

/* Deliver the rest of the batch in the next turns. It may be empty: receive_batch also has work at
 * the end of a batch. */
static PLX_NOINLINE void keep_rest(struct channel *channel, struct plx_buf *message, size_t offset,
				   bool is_oldest)
{
	struct plx_link *link = channel->session.base.link;
	struct rest *rest;

	if (channel->client->ended || !channel_is_up(channel)) /* since a callback */
		return;
	rest = malloc(sizeof(*rest));
	if (!rest) {
		reject(channel, "there is no memory for the rest of its replies");
		return;
	}
	*rest = (struct rest){.message = plx_buf_ref(message), .offset = offset};
	if (is_oldest)
		STAILQ_INSERT_HEAD(&channel->rests, rest, link);
	else
		STAILQ_INSERT_TAIL(&channel->rests, rest, link);
	turn_wait(&channel->later, link, true);
}

/* A batch being received. */
struct batch {
	struct channel *channel; /* NULL: done */
	struct plx_buf *message;
	size_t offset; /* of the next record */
	bool is_rest;
};

/* Passes no address: the batch stays in registers. */
static inline PLX_ALWAYS_INLINE void stop_receiving(const struct batch *batch)
{
	if (plx_unlikely(batch->channel != NULL))
		keep_rest(batch->channel, batch->message, batch->offset, batch->is_rest);
}

static PLX_NOINLINE void receive_batch(struct channel *channel, struct plx_buf *message,
				       size_t offset, bool is_rest)
{
	struct plx_rpc_client *client PLX_CLEANUP(client_unhold) = client_hold(channel->client);
	struct batch batch PLX_CLEANUP(stop_receiving) = {channel, message, offset, is_rest};
	struct rpc_record record;
	const char *wrong;

	while (rpc_record_next(message->data, message->len, &batch.offset, &record, &wrong)) {
		fetch_call(client, message, batch.offset);
		wrong = handle_record(channel, &record, message);
		if (plx_unlikely(wrong != NULL))
			break;
		if (plx_unlikely(!turn_goes_on(channel->turn)) && batch.offset < message->len)
			return;
	}
	batch.channel = NULL;
	if (plx_unlikely(wrong != NULL))
		reject(channel, wrong);
	if (plx_unlikely(client->waiting_count != 0))
		client_send_waiting(client);
	if (plx_likely(channel_is_up(channel))) {
		rpc_tx_flush(&channel->tx);
		if (plx_unlikely(channel->draining))
			channel_check_drain(channel);
	}
}

void channel_drop_rests(struct channel *channel)
{
	struct rest *first;

	while ((first = STAILQ_FIRST(&channel->rests))) {
		STAILQ_REMOVE_HEAD(&channel->rests, link);
		plx_buf_unref(first->message);
		free(first);
	}
	turn_end(&channel->later);
}

/* The link ---------------------------------------------------------------------------------- */

static const char *on_hello(struct plx_connector *session, struct plx_link *link)
{
	struct rpc_greeting greeting;
	const char *wrong = rpc_peer_greeting(link, RPC_SERVER, &greeting);

	if (wrong)
		((struct channel *)session)->client->counts.protocol++;
	return wrong;
}

static void on_opened(struct plx_connector *session)
{
	struct channel *channel = (struct channel *)session;
	struct rpc_greeting greeting = {0};

	rpc_peer_greeting(session->link, RPC_SERVER, &greeting); /* checked in on_hello */
	rpc_tx_init(&channel->tx, session->link);
	channel->turn = turn_of(session->link);
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
	if (plx_unlikely(!STAILQ_EMPTY(&channel->rests)))
		keep_rest(channel, message, 0, false);
	else
		receive_batch(channel, message, 0, false);
}

static void received_rest(struct rest *rest)
{
	plx_buf_unref(rest->message);
}

static void receive_first_rest(struct channel *channel)
{
	struct rest *first = STAILQ_FIRST(&channel->rests);
	struct rest rest PLX_CLEANUP(received_rest) = *first;

	STAILQ_REMOVE_HEAD(&channel->rests, link);
	free(first);
	if (channel_is_up(channel))
		receive_batch(channel, rest.message, rest.offset, true);
}

static int receive_rests(struct turn_rest *later)
{
	struct channel *channel = plx_container_of(later, struct channel, later);
	struct plx_rpc_client *client PLX_CLEANUP(client_unhold) = client_hold(channel->client);
	int work = 0;

	for (; !STAILQ_EMPTY(&channel->rests) && !turn_is_over(channel->turn); work++)
		receive_first_rest(channel);
	if (STAILQ_EMPTY(&channel->rests))
		turn_end(later);
	return work;
}

static void on_writable(struct plx_link *link, void *user)
{
	struct channel *channel = user;

	if (!channel || !channel_is_up(channel))
		return;
	rpc_tx_writable(&channel->tx);
	client_send_waiting(channel->client);
}

static void on_ended(struct plx_connector *session, const struct plx_link *link)
{
	struct channel *channel = (struct channel *)session;

	rpc_tx_fini(&channel->tx);
	channel_drop_rests(channel);
	channel->draining = false;
	channel->failed = 0; /* the next link may be to a repaired service */
	client_channel_down(channel);
}

static bool on_refused(struct plx_connector *session, enum plx_link_reason reason, const char *why)
{
	struct channel *channel = (struct channel *)session;

	snprintf(channel->trouble, sizeof(channel->trouble), "%s", why);
	return true; /* reported by plx_rpc_client_trouble */
}

static void on_closed(struct plx_connector *session, enum plx_link_reason reason, const char *why)
{
	struct channel *channel = (struct channel *)session;

	if (!channel->trouble[0])
		snprintf(channel->trouble, sizeof(channel->trouble), "%s", why);
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

int client_add_channel(struct plx_rpc_client *client, const struct plx_connector_attr *session,
		       const char *address)
{
	struct channel *channel = &client->channels[client->channel_count++];
	struct plx_connector_attr attr = *session;

	channel->client = client;
	TAILQ_INIT(&channel->retries);
	STAILQ_INIT(&channel->rests);
	channel->later.go_on = receive_rests;
	rpc_describe_link(&attr.link, &events, client->attr.reply_max,
			  (struct rpc_greeting){
				  .role = RPC_CLIENT,
				  .payload_max = client->attr.reply_max,
				  .identity = client->attr.identity,
			  });
	plx_connector_init(&channel->session, &owner, &attr);
	return plx_connector_open(&channel->session, address);
}
