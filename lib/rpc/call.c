/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls: hot path. Each has a slot with its deadline's timer in it; its number is that of the slot
 * and how often that was used, so that a reply finds it at once, and one that comes late or twice
 * finds nothing. */
#include "client.h"

#include <inttypes.h>
#include <stdlib.h>

#define CHUNK_CALLS 1024

_Static_assert(sizeof(struct call) == 2 * PLX_CACHE_LINE, "a call is two lines");

/* Slots ------------------------------------------------------------------------------------------
 */

static plx_rpc_call_id id_of(const struct call *call)
{
	return (uint64_t)call->generation << 32 | call->index;
}

struct call *call_find(struct plx_rpc_client *client, plx_rpc_call_id id)
{
	uint32_t index = (uint32_t)id;
	struct call *call;

	if (plx_unlikely(index / CHUNK_CALLS >= client->chunk_count))
		return NULL;
	call = &client->chunks[index / CHUNK_CALLS][index % CHUNK_CALLS];
	return plx_likely(call->generation == (uint32_t)(id >> 32)) ? call : NULL;
}

void call_prefetch(struct plx_rpc_client *client, plx_rpc_call_id id)
{
	uint32_t index = (uint32_t)id;
	const struct call *call;

	if (plx_unlikely(index / CHUNK_CALLS >= client->chunk_count))
		return;
	call = &client->chunks[index / CHUNK_CALLS][index % CHUNK_CALLS];
	plx_prefetch_write(call);
	plx_prefetch_write((const char *)call + PLX_CACHE_LINE);
}

static void on_deadline(struct plx_timer *timer, void *arg);

static __attribute__((noinline)) bool more_calls(struct plx_rpc_client *client)
{
	struct call **chunks = realloc(client->chunks,
				       (client->chunk_count + 1) * sizeof(struct call *));
	struct call *chunk;

	if (!chunks)
		return false;
	client->chunks = chunks;
	chunk = aligned_alloc(PLX_CACHE_LINE, CHUNK_CALLS * sizeof(*chunk));
	if (!chunk)
		return false;
	memset(chunk, 0, CHUNK_CALLS * sizeof(*chunk));
	for (uint32_t i = CHUNK_CALLS; i-- > 0;) {
		chunk[i].index = client->chunk_count * CHUNK_CALLS + i;
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
		free(client->chunks[i]);
	free(client->chunks);
	client->chunks = NULL;
	client->chunk_count = 0;
	client->free = NULL;
}

static inline struct call *take(struct plx_rpc_client *client)
{
	struct call *call = client->free;

	client->free = call->next;
	client->open++;
	return call;
}

static inline void give_back(struct plx_rpc_client *client, struct call *call)
{
	call->state = CALL_FREE;
	call->generation++;
	call->next = client->free;
	client->free = call;
	client->open--;
}

/* Requests that are kept
 * --------------------------------------------------------------------------- */

static void leave_waiting(struct plx_rpc_client *client, struct kept_request *kept)
{
	if (!kept->prev_next)
		return;
	*kept->prev_next = kept->next;
	if (kept->next)
		kept->next->prev_next = kept->prev_next;
	else
		client->waiting_end = kept->prev_next;
	kept->prev_next = NULL;
	client->waiting_count--;
	client->waiting_bytes -= kept->length;
}

static void join_waiting(struct plx_rpc_client *client, struct kept_request *kept)
{
	kept->next = NULL;
	kept->prev_next = client->waiting_end;
	*client->waiting_end = kept;
	client->waiting_end = &kept->next;
	client->waiting_count++;
	client->waiting_bytes += kept->length;
	kept->call->state = CALL_WAITING;
}

static struct kept_request *keep(struct call *call, const struct plx_rpc_call *what,
				 uint64_t deadline_ns, const struct iovec *iov, int count,
				 size_t length)
{
	struct kept_request *kept = malloc(sizeof(*kept) + length);

	if (!kept)
		return NULL;
	*kept = (struct kept_request){
		.call = call,
		.deadline_ns = deadline_ns,
		.method = what->method,
		.version = what->version,
		.length = (uint32_t)length,
	};
	rpc_copy_pieces(kept->bytes, iov, count);
	return kept;
}

static void drop_kept(struct plx_rpc_client *client, struct call *call)
{
	if (!call->kept)
		return;
	leave_waiting(client, call->kept);
	free(call->kept);
	call->kept = NULL;
}

/* The end of a call
 * -------------------------------------------------------------------------------- */

void call_finish(struct plx_rpc_client *client, struct call *call,
		 const struct plx_rpc_result *result)
{
	plx_rpc_done_fn done = call->done;
	void *arg = call->arg;

	plx_timer_stop(&call->timer);
	if (plx_unlikely(call->kept != NULL))
		drop_kept(client, call);
	if (call->state == CALL_SENT)
		call->channel->open--;
	give_back(client, call);
	client->counts.done[result->status]++;
	if (done)
		done(result, arg);
}

static void finish_with(struct plx_rpc_client *client, struct call *call,
			enum plx_rpc_status status, bool was_sent)
{
	call_finish(client, call,
		    &(struct plx_rpc_result){.status = status, .may_have_run = was_sent});
}

/* The service need not go on with it. */
static void tell_service(struct call *call)
{
	struct rpc_header header = {.kind = RPC_CANCEL, .call = id_of(call)};

	rpc_out_claim(&call->channel->out, &header); /* without memory, or a link, it is not told */
}

/* How it ends is known inside a call of the user's: the callback comes from the loop. */
static void end_soon(struct plx_rpc_client *client, struct call *call, enum plx_rpc_status status)
{
	plx_timer_stop(&call->timer);
	drop_kept(client, call);
	call->was_sent = call->state == CALL_SENT;
	if (call->was_sent)
		call->channel->open--;
	call->state = CALL_TOLD;
	call->status = (uint8_t)status;
	call->next = NULL;
	*client->told_end = call;
	client->told_end = &call->next;
	rpc_turns_ask(&client->turns);
}

int client_deliver(struct rpc_turns *turns, uint64_t now_ns)
{
	struct plx_rpc_client *client = plx_container_of(turns, struct plx_rpc_client, turns);
	struct call *call = client->told;
	int work = 0;

	client->told = NULL; /* what the callbacks end is for the next turn */
	client->told_end = &client->told;
	rpc_turns_stop(&client->turns);
	while (call) {
		struct call *next = call->next;

		finish_with(client, call, (enum plx_rpc_status)call->status, call->was_sent);
		call = next;
		work++;
	}
	if (!client->ending)
		client_send_waiting(client);
	return work;
}

static bool is_up(const struct plx_rpc_client *client)
{
	for (uint32_t i = 0; i < client->channel_count; i++) {
		if (client->channels[i].state == CHANNEL_UP)
			return true;
	}
	return false;
}

static void on_deadline(struct plx_timer *timer, void *arg)
{
	struct plx_rpc_client *client = arg;
	struct call *call = plx_container_of(timer, struct call, timer);
	struct channel *channel = call->channel;
	bool was_sent = call->state == CALL_SENT;

	if (was_sent)
		tell_service(call);
	finish_with(client, call, was_sent || is_up(client) ? PLX_RPC_DEADLINE : PLX_RPC_PEER_DOWN,
		    was_sent);
	if (was_sent)
		channel_look_at_drain(channel);
	client_send_waiting(client);
}

int plx_rpc_cancel(struct plx_rpc_client *client, plx_rpc_call_id id)
{
	struct call *call = call_find(client, id);
	struct channel *channel;

	if (!call || (call->state != CALL_WAITING && call->state != CALL_SENT))
		return plx_fail(ENOENT, "there is no open call of that number");
	channel = call->state == CALL_SENT ? call->channel : NULL;
	if (channel)
		tell_service(call);
	end_soon(client, call, PLX_RPC_CANCELLED);
	if (channel)
		channel_look_at_drain(channel);
	return 0;
}

/* Sending
 * ------------------------------------------------------------------------------------------ */

/* The one with the least open calls, the first of those. */
static struct channel *choose(struct plx_rpc_client *client)
{
	struct channel *best = NULL;

	for (uint32_t i = 0; i < client->channel_count; i++) {
		struct channel *channel = &client->channels[i];

		if (channel_has_room(channel) && (!best || channel->open < best->open))
			best = channel;
	}
	return best;
}

/* Time that is left, rounded up: who gives 1 ns does not ask for none. */
static uint32_t left_us(uint64_t deadline_ns)
{
	uint64_t now_ns = plx_loop_now_ns();
	uint64_t left_ns = deadline_ns > now_ns ? deadline_ns - now_ns : 0;

	if (left_ns >= RPC_NO_END_US * PLX_NS_PER_US)
		return RPC_NO_END_US;
	return (uint32_t)((left_ns + PLX_NS_PER_US - 1) / PLX_NS_PER_US);
}

static inline int send_on(struct plx_rpc_client *client, struct channel *channel, struct call *call,
			  const struct rpc_header *header, const struct iovec *iov, int count)
{
	int rc;

	if (plx_unlikely(header->length > channel->request_max)) {
		end_soon(client, call, PLX_RPC_TOO_BIG);
		return 0;
	}
	rc = rpc_out_put(&channel->out, header, iov, count);
	if (plx_unlikely(rc))
		return rc;
	call->state = CALL_SENT;
	call->channel = channel;
	channel->open++;
	return 0;
}

void client_send_waiting(struct plx_rpc_client *client)
{
	while (client->waiting) {
		struct channel *channel = choose(client);
		struct kept_request *kept = client->waiting;
		struct call *call = kept->call;
		struct rpc_header header = {
			.kind = RPC_REQUEST,
			.version = kept->version,
			.length = kept->length,
			.call = id_of(call),
			.first = kept->method,
			.second = left_us(kept->deadline_ns),
		};
		struct iovec whole = {kept->bytes, kept->length};

		if (!channel)
			return;
		leave_waiting(client, kept);
		if (send_on(client, channel, call, &header, &whole, 1) != 0) {
			end_soon(client, call, PLX_RPC_OVERLOADED);
			continue;
		}
		if (call->kept && client->channel_count == 1) {
			free(call->kept);
			call->kept = NULL;
		}
	}
}

bool call_again(struct plx_rpc_client *client, struct call *call)
{
	if (!call->kept || client->ending)
		return false;
	call->channel->open--;
	join_waiting(client, call->kept);
	return true;
}

/* Return: 0; -EAGAIN; -ENOMEM. */
static __attribute__((noinline)) int let_wait(struct plx_rpc_client *client, struct call *call,
					      const struct plx_rpc_call *what, uint64_t deadline_ns,
					      const struct iovec *iov, int count, size_t length)
{
	if (length > client->attr.waiting_max - client->waiting_bytes)
		return -EAGAIN;
	if (!call->kept)
		call->kept = keep(call, what, deadline_ns, iov, count, length);
	if (!call->kept)
		return plx_fail(ENOMEM, "no memory for a request of %zu bytes", length);
	join_waiting(client, call->kept);
	return 0;
}

static int start(struct plx_rpc_client *client, struct call *call, const struct plx_rpc_call *what,
		 const struct iovec *iov, int count, size_t length)
{
	uint64_t delay_ns = what->deadline_ns ? what->deadline_ns : client->attr.deadline_ns;
	uint64_t deadline_ns = plx_time_add(plx_loop_now_ns(), delay_ns);
	struct channel *channel = client->waiting ? NULL : choose(client);
	struct rpc_header header = {
		.kind = RPC_REQUEST,
		.version = what->version,
		.length = (uint32_t)length,
		.call = id_of(call),
		.first = what->method,
		.second = left_us(deadline_ns),
	};
	int rc;

	call->done = what->done;
	call->arg = what->arg;
	call->kept = NULL;
	if (client->channel_count > 1) {
		call->kept = keep(call, what, deadline_ns, iov, count, length);
		if (!call->kept)
			return plx_fail(ENOMEM, "no memory for a request of %zu bytes", length);
	}
	if (plx_likely(channel != NULL))
		rc = send_on(client, channel, call, &header, iov, count);
	else
		rc = let_wait(client, call, what, deadline_ns, iov, count, length);
	if (plx_likely(rc == 0 && call->state != CALL_TOLD && delay_ns != UINT64_MAX))
		plx_timer_start(&call->timer, delay_ns);
	return rc;
}

int plx_rpc_callv(struct plx_rpc_client *client, const struct plx_rpc_call *call,
		  const struct iovec *iov, int count, plx_rpc_call_id *id_out)
{
	struct call *slot;
	size_t length = 0;
	int rc;

	for (int i = 0; i < count; i++) {
		length += iov[i].iov_len;
		if (plx_unlikely(!iov[i].iov_base && iov[i].iov_len))
			return plx_fail(EINVAL, "a request of %zu bytes at NULL", iov[i].iov_len);
	}
	if (plx_unlikely(length > PLX_RPC_PAYLOAD_MAX))
		return plx_fail(EINVAL, "a request of %zu bytes: %" PRIu64 " at most", length,
				PLX_RPC_PAYLOAD_MAX);
	if (plx_unlikely(client->ending))
		return plx_fail(ENOTCONN, "the client is being destroyed");
	if (plx_unlikely(client->open >= client->attr.calls_max))
		return -EAGAIN;

	if (plx_unlikely(!client->free) && !more_calls(client))
		return plx_fail(ENOMEM, "no memory for a call");
	slot = take(client);
	rc = start(client, slot, call, iov, count, length);
	if (plx_unlikely(rc)) {
		free(slot->kept);
		slot->kept = NULL;
		give_back(client, slot);
		return rc;
	}
	client->counts.calls++;
	if (id_out)
		*id_out = id_of(slot);
	return 0;
}

int plx_rpc_call(struct plx_rpc_client *client, const struct plx_rpc_call *call, const void *data,
		 size_t length, plx_rpc_call_id *id_out)
{
	return plx_rpc_callv(client, call, &(struct iovec){(void *)data, length}, 1, id_out);
}

/* Many at once
 * ------------------------------------------------------------------------------------- */

/* Its link has ended: nobody knows what the service did with what was sent. */
void client_channel_down(struct channel *channel)
{
	struct plx_rpc_client *client = channel->client;

	for (uint32_t i = 0; channel->open && i < client->chunk_count * CHUNK_CALLS; i++) {
		struct call *call = &client->chunks[i / CHUNK_CALLS][i % CHUNK_CALLS];

		if (call->state == CALL_SENT && call->channel == channel)
			finish_with(client, call, PLX_RPC_PEER_DOWN, true);
	}
	client_send_waiting(client);
}

void client_cancel_all(struct plx_rpc_client *client)
{
	client_deliver(&client->turns, 0);
	for (uint32_t i = 0; client->open && i < client->chunk_count * CHUNK_CALLS; i++) {
		struct call *call = &client->chunks[i / CHUNK_CALLS][i % CHUNK_CALLS];

		if (call->state == CALL_TOLD) /* by a callback of these */
			finish_with(client, call, (enum plx_rpc_status)call->status,
				    call->was_sent);
		else if (call->state != CALL_FREE)
			finish_with(client, call, PLX_RPC_CANCELLED, call->state == CALL_SENT);
	}
	client->told = NULL;
	client->told_end = &client->told;
}
