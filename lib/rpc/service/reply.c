/* SPDX-License-Identifier: BSD-3-Clause */
/* Replies: hot path if given on the request's lcore. */
#include "rpc_service.h"

#include <assert.h>
#include <stdlib.h>

#define BEGIN_BYTES_MAX 2048

/* The handler reports that it did nothing, as if it had not run. */
static inline bool did_nothing(enum plx_rpc_status status)
{
	return status == PLX_RPC_BUSY || status == PLX_RPC_OVERLOADED;
}

/* A reply in flight to the request's lcore. */
struct remote_reply {
	struct plx_rpc_request *request;
	struct rpc_header header;
	uint8_t bytes[];
};

static uint32_t handler_ns(const struct plx_rpc_request *request)
{
	uint64_t ns = plx_tsc_to_ns(plx_tsc() - request->started) + 1; /* 0 means no handler ran */

	return ns < UINT32_MAX ? (uint32_t)ns : UINT32_MAX;
}

/* A hint in wire format: rounded up and limited to 32 bits. */
static uint32_t hint_us(uint64_t retry_ns)
{
	uint64_t us = retry_ns / PLX_NS_PER_US + (retry_ns % PLX_NS_PER_US != 0);

	return us < UINT32_MAX ? (uint32_t)us : UINT32_MAX;
}

static void send_header(struct peer *peer, const struct rpc_header *header)
{
	if (plx_unlikely(!rpc_tx_reserve(&peer->tx, header)))
		peer_reject(peer, "there is no memory for an answer to it");
}

void reply_refusal(struct peer *peer, uint64_t call, enum plx_rpc_status status, uint64_t retry_ns)
{
	struct rpc_header header = {
		.kind = RPC_REPLY,
		.status = (uint8_t)status,
		.call = call,
		.retry_us = hint_us(retry_ns),
	};

	counter_add(&peer->local->counts.refused[status], 1);
	send_header(peer, &header);
}

/* Send the reply, or why it cannot be sent although the handler has run. Return: 0; -EMSGSIZE;
 * -ENOMEM. */
static int send_reply(struct peer *peer, struct rpc_header *header, const void *data)
{
	uint32_t length = header->length;
	bool is_too_long = length > peer->reply_max;

	if (plx_likely(!is_too_long && rpc_tx_put(&peer->tx, header, data) == 0)) {
		if (plx_unlikely(peer->tx.waiting_bytes > peer->local->service->attr.waiting_max))
			peer_reject(peer, "it takes no replies");
		return 0;
	}
	header->status = is_too_long ? PLX_RPC_TOO_BIG : PLX_RPC_OVERLOADED;
	header->length = header->code = 0;
	send_header(peer, header);
	if (is_too_long)
		return plx_fail(EMSGSIZE, "a reply of %u bytes: the client accepts %llu", length,
				(unsigned long long)peer->reply_max);
	return plx_fail(ENOMEM, "no memory for a reply of %u bytes", length);
}

void reply_remembered(struct peer *peer, uint64_t call, struct key_answer *answer)
{
	struct rpc_header header = answer->header;

	header.call = call;
	counter_add(&peer->local->counts.repeated, 1);
	send_reply(peer, &header, answer->heap ? answer->heap : answer->bytes);
	free(answer->heap);
}

/* The request is answered, whether or not the reply was sent. */
static inline void finish(struct plx_rpc_request *request)
{
	struct service_local *local = request->local;
	struct method_local *method = &local->methods[request->method];

	counter_add(&method->replies, 1);
	if (request->state == REQUEST_OPEN) {
		counter_add(&local->counts.open, -1);
		method->open--;
		method->held++;
		method->held_ns += plx_tsc_to_ns(plx_tsc() - request->started);
		if (request->peer)
			open_remove(request->peer, request);
	}
	rpc_request_free(request);
}

/* Remember the answer for duplicates. The request may run again after a refusal that allows that.
 */
static PLX_NOINLINE void remember(struct plx_rpc_request *request, const struct rpc_header *header,
				  const void *data)
{
	struct rpc_keys *keys = request->local->service->keys;

	if (did_nothing(header->status) || header->status == PLX_RPC_DRAINING)
		rpc_keys_forget(keys, request->entry);
	else
		rpc_keys_done(keys, request->entry, header, data, plx_now_ns());
	request->entry = NULL;
}

/* Return: as send_reply. */
static int answer_local(struct plx_rpc_request *request, struct rpc_header *header,
			const void *data)
{
	int rc = 0;

	if (plx_unlikely(request->begun != NULL))
		plx_rpc_reply_abandon(request);
	header->handler_ns = handler_ns(request);
	if (plx_unlikely(request->entry != NULL))
		remember(request, header, data);
	assert(request->state != REQUEST_FREE); /* each is answered once */
	if (plx_unlikely(did_nothing(header->status)))
		header->handler_ns = 0;
	if (plx_likely(request->peer && !request->gone && request->deadline_ns > plx_loop_now_ns()))
		rc = send_reply(request->peer, header, data);
	finish(request);
	return rc;
}

static void on_remote_reply(void *arg)
{
	struct remote_reply *remote = arg;

	answer_local(remote->request, &remote->header, remote->bytes);
	free(remote);
}

/* Return: 0; -EAGAIN; -ENOMEM. */
static PLX_NOINLINE int answer_remote(struct plx_rpc_request *request,
				      const struct rpc_header *header, const void *data)
{
	struct remote_reply *remote = malloc(sizeof(*remote) + header->length);
	int rc;

	if (!remote)
		return plx_fail(ENOMEM, "no memory for a reply of %u bytes", header->length);
	remote->request = request;
	remote->header = *header;
	if (header->length)
		memcpy(remote->bytes, data, header->length);
	rc = plx_lcore_send(request->local->lcore, on_remote_reply, remote);
	if (rc)
		free(remote);
	return rc;
}

/* Return: -EMSGSIZE; or as answer_remote, then the caller keeps the request. */
static PLX_NOINLINE int refuse_long(struct plx_rpc_request *request, size_t length)
{
	int rc = plx_rpc_refuse(request, PLX_RPC_TOO_BIG, 0);

	return rc
		     ?: plx_fail(EMSGSIZE,
				 "a reply of %zu bytes: copies of at most %llu bytes are sent; "
				 "send it "
				 "in several, or by plx_link_send_buf on a link",
				 length, (unsigned long long)PLX_RPC_PAYLOAD_MAX);
}

/* number: the code, or the retry time. */
static inline int answer(struct plx_rpc_request *request, enum plx_rpc_status status,
			 uint32_t number, const void *data, size_t length)
{
	struct rpc_header header = {
		.kind = RPC_REPLY,
		.status = (uint8_t)status,
		.length = (uint32_t)length,
		.call = request->call,
		.code = number,
	};

	if (plx_unlikely(length > PLX_RPC_PAYLOAD_MAX))
		return refuse_long(request, length);
	return plx_likely(request->local->lcore == plx_lcore_id())
		     ? answer_local(request, &header, data)
		     : answer_remote(request, &header, data);
}

int plx_rpc_reply(struct plx_rpc_request *request, const void *data, size_t length)
{
	return answer(request, PLX_RPC_OK, 0, data, length);
}

int plx_rpc_reply_error(struct plx_rpc_request *request, uint32_t code, const void *data,
			size_t length)
{
	return answer(request, PLX_RPC_ERROR, code, data, length);
}

int plx_rpc_refuse(struct plx_rpc_request *request, enum plx_rpc_status status,
		   uint64_t retry_after_ns)
{
	if (status <= PLX_RPC_ERROR || status == PLX_RPC_PEER_DOWN ||
	    status >= PLX_RPC_STATUS_COUNT)
		return plx_fail(EINVAL, "a service cannot refuse with '%s'",
				plx_rpc_status_name(status));
	return answer(request, status, hint_us(retry_after_ns), NULL, 0);
}

int plx_rpc_reply_begin(struct plx_rpc_request *request, uint32_t room, void **at_out)
{
	struct rpc_header header = {.kind = RPC_REPLY, .length = room, .call = request->call};
	uint32_t most;

	ASSERT_OWNER(request->local->lcore);
	plx_rpc_reply_abandon(request);
	if (request->state != REQUEST_RUNNING || !request->peer)
		return plx_fail(EINVAL, "a reply is built in place in the handler only");
	most = request->peer->tx.batch_max - RPC_RECORD_BYTES;
	most = most < BEGIN_BYTES_MAX ? most : BEGIN_BYTES_MAX;
	most = most < request->peer->reply_max ? most : (uint32_t)request->peer->reply_max;
	if (room > most)
		return plx_fail(EINVAL, "a reply of up to %u bytes in place: %u at most", room,
				most);
	request->begun = rpc_tx_reserve(&request->peer->tx, &header);
	if (!request->begun)
		return plx_fail(ENOMEM, "no memory for a reply of %u bytes", room);
	*at_out = request->begun;
	return 0;
}

void plx_rpc_reply_abandon(struct plx_rpc_request *request)
{
	ASSERT_OWNER(request->local->lcore);
	if (request->begun && request->peer)
		rpc_tx_discard(&request->peer->tx, request->begun);
	request->begun = NULL;
}

void plx_rpc_reply_commit(struct plx_rpc_request *request, uint32_t length)
{
	struct rpc_header header = {
		.kind = RPC_REPLY,
		.length = length,
		.call = request->call,
		.handler_ns = handler_ns(request),
	};

	ASSERT_OWNER(request->local->lcore);
	if (plx_unlikely(request->entry != NULL))
		remember(request, &header, request->begun);
	rpc_tx_rewrite(&request->peer->tx, request->begun, &header);
	request->begun = NULL;
	finish(request);
}
