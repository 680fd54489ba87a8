/* SPDX-License-Identifier: BSD-3-Clause */
/* The end of a service, on all of its lcores: each sees to its own clients, told by a signal. */
#include "rpc_service.h"

#include <inttypes.h>
#include <stdlib.h>

#define ON_LCORE(here) ((here)->lcore == plx_lcore_id())

static void unref(struct plx_rpc_service *service)
{
	/* D1 -> D2: what an lcore did with its part comes before the last one frees it. */
	if (atomic_fetch_sub_explicit(&service->refs, 1, memory_order_acq_rel) == 1)
		service_free(service);
}

/* While it ends: the lcore has lost a client, or a request. */
void service_peer_left(struct service_here *here)
{
	if (!LIST_EMPTY(&here->acceptor.links) || here->open)
		return;
	plx_signal_fini(&here->told);
	rpc_request_free_all(here);
	plx_acceptor_fini(&here->acceptor);
	unref(here->service);
}

static void drain_here(struct service_here *here)
{
	struct plx_accepted *peer;

	if (here->draining)
		return;
	here->draining = true;
	orphans_gone(here);
	LIST_FOREACH (peer, &here->acceptor.links, links)
		peer_drain((struct peer *)peer);
}

static void end_here(struct service_here *here)
{
	struct plx_accepted *peer;

	if (here->ending)
		return;
	here->draining = true;
	here->ending = true;
	orphans_gone(here);
	LIST_FOREACH (peer, &here->acceptor.links, links) {
		if (peer->link)
			plx_link_abort(peer->link);
	}
	service_peer_left(here);
}

void service_on_told(struct plx_signal *signal, uint64_t fires, void *arg)
{
	struct service_here *here = arg;

	/* D3 -> D4: set before the signal was fired. */
	if (plx_atomic_load(&here->service->ending, PLX_ACQUIRE))
		end_here(here);
	else
		drain_here(here);
}

static void close_listeners(struct plx_rpc_service *service)
{
	for (uint32_t i = 0; i < service->listener_count; i++)
		plx_listener_close(service->listeners[i]);
	service->listener_count = 0;
}

void plx_rpc_service_drain(struct plx_rpc_service *service)
{
	ASSERT_OWNER(service->lcore);
	close_listeners(service);
	plx_atomic_store(&service->draining, true, PLX_RELEASE); /* D3 */
	PLX_LCORE_FOREACH (id)
		plx_signal_fire(&service->here[id]->told);
}

bool plx_rpc_service_is_drained(const struct plx_rpc_service *service)
{
	struct plx_rpc_service_stats stats;

	plx_rpc_service_stats(service, &stats);
	/* Relaxed: it was set by who asks, or it is early to ask. */
	return plx_atomic_load(&service->draining, PLX_RELAXED) && stats.clients == 0 &&
	       stats.open == 0;
}

static int not_drained(const struct plx_rpc_service *service)
{
	struct plx_rpc_service_stats stats;

	plx_rpc_service_stats(service, &stats);
	return plx_fail(ETIMEDOUT,
			"the service still has %" PRIu32 " clients, and owes %" PRIu32 " replies",
			stats.clients, stats.open);
}

static bool is_drained_here(const struct service_here *here)
{
	return here->draining && LIST_EMPTY(&here->acceptor.links) && !here->open;
}

int plx_rpc_service_finish(struct plx_rpc_service *service, uint64_t timeout_ns)
{
	uint64_t until_ns = plx_time_add(plx_now_ns(), timeout_ns);
	const struct service_here *here;
	bool is_all = service->lcore == plx_lcore_id();

	if (plx_lcore_id() == PLX_LCORE_NONE)
		return plx_fail_no_lcore("plx_rpc_service_finish");
	here = service->here[plx_lcore_id()];
	if (is_all)
		plx_rpc_service_drain(service);
	while (!(is_all ? plx_rpc_service_is_drained(service) : is_drained_here(here))) {
		if (plx_now_ns() >= until_ns)
			return not_drained(service);
		if (plx_loop_turn() < 0)
			return plx_fail(EBUSY, "inside the loop a service cannot be finished");
	}
	return 0;
}

/* The main lcore may end the parts of those that run nothing: nobody else touches them. */
static bool may_end_for(uint32_t id)
{
	return plx_lcore_id() == plx_lcore_main() && plx_lcore_state(id) != PLX_LCORE_RUNNING;
}

/* An lcore that runs something ends its part itself, when it turns its loop. */
void plx_rpc_service_destroy(struct plx_rpc_service *service)
{
	if (!service || plx_is_forked())
		return;
	ASSERT_OWNER(service->lcore);
	close_listeners(service);
	plx_atomic_store(&service->draining, true, PLX_RELEASE);
	plx_atomic_store(&service->ending, true, PLX_RELEASE); /* D3 */
	PLX_LCORE_FOREACH (id) {
		struct service_here *here = service->here[id];

		if (ON_LCORE(here) || may_end_for(id))
			end_here(here);
		else
			plx_signal_fire(&here->told);
	}
	unref(service);
}
