/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests with a copy while they are open: they may be sent again, or to a second service. Also
 * requests that wait and that the queue does not take. */
#include "rpc_client.h"

#include <inttypes.h>
#include <stdlib.h>

/* Enough for most requests: more than half is payload. Longer ones are allocated separately. */
#define BLOCK_BYTES 256

static void leave(struct plx_rpc_client *client, struct saved_request *saved)
{
	struct saved_list *list = saved->list;

	if (!list)
		return;
	TAILQ_REMOVE(list, saved, link);
	saved->list = NULL;
	client->waiting_count--;
}

void saved_enqueue(struct plx_rpc_client *client, struct call *call, struct saved_list *list)
{
	struct saved_request *saved = call->saved;

	saved->list = list;
	TAILQ_INSERT_TAIL(list, saved, link);
	client->waiting_count++;
	call->state = CALL_WAITING;
}

int saved_check_room(const struct plx_rpc_client *client, size_t length)
{
	uint64_t most = client->attr.waiting_max;

	if (length > most)
		return plx_fail(EMSGSIZE,
				"a request of %zu bytes that has to wait, or be kept: waiting_max "
				"is %" PRIu64,
				length, most);
	return length > most - client->request_bytes ? -EAGAIN : 0;
}

int saved_create(struct plx_rpc_client *client, struct call *call, const struct plx_rpc_call *what,
		 const struct request *request, const void *data)
{
	uint32_t key_bytes = what->key ? RPC_KEY_BYTES : 0;
	uint32_t length = request->length + key_bytes;
	uint64_t key = htole64(what->key);
	struct saved_request *saved;
	int rc = saved_check_room(client, length);

	if (rc)
		return rc;
	if (plx_likely(sizeof(*saved) + length <= BLOCK_BYTES))
		saved = rpc_slab_take(&client->saved_blocks, BLOCK_BYTES);
	else
		saved = malloc(sizeof(*saved) + length);
	if (!saved)
		return plx_fail(ENOMEM, "no memory for a request of %u bytes", length);
	*saved = (struct saved_request){
		.call = call,
		.what = *request,
		.retry = what->retry,
		.hedge = what->hedge && client->channel_count > 1,
	};
	saved->what.length = length;
	saved->what.has_key = what->key != 0;
	memcpy(saved->bytes, &key, key_bytes);
	if (request->length)
		memcpy(saved->bytes + key_bytes, data, request->length);
	client->request_bytes += length;
	call->saved = saved;
	return 0;
}

void saved_free(struct plx_rpc_client *client, struct call *call)
{
	struct saved_request *saved = call->saved;

	if (!saved)
		return;
	hedge_cancel(call);
	leave(client, saved);
	client->request_bytes -= saved->what.length;
	call->saved = NULL;
	if (plx_likely(sizeof(*saved) + saved->what.length <= BLOCK_BYTES))
		rpc_slab_put(&client->saved_blocks, saved);
	else
		free(saved);
}

int saved_send(struct channel *channel, struct call *call)
{
	struct plx_rpc_client *client = channel->client;
	struct saved_request *saved = call->saved;
	int rc;

	leave(client, saved);
	rc = call_send(channel, call, &saved->what, saved->bytes);
	if (rc || call->state != CALL_SENT)
		return rc;
	if (!saved->first_sent_ns)
		saved->first_sent_ns = plx_loop_now_ns();
	if (client->channel_count == 1 && !saved->retry)
		saved_free(client, call);
	return 0;
}

static void send_or_end(struct channel *channel, struct call *call)
{
	if (saved_send(channel, call) != 0)
		call_finish_later(channel->client, call, PLX_RPC_OVERLOADED);
}

bool saved_send_second(struct channel *channel, struct call *call)
{
	const struct saved_request *saved = call->saved;
	struct channel *first = call->channel;

	if (request_bytes(&saved->what) > channel->request_max ||
	    call_send(channel, call, &saved->what, saved->bytes) != 0)
		return false;
	call->channel = first;
	call->saved->second = channel;
	return true;
}

/* The service is draining and refused it: try another. Return: whether the call continues. */
static bool requeue(struct plx_rpc_client *client, struct call *call)
{
	if (call->saved->what.has_key && call->saved->link_lost)
		return false; /* the copy sent on the lost link may still reach its service */
	call->channel->open--;
	saved_enqueue(client, call, &client->waiting);
	return true;
}

/* The service is full and refused it: try another, once. Return: whether the call continues. */
static bool redirect(struct channel *channel, struct call *call)
{
	struct plx_rpc_client *client = channel->client;
	struct saved_request *saved = call->saved;
	struct channel *other;

	if (saved->was_refused || saved->link_lost)
		return false;
	other = channel_choose(client, channel, request_bytes(&saved->what));
	if (!other || request_bytes(&saved->what) > other->request_max)
		return false;
	saved->was_refused = true;
	channel->open--;
	call->state = CALL_WAITING;
	send_or_end(other, call);
	return true;
}

/* The services are full: ask again later, if there is time. Return: whether the call continues. */
static bool wait_for_room(struct channel *channel, struct call *call, uint64_t hint_ns)
{
	struct plx_rpc_client *client = channel->client;
	struct saved_request *saved = call->saved;
	uint64_t left_ns = plx_time_since(plx_loop_now_ns(), saved->what.deadline_ns), delay_ns;

	if (!saved->retry || (saved->link_lost && saved->what.has_key))
		return false;
	client->backoff.attempts = saved->refusals++;
	delay_ns = plx_time_add(hint_ns, plx_backoff_next_ns(&client->backoff));
	if (delay_ns > left_ns / 2) /* the rest is for the call */
		return false;
	channel->open--;
	client->counts.retried++;
	saved_enqueue(client, call, &client->refused);
	saved->first_sent_ns = 0; /* nothing has run */
	saved->hedge_due = false;
	plx_timer_start(&call->timer, delay_ns);
	return true;
}

bool saved_on_timer(struct plx_rpc_client *client, struct call *call)
{
	struct saved_request *saved = call->saved;
	uint64_t deadline_ns = saved->what.deadline_ns, now_ns = plx_loop_now_ns();

	if (saved->list != &client->refused || now_ns >= deadline_ns)
		return false;
	leave(client, saved);
	saved->was_refused = false;
	saved_enqueue(client, call, &client->waiting);
	if (deadline_ns != PLX_NEVER)
		plx_timer_start(&call->timer, deadline_ns - now_ns);
	client_send_waiting(client);
	return true;
}

bool saved_continues(struct channel *channel, struct call *call, const struct rpc_header *header)
{
	if (header->status <= PLX_RPC_ERROR) {
		hedge_on_reply(channel, call);
		return false;
	}
	call->saved->link_lost |= header->handler_ns != 0;
	if (hedge_continues(channel, call))
		return true;
	if (header->handler_ns || channel->client->ending)
		return false;
	if (header->status == PLX_RPC_DRAINING)
		return requeue(channel->client, call);
	return (header->status == PLX_RPC_OVERLOADED || header->status == PLX_RPC_BUSY) &&
	       (redirect(channel, call) ||
		wait_for_room(channel, call, header->retry_us * PLX_NS_PER_US));
}

bool saved_on_link_end(struct channel *channel, struct call *call)
{
	struct plx_rpc_client *client = channel->client;
	struct saved_request *saved = call->saved;

	if (call->channel != channel && saved->second != channel)
		return true; /* the lost link does not affect it */
	saved->link_lost = true;
	if (hedge_continues(channel, call))
		return true;
	if (!saved->retry || client->ending)
		return false;
	channel->open--;
	client->counts.retried++;
	saved_enqueue(client, call, saved->what.has_key ? &channel->retries : &client->waiting);
	return true;
}

void saved_fail_retries(struct channel *channel)
{
	const struct saved_request *first;

	while ((first = TAILQ_FIRST(&channel->retries)))
		call_finish_later(channel->client, first->call, PLX_RPC_PEER_DOWN);
}

/* Sent to the service that may have run them. */
void saved_send_retries(struct channel *channel)
{
	const struct saved_request *first;

	/* Also to a draining service: it still answers what it has run. */
	while ((first = TAILQ_FIRST(&channel->retries)) && channel_is_up(channel) &&
	       channel->open < channel->open_max && !rpc_tx_is_full(&channel->tx)) {
		/* Half of the time for which the service remembers keys is for the network. */
		if (plx_time_since(first->first_sent_ns, plx_loop_now_ns()) < channel->key_ns / 2)
			send_or_end(channel, first->call);
		else
			call_finish_later(channel->client, first->call, PLX_RPC_PEER_DOWN);
	}
}

/* Long lists are not cached: prefetch the next one's call, since the next one itself was prefetched
 * before, and the one after it. */
static inline void fetch_ahead(const struct saved_request *saved)
{
	const struct saved_request *next = TAILQ_NEXT(saved, link);

	if (!next)
		return;
	fetch_lines(next->call, sizeof(*next->call));
	if (TAILQ_NEXT(next, link))
		fetch_lines(TAILQ_NEXT(next, link), BLOCK_BYTES);
}

void saved_send_waiting(struct plx_rpc_client *client)
{
	const struct saved_request *first;
	struct channel *channel;

	while ((first = TAILQ_FIRST(&client->waiting)) && !client->queue.count &&
	       (channel = channel_choose(client, NULL, request_bytes(&first->what)))) {
		fetch_ahead(first);
		send_or_end(channel, first->call);
	}
}
