/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests with a key, and their duplicates: the first runs, and the others get its reply, at once
 * or when it is known. */
#include "rpc_service.h"

#include <stdlib.h>

/* How often to look for the reply to a request that is still running, for its duplicates. Another
 * lcore may give the reply, and a client that lost its link has already waited longer than this. Up
 * to POLL_MAX per poll, which takes a few us; polls more often if more wait. */
#define POLL_NS      PLX_NS_PER_MS
#define POLL_MANY_NS (100 * PLX_NS_PER_US)
#define POLL_MAX     64

static void answer_again(struct peer *peer, uint64_t call, struct key_answer *answer)
{
	counter_add(&peer->local->counts.repeated, 1);
	reply_remembered(peer, call, answer);
	free(answer->heap);
}

static void start_timer(struct service_local *local)
{
	plx_timer_start(&local->duplicates.timer,
			local->duplicates.count > POLL_MAX ? POLL_MANY_NS : POLL_NS);
}

void duplicate_gone(struct plx_rpc_request *request)
{
	counter_add(&request->local->counts.open, -1);
	rpc_request_free(request);
}

/* Return: whether it now has an answer. */
static bool try_answer(struct plx_rpc_request *request)
{
	struct peer *peer = request->peer;
	struct key_answer answer;
	struct rpc_key key = {peer->identity, request->key};
	enum key_state state;

	if (peer->session.failure || rpc_tx_is_full(&peer->tx))
		return false;
	state = rpc_keys_lookup(request->local->service->keys, key, &answer);
	if (state == KEY_RUNNING)
		return false;
	/* The first got a refusal that allows a retry, or was forgotten since: its fate is
	 * unknown. */
	if (state != KEY_DONE)
		answer = (struct key_answer){.status = PLX_RPC_BUSY, .handler_ns = 1};
	answer_again(peer, request->call, &answer);
	return true;
}

void duplicate_on_timer(struct plx_timer *timer, void *arg)
{
	struct service_local *local = arg;
	struct request_list *list = &local->duplicates;
	uint32_t polls = list->count < POLL_MAX ? list->count : POLL_MAX;

	for (; polls && list->count; polls--) {
		struct plx_rpc_request *request = TAILQ_FIRST(&list->requests);

		if (try_answer(request)) {
			open_remove(request->peer, request);
			duplicate_gone(request);
		} else {
			request_list_remove(request);
			request_list_add(list, request);
		}
	}
	if (list->count)
		start_timer(local);
}

/* It stays open until the first request with its key is answered. */
static int wait_for_first(struct peer *peer, const struct rpc_record *record, uint32_t method,
			  uint64_t key)
{
	struct service_local *local = peer->local;
	struct plx_rpc_request *request;

	if (peer->open.count >= local->service->attr.open_max)
		return reply_refusal(peer, record->header.call, PLX_RPC_BUSY, POLL_NS);
	if (local->open >= local->service->attr.open_total)
		return reply_refusal(peer, record->header.call, PLX_RPC_OVERLOADED, POLL_NS);
	request = rpc_request_take(peer, record->header.call, method);
	if (!request)
		return reply_refusal(peer, record->header.call, PLX_RPC_OVERLOADED, 0);
	request->state = REQUEST_OPEN;
	request->key = key;
	if (open_find(peer, request->call) || open_add(peer, request) != 0) {
		rpc_request_free(request);
		peer_reject(peer, "it gave two open calls one number");
		return -ENOMEM;
	}
	counter_add(&local->counts.open, 1);
	request_list_add(&local->duplicates, request);
	if (!plx_timer_running(&local->duplicates.timer))
		start_timer(local);
	return 0;
}

enum key_state duplicate_claim(struct peer *peer, const struct rpc_record *record,
			       const struct method *method, uint64_t key,
			       struct key_entry **entry_out, int *rc_out)
{
	struct rpc_key whole = {peer->identity, key};
	struct key_answer answer;
	uint64_t retry_ns = 0;
	enum key_state state = rpc_keys_claim(peer->local->service->keys, whole, method->index,
					      plx_loop_now_ns(), entry_out, &answer, &retry_ns);

	*rc_out = 0;
	if (state == KEY_RUNNING)
		*rc_out = wait_for_first(peer, record, method->index, key);
	else if (state == KEY_DONE)
		answer_again(peer, record->header.call, &answer);
	else if (state == KEY_OTHER)
		*rc_out = reply_refusal(peer, record->header.call, PLX_RPC_DENIED, 0);
	else if (state == KEY_FULL)
		*rc_out = reply_refusal(peer, record->header.call, PLX_RPC_BUSY, retry_ns);
	if (state == KEY_OTHER || state == KEY_FULL)
		counter_add(&peer->local->methods[method->index].refused, 1);
	if (state == KEY_FULL)
		counter_add(&peer->local->counts.busy, 1);
	return state;
}

/* The first request with its key is answered. The key may run again after a refusal that allows a
 * retry. */
void duplicate_done(struct plx_rpc_request *request, const struct key_answer *answer,
		    const struct iovec *iov, int count)
{
	struct rpc_keys *keys = request->local->service->keys;

	if (answer->status == PLX_RPC_BUSY || answer->status == PLX_RPC_OVERLOADED ||
	    answer->status == PLX_RPC_DRAINING)
		rpc_keys_forget(keys, request->entry);
	else
		rpc_keys_done(keys, request->entry, answer, iov, count, plx_now_ns());
	request->entry = NULL;
}
