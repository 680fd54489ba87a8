/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests, and where those that are still owed a reply are found by their calls. */
#include "service.h"

#include <stdlib.h>

#define SLAB_REQUESTS 64
#define BUCKETS_FIRST 64

struct request_slab {
	struct request_slab *next;
	struct plx_rpc_request requests[SLAB_REQUESTS];
};

static __attribute__((noinline)) bool more_requests(struct service_here *here)
{
	struct request_slab *slab = calloc(1, sizeof(*slab));

	if (!slab)
		return false;
	slab->next = here->slabs;
	here->slabs = slab;
	for (unsigned i = 0; i < SLAB_REQUESTS; i++) {
		slab->requests[i].here = here;
		slab->requests[i].next = here->free;
		here->free = &slab->requests[i];
	}
	return true;
}

struct plx_rpc_request *rpc_request_take(struct service_here *here)
{
	struct plx_rpc_request *request;

	if (plx_unlikely(!here->free) && !more_requests(here))
		return NULL;
	request = here->free;
	here->free = request->next;
	here->open++;
	return request;
}

/* The last one of a service that has ended may take the service with it. */
void rpc_request_free(struct plx_rpc_request *request)
{
	struct service_here *here = request->here;

	if (request->kept)
		plx_buf_unref(request->message);
	request->kept = false;
	request->state = REQUEST_FREE;
	request->next = here->free;
	here->free = request;
	here->open--;
	if (plx_unlikely(here->ending))
		service_peer_left(here);
}

void rpc_request_free_all(struct service_here *here)
{
	while (here->slabs) {
		struct request_slab *slab = here->slabs;

		here->slabs = slab->next;
		free(slab);
	}
	here->free = NULL;
}

/* Those that stay open ------------------------------------------------------------------------- */

/* Calls are numbered by the client. The multiplier is odd and at random, so that it cannot choose
 * numbers that meet (Dietzfelbinger and others, "A Reliable Randomized Algorithm for the
 * Closest-Pair Problem", 1997). */
static struct plx_rpc_request **bucket_of(const struct open_table *table, uint64_t call)
{
	return &table->buckets[((call * table->multiplier) >> 32) * ((uint64_t)table->mask + 1) >>
			       32];
}

static bool make_buckets(struct open_table *table, uint32_t count)
{
	struct open_table more = {.mask = count - 1,
				  .count = table->count,
				  .gone = table->gone,
				  .multiplier = table->multiplier};

	more.buckets = calloc(count, sizeof(struct plx_rpc_request *));
	if (!more.buckets)
		return false;
	for (uint32_t i = 0; table->buckets && i <= table->mask; i++) {
		while (table->buckets[i]) {
			struct plx_rpc_request *request = table->buckets[i];
			struct plx_rpc_request **bucket = bucket_of(&more, request->call);

			table->buckets[i] = request->next;
			request->next = *bucket;
			*bucket = request;
		}
	}
	free(table->buckets);
	*table = more;
	return true;
}

/* Return: 0; -ENOMEM. */
int open_add(struct peer *peer, struct plx_rpc_request *request)
{
	struct open_table *table = &peer->open;
	struct plx_rpc_request **bucket;

	if (!table->buckets || table->count > table->mask) {
		uint32_t count = table->buckets ? 2 * (table->mask + 1) : BUCKETS_FIRST;

		if (!make_buckets(table, count) && !table->buckets)
			return -ENOMEM; /* else they get longer */
	}
	bucket = bucket_of(table, request->call);
	request->next = *bucket;
	*bucket = request;
	table->count++;
	return 0;
}

struct plx_rpc_request *open_find(struct peer *peer, uint64_t call)
{
	struct plx_rpc_request *request;

	if (!peer->open.buckets)
		return NULL;
	for (request = *bucket_of(&peer->open, call); request; request = request->next) {
		if (request->call == call && !request->gone)
			return request;
	}
	return NULL;
}

void open_remove(struct peer *peer, struct plx_rpc_request *request)
{
	struct plx_rpc_request **at;

	if (!peer->open.buckets)
		return;
	for (at = bucket_of(&peer->open, request->call); *at; at = &(*at)->next) {
		if (*at == request) {
			*at = request->next;
			peer->open.count--;
			peer->open.gone -= request->gone;
			return;
		}
	}
}

void open_end(struct plx_rpc_request *request)
{
	request->here->methods[request->method].open--;
	rpc_add(&request->here->counts.open, (uint64_t)-1);
}

/* Nobody waits for it any more; a reply is still owed. */
static void tell_gone(struct plx_rpc_request *request)
{
	const struct plx_rpc_method *method =
		&request->here->service->methods[request->method].what;

	if (request->gone) /* it was told before */
		return;
	request->gone = true;
	if (method->gone && !request->here->ending)
		method->gone(request, method->arg);
}

/* It stays in the table, and counts as the client's, until it is replied to: else a client could
 * have any number open by cancelling them. */
void rpc_request_gone(struct plx_rpc_request *request)
{
	if (request->prev_repeat) {
		open_remove(request->peer, request);
		repeat_gone(request);
		return;
	}
	request->peer->open.gone++;
	tell_gone(request);
}

void open_all_gone(struct peer *peer)
{
	struct open_table *table = &peer->open;

	for (uint32_t i = 0; table->buckets && i <= table->mask; i++) {
		struct plx_rpc_request *request;

		while ((request = table->buckets[i])) { /* others may be replied to meanwhile */
			table->buckets[i] = request->next;
			table->count--;
			table->gone -= request->gone;
			request->peer = NULL;
			if (request->prev_repeat)
				repeat_gone(request);
			else
				tell_gone(request);
		}
	}
	free(table->buckets);
	*table = (struct open_table){0};
}

void plx_rpc_request_keep(struct plx_rpc_request *request)
{
	if (request->kept || request->state != REQUEST_RUNNING)
		return;
	request->message = plx_buf_ref(request->message);
	request->kept = true;
}

bool plx_rpc_request_is_gone(const struct plx_rpc_request *request)
{
	return !request->peer || request->gone;
}

uint64_t plx_rpc_request_deadline_ns(const struct plx_rpc_request *request)
{
	return request->deadline_ns;
}

const char *plx_rpc_request_peer(const struct plx_rpc_request *request)
{
	return request->peer ? plx_link_peer(request->peer->link) : "";
}
