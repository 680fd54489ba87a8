/* SPDX-License-Identifier: BSD-3-Clause */
/* What becomes of a connection request. The listener's lcore reads it and chooses where the link
 * shall live; that lcore opens an endpoint for it in its own domain, and accepts. Only the
 * listener's lcore may touch the passive endpoint, so a refusal goes back there.
 *
 * A request is on its listener's list as long as it is on its way, and belongs to the listener's
 * lcore but for the time between plx_lcore_call and its answer. So plx_fabric_fini, when no lcore
 * runs any more, finds all of them, wherever they are. */
#include "fabric_priv.h"

#include <stdio.h>
#include <stdlib.h>

/* How long a request waits before it tries a full lane again. */
#define RETRY_NS (100 * PLX_NS_PER_US)

struct request {
	struct plx_call call;
	struct plx_timer retry;
	struct plx_listener *listener;
	struct request *next, **prev_next; /* of the listener */
	struct fi_info *info;
	uint64_t deadline_ns; /* the peer does not wait for ever */
	uint32_t target;
	char why[160]; /* it could not be taken */
};

static void refuse(struct plx_listener *listener, struct fi_info *info, const char *why)
{
	char peer[PLX_ADDRESS_MAX];

	address_format(info->dest_addr, peer, sizeof(peer));
	listener_refused(listener->shared);
	if (info->handle) /* else an endpoint took it, and closing that dropped it */
		fi_reject(listener->pep, info->handle, NULL, 0);
	if (plx_log_allowed(&listener->set->log_limit, plx_loop_now_ns()))
		plx_log(&fabric_log, PLX_LOG_WARNING, "connection from %s refused: %s", peer, why);
}

/* The end of a request. why: NULL where it was taken. */
static void finish(struct request *request, const char *why)
{
	if (why)
		refuse(request->listener, request->info, why);
	plx_timer_stop(&request->retry);
	*request->prev_next = request->next;
	if (request->next)
		request->next->prev_next = request->prev_next;
	fi_freeinfo(request->info);
	free(request);
}

void handover_drop_all(struct plx_listener *listener)
{
	for (struct request *request = listener->requests, *next; request; request = next) {
		next = request->next;
		finish(request, "the process is shutting down");
	}
}

/* On the lcore that gets the link ------------------------------------------------------------- */

static int accept_link(struct plx_link *link)
{
	int rc = fi_accept(link->ep, NULL, 0);

	if (rc)
		return plx_fail(EIO, "accepting %s failed: %s", link->peer, fi_strerror(-rc));
	return plx_timer_start(&link->timer, link->attr.connect_timeout_ns);
}

static int open_link(const struct request *request, struct plx_link **link_out)
{
	const struct plx_listener *listener = request->listener;
	struct plx_fabric_lcore *here = fabric_here();
	struct plx_set *set = here ? set_get(here, listener->set->driver, listener->set->provider,
					     request->info)
				   : NULL;

	return set ? link_create(set, &listener->attr.link, request->info, link_out) : -ENOMEM;
}

/* Open an endpoint for the request here and accept. Of the listener only what never changes is
 * looked at. Return: 0; -errno while the request can still be refused; a failure past that point
 * ends the link by itself. */
static int take(struct plx_call *call, void *arg)
{
	struct request *request = arg;
	const struct plx_listener *listener = request->listener;
	struct plx_link *link;
	int rc = 0;

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
	hygiene_close_on_exec_port(listener->port);
	if (accept_link(link) != 0)
		link_end(link, PLX_LINK_LOCAL, "%s", plx_error());
	return 0;
}

/* On the listener's lcore --------------------------------------------------------------------- */

static void answered(struct plx_call *call, int result, void *arg)
{
	struct request *request = arg;
	struct plx_listener *listener = request->listener;

	finish(request, result ? request->why : NULL);
	listener_release(listener);
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

/* A full lane is nothing that the peer should hear of: try again, as long as the peer may wait. */
static void hand_over(struct request *request)
{
	int rc = plx_lcore_call(request->target, &request->call);

	if (rc == -EAGAIN && plx_loop_now_ns() < request->deadline_ns)
		plx_timer_start(&request->retry, RETRY_NS);
	else if (rc)
		finish(request, why_not(request, rc));
}

static void on_retry(struct plx_timer *timer, void *arg)
{
	struct request *request = arg;
	struct plx_listener *listener = request->listener;

	if (listener->closed)
		finish(request, "the listener is closed");
	else
		hand_over(request);
	listener_release(listener);
}

static struct request *make_request(struct plx_listener *listener, uint32_t target,
				    struct fi_info *info)
{
	struct request *request = malloc(sizeof(*request));

	if (!request)
		return NULL;
	*request = (struct request){
		.listener = listener,
		.next = listener->requests,
		.prev_next = &listener->requests,
		.info = info,
		.deadline_ns = plx_time_add(plx_loop_now_ns(),
					    listener->attr.link.connect_timeout_ns),
		.target = target,
	};
	request->call = (struct plx_call){.fn = take, .done = answered, .arg = request};
	plx_timer_init(&request->retry, on_retry, request);
	if (request->next)
		request->next->prev_next = &request->next;
	listener->requests = request;
	return request;
}

static void drop(struct plx_listener *listener, struct fi_info *info, const char *why)
{
	refuse(listener, info, why);
	fi_freeinfo(info);
}

static void place(struct plx_listener *listener, struct fi_info *info)
{
	uint32_t target = spread_choose(listener, info->dest_addr);

	if (listener->closed) { /* by its own callback */
		drop(listener, info, "the listener is closed");
		return;
	}

	struct request *request = make_request(listener, target, info);

	if (!request)
		drop(listener, info, "out of memory");
	else if (target == listener->set->home->id)
		finish(request, take(&request->call, request) ? request->why : NULL);
	else
		hand_over(request);
}

/* FI_CONNREQ. info is ours. */
void handover_request(struct plx_listener *listener, struct fi_info *info)
{
	listener_requested(listener->shared);
	if (listener->closed) { /* it waits for earlier requests */
		drop(listener, info, "the listener is closed");
		return;
	}
	listener->placing = true; /* so that it outlives its own callback */
	place(listener, info);
	listener->placing = false;
	listener_release(listener);
}
