/* SPDX-License-Identifier: BSD-3-Clause */
/* Hot path with many open calls: requests that wait for room on the client's only link and are sent
 * once. They are written and read in sequence: a long queue is not cached, and the processor
 * prefetches sequential memory. A call that completes before its request is sent leaves a stale
 * record, whose call id finds no call. */
#include "rpc_client.h"

#define BLOCK_BYTES (64 << 10)
#define STALE_MAX   (256 << 10) /* skipped at once: about 100 us */
#define AHEAD       2           /* requests whose calls are prefetched */

/* A queued request. */
struct queued {
	uint64_t call; /* call id */
	struct request what;
	uint8_t bytes[];
};

struct send_queue_block {
	struct send_queue_block *next;
	uint32_t begin, end; /* of the remaining records */
	uint8_t records[] PLX_ALIGNED_LINE;
};

#define RECORDS_BYTES (BLOCK_BYTES - (uint32_t)sizeof(struct send_queue_block))

_Static_assert(sizeof(struct queued) + RPC_BATCH_BYTES <= RECORDS_BYTES, "each fits in a block");

static inline uint32_t record_bytes(uint32_t length)
{
	return (uint32_t)sizeof(struct queued) + ((length + 7) & ~7u);
}

static inline struct queued *record_at(struct send_queue_block *block, uint32_t offset)
{
	return (struct queued *)(block->records + offset);
}

bool send_queue_accepts(const struct plx_rpc_client *client, size_t length)
{
	const struct send_queue *queue = &client->queue;

	return length <= RPC_BATCH_BYTES &&
	       queue->stale_bytes <= queue->bytes - queue->stale_bytes + STALE_MAX;
}

/* Use the block after the last: an unused or a new one. */
static PLX_NOINLINE bool add_block(struct plx_rpc_client *client)
{
	struct send_queue *queue = &client->queue;
	struct send_queue_block **next = queue->last ? &queue->last->next : &queue->first;

	if (!*next)
		*next = plx_mem_alloc(BLOCK_BYTES, 0, plx_lcore_node(client->lcore), NULL);
	if (!*next)
		return false;
	queue->last = *next;
	return true;
}

void send_queue_free(struct plx_rpc_client *client)
{
	struct send_queue_block *block = client->queue.first;

	while (block) {
		struct send_queue_block *next = block->next;

		plx_mem_free(block);
		block = next;
	}
}

/* Remove the first record. */
static inline void pop(struct send_queue *queue, uint32_t bytes)
{
	struct send_queue_block *block = queue->first;

	block->begin += bytes;
	queue->bytes -= bytes;
	if (plx_likely(block->begin < block->end))
		return;
	block->begin = block->end = 0;
	if (block == queue->last)
		return;
	queue->first = block->next;
	block->next = queue->last->next;
	queue->last->next = block;
}

int send_queue_add(struct plx_rpc_client *client, struct call *call, const struct request *request,
		   const void *data)
{
	struct send_queue *queue = &client->queue;
	uint32_t length = request->length, bytes = record_bytes(length);
	struct queued *queued;
	int rc = saved_check_room(client, length);

	if (rc)
		return rc;
	if (plx_unlikely(!queue->last || queue->last->end + bytes > RECORDS_BYTES) &&
	    !add_block(client))
		return plx_fail(ENOMEM, "no memory for a request of %u bytes", length);
	queued = record_at(queue->last, queue->last->end);
	queued->call = call_id(call);
	queued->what = *request;
	if (length)
		memcpy(queued->bytes, data, length);
	queue->last->end += bytes;
	queue->bytes += bytes;
	queue->count++;
	client->waiting_count++;
	client->request_bytes += length;
	call->state = CALL_WAITING;
	call->is_queued = true;
	call->queued_length = length;
	return 0;
}

static inline void leave(struct plx_rpc_client *client, struct call *call)
{
	client->queue.count--;
	client->waiting_count--;
	client->request_bytes -= call->queued_length;
	call->is_queued = false;
}

/* The call of a record; NULL: it has completed. */
static inline struct call *call_of(const struct plx_rpc_client *client, const struct queued *queued)
{
	struct call *call = call_find(client, queued->call);

	return call && call->is_queued ? call : NULL;
}

void send_queue_remove(struct plx_rpc_client *client, struct call *call)
{
	struct send_queue *queue = &client->queue;

	leave(client, call);
	queue->stale_bytes += record_bytes(call->queued_length);
	while (queue->bytes) { /* until the first record is not stale */
		const struct queued *queued = record_at(queue->first, queue->first->begin);

		if (call_of(client, queued))
			return;
		queue->stale_bytes -= record_bytes(queued->what.length);
		pop(queue, record_bytes(queued->what.length));
	}
}

/* With many calls they are not cached: prefetch the call of a later request. */
static inline void fetch_ahead(struct plx_rpc_client *client)
{
	struct send_queue *queue = &client->queue;
	struct send_queue_block *block = queue->first;
	uint32_t offset = block->begin;

	for (int i = 0; i < AHEAD && offset < block->end; i++)
		offset += record_bytes(record_at(block, offset)->what.length);
	if (offset < block->end)
		call_prefetch(client, record_at(block, offset)->call);
}

static inline void send_first(struct channel *channel, struct call *call,
			      const struct queued *queued)
{
	leave(channel->client, call);
	if (plx_unlikely(call_send(channel, call, &queued->what, queued->bytes) != 0))
		call_finish_later(channel->client, call, PLX_RPC_OVERLOADED);
}

void send_queue_flush(struct plx_rpc_client *client)
{
	struct send_queue *queue = &client->queue;
	struct channel *channel = &client->channels[0];

	while (queue->bytes && channel_has_room(channel)) {
		const struct queued *queued = record_at(queue->first, queue->first->begin);
		uint32_t bytes = record_bytes(queued->what.length);
		struct call *call = call_of(client, queued);

		fetch_ahead(client);
		if (plx_likely(call != NULL))
			send_first(channel, call, queued);
		else
			queue->stale_bytes -= bytes;
		pop(queue, bytes);
	}
}
