/* SPDX-License-Identifier: BSD-3-Clause */
/* A request of a batch: hot path. Checks it, cheapest checks first; then its handler runs to
 * completion. */
#include "rpc_service.h"

#include <inttypes.h>

/* How long the median handler time stays valid. */
#define KNOWN_NS (100 * PLX_NS_PER_MS)

/* How long a request of the method is open on average: after that time there should be room. */
static uint64_t mean_open_ns(const struct method_local *method)
{
	uint64_t requests = counter_get(&method->requests);

	if (method->held)
		return method->held_ns / method->held;
	return requests ? counter_get(&method->handler_ns) / requests : 0;
}

static PLX_NOINLINE void report_slow(struct service_local *local, const struct method *method,
				     uint64_t ns)
{
	struct method_local *mine = &local->methods[method->index];
	uint64_t away_ns;

	counter_add(&mine->slow, 1);
	if (method->what.id >= PLX_RPC_SELF_TEST) /* the program cannot change these */
		return;
	if (!plx_log_allowed(&mine->log_limit, plx_loop_now_ns()))
		return;
	away_ns = lcore_away_ns(ns);
	if (away_ns > ns / 2)
		plx_log(rpc_log, PLX_LOG_NOTICE,
			"method %u '%s': its handler took %" PRIu64
			" us on lcore %u, but its thread "
			"was without its CPU for up to %" PRIu64 " us of that: another thread or a "
			"hypervisor had it, or the handler slept",
			method->what.id, method->what.name, ns / PLX_NS_PER_US, local->lcore,
			away_ns / PLX_NS_PER_US);
	else
		plx_log(rpc_log, PLX_LOG_WARNING,
			"method %u '%s': its handler ran %" PRIu64 " us on lcore %u; everybody "
			"else waited",
			method->what.id, method->what.name, ns / PLX_NS_PER_US, local->lcore);
}

/* The handler has left it open. */
static PLX_NOINLINE void leave_open(struct peer *peer, struct plx_rpc_request *request)
{
	plx_rpc_reply_abandon(request);
	peer->local->methods[request->method].open++;
	if (!open_add(peer, request))
		request->peer = NULL; /* its reply is discarded */
}

/* Approximate the median handler time: each sample moves it a sixteenth up or down (Ma,
 * Muthukrishnan and Sandler, "Frugal Streaming for Estimating Quantiles", 2013). One delayed
 * handler says little about the next. */
static inline void update_median(struct method_local *local, uint64_t ns)
{
	uint64_t step = local->median_ns / 16 + 1;

	local->median_at_ns = plx_loop_now_ns();
	if (ns > local->median_ns)
		local->median_ns += step;
	else if (local->median_ns >= step)
		local->median_ns -= step;
}

/* Return whether the time left is over, or less than the handler takes. If no request has run
 * recently, the handler may have become faster, so run this one to find out. */
static inline bool is_late(const struct peer *peer, const struct rpc_record *record,
			   const struct method_local *local)
{
	uint64_t now_ns = plx_loop_now_ns();
	uint64_t end_ns = peer->arrived_ns + record->header.remaining_us * PLX_NS_PER_US;

	if (plx_likely(record->header.remaining_us != 0 && end_ns >= now_ns + local->median_ns))
		return false;
	return record->header.remaining_us == 0 ||
	       plx_time_since(local->median_at_ns, now_ns) < KNOWN_NS;
}

/* A request inside its handler. */
struct running {
	struct peer *peer;
	const struct method *method;
	struct method_local *mine;
	struct plx_rpc_request *request;
};

/* The handler has returned, or a C++ one has thrown. */
static inline PLX_ALWAYS_INLINE void has_run(const struct running *running)
{
	struct plx_rpc_request *request = running->request;
	struct peer *peer = running->peer;
	struct service_local *local = peer->local;
	struct method_local *mine = running->mine;
	uint64_t ns = plx_tsc_to_ns(plx_tsc() - request->started); /* readable if freed */

	update_median(mine, ns);
	if (request->state == REQUEST_RUNNING)
		leave_open(peer, request);
	counter_add(&mine->handler_ns, ns);
	peer->turn_ns += ns;
	if (plx_unlikely(ns > local->service->attr.slow_ns))
		report_slow(local, running->method, ns);
}

static inline PLX_ALWAYS_INLINE void run(struct peer *peer, const struct method *method,
					 struct plx_rpc_request *request,
					 const struct rpc_record *record)
{
	struct method_local *mine = &peer->local->methods[method->index];
	struct running running PLX_CLEANUP(has_run) = {peer, method, mine, request};

	request->started = plx_tsc();
	counter_add(&mine->requests, 1);
	method->what.handler(request, record->payload, record->header.length, method->what.arg);
}

/* Return: the status to refuse with; OK. */
static inline enum plx_rpc_status check(const struct peer *peer, const struct rpc_record *record,
					const struct method *method)
{
	const struct service_local *local = peer->local;
	const struct plx_rpc_service_attr *attr = &local->service->attr;
	const struct method_local *mine;

	if (plx_unlikely(local->draining))
		return PLX_RPC_DRAINING;
	if (plx_unlikely(!method))
		return PLX_RPC_UNKNOWN;
	mine = &local->methods[method->index];
	if (plx_unlikely(record->header.length > method->what.request_max))
		return PLX_RPC_TOO_BIG;
	if (plx_unlikely(is_late(peer, record, mine)))
		return PLX_RPC_DEADLINE;
	if (plx_unlikely(local->open >= attr->open_total))
		return PLX_RPC_OVERLOADED;
	if (plx_unlikely(peer->open_count >= attr->open_max || mine->open >= method->what.open_max))
		return PLX_RPC_BUSY;
	return PLX_RPC_OK;
}

static PLX_NOINLINE void refuse(struct peer *peer, const struct rpc_record *record,
				const struct method *method, enum plx_rpc_status status)
{
	struct method_local *mine = method ? &peer->local->methods[method->index] : NULL;
	bool is_full = status == PLX_RPC_BUSY || status == PLX_RPC_OVERLOADED;

	if (mine && status != PLX_RPC_DRAINING)
		counter_add(&mine->refused, 1);
	reply_refusal(peer, record->header.call, status, mine && is_full ? mean_open_ns(mine) : 0);
}

/* Return: the request to run; NULL: refused. */
static inline struct plx_rpc_request *admit(struct peer *peer, const struct rpc_record *record,
					    const struct method *method)
{
	const struct rpc_header *header = &record->header;
	enum plx_rpc_status status = check(peer, record, method);
	struct plx_rpc_request *request = NULL;

	if (plx_likely(status == PLX_RPC_OK))
		request = rpc_request_take(peer, header->call, method->index);
	if (plx_unlikely(!request)) {
		refuse(peer, record, method, status ?: PLX_RPC_OVERLOADED);
		return NULL;
	}
	request->state = REQUEST_RUNNING;
	request->deadline_ns = header->remaining_us == RPC_NO_DEADLINE_US
				     ? PLX_NEVER
				     : peer->arrived_ns + header->remaining_us * PLX_NS_PER_US;
	return request;
}

/* Run it if its key is new. This check comes first, because a known reply is valid even if the
 * service is full or the deadline has passed. */
static PLX_NOINLINE void serve_keyed(struct peer *peer, const struct rpc_record *record,
				     const struct method *method)
{
	struct plx_rpc_request *request;
	struct rpc_record rest = *record;
	struct key_entry *entry = NULL;
	uint64_t key, began = plx_tsc();

	memcpy(&key, record->payload, sizeof(key));
	rest.payload += RPC_KEY_BYTES;
	rest.header.length -= RPC_KEY_BYTES;
	/* Self-test methods change nothing, so there is nothing to remember. */
	if (method && method->what.id < PLX_RPC_SELF_TEST &&
	    !duplicate_claim(peer, &rest, method, le64toh(key), &entry)) {
		peer->turn_ns += plx_tsc_to_ns(plx_tsc() - began);
		return;
	}
	request = admit(peer, &rest, method);
	if (request) {
		request->entry = entry;
		run(peer, method, request, &rest);
	} else if (entry) {
		rpc_keys_forget(peer->local->service->keys, entry);
	}
}

/* Return: as serve_record. */
static const char *serve_request(struct peer *peer, const struct rpc_record *record)
{
	struct service_local *local = peer->local;
	const struct rpc_header *header = &record->header;
	const struct method *method = method_find(local->service, header->method, header->version);
	struct plx_rpc_request *request;

	if (plx_unlikely(header->flags & ~RPC_FLAG_KEY))
		return "it sent a request with flags that nobody knows";
	if (plx_unlikely(header->flags && header->length < RPC_KEY_BYTES))
		return "it sent a request that is shorter than its key";
	counter_add(&local->counts.requests, 1);
	if (plx_unlikely(header->flags)) {
		serve_keyed(peer, record, method);
		return NULL;
	}
	request = admit(peer, record, method);
	if (plx_likely(request != NULL))
		run(peer, method, request, record);
	return NULL;
}

static void serve_cancel(struct peer *peer, const struct rpc_record *record)
{
	struct plx_rpc_request *request = open_find(peer, record->header.call);

	if (!request) /* already answered */
		return;
	counter_add(&peer->local->counts.cancelled, 1);
	rpc_request_gone(request);
}

const char *serve_record(struct peer *peer, const struct rpc_record *record)
{
	peer->turn_count++; /* counts any record, whatever its result */
	switch (record->header.kind) {
	case RPC_REQUEST:
		return serve_request(peer, record);
	case RPC_CANCEL:
		serve_cancel(peer, record);
		return NULL;
	default:
		return "it sent something that is neither a request nor a cancellation";
	}
}
