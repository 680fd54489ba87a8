/* SPDX-License-Identifier: BSD-3-Clause */
/* What becomes of a connection request. The listener's lcore reads it and chooses where the link
 * shall live; that lcore, its target, opens an endpoint for it in its own domain, and accepts. Only
 * the listener's lcore may touch the passive endpoint, so a refusal goes back there.
 *
 * A request is on its listener's list as long as it is on its way, and belongs to the listener's
 * lcore but for the time between plx_lcore_call and its answer. In that time whoever takes it first
 * decides: the target, which opens a link, or the listener's lcore, which gives up when the target
 * has not come to it in time. Nothing comes back out of a lane, so one that was given up keeps its
 * memory, on a list of its lcore and without its listener, until the target has looked at it.
 * plx_fabric_fini, when no lcore runs any more, finds all of them on these two lists. */
#include "fabric_link.h"
#include "fabric_listen.h"
#include "list.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* How long a request waits before it tries a full lane again. */
#define RETRY_NS (100 * PLX_NS_PER_US)

struct request {
	struct plx_call call;
	struct plx_timer timer;        /* to try a full lane again; from the lane on, to give up */
	struct plx_listener *listener; /* NULL: given up */
	LIST_ENTRY(request) of_list;   /* of the listener, or of those its lcore gave up */
	struct fi_info *info;
	uint64_t deadline_ns;  /* the peer does not wait for ever */
	struct ticket *ticket; /* NULL: the link has it */
	uint32_t target;
	bool is_placed; /* it has a target */
	bool is_sent;   /* and is in its lane */
	int fd;         /* see struct plx_link */
	_Atomic bool taken;
	char why[160]; /* it could not be taken */
};

/* Return: whether the caller is the first: then what the request asks for, and its answer, are the
 * caller's. Its list and its timer are the listener's lcore's all the time. */
static bool take_first(struct request *request)
{
	/* Relaxed: nothing is handed over here, all that counts is who comes first. What the target
	 * reads was written before the request went into its lane, and the listener's lcore frees
	 * it after the answer has come out of the lane back: A1 -> A2 of lib/lcore both ways. */
	return !atomic_exchange_explicit(&request->taken, true, memory_order_relaxed);
}

static void refuse(struct plx_listener *listener, struct fi_info *info, const char *why, bool logs)
{
	char peer[PLX_ADDRESS_MAX];

	address_format(info->dest_addr, peer, sizeof(peer));
	counter_add_shared(&listener->shared->refused, 1);
	if (info->handle) /* else an endpoint took it, and closing that dropped it */
		fi_reject(listener->pep, info->handle, NULL, 0);
	if (logs)
		plx_log(&fabric_log, PLX_LOG_WARNING, "connection from %s refused: %s", peer, why);
}

static bool may_log(struct plx_listener *listener)
{
	return plx_log_allowed(&listener->set->log_limit, plx_loop_now_ns());
}

static bool was_evicted(const struct request *request)
{
	return request->ticket &&
	       atomic_load_explicit(&request->ticket->evicted, memory_order_relaxed);
}

static void refuse_request(struct request *request, const char *why)
{
	const struct plx_fabric_driver *driver = request->listener->set->driver;

	if (driver->closing)
		driver->closing(request->fd);
	refuse(request->listener, request->info, why,
	       !was_evicted(request) && may_log(request->listener));
}

/* The end of a request. why: NULL where it was taken. */
static void finish(struct request *request, const char *why)
{
	if (why)
		refuse_request(request, why);
	plx_timer_stop(&request->timer);
	plx_task_cancel(&request->call.response); /* which an lcore that has ended could not send */
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

/* No lcore runs any more. */
void handover_forget_all(struct plx_fabric_lcore *home)
{
	struct request *request, *next;

	LIST_FOREACH_SAFE (request, &home->given_up, of_list, next)
		finish(request, NULL);
}

/* On the lcore that gets the link ------------------------------------------------------------- */

static int accept_link(struct plx_link *link)
{
	int rc = fi_accept(link->ep, NULL, 0);

	if (rc)
		return plx_fail(EIO, "%s cannot be accepted: %s", link->peer, fi_strerror(-rc));
	return plx_timer_start(&link->timer, link->attr.connect_timeout_ns);
}

static int open_link(const struct request *request, struct plx_link **link_out)
{
	const struct plx_listener *listener = request->listener;
	const struct driver_choice choice = {.driver = listener->set->driver,
					     .provider = listener->set->provider};
	struct plx_fabric_lcore *here;
	struct plx_set *set = NULL;

	if (fabric_here("plx_link_listen", &here) == 0)
		set = set_get(here, &choice, request->info, &listener->attr.link);
	return set ? link_create(set, &listener->attr.link, request->info, link_out) : -ENOMEM;
}

/* Open an endpoint for the request here and accept. Of the listener only what never changes is
 * looked at, and nothing before the request is ours. Return: 0; -errno while the request can still
 * be refused; a failure past that point ends the link by itself. */
static int take(struct plx_call *call, void *arg)
{
	struct request *request = arg;

	if (!take_first(request))
		return -ECANCELED;

	const struct plx_listener *listener = request->listener;
	struct plx_link *link;
	int rc = 0;

	/* The listener's lcore may be late itself. */
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
	link->fd = request->fd;
	if (accept_link(link) != 0)
		close_now(link, PLX_LINK_LOCAL, "%s", plx_error());
	return 0;
}

/* On the listener's lcore --------------------------------------------------------------------- */

static void answered(struct plx_call *call, int result, void *arg)
{
	struct request *request = arg;
	struct plx_listener *listener = request->listener;

	if (!listener) { /* given up: refused and counted long ago */
		finish(request, NULL);
		return;
	}
	finish(request, result ? request->why : NULL);
	listener_release(listener);
}

/* The target has not come to it in time: the peer is refused now. */
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

/* Why it cannot go to its lcore, as that said `rc`. */
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

/* The target may never run its loop. */
static void wait_for_answer(struct request *request)
{
	uint64_t now_ns = plx_loop_now_ns();
	uint64_t left_ns = request->deadline_ns > now_ns ? request->deadline_ns - now_ns : 0;

	plx_timer_init(&request->timer, on_deadline, request);
	plx_timer_set_lax(&request->timer, true);
	plx_timer_start(&request->timer, left_ns);
}

/* A full lane is nothing that the peer should hear of: try again, as long as the peer may wait. */
static void hand_over(struct request *request)
{
	int rc = plx_lcore_call(request->target, &request->call);

	request->is_sent = rc == 0;
	if (rc == 0)
		wait_for_answer(request);
	else if (rc == -EAGAIN && plx_loop_now_ns() < request->deadline_ns)
		plx_timer_start(&request->timer, RETRY_NS);
	else
		finish(request, why_not(request, rc));
}

static void place(struct request *request);

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
		place(request);
	listener_release(listener);
}

static struct request *make_request(struct plx_listener *listener, struct fi_info *info,
				    struct ticket *ticket)
{
	struct request *request = malloc(sizeof(*request));

	if (!request)
		return NULL;
	*request = (struct request){
		.fd = -1,
		.ticket = ticket,
		.listener = listener,
		.info = info,
		.deadline_ns = plx_time_add(plx_loop_now_ns(),
					    listener->attr.link.connect_timeout_ns),
	};
	if (listener->set->driver->requested)
		request->fd = listener->set->driver->requested(listener->pep, info);
	request->call = (struct plx_call){.fn = take, .done = answered, .arg = request};
	plx_timer_init(&request->timer, on_retry, request);
	plx_timer_set_lax(&request->timer, true);
	LIST_INSERT_HEAD(&listener->requests, request, of_list);
	ticket->request = request;
	return request;
}

static void place(struct request *request)
{
	struct plx_listener *listener = request->listener;

	request->is_placed = true;
	listener->placing = true; /* so that it outlives its own callback */
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

static const char evicted_text[] =
	"as many connections are being opened as may be at a time (--handshakes-max), and its "
	"address has the most of them";

static int evict_there(struct plx_call *call, void *arg)
{
	struct plx_link *link = admission_look(arg).link;

	if (link && link->state < LINK_OPEN)
		close_now(link, PLX_LINK_ABORTED, "%s", evicted_text);
	return 0;
}

static void evicted_there(struct plx_call *call, int result, void *arg)
{
	admission_unref(arg);
}

/* Return: whether it was one that no lcore has come to. */
static bool evict_request(struct ticket *ticket)
{
	struct request *request = admission_look(ticket).request;
	struct plx_listener *listener = request ? request->listener : NULL;

	if (!request || !take_first(request))
		return false;
	snprintf(request->why, sizeof(request->why), "%s", evicted_text);
	if (request->is_sent) {
		give_up(request);
	} else {
		finish(request, request->why);
		listener_release(listener);
	}
	return true;
}

static void evict(struct ticket *ticket)
{
	struct admission_state state;
	bool done;

	if (admission_may_log(ticket->admission, ADMISSION_EVICTED))
		plx_log(&fabric_log, PLX_LOG_WARNING, "a connection is ended before it is open: %s",
			evicted_text);
	done = evict_request(ticket);
	state = admission_look(ticket);
	if (!done && state.link) {
		ticket->call = (struct plx_call){
			.fn = evict_there, .done = evicted_there, .arg = ticket};
		if (state.lcore == plx_lcore_id())
			evict_there(&ticket->call, ticket);
		else if (plx_lcore_call(state.lcore, &ticket->call) == 0)
			return;
		/* else its time-outs end it */
	}
	admission_unref(ticket);
}

static void refuse_for(struct plx_listener *listener, struct fi_info *info,
		       enum admission_cause cause)
{
	struct admission *admission = &listener->shared->admission;
	const struct plx_admission *limits = &admission->limits;
	char why[160];

	if (cause == ADMISSION_LINKS)
		snprintf(why, sizeof(why),
			 "this listener has %" PRIu32 " links, as many as it may (--links-max)",
			 limits->links_max);
	else if (cause == ADMISSION_HOST)
		snprintf(why, sizeof(why),
			 "its address has %" PRIu32 " links here, as many as it may "
			 "(--links-per-host)",
			 limits->links_per_host_max);
	else
		snprintf(why, sizeof(why),
			 "more than %" PRIu32 " connections a second come (--accepts-per-s)",
			 limits->accepts_per_s);
	refuse(listener, info, why, admission_may_log(admission, cause));
}

static struct in6_addr address_of(const struct plx_listener *listener, const struct fi_info *info)
{
	struct in6_addr address = {0};
	uid_t user;

	if (!listener->set->driver->peer_user)
		return address_host(info->dest_addr);
	user = listener->set->driver->peer_user(info);
	memcpy(&address.s6_addr[12], &user, sizeof(user));
	return address;
}

/* FI_CONNREQ. info is ours. */
void handover_request(struct plx_listener *listener, struct fi_info *info)
{
	struct in6_addr address = address_of(listener, info);
	struct admission_answer answer = {0};
	struct request *request = NULL;
	int rc = -EBUSY;

	counter_add_shared(&listener->shared->requests, 1);
	if (listener->closed) { /* it waits for earlier requests */
		refuse(listener, info, "the listener is closed", may_log(listener));
	} else {
		rc = admission_ask(&listener->shared->admission, &address,
				   listener->attr.link.connect_timeout_ns, &answer);
		if (rc == -EBUSY)
			refuse_for(listener, info, answer.cause);
	}
	if (rc == 0 && answer.evicted)
		evict(answer.evicted);
	if (rc == 0 && !(request = make_request(listener, info, answer.ticket))) {
		admission_leave(answer.ticket);
		rc = -ENOMEM;
	}
	if (rc == -ENOMEM)
		refuse(listener, info, "out of memory", may_log(listener));
	if (rc) {
		fi_freeinfo(info);
		return;
	}
	if (answer.wait_ns) {
		plx_timer_start(&request->timer, answer.wait_ns);
		return;
	}
	place(request);
	listener_release(listener);
}
