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

	if (plx_likely(call != NULL))
		fetch_lines(call, sizeof(*call));
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
	STAILQ_INSERT_TAIL(&client->completed, call, completed);
	plx_task_schedule(&client->deliver);
}

/* Return: the call; NULL: none is left. */
static const struct call *deliver_first(struct plx_rpc_client *client)
{
	struct call *call = STAILQ_FIRST(&client->completed);

	if (!call)
		return NULL;
	STAILQ_REMOVE_HEAD(&client->completed, completed);
	call_finish(
		client, call,
		&(struct plx_rpc_result){.status = call->status, .may_have_run = call->was_sent});
	return call;
}

/* Return: the call; NULL: none. */
static const struct call *last_completed(const struct plx_rpc_client *client)
{
	if (STAILQ_EMPTY(&client->completed))
		return NULL;
	return plx_container_of(client->completed.stqh_last, struct call, completed.stqe_next);
}

void client_deliver(struct plx_task *task, void *arg)
{
	struct plx_rpc_client *client PLX_CLEANUP(client_unhold) = client_hold(arg);
	const struct call *last, *call;

	plx_task_schedule(task);       /* for the rest, if a C++ callback throws */
	last = last_completed(client); /* later ones wait for the next turn */
	call = NULL;
	while (call != last && (call = deliver_first(client)))
		;
	if (STAILQ_EMPTY(&client->completed))
		plx_task_cancel(task);
	if (!client->ending)
		client_send_waiting(client);
}

/* Return whether a service that may have received it is up. */
static bool has_service(const struct plx_rpc_client *client, const struct call *call)
{
	bool is_up = false;

	for (uint32_t i = 0; i < client->channel_count; i++)
		is_up |= channel_is_up(&client->channels[i]);
	/* Only the service on the lost link has the key. */
	return is_up && !(call_link_lost(call) && call->saved->what.has_key);
}

static void on_deadline(struct plx_timer *timer, void *arg)
{
	struct plx_rpc_client *client = arg;
	struct call *call = plx_container_of(timer, struct call, timer);
	struct channel *channel = call->channel;
	bool is_sent = call->state == CALL_SENT;

	if (plx_unlikely(call->saved != NULL) &&
	    (hedge_on_timer(client, call) || saved_on_timer(client, call)))
		return;
	if (is_sent)
		call_send_cancel(channel, call);
	call_finish_later(client, call,
			  is_sent || has_service(client, call) ? PLX_RPC_DEADLINE
							       : PLX_RPC_PEER_DOWN);
	if (is_sent)
		channel_check_drain(channel);
	client_send_waiting(client);
}

int plx_rpc_cancel(struct plx_rpc_client *client, plx_rpc_call_id id)
{
	struct call *call = call_find(client, id);
	bool is_sent = call && call->state == CALL_SENT;

	ASSERT_OWNER(client->lcore);
	if (plx_is_forked())
		return plx_fail_forked("plx_rpc_cancel");
	if (!is_sent && (!call || call->state != CALL_WAITING))
		return plx_fail(ENOENT, "there is no open call of that number");
	if (is_sent)
		call_send_cancel(call->channel, call);
	call_finish_later(client, call, PLX_RPC_CANCELLED);
	if (is_sent)
		channel_check_drain(call->channel);
	return 0;
}

/* Sending ----------------------------------------------------------------------------------- */

/* Time left, rounded up, so that 1 ns does not become 0, which means expired. */
static inline uint32_t remaining_us(uint64_t deadline_ns)
{
	uint64_t left_ns = plx_time_since(plx_loop_now_ns(), deadline_ns);

	if (left_ns >= RPC_NO_DEADLINE_US * PLX_NS_PER_US)
		return RPC_NO_DEADLINE_US;
	return (uint32_t)((left_ns + PLX_NS_PER_US - 1) / PLX_NS_PER_US);
}

int call_send(struct channel *channel, struct call *call, const struct request *request,
	      const void *payload)
{
	const struct rpc_header header = {
		.kind = RPC_REQUEST,
		.flags = request->has_key ? RPC_FLAG_KEY : 0,
		.version = request->version,
		.length = request->length,
		.call = call_id(call),
		.method = request->method,
		.remaining_us = remaining_us(request->deadline_ns),
	};
	int rc;

	if (plx_unlikely(request_bytes(request) > channel->request_max)) {
		call_finish_later(channel->client, call, PLX_RPC_TOO_BIG);
		return 0;
	}
	rc = rpc_tx_put(&channel->tx, &header, payload);
	if (plx_unlikely(rc))
		return rc;
	call->state = CALL_SENT;
	call->channel = channel;
	channel->open++;
	return 0;
}

/* Start with a copy of the request. Return: 0, with the delay of the timer; -EINVAL; -EAGAIN;
 * -ENOMEM. */
static PLX_NOINLINE int start_saved(struct plx_rpc_client *client, struct call *call,
				    const struct plx_rpc_call *what, const struct request *request,
				    const void *data, uint64_t *delay_ns)
{
	bool others_wait = !TAILQ_EMPTY(&client->waiting) || client->queue.count;
	struct channel *channel = others_wait ? NULL
					      : channel_choose(client, NULL, request->length);
	int rc;

	if (what->key && what->hedge)
		return plx_fail(EINVAL, "a call with a key cannot be hedged: the second service "
					"does not know what the first one has done");
	rc = saved_create(client, call, what, request, data);
	if (rc)
		return rc;
	if (channel)
		rc = saved_send(channel, call);
	else
		saved_enqueue(client, call, &client->waiting);
	if (rc)
		saved_free(client, call);
	else if (call->saved && call->saved->hedge)
		*delay_ns = hedge_start(client, call, *delay_ns);
	return rc;
}

static int start(struct plx_rpc_client *client, struct call *call, const struct plx_rpc_call *what,
		 const void *data, size_t length)
{
	uint64_t delay_ns = what->deadline_ns ?: client->attr.deadline_ns;
	struct channel *channel = &client->channels[0];
	bool is_plain = client->channel_count == 1 && !what->key && !what->retry && !what->hedge &&
			TAILQ_EMPTY(&client->waiting);
	bool waits = client->queue.count || !channel_has_room(channel);
	const struct request request = {
		.method = what->method,
		.length = (uint32_t)length,
		.version = what->version,
		.deadline_ns = plx_time_add(plx_loop_now_ns(), delay_ns),
	};
	int rc;

	call->done = what->done;
	call->arg = what->arg;
	call->saved = NULL;
	call->is_queued = false;
	if (plx_unlikely(!is_plain || (waits && !send_queue_accepts(client, length))))
		rc = start_saved(client, call, what, &request, data, &delay_ns);
	else
		rc = waits ? send_queue_add(client, call, &request, data)
			   : call_send(channel, call, &request, data);
	if (plx_likely(rc == 0 && call->state != CALL_COMPLETED && delay_ns != PLX_NEVER))
		plx_timer_start(&call->timer, delay_ns);
	return rc;
}

int plx_rpc_call_start(struct plx_rpc_client *client, const struct plx_rpc_call *call,
		       const void *data, size_t length, plx_rpc_call_id *id_out)
{
	struct call *slot;
	int rc;

	ASSERT_OWNER(client->lcore);
	if (plx_unlikely(!data && length))
		return plx_fail(EINVAL, "a request of %zu bytes at NULL", length);
	if (plx_unlikely(length > PLX_RPC_PAYLOAD_MAX))
		return plx_fail(EMSGSIZE,
				"a request of %zu bytes: copies of at most %" PRIu64
				" bytes are sent; send it in several, or by plx_link_send_buf on a "
				"link",
				length, PLX_RPC_PAYLOAD_MAX);
	if (plx_unlikely(plx_is_forked()))
		return plx_fail_forked("plx_rpc_call_start");
	if (plx_unlikely(client->ending))
		return plx_fail(ENOTCONN, "the client is being destroyed");
	if (plx_unlikely(client->open >= client->attr.calls_max))
		return -EAGAIN;

	if (plx_unlikely(!client->free) && !grow_calls(client))
		return plx_fail(ENOMEM, "no memory for a call");
	slot = client->free;
	client->free = slot->next;
	client->open++;
	rc = start(client, slot, call, data, length);
	if (plx_unlikely(rc)) {
		give_back(client, slot);
		return rc;
	}
	client->counts.calls++;
	if (id_out)
		*id_out = call_id(slot);
	return 0;
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
		call_finish_later(client, call, PLX_RPC_PEER_DOWN);
	}
	client_send_waiting(client);
}

void client_cancel_all(struct plx_rpc_client *client)
{
	for (uint32_t i = 0; i < client->chunk_count * CHUNK_CALLS; i++) {
		struct call *call = slot_of(client, i);

		if (call->state == CALL_WAITING || call->state == CALL_SENT)
			call_finish_later(client, call, PLX_RPC_CANCELLED);
	}
	while (deliver_first(client))
		;
}
