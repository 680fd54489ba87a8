/* SPDX-License-Identifier: BSD-3-Clause */
/* From a connection request to a link. The listener's lcore reads the request and chooses the
 * link's lcore. That lcore, the target, opens an endpoint in its own domain and accepts. Only the
 * listener's lcore may touch the passive endpoint, so a refusal goes back there.
 *
 * A pending request is on its listener's list and belongs to the listener's lcore, except between
 * plx_lcore_call and the answer. In that time the first lcore to take it decides: the target opens
 * a link, or the listener's lcore gives up because the target is late. Messages cannot be removed
 * from a lane. A request that was given up loses its listener and stays on a list of its lcore
 * until the target has seen it. plx_fabric_fini, when no lcore runs, finds all requests on these
 * two lists. */
#include "fabric_link.h"
#include "fabric_listen.h"
#include "list.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* Pause before another send to a full lane. */
#define RETRY_NS (100 * PLX_NS_PER_US)

struct request {
	struct plx_call call;
	struct plx_timer timer;        /* retries a full lane; once sent, gives up */
	struct plx_listener *listener; /* NULL: given up */
	LIST_ENTRY(request) of_list;   /* the listener's, or the lcore's given_up */
	struct fi_info *info;
	uint64_t deadline_ns;  /* when the peer stops waiting */
	struct ticket *ticket; /* NULL: the link has it */
	uint32_t target;
	bool is_placed; /* it has a target */
	bool is_sent;   /* and is in the target's lane */
	_Atomic bool taken;
	char why[160]; /* why it was not accepted */
};

/* Return: whether the caller is the first: then it owns the request's contents and answer. List and
 * timer always belong to the listener's lcore. */
static bool take_first(struct request *request)
{
	/* Relaxed: only the order of the exchanges counts, no data is handed over here. What the
	 * target reads was written before the request entered its lane, and the listener's lcore
	 * frees it after the answer left the lane back: A1 -> A2 of lib/lcore both ways. */
	return !atomic_exchange_explicit(&request->taken, true, memory_order_relaxed);
}

static void reject(struct plx_listener *listener, struct fi_info *info, uint64_t again_ns)
{
	uint8_t data[BUSY_BYTES];

	busy_write(again_ns, data);
	if (info->handle) /* otherwise an endpoint took it, and closing that dropped it */
		fi_reject(listener->pep, info->handle, data, again_ns ? sizeof(data) : 0);
}

static void refuse(struct plx_listener *listener, struct fi_info *info, const char *why, bool logs)
{
	char peer[PLX_ADDRESS_MAX];

	address_format(info->dest_addr, peer, sizeof(peer));
	counter_add_shared(&listener->shared->refused, 1);
	reject(listener, info, 0);
	if (logs)
		log_warning("connection from %s refused: %s", peer, why);
}

static bool may_log(struct plx_log_limit *limit)
{
	return plx_log_allowed(limit, plx_loop_now_ns());
}

static void refuse_request(struct request *request, const char *why)
{
	refuse(request->listener, request->info, why, may_log(&request->listener->set->log_limit));
}

/* End a request. why: NULL: accepted. */
static void finish(struct request *request, const char *why)
{
	if (why)
		refuse_request(request, why);
	plx_timer_stop(&request->timer);
	plx_task_cancel(&request->call.response); /* an lcore that has ended could not send it */
	LIST_REMOVE(request, of_list);
	fi_freeinfo(request->info);
	admission_leave(request->ticket);
	free(request);
}

void handover_drop_all(struct plx_listener *listener)
{
	struct request *request, *next;

	LIST_FOREACH_SAFE (request, &listener->requests, of_list, next)
		finish(request, "the process is shutting down");
}

/* Call when no lcore runs. */
void handover_forget_all(struct plx_fabric_lcore *home)
{
	struct request *request, *next;

	LIST_FOREACH_SAFE (request, &home->given_up, of_list, next)
		finish(request, NULL);
}

/* On the target ------------------------------------------------------------------------------ */

static int open_link(const struct request *request, struct plx_link **link_out)
{
	const struct plx_listener *listener = request->listener;
	const struct driver_choice choice = {.driver = listener->set->driver};
	struct plx_fabric_lcore *here;
	struct plx_set *set = NULL;

	if (fabric_here("plx_link_listen", &here) == 0)
		set = set_get(here, &choice, request->info, &listener->attr.link);
	return set ? link_create(set, &listener->attr.link, request->info, link_out) : -ENOMEM;
}

/* Open an endpoint for the request on this lcore and accept. May read only constant fields of the
 * listener, and nothing before take_first. Return: 0; -errno while the request can still be
 * refused. Later failures end the link instead. */
static int take(struct plx_call *call, void *arg)
{
	struct request *request = arg;

	if (!take_first(request))
		return -ECANCELED;

	const struct plx_listener *listener = request->listener;
	struct plx_link *link;
	int rc = 0;

	/* The listener's lcore may be late, too. */
	if (plx_loop_now_ns() > request->deadline_ns)
		rc = plx_fail(ETIMEDOUT, "lcore %u came to it too late", request->target);
	if (rc == 0)
		rc = open_link(request, &link);
	if (rc) {
		snprintf(request->why, sizeof(request->why), "%s", plx_error());
		return rc;
	}
	address_format(request->info->dest_addr, link->peer, sizeof(link->peer));
	listener_ref(listener->shared);
	link->from = listener->shared;
	link->ticket = request->ticket;
	request->ticket = NULL;
	admission_placed(link->ticket, link);
	link->choice = "the peer chose it";
	plx_timer_start(&link->timer, link->attr.connect_timeout_ns);
	rc = fi_accept(link->ep, NULL, 0);
	if (rc)
		close_now(link, PLX_LINK_LOCAL, "%s cannot be accepted: %s", link->peer,
			  fi_strerror(-rc));
	return 0;
}

/* On the listener's lcore --------------------------------------------------------------------- */

static void answered(struct plx_call *call, int result, void *arg)
{
	struct request *request = arg;
	struct plx_listener *listener = request->listener;

	if (!listener) { /* given up: refused and counted already */
		finish(request, NULL);
		return;
	}
	finish(request, result ? request->why : NULL);
	listener_release(listener);
}

/* The target is late: refuse the peer now. */
static void give_up(struct request *request)
{
	struct plx_listener *listener = request->listener;

	snprintf(request->why, sizeof(request->why),
		 "lcore %u, which it was placed on, did not take it within %" PRIu64 " ms",
		 request->target, listener->attr.link.connect_timeout_ns / PLX_NS_PER_MS);
	refuse_request(request, request->why);
	fi_freeinfo(request->info);
	request->info = NULL;
	request->listener = NULL;
	admission_leave(request->ticket);
	request->ticket = NULL;
	LIST_REMOVE(request, of_list);
	LIST_INSERT_HEAD(&listener->set->home->given_up, request, of_list);
	listener_release(listener);
}

static void on_deadline(struct plx_timer *timer, void *arg)
{
	struct request *request = arg;

	if (take_first(request))
		give_up(request);
	/* else its answer is on the way */
}

/* The reason for an error of plx_lcore_call. */
static const char *why_not(struct request *request, int rc)
{
	if (rc == -ENOENT)
		snprintf(request->why, sizeof(request->why),
			 "it was placed on lcore %u, which does not exist", request->target);
	else if (rc == -EAGAIN)
		snprintf(request->why, sizeof(request->why),
			 "lcore %u, which it was placed on, is too busy", request->target);
	else
		snprintf(request->why, sizeof(request->why), "%s", plx_error());
	return request->why;
}

/* Retry a full lane while the peer waits: the peer must not notice. */
static void hand_over(struct request *request)
{
	uint64_t left_ns = plx_time_since(plx_loop_now_ns(), request->deadline_ns);
	int rc = plx_lcore_call(request->target, &request->call);

	request->is_sent = rc == 0;
	if (rc == 0) { /* give up in time: the target may never run its loop */
		plx_timer_init(&request->timer, on_deadline, request);
		plx_timer_set_lax(&request->timer, true);
		plx_timer_start(&request->timer, left_ns);
	} else if (rc == -EAGAIN && left_ns) {
		plx_timer_start(&request->timer, RETRY_NS);
	} else {
		finish(request, why_not(request, rc));
	}
}

static void place(struct request *request)
{
	struct plx_listener *listener = request->listener;

	request->is_placed = true;
	listener->placing = true; /* keeps the listener alive inside its callback */
	request->target = spread_choose(listener, request->info->dest_addr);
	if (listener->closed) /* by its own callback */
		finish(request, "the listener is closed");
	else if (request->target == listener->set->home->id)
		finish(request, take(&request->call, request) ? request->why : NULL);
	else
		hand_over(request);
	listener->placing = false;
}

/* Admission ------------------------------------------------------------------------------------ */

/* A provider that accepts connections itself has asked before it reported the request. For others
 * the connection begins here, and waits in the request. */
static void ask(struct request *request)
{
	struct plx_listener *listener = request->listener;
	const struct plx_admit_request asked = {.peer = request->info->dest_addr,
						.ticket = request->ticket};
	struct admission_answer answer;

	admit_ask(listener->shared, &asked, &answer);
	request->ticket = answer.ticket;
	if (answer.verdict == PLX_ADMIT_REFUSE) {
		reject(listener, request->info, answer.again_ns);
		finish(request, NULL);
	} else if (answer.verdict == PLX_ADMIT_KEEP) {
		admission_waits_in(request->ticket, request);
		plx_timer_start(&request->timer, answer.wait_ns);
	} else {
		admission_waits_in(request->ticket, NULL);
		place(request);
	}
}

/* It asks once more, and is refused: to end it here could free the listener that evicts it. */
void handover_evict(struct ticket *ticket)
{
	if (ticket->request)
		plx_timer_start(&ticket->request->timer, 0);
}

/* It was not due, or the lane was full. */
static void on_retry(struct plx_timer *timer, void *arg)
{
	struct request *request = arg;
	struct plx_listener *listener = request->listener;

	if (listener->closed)
		finish(request, "the listener is closed");
	else if (request->is_placed)
		hand_over(request);
	else
		ask(request);
	listener_release(listener);
}

static struct request *make_request(struct plx_listener *listener, struct fi_info *info)
{
	const struct plx_fabric_driver *driver = listener->set->driver;
	struct request *request = malloc(sizeof(*request));

	if (!request)
		return NULL;
	*request = (struct request){
		.ticket = driver->ticket ? driver->ticket(info) : NULL,
		.listener = listener,
		.info = info,
		.deadline_ns = plx_time_add(plx_loop_now_ns(),
					    listener->attr.link.connect_timeout_ns),
	};
	request->call = (struct plx_call){.fn = take, .done = answered, .arg = request};
	plx_timer_init(&request->timer, on_retry, request);
	plx_timer_set_lax(&request->timer, true);
	LIST_INSERT_HEAD(&listener->requests, request, of_list);
	return request;
}

/* FI_CONNREQ. Ownership: takes info. */
void handover_request(struct plx_listener *listener, struct fi_info *info)
{
	struct request *request = NULL;
	const char *why = "out of memory";

	counter_add_shared(&listener->shared->requests, 1);
	if (listener->closed) /* closes after earlier requests */
		why = "the listener is closed";
	else
		request = make_request(listener, info);
	if (!request) {
		refuse(listener, info, why, may_log(&listener->set->log_limit));
		fi_freeinfo(info);
		return;
	}
	if (request->ticket)
		place(request);
	else
		ask(request);
	listener_release(listener);
}
