/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests with a key, and their duplicates: the first runs, and the others get its reply, at once
 * or when it is known. */
#include "rpc_service.h"

/* How often to look for the reply to a request that is still running, for its duplicates. Another
 * lcore may give the reply, and a client that lost its link has already waited longer than this. */
#define POLL_NS PLX_NS_PER_MS

void duplicate_gone(struct plx_rpc_request *request)
{
	counter_add(&request->local->counts.open, -1);
	rpc_request_free(request);
}

/* Answer it if the first is answered. */
static bool is_answered(struct plx_rpc_request *request)
{
	struct peer *peer = request->peer;
	struct key_answer answer;
	struct rpc_key key = {peer->identity, request->key};
	enum key_state state;

	if (peer->session.failure || rpc_tx_is_full(&peer->tx))
		return false;
	state = rpc_keys_claim(request->local->service->keys, key, request->method,
			       plx_loop_now_ns(), NULL, &answer, NULL);
	if (state == KEY_RUNNING)
		return false;
	/* The first got a refusal that allows a retry, or was forgotten: its fate is unknown. */
	if (state != KEY_DONE)
		answer = (struct key_answer){
			.header = {.kind = RPC_REPLY, .status = PLX_RPC_BUSY, .handler_ns = 1}};
	reply_remembered(peer, request->call, &answer);
	open_remove(request->peer, request);
	duplicate_gone(request);
	return true;
}

void duplicate_on_timer(struct plx_timer *timer, void *arg)
{
	struct service_local *local = arg;

	request_list_poll(&local->duplicates, POLL_NS, is_answered);
}

/* It stays open until the first request with its key is answered. */
static void wait_for_first(struct peer *peer, uint64_t call, uint32_t method, uint64_t key)
{
	struct service_local *local = peer->local;
	const struct plx_rpc_service_attr *attr = &local->service->attr;
	bool is_busy = peer->open_count >= attr->open_max;
	struct plx_rpc_request *request = NULL;

	if (!is_busy && local->open < attr->open_total)
		request = rpc_request_take(peer, call, method);
	if (!request) {
		reply_refusal(peer, call, is_busy ? PLX_RPC_BUSY : PLX_RPC_OVERLOADED, POLL_NS);
		return;
	}
	request->key = key;
	if (open_add(peer, request))
		request_list_add(&local->duplicates, request, POLL_NS);
	else
		duplicate_gone(request);
}

bool duplicate_claim(struct peer *peer, const struct rpc_record *record,
		     const struct method *method, uint64_t key, struct key_entry **entry_out)
{
	struct service_local *local = peer->local;
	struct rpc_key whole = {peer->identity, key};
	uint64_t call = record->header.call, retry_ns = 0;
	struct key_answer answer;

	switch (rpc_keys_claim(local->service->keys, whole, method->index, plx_loop_now_ns(),
			       entry_out, &answer, &retry_ns)) {
	case KEY_NEW:
		return true;
	case KEY_RUNNING:
		wait_for_first(peer, call, method->index, key);
		return false;
	case KEY_DONE:
		reply_remembered(peer, call, &answer);
		return false;
	case KEY_OTHER:
		reply_refusal(peer, call, PLX_RPC_DENIED, 0);
		break;
	case KEY_FULL:
		reply_refusal(peer, call, PLX_RPC_BUSY, retry_ns);
	}
	counter_add(&local->methods[method->index].refused, 1);
	return false;
}
