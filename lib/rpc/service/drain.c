/* SPDX-License-Identifier: BSD-3-Clause */
/* Drain and destroy a service on all lcores: a signal makes each lcore handle its own clients. */
#include "rpc_service.h"

#include <inttypes.h>
#include <stdlib.h>

static void unref(struct plx_rpc_service *service)
{
	/* D1 -> D2: each lcore's accesses precede the free by the last lcore. */
	if (atomic_fetch_sub_explicit(&service->refs, 1, memory_order_acq_rel) == 1)
		service_free(service);
}

/* While the service ends: the lcore has lost a client or a request. */
void service_end_if_idle(struct service_local *local)
{
	if (!LIST_EMPTY(&local->acceptor.links) || local->open)
		return;
	plx_signal_fini(&local->drain);
	plx_signal_fini(&local->end);
	rpc_request_free_all(local);
	plx_acceptor_fini(&local->acceptor);
	unref(local->service);
}

static void drain_local(struct service_local *local)
{
	struct plx_accepted *peer;

	if (local->draining)
		return;
	local->draining = true;
	orphans_abandon(local);
	LIST_FOREACH (peer, &local->acceptor.links, links)
		peer_drain((struct peer *)peer);
}

static void end_local(struct service_local *local)
{
	struct plx_accepted *peer;

	if (local->ending)
		return;
	local->draining = true;
	local->ending = true;
	orphans_abandon(local);
	LIST_FOREACH (peer, &local->acceptor.links, links) {
		if (peer->link)
			plx_link_abort(peer->link);
	}
	service_end_if_idle(local);
}

void service_on_drain(struct plx_signal *signal, uint64_t fires, void *arg)
{
	drain_local(arg);
}

/* The last fire: no thread uses the lcore's signals after it. */
void service_on_end(struct plx_signal *signal, uint64_t fires, void *arg)
{
	end_local(arg);
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
	/* Relaxed: the signals order it. */
	plx_atomic_store(&service->draining, true, PLX_RELAXED);
	PLX_LCORE_FOREACH (id)
		plx_signal_fire(&service->local[id]->drain);
}

bool plx_rpc_service_is_drained(const struct plx_rpc_service *service)
{
	struct plx_rpc_service_stats stats;

	plx_rpc_service_stats(service, &stats);
	/* Relaxed: either the caller set it, or a stale false is harmless. */
	return plx_atomic_load(&service->draining, PLX_RELAXED) && !stats.clients && !stats.open;
}

static bool is_drained_locally(const struct service_local *local)
{
	return local->draining && LIST_EMPTY(&local->acceptor.links) && !local->open;
}

int plx_rpc_service_finish(struct plx_rpc_service *service, uint64_t timeout_ns)
{
	uint64_t until_ns = plx_time_add(plx_now_ns(), timeout_ns);
	struct plx_rpc_service_stats stats;
	const struct service_local *local;
	bool is_all = service->lcore == plx_lcore_id();

	if (plx_lcore_id() == PLX_LCORE_NONE)
		return plx_fail_no_lcore("plx_rpc_service_finish");
	local = service->local[plx_lcore_id()];
	if (is_all)
		plx_rpc_service_drain(service);
	while (!(is_all ? plx_rpc_service_is_drained(service) : is_drained_locally(local))) {
		if (plx_now_ns() >= until_ns) {
			plx_rpc_service_stats(service, &stats);
			return plx_fail(ETIMEDOUT,
					"the service still has %" PRIu32
					" clients, and owes %" PRIu32 " replies",
					stats.clients, stats.open);
		}
		if (plx_loop_turn() < 0)
			return plx_fail(EBUSY, "inside the loop a service cannot be finished");
	}
	return 0;
}

/* The main lcore may end the parts of idle lcores, which no thread uses. */
static bool may_end_for(uint32_t id)
{
	return plx_lcore_id() == plx_lcore_main() && plx_lcore_state(id) != PLX_LCORE_RUNNING;
}

/* A running lcore ends its part itself in its loop. */
void plx_rpc_service_destroy(struct plx_rpc_service *service)
{
	if (!service || plx_is_forked())
		return;
	ASSERT_OWNER(service->lcore);
	close_listeners(service);
	PLX_LCORE_FOREACH (id) {
		struct service_local *local = service->local[id];

		if (id == plx_lcore_id() || may_end_for(id))
			end_local(local);
		else
			plx_signal_fire(&local->end);
	}
	unref(service);
}
