/* SPDX-License-Identifier: BSD-3-Clause */
/* A request of a batch: hot path. Checks it, cheapest checks first; then its handler runs to
 * completion. */
#include "rpc_service.h"

#include <inttypes.h>

/* How long the median handler time stays valid. */
#define KNOWN_NS (100 * PLX_NS_PER_MS)

static int refuse(struct peer *peer, const struct rpc_record *record, enum plx_rpc_status status,
		  _Atomic uint64_t *count)
{
	counter_add(count, 1);
	return reply_refusal(peer, record->header.call, status, 0);
}

/* How long a request of the method is open on average: after that time there should be room. */
static uint64_t mean_open_ns(const struct method_local *method)
{
	uint64_t requests = counter_get(&method->requests);

	if (method->held)
		return plx_tsc_to_ns(method->held_cycles / method->held);
	return requests ? plx_tsc_to_ns(counter_get(&method->cycles) / requests) : 0;
}

/* Return: whether there is room for one more. */
static bool has_room(struct peer *peer, const struct rpc_record *record,
		     const struct method *method, struct method_local *local)
{
	const struct plx_rpc_service_attr *attr = &peer->local->service->attr;
	struct served *counts = &peer->local->counts;
	bool full = local->open >= method->what.open_max && method->what.open_max;
	bool overloaded = peer->local->open >= attr->open_total;

	if (plx_likely(!full && !overloaded && peer->open.count < attr->open_max))
		return true;
	counter_add(&local->refused, 1);
	counter_add(overloaded ? &counts->overloaded : &counts->busy, 1);
	reply_refusal(peer, record->header.call, overloaded ? PLX_RPC_OVERLOADED : PLX_RPC_BUSY,
		      mean_open_ns(local));
	return false;
}

static PLX_NOINLINE void report_slow(struct service_local *local, const struct method *method,
				     uint64_t cycles)
{
	struct method_local *mine = &local->methods[method->index];

	counter_add(&mine->slow, 1);
	if (method->what.id >= PLX_RPC_SELF_TEST) /* the program cannot change these */
		return;
	if (plx_log_allowed(&mine->log_limit, plx_loop_now_ns()))
		plx_log(&rpc_log, PLX_LOG_WARNING,
			"method %" PRIu32 " '%s': its handler ran %" PRIu64 " us on lcore %" PRIu32
			"; everybody else waited",
			method->what.id, method->what.name, plx_tsc_to_ns(cycles) / PLX_NS_PER_US,
			local->lcore);
}

/* The handler has left it open. */
static PLX_NOINLINE void leave_open(struct peer *peer, struct plx_rpc_request *request)
{
	plx_rpc_reply_abandon(request);
	request->state = REQUEST_OPEN;
	if (!request->kept)
		request->message = NULL;
	peer->local->methods[request->method].open++;
	counter_add(&peer->local->counts.open, 1);
	if (open_find(peer, request->call)) {
		request->peer = NULL; /* ambiguous: notify neither of them */
		peer_reject(peer, "it gave two open calls one number");
		return;
	}
	if (open_add(peer, request) == 0)
		return;
	/* Its cancellation could not find it, so its reply is discarded. */
	request->peer = NULL;
	peer_reject(peer, "there is no memory for its open calls");
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

static inline void run(struct peer *peer, const struct method *method,
		       struct plx_rpc_request *request, const struct rpc_record *record,
		       struct plx_buf *message)
{
	struct service_local *local = peer->local;
	struct method_local *mine = &local->methods[method->index];
	uint64_t cycles;

	request->message = message;
	request->started = plx_tsc();
	counter_add(&mine->requests, 1);
	method->what.handler(request, record->payload, record->header.length, method->what.arg);
	cycles = plx_tsc() - request->started; /* the request may be freed */
	update_median(mine, plx_tsc_to_ns(cycles));
	if (request->state == REQUEST_RUNNING)
		leave_open(peer, request);
	counter_add(&mine->cycles, cycles);
	peer->turn_cycles += cycles;
	if (plx_unlikely(cycles > local->service->slow_cycles))
		report_slow(local, method, cycles);
}

/* Checks that do not depend on open requests. Return: the status to refuse with, counted in
 * *count_out; OK. */
static inline enum plx_rpc_status check(struct peer *peer, const struct rpc_record *record,
					const struct method *method, _Atomic uint64_t **count_out)
{
	struct served *counts = &peer->local->counts;

	if (plx_unlikely(peer->local->draining)) {
		*count_out = &counts->draining;
		return PLX_RPC_DRAINING;
	}
	*count_out = &counts->unknown;
	if (plx_unlikely(!method))
		return PLX_RPC_UNKNOWN;
	*count_out = &counts->too_big;
	if (plx_unlikely(record->header.length > method->request_max))
		return PLX_RPC_TOO_BIG;
	*count_out = &counts->late;
	return plx_unlikely(is_late(peer, record, &peer->local->methods[method->index]))
		     ? PLX_RPC_DEADLINE
		     : PLX_RPC_OK;
}

/* Return: the request to run; NULL: refused, or *rc_out if even that failed. */
static inline struct plx_rpc_request *admit(struct peer *peer, const struct rpc_record *record,
					    const struct method *method, int *rc_out)
{
	struct service_local *local = peer->local;
	const struct rpc_header *header = &record->header;
	struct plx_rpc_request *request;
	_Atomic uint64_t *count;
	enum plx_rpc_status status = check(peer, record, method, &count);

	*rc_out = 0;
	if (plx_unlikely(status != PLX_RPC_OK)) {
		if (status == PLX_RPC_TOO_BIG || status == PLX_RPC_DEADLINE)
			counter_add(&local->methods[method->index].refused, 1);
		*rc_out = refuse(peer, record, status, count);
		return NULL;
	}
	if (plx_unlikely(!has_room(peer, record, method, &local->methods[method->index])))
		return NULL;
	request = rpc_request_take(peer, header->call, method->index);
	if (plx_unlikely(!request)) {
		*rc_out = refuse(peer, record, PLX_RPC_OVERLOADED, &local->counts.overloaded);
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
static PLX_NOINLINE int serve_keyed(struct peer *peer, const struct rpc_record *record,
				    const struct method *method, struct plx_buf *message)
{
	struct plx_rpc_request *request;
	struct rpc_record rest = *record;
	struct key_entry *entry = NULL;
	uint64_t key, began = plx_tsc();
	int rc;

	memcpy(&key, record->payload, sizeof(key));
	rest.payload += RPC_KEY_BYTES;
	rest.header.length -= RPC_KEY_BYTES;
	/* Self-test methods change nothing, so there is nothing to remember. */
	if (method && method->what.id < PLX_RPC_SELF_TEST &&
	    duplicate_claim(peer, &rest, method, le64toh(key), &entry, &rc) != KEY_NEW) {
		peer->turn_cycles += plx_tsc() - began;
		return rc;
	}
	request = admit(peer, &rest, method, &rc);
	if (request) {
		request->entry = entry;
		run(peer, method, request, &rest, message);
	} else if (entry) {
		rpc_keys_forget(peer->local->service->keys, entry);
	}
	return rc;
}

/* Return: 0; -ENOMEM if it could not even be refused. */
static int serve_request(struct peer *peer, const struct rpc_record *record,
			 struct plx_buf *message)
{
	struct service_local *local = peer->local;
	const struct rpc_header *header = &record->header;
	const struct method *method = method_find(local->service, header->method, header->version);
	struct plx_rpc_request *request;
	int rc;

	counter_add(&local->counts.requests, 1);
	if (plx_unlikely(header->flags))
		return serve_keyed(peer, record, method, message);
	request = admit(peer, record, method, &rc);
	if (plx_likely(request != NULL))
		run(peer, method, request, record, message);
	return rc;
}

/* Return the error in a request as text; NULL: valid. */
static inline const char *wrong_request(const struct rpc_header *header)
{
	if (plx_likely(header->flags == 0))
		return NULL;
	if (header->flags != RPC_FLAG_KEY)
		return "it sent a request with flags that nobody knows";
	return header->length < RPC_KEY_BYTES ? "it sent a request that is shorter than its key"
					      : NULL;
}

static void serve_cancel(struct peer *peer, const struct rpc_record *record)
{
	struct plx_rpc_request *request = open_find(peer, record->header.call);

	if (!request) /* already answered */
		return;
	counter_add(&peer->local->counts.cancelled, 1);
	rpc_request_gone(request);
}

bool serve_record(struct peer *peer, const struct rpc_record *record, struct plx_buf *message,
		  const char **wrong_out)
{
	peer->turn_count++; /* counts any record, whatever its result */
	switch (record->header.kind) {
	case RPC_REQUEST:
		*wrong_out = wrong_request(&record->header);
		if (plx_unlikely(*wrong_out != NULL))
			return false;
		if (plx_likely(serve_request(peer, record, message) == 0))
			return true;
		*wrong_out = NULL; /* already rejected */
		return false;
	case RPC_CANCEL:
		serve_cancel(peer, record);
		return true;
	default:
		*wrong_out = "it sent something that is neither a request nor a cancellation";
		return false;
	}
}
