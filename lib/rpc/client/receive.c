/* SPDX-License-Identifier: BSD-3-Clause */
/* Batches of replies: hot path. A reply must name an open call of this channel. Otherwise it is
 * late, a duplicate or forged, and is counted and dropped. */
#include "rpc_client.h"

#define OVERLOAD_NS_MIN PLX_NS_PER_MS
#define OVERLOAD_NS_MAX (100 * PLX_NS_PER_MS)
#define FEW_CHUNKS      4 /* 512 KiB of slots: less than a core's cache */

static inline bool is_on(const struct call *call, const struct channel *channel)
{
	return plx_likely(call->channel == channel) ||
	       (call->saved && call->saved->second == channel);
}

/* Return whether the call continues elsewhere despite this reply. */
static PLX_NOINLINE bool continues(struct channel *channel, struct call *call,
				   const struct rpc_header *header)
{
	if (header->status <= PLX_RPC_ERROR) {
		hedge_on_reply(channel, call);
		return false;
	}
	call->saved->link_lost |= header->handler_ns != 0;
	if (hedge_continues(channel, call))
		return true;
	if (header->handler_ns)
		return false;
	if (header->status == PLX_RPC_DRAINING)
		return saved_requeue(channel->client, call);
	return (header->status == PLX_RPC_OVERLOADED || header->status == PLX_RPC_BUSY) &&
	       saved_redirect(channel, call);
}

/* The service is overloaded: prefer others until its hint ends, for 1 ms at least. */
static PLX_NOINLINE void note_overload(struct channel *channel, const struct rpc_header *header)
{
	uint64_t hint_ns = header->retry_us * PLX_NS_PER_US;

	if (hint_ns < OVERLOAD_NS_MIN)
		hint_ns = OVERLOAD_NS_MIN;
	channel->overloaded_until_ns = plx_loop_now_ns() +
				       (hint_ns < OVERLOAD_NS_MAX ? hint_ns : OVERLOAD_NS_MAX);
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
	if (plx_unlikely(status == PLX_RPC_DRAINING && !header->handler_ns))
		channel->draining = true; /* the status applies to the whole service */
	if (plx_unlikely(status == PLX_RPC_OVERLOADED && !header->handler_ns))
		note_overload(channel, header);
	if (plx_unlikely(call->saved != NULL) && continues(channel, call, header))
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

void receive_batch(struct channel *channel, struct plx_buf *message)
{
	struct rpc_record record;
	const char *wrong;
	size_t offset = 0;

	while (rpc_record_next(message->data, message->len, &offset, &record, &wrong)) {
		fetch_call(channel->client, message, offset);
		wrong = handle_record(channel, &record, message);
		if (plx_unlikely(wrong != NULL))
			break;
	}
	if (plx_unlikely(wrong != NULL))
		channel_reject(channel, wrong);
	if (plx_unlikely(channel->client->waiting_count != 0))
		client_send_waiting(channel->client);
}
