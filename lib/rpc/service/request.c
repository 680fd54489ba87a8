/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests, and a table of those that a client waits for, by call. */
#include "rpc_service.h"

#include <assert.h>

/* Requests of a list that a turn checks or notifies: a few us, without callbacks. If many wait, the
 * next poll may follow after POLL_MIN_NS. */
#define REQUESTS_PER_TURN 64
#define POLL_MIN_NS       (100 * PLX_NS_PER_US)

_Static_assert(sizeof(struct plx_rpc_request) == 2 * PLX_CACHE_LINE, "a request is two lines");

struct plx_rpc_request *rpc_request_take(struct peer *peer, uint64_t call, uint32_t method)
{
	struct service_local *local = peer->local;
	struct plx_rpc_request *request = rpc_slab_take(&local->requests, sizeof(*request));

	if (plx_unlikely(!request))
		return NULL;
	local->open++;
	request->local = local;
	request->method = method;
	request->peer = peer;
	request->call = call;
	request->begun = NULL;
	request->entry = NULL;
	request->gone = false;
	return request;
}

static void list_remove(struct plx_rpc_request *request)
{
	struct request_list *list = request->list;

	assert(list);
	TAILQ_REMOVE(&list->requests, request, link);
	request->list = NULL;
	if (--list->count == 0)
		plx_timer_stop(&list->timer);
}

/* The last request of a destroyed service may free the service. */
void rpc_request_free(struct plx_rpc_request *request)
{
	struct service_local *local = request->local;

	if (plx_unlikely(request->list != NULL))
		list_remove(request);
	if (request->kept)
		plx_buf_unref(request->kept);
	request->kept = NULL;
	request->state = REQUEST_FREE;
	rpc_slab_put(&local->requests, request);
	local->open--;
	if (plx_unlikely(local->ending))
		service_end_if_idle(local);
}

/* Lists ------------------------------------------------------------------------------------- */

void request_list_init(struct request_list *list, plx_timer_fn fn, struct service_local *local)
{
	TAILQ_INIT(&list->requests);
	plx_timer_init(&list->timer, fn, local);
	plx_timer_set_lax(&list->timer, true);
}

void request_list_add(struct request_list *list, struct plx_rpc_request *request, uint64_t poll_ns)
{
	request->list = list;
	TAILQ_INSERT_TAIL(&list->requests, request, link);
	list->count++;
	if (!plx_timer_running(&list->timer))
		plx_timer_start(&list->timer, poll_ns);
}

void request_list_poll(struct request_list *list, uint64_t poll_ns,
		       bool (*is_over)(struct plx_rpc_request *request))
{
	uint32_t looks = list->count;
	uint64_t delay_ns = poll_ns;

	if (looks > REQUESTS_PER_TURN) {
		delay_ns = poll_ns * REQUESTS_PER_TURN / looks;
		looks = REQUESTS_PER_TURN;
	}
	if (looks) /* first, in case a C++ callback throws */
		plx_timer_start(&list->timer, delay_ns > POLL_MIN_NS ? delay_ns : POLL_MIN_NS);
	/* is_over may answer others too. */
	for (; looks && list->count; looks--) {
		struct plx_rpc_request *request = TAILQ_FIRST(&list->requests);

		list_remove(request);
		if (!is_over(request))
			request_list_add(list, request, poll_ns);
	}
}

/* Open requests ----------------------------------------------------------------------------- */

/* Clients choose call ids. The multiplier is odd and random, so that a client cannot cause
 * collisions (Dietzfelbinger and others, "A Reliable Randomized Algorithm for the Closest-Pair
 * Problem", 1997). */
static struct request_chain *chain_of(const struct peer *peer, uint64_t call)
{
	const struct plx_rpc_service *service = peer->local->service;
	uint64_t own = (uintptr_t)peer * service->multiplier; /* clients use the same ids */
	uint64_t hash = ((call + own) * service->multiplier) >> 32;

	return &peer->local->open_by_call[hash * service->chain_count >> 32];
}

struct plx_rpc_request *open_find(struct peer *peer, uint64_t call)
{
	struct plx_rpc_request *request;

	SLIST_FOREACH (request, chain_of(peer, call), chain)
		if (request->call == call && request->peer == peer)
			break;
	return request;
}

bool open_add(struct peer *peer, struct plx_rpc_request *request)
{
	request->state = REQUEST_OPEN;
	counter_add(&peer->local->counts.open, 1);
	if (open_find(peer, request->call)) {
		peer_reject(peer, "it gave two open calls one number");
		return false;
	}
	SLIST_INSERT_HEAD(chain_of(peer, request->call), request, chain);
	LIST_INSERT_HEAD(&peer->open, request, open);
	peer->open_count++;
	return true;
}

void open_remove(struct peer *peer, struct plx_rpc_request *request)
{
	if (request->gone)
		peer->gone_count--;
	else
		SLIST_REMOVE(chain_of(peer, request->call), request, plx_rpc_request, chain);
	LIST_REMOVE(request, open);
	peer->open_count--;
	peer->answered_ns = plx_loop_now_ns();
}

/* The client no longer waits for it; a reply is still owed. */
static void notify_gone(struct plx_rpc_request *request)
{
	const struct plx_rpc_service *service = request->local->service;
	const struct plx_rpc_method *method = &service->methods[request->method].what;

	if (request->gone) /* already notified */
		return;
	request->gone = true;
	if (method->gone && !request->local->ending)
		method->gone(request, method->arg);
}

/* Orphans ----------------------------------------------------------------------------------- */

/* Requests whose link has ended. They are notified from the loop, where `gone` may do anything. If
 * the link of a request with a key was lost, its client may reconnect and ask for the reply until
 * the deadline, or until its key may be forgotten: `gone` is not called, in case the handler does
 * something that must not stop in between. A draining service accepts no more clients. */

#define ORPHAN_POLL_NS (50 * PLX_NS_PER_MS)

static bool may_be_asked_for(const struct plx_rpc_request *request)
{
	const struct service_local *local = request->local;
	uint64_t now_ns = plx_loop_now_ns();
	const struct plx_rpc_service *service = local->service;
	uint64_t key_ns = service->attr.key_ns;

	if (local->ending || !request->lost_ns || request->deadline_ns <= now_ns)
		return false;
	if (!local->draining && plx_time_add(request->lost_ns, key_ns) > now_ns)
		return true;
	/* A client that waits is seen each millisecond. */
	return plx_time_add(rpc_keys_waited_ns(request->entry),
			    local->draining ? ORPHAN_POLL_NS : key_ns) > now_ns;
}

static bool orphan_is_over(struct plx_rpc_request *request)
{
	if (may_be_asked_for(request))
		return false;
	notify_gone(request);
	return true;
}

/* `gone` may destroy the service and reply to its last request. */
static struct service_local *hold(struct service_local *held)
{
	held->open++;
	return held;
}

static void unhold(struct service_local **held)
{
	(*held)->open--;
	service_end_if_idle(*held);
}

/* Return: the first that no client may ask for; NULL: none. */
static struct plx_rpc_request *first_to_notify(const struct service_local *local)
{
	struct plx_rpc_request *first = TAILQ_FIRST(&local->orphans.requests);

	return first && !first->lost_ns ? first : NULL;
}

void orphans_notify(struct plx_task *task, void *arg)
{
	struct service_local *local PLX_CLEANUP(unhold) = hold(arg);
	struct plx_rpc_request *first;

	plx_task_schedule(task); /* for the rest, also if a C++ callback throws */
	for (int i = 0; i < REQUESTS_PER_TURN && (first = first_to_notify(local)); i++) {
		list_remove(first);
		notify_gone(first);
	}
	if (!first_to_notify(local))
		plx_task_cancel(task);
}

void orphans_on_timer(struct plx_timer *timer, void *arg)
{
	struct service_local *local PLX_CLEANUP(unhold) = hold(arg);

	request_list_poll(&local->orphans, ORPHAN_POLL_NS, orphan_is_over);
}

/* It counts against the client until it is replied to. Otherwise a client could have any number
 * open by cancelling them. */
void rpc_request_gone(struct plx_rpc_request *request)
{
	if (request->list) {
		open_remove(request->peer, request);
		duplicate_gone(request);
		return;
	}
	SLIST_REMOVE(chain_of(request->peer, request->call), request, plx_rpc_request, chain);
	request->peer->gone_count++;
	notify_gone(request);
}

static void add_orphan(struct service_local *local, struct plx_rpc_request *request,
		       bool may_come_back)
{
	request_list_add(&local->orphans, request, ORPHAN_POLL_NS);
	request->lost_ns = may_come_back ? plx_loop_now_ns() : 0;
	if (may_come_back)
		return;
	TAILQ_REMOVE(&local->orphans.requests, request, link); /* such ones come first */
	TAILQ_INSERT_HEAD(&local->orphans.requests, request, link);
	plx_task_schedule(&local->notify);
}

void open_abandon(struct peer *peer, bool may_come_back)
{
	struct service_local *local = peer->local;
	struct plx_rpc_request *request;

	while ((request = LIST_FIRST(&peer->open))) {
		open_remove(peer, request);
		request->peer = NULL;
		if (request->list)
			duplicate_gone(request);
		else if (!request->gone && !local->ending)
			add_orphan(local, request, may_come_back && request->entry);
	}
}

void plx_rpc_request_keep(struct plx_rpc_request *request)
{
	ASSERT_OWNER(request->local->lcore);
	if (!request->kept && request->state == REQUEST_RUNNING)
		request->kept = plx_buf_ref(request->local->message);
}

bool plx_rpc_request_is_gone(const struct plx_rpc_request *request)
{
	ASSERT_OWNER(request->local->lcore);
	return request->gone || request->local->ending ||
	       (!request->peer && (!request->list || !request->lost_ns));
}

const struct plx_link *plx_rpc_request_link(const struct plx_rpc_request *request)
{
	ASSERT_OWNER(request->local->lcore);
	return request->peer ? request->peer->session.link : NULL;
}

uint64_t plx_rpc_request_deadline_ns(const struct plx_rpc_request *request)
{
	return request->deadline_ns;
}
