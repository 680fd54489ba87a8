/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests of which there is a copy for as long as they are open: they may have to be sent again,
 * as the service drains, as the link to it ends and the call is to be tried again, or as another
 * service shall have it, too. And those that wait, and cannot be parked. */
#include "rpc_client.h"

#include <inttypes.h>
#include <stdlib.h>

/* Of most requests: more than half of them for the bytes. Others have memory of their own. */
#define BLOCK_BYTES 256
#define SLAB_BLOCKS 256

struct kept_slab {
	struct kept_slab *next;
	uint8_t blocks[] PLX_ALIGNED_LINE;
};

static __attribute__((noinline)) bool more_blocks(struct plx_rpc_client *client)
{
	struct kept_slab *slab = plx_mem_alloc(sizeof(*slab) + SLAB_BLOCKS * BLOCK_BYTES, 0,
					       plx_lcore_node(client->lcore), NULL);

	if (!slab)
		return false;
	slab->next = client->kept_slabs;
	client->kept_slabs = slab;
	for (int i = 0; i < SLAB_BLOCKS; i++) {
		struct kept_request *block = (void *)&slab->blocks[i * BLOCK_BYTES];

		block->next = client->kept_free;
		client->kept_free = block;
	}
	return true;
}

void kept_free_all(struct plx_rpc_client *client)
{
	while (client->kept_slabs) {
		struct kept_slab *slab = client->kept_slabs;

		client->kept_slabs = slab->next;
		plx_mem_free(slab);
	}
	client->kept_free = NULL;
}

static struct kept_request *take(struct plx_rpc_client *client, size_t bytes)
{
	struct kept_request *kept;

	if (plx_unlikely(bytes > BLOCK_BYTES))
		return malloc(bytes);
	if (plx_unlikely(!client->kept_free) && !more_blocks(client))
		return NULL;
	kept = client->kept_free;
	client->kept_free = kept->next;
	return kept;
}

static void give_back(struct plx_rpc_client *client, struct kept_request *kept)
{
	if (plx_unlikely(sizeof(*kept) + kept->length > BLOCK_BYTES)) {
		free(kept);
		return;
	}
	kept->next = client->kept_free;
	client->kept_free = kept;
}

static void leave(struct plx_rpc_client *client, struct kept_request *kept)
{
	struct kept_list *list = kept->list;

	if (!list)
		return;
	*kept->prev_next = kept->next;
	if (kept->next)
		kept->next->prev_next = kept->prev_next;
	else
		list->end = kept->prev_next;
	kept->list = NULL;
	list->count--;
	client->waiting_count--;
}

void kept_wait(struct plx_rpc_client *client, struct call *call, struct kept_list *list)
{
	struct kept_request *kept = call->kept;

	kept->list = list;
	kept->next = NULL;
	kept->prev_next = list->end;
	*list->end = kept;
	list->end = &kept->next;
	list->count++;
	client->waiting_count++;
	call->state = CALL_WAITING;
}

int kept_too_long(const struct plx_rpc_client *client, size_t length)
{
	return plx_fail(EMSGSIZE,
			"a request of %zu bytes that has to wait, or be kept: waiting_max is "
			"%" PRIu64,
			length, client->attr.waiting_max);
}

int kept_make(struct plx_rpc_client *client, struct call *call, const struct plx_rpc_call *what,
	      uint64_t deadline_ns, const struct iovec *iov, int count, size_t length)
{
	size_t key_bytes = what->key ? RPC_KEY_BYTES : 0;
	uint64_t key = htole64(what->key);
	struct kept_request *kept;

	if (length + key_bytes > client->attr.waiting_max)
		return kept_too_long(client, length);
	if (length + key_bytes > client->attr.waiting_max - client->kept_bytes)
		return -EAGAIN;
	kept = take(client, sizeof(*kept) + key_bytes + length);
	if (!kept)
		return plx_fail(ENOMEM, "no memory for a request of %zu bytes", length);
	*kept = (struct kept_request){
		.call = call,
		.deadline_ns = deadline_ns,
		.method = what->method,
		.version = what->version,
		.length = (uint32_t)(length + key_bytes),
		.has_key = what->key != 0,
		.retry = what->retry,
		.hedge = what->hedge && client->channel_count > 1,
	};
	memcpy(kept->bytes, &key, key_bytes);
	rpc_copy_pieces(kept->bytes + key_bytes, iov, count);
	client->kept_bytes += kept->length;
	call->kept = kept;
	return 0;
}

void kept_drop(struct plx_rpc_client *client, struct call *call)
{
	struct kept_request *kept = call->kept;

	if (!kept)
		return;
	hedge_drop(call);
	leave(client, kept);
	client->kept_bytes -= kept->length;
	call->kept = NULL;
	give_back(client, kept);
}

static int send_to(struct plx_rpc_client *client, struct channel *channel, struct call *call)
{
	const struct kept_request *kept = call->kept;
	struct iovec whole = {call->kept->bytes, kept->length};
	struct rpc_header header = {
		.kind = RPC_REQUEST,
		.flags = kept->has_key ? RPC_FLAG_KEY : 0,
		.version = kept->version,
		.length = kept->length,
		.call = call_id(call),
		.first = kept->method,
		.second = rpc_left_us(kept->deadline_ns),
	};

	return call_send(client, channel, call, &header, &whole, 1);
}

int kept_send(struct plx_rpc_client *client, struct channel *channel, struct call *call)
{
	struct kept_request *kept = call->kept;
	int rc;

	leave(client, kept);
	rc = send_to(client, channel, call);
	if (rc || call->state != CALL_SENT)
		return rc;
	if (!kept->first_sent_ns)
		kept->first_sent_ns = plx_loop_now_ns();
	if (client->channel_count == 1 && !kept->retry)
		kept_drop(client, call);
	return 0;
}

static void send_or_end(struct plx_rpc_client *client, struct channel *channel, struct call *call)
{
	if (kept_send(client, channel, call) != 0)
		call_end_soon(client, call, PLX_RPC_OVERLOADED);
}

bool kept_send_second(struct plx_rpc_client *client, struct channel *channel, struct call *call)
{
	struct channel *first = call->channel;

	if (kept_payload(call->kept) > channel->request_max || send_to(client, channel, call) != 0)
		return false;
	call->channel = first;
	call->kept->second = channel;
	return true;
}

bool call_again(struct plx_rpc_client *client, struct call *call)
{
	if (!call->kept || client->ending)
		return false;
	if (call->kept->has_key && call->kept->lost)
		return false; /* what went by the lost link may come to its service still */
	call->channel->open--;
	kept_wait(client, call, &client->waiting);
	return true;
}

bool call_elsewhere(struct channel *channel, struct call *call)
{
	struct plx_rpc_client *client = channel->client;
	struct kept_request *kept = call->kept;
	struct channel *other;

	if (!kept || kept->was_refused || kept->lost || client->ending)
		return false;
	other = channel_choose(client, channel, kept_payload(kept));
	if (!other || kept_payload(kept) > other->request_max)
		return false;
	kept->was_refused = true;
	channel->open--;
	call->state = CALL_WAITING;
	send_or_end(client, other, call);
	return true;
}

bool kept_survives(struct channel *channel, struct call *call)
{
	struct plx_rpc_client *client = channel->client;
	struct kept_request *kept = call->kept;

	if (call->channel != channel && kept->second != channel)
		return true; /* it has nothing to do with it */
	kept->lost = true;
	if (hedge_goes_on(channel, call))
		return true;
	if (!kept->retry || client->ending)
		return false;
	channel->open--;
	client->counts.retried++;
	kept_wait(client, call, kept->has_key ? &channel->again : &client->waiting);
	return true;
}

void kept_end_again(struct channel *channel)
{
	while (channel->again.first)
		call_end_soon(channel->client, channel->again.first->call, PLX_RPC_PEER_DOWN);
}

/* Half of the time for which the service remembers keys is left for the way. */
static bool is_remembered(const struct channel *channel, const struct kept_request *kept)
{
	return plx_time_since(kept->first_sent_ns, plx_loop_now_ns()) < channel->key_ns / 2;
}

/* To the service that has had them before. */
static void send_again(struct plx_rpc_client *client, struct channel *channel)
{
	/* Also one that drains: it answers what it has run. */
	while (channel->again.first && channel_is_up(channel) &&
	       channel->open < channel->open_max && !rpc_out_is_full(&channel->out)) {
		struct call *call = channel->again.first->call;

		if (is_remembered(channel, call->kept))
			send_or_end(client, channel, call);
		else
			call_end_soon(client, call, PLX_RPC_PEER_DOWN);
	}
}

static inline void fetch_lines(const void *from, int bytes)
{
	for (int i = 0; i < bytes; i += PLX_CACHE_LINE)
		plx_prefetch_write((const char *)from + i);
}

/* Where there are many they are not in the cache: the next one's call, as the next one itself was
 * fetched before, and the one behind it. */
static inline void fetch_ahead(const struct kept_request *kept)
{
	const struct kept_request *next = kept->next;

	if (!next)
		return;
	fetch_lines(next->call, sizeof(*next->call));
	if (next->next)
		fetch_lines(next->next, BLOCK_BYTES);
}

void client_send_waiting(struct plx_rpc_client *client)
{
	struct channel *channel;

	for (uint32_t i = 0; i < client->channel_count; i++) {
		if (plx_unlikely(client->channels[i].again.first != NULL))
			send_again(client, &client->channels[i]);
	}
	if (client->parking.count)
		parking_send(client);
	while (client->waiting.first && !client->parking.count &&
	       (channel = channel_choose(client, NULL, kept_payload(client->waiting.first)))) {
		fetch_ahead(client->waiting.first);
		send_or_end(client, channel, client->waiting.first->call);
	}
}
