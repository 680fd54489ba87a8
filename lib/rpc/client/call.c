/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls: hot path. Each call has a slot with its deadline timer. A call id is the slot's index and
 * use count, so a reply finds its slot at once, and a late or duplicate reply finds none. */
#include "rpc_client.h"

#include <inttypes.h>
#include <stdlib.h>

#define CHUNK_CALLS 1024

_Static_assert(sizeof(struct call) == 2 * PLX_CACHE_LINE, "a call is two lines");

/* Slots ------------------------------------------------------------------------------------- */

plx_rpc_call_id call_id(const struct call *call)
{
	return (uint64_t)call->generation << 32 | call->index;
}

/* Return NULL if there is no such slot. */
static inline struct call *slot_of(const struct plx_rpc_client *client, uint32_t index)
{
	if (plx_unlikely(index / CHUNK_CALLS >= client->chunk_count))
		return NULL;
	return &client->chunks[index / CHUNK_CALLS][index % CHUNK_CALLS];
}

struct call *call_find(const struct plx_rpc_client *client, plx_rpc_call_id id)
{
	struct call *call = slot_of(client, (uint32_t)id);

	return plx_likely(call && call->generation == (uint32_t)(id >> 32)) ? call : NULL;
}

void call_prefetch(const struct plx_rpc_client *client, plx_rpc_call_id id)
{
	const struct call *call = slot_of(client, (uint32_t)id);

	if (plx_unlikely(!call))
		return;
	plx_prefetch_write(call);
	plx_prefetch_write((const char *)call + PLX_CACHE_LINE);
}

static void on_deadline(struct plx_timer *timer, void *arg);

static PLX_NOINLINE bool grow_calls(struct plx_rpc_client *client)
{
	uint32_t count = client->chunk_count;
	struct call **chunks = realloc(client->chunks, (count + 1) * sizeof(struct call *));
	struct call *chunk;

	if (!chunks)
		return false;
	client->chunks = chunks;
	chunk = plx_mem_alloc(CHUNK_CALLS * sizeof(*chunk), 0, plx_lcore_node(client->lcore), NULL);
	if (!chunk)
		return false;
	for (uint32_t i = CHUNK_CALLS; i-- > 0;) {
		chunk[i].index = count * CHUNK_CALLS + i;
		chunk[i].generation = 1;
		chunk[i].next = client->free;
		plx_timer_init(&chunk[i].timer, on_deadline, client);
		plx_timer_set_lax(&chunk[i].timer, true);
		client->free = &chunk[i];
	}
	client->chunks[client->chunk_count++] = chunk;
	return true;
}

void client_free_calls(struct plx_rpc_client *client)
{
	for (uint32_t i = 0; i < client->chunk_count; i++)
		plx_mem_free(client->chunks[i]);
	free(client->chunks);
}

static inline void give_back(struct plx_rpc_client *client, struct call *call)
{
	call->state = CALL_FREE;
	call->generation++;
	call->next = client->free;
	client->free = call;
	client->open--;
}

/* Completion -------------------------------------------------------------------------------- */

/* It waits for nothing any longer. */
static inline void leave(struct plx_rpc_client *client, struct call *call)
{
	plx_timer_stop(&call->timer);
	if (call->state == CALL_SENT)
		call->channel->open--;
	if (plx_unlikely(call->saved != NULL))
		saved_free(client, call);
	else if (plx_unlikely(call->is_queued))
		send_queue_remove(client, call);
}

void call_finish(struct plx_rpc_client *client, struct call *call,
		 const struct plx_rpc_result *result)
{
	plx_rpc_done_fn done = call->done;
	void *arg = call->arg;

	leave(client, call);
	give_back(client, call);
	client->counts.done[result->status]++;
	if (done)
		done(result, arg);
}

static void finish_with(struct plx_rpc_client *client, struct call *call,
			enum plx_rpc_status status, bool sent)
{
	call_finish(client, call, &(struct plx_rpc_result){.status = status, .may_have_run = sent});
}

void call_send_cancel(struct channel *channel, const struct call *call)
{
	struct rpc_header header = {.kind = RPC_CANCEL, .call = call_id(call)};

	rpc_tx_reserve(&channel->tx, &header); /* best effort: dropped without memory or a link */
}

/* Return whether a service may have received it and has not reported that it did nothing. */
static bool may_have_run(const struct call *call)
{
	return call->state == CALL_SENT || call_link_lost(call);
}

void call_finish_later(struct plx_rpc_client *client, struct call *call, enum plx_rpc_status status)
{
	call->was_sent = may_have_run(call);
	leave(client, call);
	call->state = CALL_COMPLETED;
	call->status = (uint8_t)status;
	call->next = NULL;
	*client->completed_end = call;
	client->completed_end = &call->next;
	plx_task_schedule(&client->deliver);
}

void client_deliver(struct plx_task *task, void *arg)
{
	struct plx_rpc_client *client = arg;
	struct call *call = client->completed;

	client->completed = NULL; /* calls that the callbacks complete wait for the next turn */
	client->completed_end = &client->completed;
	while (call) {
		struct call *next = call->next;

		finish_with(client, call, call->status, call->was_sent);
		call = next;
	}
	if (!client->ending)
		client_send_waiting(client);
}

/* Return whether a service that may have received it is up. */
static bool has_service(const struct plx_rpc_client *client, const struct call *call)
{
	if (call_link_lost(call) && call->saved->has_key)
		return false; /* only the service on the lost link has the key */
	for (uint32_t i = 0; i < client->channel_count; i++) {
		if (channel_is_up(&client->channels[i]))
			return true;
	}
	return false;
}

static void on_deadline(struct plx_timer *timer, void *arg)
{
	struct plx_rpc_client *client = arg;
	struct call *call = plx_container_of(timer, struct call, timer);
	struct channel *channel = call->channel;
	bool is_sent = call->state == CALL_SENT;

	if (plx_unlikely(call->saved != NULL) && hedge_on_timer(client, call))
		return;
	if (is_sent)
		call_send_cancel(channel, call);
	finish_with(client, call,
		    is_sent || has_service(client, call) ? PLX_RPC_DEADLINE : PLX_RPC_PEER_DOWN,
		    may_have_run(call));
	if (is_sent)
		channel_check_drain(channel);
	client_send_waiting(client);
}

int plx_rpc_cancel(struct plx_rpc_client *client, plx_rpc_call_id id)
{
	struct call *call = call_find(client, id);
	struct channel *channel;

	ASSERT_OWNER(client->lcore);
	if (plx_is_forked())
		return plx_fail_forked("plx_rpc_cancel");
	if (!call || (call->state != CALL_WAITING && call->state != CALL_SENT))
		return plx_fail(ENOENT, "there is no open call of that number");
	channel = call->state == CALL_SENT ? call->channel : NULL;
	if (channel)
		call_send_cancel(channel, call);
	call_finish_later(client, call, PLX_RPC_CANCELLED);
	if (channel)
		channel_check_drain(channel);
	return 0;
}

/* Sending ----------------------------------------------------------------------------------- */

int call_send(struct channel *channel, struct call *call, const struct rpc_header *header,
	      const struct iovec *iov, int count)
{
	uint64_t longest = channel->request_max + (header->flags ? RPC_KEY_BYTES : 0);
	int rc;

	if (plx_unlikely(header->length > longest)) {
		call_finish_later(channel->client, call, PLX_RPC_TOO_BIG);
		return 0;
	}
	rc = rpc_tx_put(&channel->tx, header, iov, count);
	if (plx_unlikely(rc))
		return rc;
	call->state = CALL_SENT;
	call->channel = channel;
	channel->open++;
	return 0;
}

/* Start with a copy of the request. Return: 0; -EINVAL; -EAGAIN; -ENOMEM. */
static PLX_NOINLINE int start_saved(struct plx_rpc_client *client, struct call *call,
				    const struct plx_rpc_call *what, uint64_t delay_ns,
				    const struct iovec *iov, int count, size_t length)
{
	uint64_t deadline_ns = plx_time_add(plx_loop_now_ns(), delay_ns);
	bool others_wait = !TAILQ_EMPTY(&client->waiting) || client->queue.count;
	struct channel *channel = others_wait ? NULL : channel_choose(client, NULL, length);
	int rc;

	if (what->key && what->hedge)
		return plx_fail(EINVAL, "a call with a key cannot be hedged: the second service "
					"does not know what the first one has done");
	rc = saved_create(client, call, what, deadline_ns, iov, count, length);
	if (rc)
		return rc;
	if (channel)
		rc = saved_send(channel, call);
	else
		saved_enqueue(client, call, &client->waiting);
	if (rc) {
		saved_free(client, call);
		return rc;
	}
	if (call->state == CALL_COMPLETED)
		return 0;
	if (call->saved && call->saved->hedge)
		delay_ns = hedge_start(client, call, delay_ns);
	if (delay_ns != PLX_NEVER)
		plx_timer_start(&call->timer, delay_ns);
	return 0;
}

static int start(struct plx_rpc_client *client, struct call *call, const struct plx_rpc_call *what,
		 const struct iovec *iov, int count, size_t length)
{
	uint64_t delay_ns = what->deadline_ns ?: client->attr.deadline_ns;
	struct channel *channel = &client->channels[0];
	bool is_plain = client->channel_count == 1 && !what->key && !what->retry && !what->hedge &&
			TAILQ_EMPTY(&client->waiting);
	bool waits = client->queue.count || !channel_has_room(channel);
	uint64_t deadline_ns;
	int rc;

	call->done = what->done;
	call->arg = what->arg;
	call->saved = NULL;
	call->is_queued = false;
	if (plx_unlikely(!is_plain || (waits && !send_queue_accepts(client, length))))
		return start_saved(client, call, what, delay_ns, iov, count, length);

	deadline_ns = plx_time_add(plx_loop_now_ns(), delay_ns);
	if (waits) {
		rc = send_queue_add(client, call, what, deadline_ns, iov, count, (uint32_t)length);
	} else {
		struct rpc_header header = {
			.kind = RPC_REQUEST,
			.version = what->version,
			.length = (uint32_t)length,
			.call = call_id(call),
			.method = what->method,
			.remaining_us = rpc_remaining_us(deadline_ns),
		};

		rc = call_send(channel, call, &header, iov, count);
	}
	if (plx_likely(rc == 0 && call->state != CALL_COMPLETED && delay_ns != PLX_NEVER))
		plx_timer_start(&call->timer, delay_ns);
	return rc;
}

int plx_rpc_callv(struct plx_rpc_client *client, const struct plx_rpc_call *call,
		  const struct iovec *iov, int count, plx_rpc_call_id *id_out)
{
	struct call *slot;
	size_t length = 0;
	int rc;

	ASSERT_OWNER(client->lcore);
	for (int i = 0; i < count; i++) {
		length += iov[i].iov_len;
		if (plx_unlikely(!iov[i].iov_base && iov[i].iov_len))
			return plx_fail(EINVAL, "a request of %zu bytes at NULL", iov[i].iov_len);
	}
	if (plx_unlikely(length > PLX_RPC_PAYLOAD_MAX))
		return plx_fail(EINVAL, "a request of %zu bytes: %" PRIu64 " at most", length,
				PLX_RPC_PAYLOAD_MAX);
	if (plx_unlikely(client->ending))
		return plx_is_forked() ? plx_fail_forked("plx_rpc_call")
				       : plx_fail(ENOTCONN, "the client is being destroyed");
	if (plx_unlikely(client->open >= client->attr.calls_max))
		return -EAGAIN;

	if (plx_unlikely(!client->free) && !grow_calls(client))
		return plx_fail(ENOMEM, "no memory for a call");
	slot = client->free;
	client->free = slot->next;
	client->open++;
	rc = start(client, slot, call, iov, count, length);
	if (plx_unlikely(rc)) {
		give_back(client, slot);
		return rc;
	}
	client->counts.calls++;
	if (id_out)
		*id_out = call_id(slot);
	return 0;
}

int plx_rpc_call(struct plx_rpc_client *client, const struct plx_rpc_call *call, const void *data,
		 size_t length, plx_rpc_call_id *id_out)
{
	ASSERT_OWNER(client->lcore);
	return plx_rpc_callv(client, call, &(struct iovec){(void *)data, length}, 1, id_out);
}

/* Many at once ------------------------------------------------------------------------------ */

/* The link has ended: the fate of requests sent on it is unknown. */
void client_channel_down(struct channel *channel)
{
	struct plx_rpc_client *client = channel->client;

	for (uint32_t i = 0; channel->open && i < client->chunk_count * CHUNK_CALLS; i++) {
		struct call *call = slot_of(client, i);

		if (call->state != CALL_SENT || (call->channel != channel && !call->saved))
			continue;
		if (call->saved && saved_on_link_end(channel, call))
			continue;
		finish_with(client, call, PLX_RPC_PEER_DOWN, true);
	}
	client_send_waiting(client);
}

void client_cancel_all(struct plx_rpc_client *client)
{
	client_deliver(&client->deliver, client);
	for (uint32_t i = 0; client->open && i < client->chunk_count * CHUNK_CALLS; i++) {
		struct call *call = slot_of(client, i);

		if (call->state == CALL_COMPLETED) /* by a callback of this loop */
			finish_with(client, call, call->status, call->was_sent);
		else if (call->state != CALL_FREE)
			finish_with(client, call, PLX_RPC_CANCELLED, may_have_run(call));
	}
	client->completed = NULL;
	client->completed_end = &client->completed;
}
