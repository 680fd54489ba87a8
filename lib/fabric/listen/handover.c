/* SPDX-License-Identifier: BSD-3-Clause */
/* From a connection request to a link. The listener's lcore reads the request, chooses the link's
 * lcore, and hands the request over by a message. That lcore, the target, opens an endpoint in its
 * own domain and accepts, or rejects.
 *
 * The first to take a request answers it: the target, or the listener's lcore once the peer stops
 * waiting or another connection needs the room. Messages cannot be removed from a lane. So each
 * request stays in a list of the lcore that read it until its target has finished with it; then
 * that lcore frees it. plx_fabric_fini finds all requests there. Neither side needs the listener,
 * except to reject on a provider without a call for it: then the request goes back. */
#include "fabric_link.h"
#include "fabric_listen.h"
#include "list.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define REAPED_MAX 2 /* finished requests freed with each new one */

struct request {
	TAILQ_ENTRY(request) of_home;
	struct plx_timer timer;        /* its turn, then its deadline */
	struct plx_task room;          /* waits for room in a lane: of the sender */
	struct plx_set *set;           /* of the listener */
	struct plx_listener *listener; /* NULL: closed. Only for the lcore that read it */
	struct listener_shared *shared;
	struct fi_info *info;  /* NULL: answered */
	struct ticket *ticket; /* NULL: not asked yet, or answered */
	uint64_t deadline_ns;  /* when the peer stops waiting */
	uint32_t target;
	bool is_sent; /* to the target */
	_Atomic bool taken, done;
	uint32_t length;
	uint8_t data[HELLO_BYTES_MAX]; /* the peer's; on its way back, that of the rejection */
};

static bool take_first(struct request *request)
{
	/* Relaxed: only the order of the exchanges counts. What the target reads was written before
	 * the request entered its lane: A1 -> A2 of lib/lcore. */
	return !atomic_exchange_explicit(&request->taken, true, memory_order_relaxed);
}

/* It is answered. */
static void release(struct request *request)
{
	fi_freeinfo(request->info);
	request->info = NULL;
	admission_leave(request->ticket);
	request->ticket = NULL;
}

/* No lane has it. */
static void finish(struct request *request)
{
	/* H1 -> H2: the target's last use comes before the request is freed. */
	atomic_store_explicit(&request->done, true, memory_order_release);
}

static void delist(struct plx_fabric_lcore *home, struct request *request)
{
	TAILQ_REMOVE(&home->requests, request, of_home);
	plx_timer_stop(&request->timer);
	plx_task_cancel(&request->room); /* for plx_fabric_fini */
	free(request);
}

/* In turn, so that a request which waits for long keeps no others. */
static void reap(struct plx_fabric_lcore *home)
{
	struct request *each, *next;
	int looks = 0;

	TAILQ_FOREACH_SAFE (each, &home->requests, of_home, next) {
		if (looks++ == REAPED_MAX)
			break;
		if (atomic_load_explicit(&each->done, memory_order_acquire)) { /* H2 */
			delist(home, each);
			continue;
		}
		TAILQ_REMOVE(&home->requests, each, of_home);
		TAILQ_INSERT_TAIL(&home->requests, each, of_home);
	}
}

/* Rejecting ------------------------------------------------------------------------------------ */

/* Its target rejected it, and its listener has closed meanwhile: an endpoint takes it over, and
 * drops it when it is closed. */
static void drop(struct request *request)
{
	const struct driver_choice choice = {.driver = request->set->driver};
	struct plx_set *set = set_get(request->set->home, &choice, request->info, NULL);
	struct fid_ep *ep;

	if (set && fi_endpoint(set->fids.domain, request->info, &ep, NULL) == 0)
		fi_close(&ep->fid);
}

/* Without a driver's call: on the lcore that read it. */
static void reject(struct request *request, const void *data, size_t length)
{
	const struct plx_fabric_driver *driver = request->set->driver;
	fid_t handle = request->info->handle;

	if (!handle) /* an endpoint took it, and closing that dropped it */
		return;
	if (driver->reject)
		driver->reject(handle, data, length);
	else if (request->listener)
		fi_reject(request->listener->pep, handle, data, length);
	else
		drop(request);
}

static void come_back(void *arg)
{
	struct request *request = arg;

	reject(request, request->data, request->length);
	release(request);
	finish(request);
}

static void send_back(struct plx_task *task, void *arg)
{
	struct request *request = arg;
	uint32_t home = request->set->home->id;
	int rc = plx_lcore_send(home, come_back, request);

	if (rc == -EAGAIN)
		rc = plx_lcore_on_room(home, task);
	if (rc) /* no memory for the lane: the next turn tries again */
		plx_task_schedule(task);
}

static void count_refusal(const struct request *request, const char *why)
{
	static __thread struct plx_log_limit log_limit;
	char peer[PLX_ADDRESS_MAX];

	counter_add_shared(&request->shared->refused, 1);
	address_format(request->info->dest_addr, peer, sizeof(peer));
	if (plx_log_allowed(&log_limit, plx_loop_now_ns()))
		log_warning("connection from %s refused: %s", peer, why);
}

/* Reject a request that this lcore took, and that must not be used after this. data: for the peer.
 */
static void reject_taken(struct request *request, const void *data, size_t length)
{
	if (length)
		memcpy(request->data, data, length);
	request->length = (uint32_t)length;
	if (request->set->driver->reject || plx_lcore_id() == request->set->home->id) {
		come_back(request);
		return;
	}
	plx_task_init(&request->room, send_back, request);
	send_back(&request->room, request);
}

/* On the lcore that read it and took it back. A lane may have it. */
static void answer(struct request *request, const void *data, size_t length)
{
	plx_timer_stop(&request->timer);
	plx_task_cancel(&request->room);
	reject(request, data, length);
	release(request);
	if (!request->is_sent)
		finish(request);
}

static void give_up(struct request *request, const char *why)
{
	count_refusal(request, why);
	answer(request, NULL, 0);
}

/* On the target ------------------------------------------------------------------------------ */

/* Return: a link without an endpoint; NULL with an error text. */
static struct plx_link *make_link(struct request *request)
{
	const struct plx_link_attr *attr = &request->shared->attr.link;
	const struct driver_choice choice = {.driver = request->set->driver};
	struct plx_fabric_lcore *here;
	struct plx_link *link;
	struct plx_set *set;

	/* The listener's lcore may be late, too. */
	if (plx_loop_now_ns() > request->deadline_ns) {
		plx_fail(ETIMEDOUT, "lcore %u came to it too late", request->target);
		return NULL;
	}
	if (fabric_here("plx_link_listen", &here) != 0)
		return NULL;
	set = set_get(here, &choice, request->info, attr);
	if (!set || link_create(set, attr, request->info, &link) != 0)
		return NULL;
	address_format(request->info->dest_addr, link->peer, sizeof(link->peer));
	listener_ref(request->shared);
	link->from = request->shared;
	link->ticket = request->ticket;
	request->ticket = NULL;
	link->choice = "the peer chose it";
	return link;
}

static void accept_link(struct plx_link *link)
{
	uint8_t hello[HELLO_BYTES_MAX];
	int rc = fi_accept(link->ep, hello, handshake_write(link, 0, hello));

	if (rc == -FI_ECONNABORTED) /* such as while this process stood still */
		close_now(link, PLX_LINK_HELLO, "%s gave up before this process accepted it",
			  link->peer);
	else if (rc)
		close_now(link, PLX_LINK_LOCAL, "%s cannot be accepted: %s", link->peer,
			  fi_strerror(-rc));
	else if (handshake_is_private(link))
		handshake_connected(link, NULL, 0);
}

/* Refuse a request whose link has no endpoint. data: for the peer. */
static void refuse(struct request *request, struct plx_link *link, const void *data, size_t length)
{
	request->ticket = link->ticket;
	link->ticket = NULL;
	reject_taken(request, data, length);
	link_destroy(link);
}

/* Another connection needed the room after this lcore had taken the request. */
static void refuse_evicted(struct request *request, struct plx_link *link)
{
	uint8_t data[BUSY_BYTES];

	counter_add_shared(&request->shared->refused, 1);
	busy_write(ADMISSION_GRACE_NS, data);
	refuse(request, link, data, sizeof(data));
}

/* Open an endpoint for the request. Failures end the link. */
static void start(struct request *request, struct plx_link *link)
{
	int rc = link_start(link, request->info);

	plx_timer_start(&link->timer, link->attr.connect_timeout_ns);
	if (rc) {
		close_now(link, PLX_LINK_LOCAL, "%s", plx_error());
		reject_taken(request, NULL, 0);
		return;
	}
	accept_link(link);
	release(request);
	finish(request);
}

struct hearing {
	struct request *request;
	struct plx_link *link;
};

/* A C++ on_hello has thrown. */
static void refuse_unheard(struct hearing *hearing)
{
	if (hearing->link)
		refuse(hearing->request, hearing->link, NULL, 0);
}

static bool hear(struct request *request, struct plx_link *link)
{
	struct hearing hearing PLX_CLEANUP(refuse_unheard) = {request, link};
	bool continues = handshake_hear(link, request->data, request->length, false);

	hearing.link = NULL;
	return continues;
}

static void take(struct request *request)
{
	struct plx_link *link = make_link(request);
	const struct ticket_holder holder = {.link = link, .lcore = request->target};
	uint8_t hello[HELLO_BYTES_MAX];

	if (!link) {
		count_refusal(request, plx_error());
		reject_taken(request, NULL, 0);
	} else if (!hear(request, link)) {
		listener_failed(link);
		refuse(request, link, hello, handshake_write(link, 0, hello));
	} else if (admission_hold(link->ticket, holder)) {
		start(request, link);
	} else {
		refuse_evicted(request, link);
	}
}

static void arrive(void *arg)
{
	struct request *request = arg;

	if (take_first(request))
		take(request);
	else
		finish(request);
}

/* On the listener's lcore --------------------------------------------------------------------- */

static void on_deadline(struct plx_timer *timer, void *arg)
{
	struct request *request = arg;
	uint64_t waited_ns;
	char why[160];

	if (!take_first(request)) /* then its listener's part may be freed */
		return;
	waited_ns = request->shared->attr.link.connect_timeout_ns;
	if (request->is_sent)
		snprintf(why, sizeof(why),
			 "lcore %u, which it was placed on, did not take it within %" PRIu64 " ms",
			 request->target, waited_ns / PLX_NS_PER_MS);
	else
		snprintf(why, sizeof(why), "lcore %u, which it was placed on, is too busy",
			 request->target);
	give_up(request, why);
}

/* A full lane: the peer must not notice while it waits. */
static void hand_over(struct plx_task *task, void *arg)
{
	struct request *request = arg;
	char why[160];
	int rc = plx_lcore_send(request->target, arrive, request);

	request->is_sent = rc == 0;
	if (rc == -EAGAIN)
		rc = plx_lcore_on_room(request->target, &request->room);
	if (rc == 0 || !take_first(request))
		return;
	if (rc == -ENOENT)
		snprintf(why, sizeof(why), "it was placed on lcore %u, which does not exist",
			 request->target);
	else
		snprintf(why, sizeof(why), "%s", plx_error());
	give_up(request, why);
}

static void start_timer(struct request *request, plx_timer_fn fn, uint64_t delay_ns)
{
	plx_timer_init(&request->timer, fn, request);
	plx_timer_set_lax(&request->timer, true);
	plx_timer_start(&request->timer, delay_ns);
}

static void place(struct request *request)
{
	const struct sockaddr *from = request->info->dest_addr;
	struct sockaddr_storage peer; /* stays valid if the listener is closed */

	if (from)
		memcpy(&peer, from, address_bytes(from));
	request->target = spread_choose(request->listener, from ? (struct sockaddr *)&peer : NULL);
	if (!request->listener) /* closed by its own callback */
		return;
	if (request->target == request->set->home->id) {
		arrive(request);
		return;
	}
	start_timer(request, on_deadline, plx_time_since(plx_loop_now_ns(), request->deadline_ns));
	hand_over(&request->room, request);
}

/* A provider that accepts connections itself has asked before it reported the request. For others
 * the connection begins here, and waits in the request. */
static void ask(struct plx_timer *timer, void *arg)
{
	struct request *request = arg;
	const struct plx_admit_request asked = {.peer = request->info->dest_addr,
						.ticket = request->ticket};
	struct admission_answer given = {.verdict = PLX_ADMIT_TAKE, .ticket = request->ticket};
	uint8_t data[BUSY_BYTES];

	if (!request->set->driver->ticket)
		admit_ask(request->shared, &asked, &given);
	busy_write(given.again_ns, data);
	request->ticket = given.ticket;
	if (given.ticket)
		admission_hold(given.ticket, (struct ticket_holder){.request = request});
	if (given.verdict == PLX_ADMIT_TAKE)
		place(request);
	else if (given.verdict == PLX_ADMIT_KEEP)
		start_timer(request, ask, given.wait_ns);
	else if (take_first(request))
		answer(request, data, sizeof(data));
}

void handover_evict(struct request *request, const void *data, size_t length)
{
	if (!take_first(request)) /* its target finds out */
		return;
	counter_add_shared(&request->shared->refused, 1);
	answer(request, data, length);
}

static void init(struct request *request, struct plx_listener *listener, struct fi_info *info)
{
	const struct plx_fabric_driver *driver = listener->set->driver;
	uint64_t timeout_ns = listener->shared->attr.link.connect_timeout_ns;

	*request = (struct request){
		.ticket = driver->ticket ? driver->ticket(info) : NULL,
		.set = listener->set,
		.listener = listener,
		.shared = listener->shared,
		.info = info,
		.deadline_ns = plx_time_add(plx_loop_now_ns(), timeout_ns),
	};
	plx_task_init(&request->room, hand_over, request);
}

void handover_request(struct plx_listener *listener, struct fi_info *info, const void *data,
		      size_t length)
{
	struct plx_fabric_lcore *home = listener->set->home;
	struct request *request = malloc(sizeof(*request)), lost;

	counter_add_shared(&listener->shared->requests, 1);
	init(request ?: &lost, listener, info);
	if (!request) {
		give_up(&lost, "out of memory");
		return;
	}
	request->length = (uint32_t)lesser(length, sizeof(request->data));
	memcpy(request->data, data, request->length);
	reap(home);
	TAILQ_INSERT_TAIL(&home->requests, request, of_home);
	ask(&request->timer, request);
}

/* Ends --------------------------------------------------------------------------------------- */

void handover_close(const struct plx_listener *listener)
{
	bool needs_listener = !listener->set->driver->reject;
	struct request *each;

	TAILQ_FOREACH (each, &listener->set->home->requests, of_home) {
		if (each->listener != listener)
			continue;
		if ((needs_listener || !each->is_sent) && take_first(each))
			give_up(each, "the listener is closed");
		each->listener = NULL;
	}
}

void handover_fini(struct plx_fabric_lcore *home)
{
	struct request *each, *next;

	TAILQ_FOREACH_SAFE (each, &home->requests, of_home, next) {
		if (take_first(each))
			give_up(each, "the process is shutting down");
		else if (each->info)
			come_back(each);
		delist(home, each);
	}
}
