/* SPDX-License-Identifier: BSD-3-Clause */
/* Hot path where many calls are open. Requests that wait for room on the one link of their client,
 * and are sent once: written one behind the other, and read so, as a queue of many is not in the
 * cache, and memory in sequence is what the processor fetches by itself. A call that ends before
 * its request was sent leaves that behind as dead: its number finds nothing any more. */
#include "rpc_client.h"

#include <inttypes.h>

#define BLOCK_BYTES (64 << 10)
#define DEAD_MAX    (256 << 10) /* passed over at once: some 10^-4 s */
#define AHEAD       2           /* requests whose calls are fetched before it is their turn */

/* One that waits. */
struct parked {
	uint64_t call; /* its number */
	uint64_t deadline_ns;
	uint32_t method, length;
	uint16_t version;
	uint8_t bytes[] __attribute__((aligned(8)));
};

struct parked_block {
	struct parked_block *next;
	uint32_t begin, end; /* of the records that were not taken */
	uint8_t records[] PLX_ALIGNED_LINE;
};

#define RECORDS_BYTES (BLOCK_BYTES - (uint32_t)sizeof(struct parked_block))

_Static_assert(sizeof(struct parked) + RPC_BATCH_BYTES <= RECORDS_BYTES,
	       "each has room in a block");

static inline uint32_t record_bytes(uint32_t length)
{
	return (uint32_t)sizeof(struct parked) + ((length + 7) & ~7u);
}

static inline struct parked *record_at(struct parked_block *block, uint32_t offset)
{
	return (struct parked *)(block->records + offset);
}

bool parking_takes(const struct plx_rpc_client *client, size_t length)
{
	const struct parking *parking = &client->parking;

	return length <= RPC_BATCH_BYTES &&
	       parking->dead_bytes <= parking->bytes - parking->dead_bytes + DEAD_MAX;
}

/* Blocks --------------------------------------------------------------------------------------- */

static __attribute__((noinline)) bool add_block(struct plx_rpc_client *client)
{
	struct parking *parking = &client->parking;
	struct parked_block *block = parking->spare;

	if (block)
		parking->spare = block->next;
	else
		block = plx_mem_alloc(BLOCK_BYTES, 0, plx_lcore_node(client->lcore), NULL);
	if (!block)
		return false;
	block->next = NULL;
	block->begin = block->end = 0;
	if (parking->last)
		parking->last->next = block;
	else
		parking->first = block;
	parking->last = block;
	return true;
}

static void free_blocks(struct parked_block *block)
{
	while (block) {
		struct parked_block *next = block->next;

		plx_mem_free(block);
		block = next;
	}
}

void parking_free(struct plx_rpc_client *client)
{
	free_blocks(client->parking.first);
	free_blocks(client->parking.spare);
	client->parking = (struct parking){0};
}

/* The first record is done with. */
static inline void pop(struct parking *parking, uint32_t bytes)
{
	struct parked_block *block = parking->first;

	block->begin += bytes;
	parking->bytes -= bytes;
	if (plx_likely(block->begin < block->end))
		return;
	if (block == parking->last) {
		block->begin = block->end = 0;
		return;
	}
	parking->first = block->next;
	block->next = parking->spare;
	parking->spare = block;
}

/* Calls ---------------------------------------------------------------------------------------- */

int parking_add(struct plx_rpc_client *client, struct call *call, const struct plx_rpc_call *what,
		uint64_t deadline_ns, const struct iovec *iov, int count, uint32_t length)
{
	struct parking *parking = &client->parking;
	uint32_t bytes = record_bytes(length);
	struct parked *parked;

	if (length > client->attr.waiting_max)
		return kept_too_long(client, length);
	if (length > client->attr.waiting_max - client->kept_bytes)
		return -EAGAIN;
	if (plx_unlikely(!parking->last || parking->last->end + bytes > RECORDS_BYTES) &&
	    !add_block(client))
		return plx_fail(ENOMEM, "no memory for a request of %" PRIu32 " bytes", length);
	parked = record_at(parking->last, parking->last->end);
	parked->call = call_id(call);
	parked->deadline_ns = deadline_ns;
	parked->method = what->method;
	parked->length = length;
	parked->version = what->version;
	rpc_copy_pieces(parked->bytes, iov, count);
	parking->last->end += bytes;
	parking->bytes += bytes;
	parking->count++;
	client->waiting_count++;
	client->kept_bytes += length;
	call->state = CALL_WAITING;
	call->is_parked = true;
	call->parked_length = length;
	return 0;
}

static inline void leave(struct plx_rpc_client *client, struct call *call)
{
	client->parking.count--;
	client->waiting_count--;
	client->kept_bytes -= call->parked_length;
	call->is_parked = false;
}

/* The call of a record; NULL: it has ended. */
static inline struct call *call_of(const struct plx_rpc_client *client, const struct parked *parked)
{
	struct call *call = call_find(client, parked->call);

	return call && call->is_parked ? call : NULL;
}

void parking_forget(struct plx_rpc_client *client, struct call *call)
{
	struct parking *parking = &client->parking;

	leave(client, call);
	parking->dead_bytes += record_bytes(call->parked_length);
	while (parking->bytes) { /* so that one at the beginning is alive */
		const struct parked *parked = record_at(parking->first, parking->first->begin);

		if (call_of(client, parked))
			return;
		parking->dead_bytes -= record_bytes(parked->length);
		pop(parking, record_bytes(parked->length));
	}
}

/* The calls are not in the cache where there are many: the one whose request is some behind. */
static inline void fetch_ahead(struct plx_rpc_client *client)
{
	struct parking *parking = &client->parking;
	struct parked_block *block = parking->first;
	uint32_t offset = block->begin;

	for (int i = 0; i < AHEAD && offset < block->end; i++)
		offset += record_bytes(record_at(block, offset)->length);
	if (offset < block->end)
		call_prefetch(client, record_at(block, offset)->call);
}

static inline void send_first(struct plx_rpc_client *client, struct channel *channel,
			      struct call *call, const struct parked *parked)
{
	const struct rpc_header header = {
		.kind = RPC_REQUEST,
		.version = parked->version,
		.length = parked->length,
		.call = parked->call,
		.first = parked->method,
		.second = rpc_left_us(parked->deadline_ns),
	};
	const struct iovec whole = {(void *)parked->bytes, parked->length};

	leave(client, call);
	if (plx_unlikely(call_send(client, channel, call, &header, &whole, 1) != 0))
		call_end_soon(client, call, PLX_RPC_OVERLOADED);
}

void parking_send(struct plx_rpc_client *client)
{
	struct parking *parking = &client->parking;
	struct channel *channel = &client->channels[0];

	while (parking->bytes && channel_has_room(channel)) {
		const struct parked *parked = record_at(parking->first, parking->first->begin);
		uint32_t bytes = record_bytes(parked->length);
		struct call *call = call_of(client, parked);

		fetch_ahead(client);
		if (plx_likely(call != NULL))
			send_first(client, channel, call, parked);
		else
			parking->dead_bytes -= bytes;
		pop(parking, bytes);
	}
}
