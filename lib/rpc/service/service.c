/* SPDX-License-Identifier: BSD-3-Clause */
/* A service's life cycle, addresses and statistics. To drain or destroy it, a signal makes each
 * lcore handle its own clients. */
#include "rpc_service.h"

#include <inttypes.h>
#include <stdlib.h>

/* Chains of an lcore's open requests, in memory that is mapped when it is used. */
#define CHAINS_MAX (UINT32_C(32) << 10)

#define KEY_NS_MAX (24 * 3600 * PLX_NS_PER_S)

static int check_attr(const struct plx_rpc_service_attr *attr, struct plx_rpc_service_attr *out)
{
	*out = attr ? *attr : (struct plx_rpc_service_attr){0};
	out->request_max = out->request_max ?: UINT64_C(16) << 20;
	out->open_max = out->open_max ?: 1024;
	out->open_total = out->open_total ?: 1u << 20;
	out->turn_max = out->turn_max ?: 64;
	out->waiting_max = out->waiting_max ?: UINT64_C(64) << 20;
	out->clients_max = out->clients_max ?: PLX_NO_LIMIT;
	out->self_test_rate = out->self_test_rate ?: selftest_rate;
	out->turn_ns = out->turn_ns ?: 100 * PLX_NS_PER_US;
	out->slow_ns = out->slow_ns ?: 100 * PLX_NS_PER_US;
	out->keys_max = out->keys_max ?: 1u << 20;
	out->key_bytes_max = out->key_bytes_max ?: UINT64_C(64) << 20;
	out->key_ns = out->key_ns ?: 10 * PLX_NS_PER_S;
	if (out->key_ns < PLX_NS_PER_MS || out->key_ns > KEY_NS_MAX)
		return plx_fail(EINVAL, "key_ns %" PRIu64 ": give 1 ms to 24 h", out->key_ns);
	if (out->request_max > PLX_RPC_PAYLOAD_MAX)
		return plx_fail(EINVAL, "request_max %" PRIu64 ": give 1 to %" PRIu64,
				out->request_max, PLX_RPC_PAYLOAD_MAX);
	return 0;
}

static struct plx_rpc_service *ref(struct plx_rpc_service *service)
{
	/* Relaxed: the caller has a reference. */
	atomic_fetch_add_explicit(&service->refs, 1, memory_order_relaxed);
	return service;
}

static void unref(struct plx_rpc_service *service)
{
	/* D1 -> D2: each lcore's accesses precede the free by the last lcore. */
	if (atomic_fetch_sub_explicit(&service->refs, 1, memory_order_acq_rel) != 1)
		return;
	for (unsigned id = 0; id < PLX_LCORE_MAX; id++) {
		if (service->local[id])
			plx_mem_free(service->local[id]->methods);
	}
	rpc_keys_destroy(service->keys);
	free(service->methods);
	free(service);
}

static bool is_idle(const struct service_local *local)
{
	return LIST_EMPTY(&local->acceptor.links) && !local->open;
}

void service_end_if_idle(struct service_local *local)
{
	if (!local->ending || !is_idle(local))
		return;
	plx_signal_fini(&local->drain);
	plx_signal_fini(&local->end);
	plx_task_cancel(&local->notify);
	rpc_slab_free(&local->requests);
	free(local->open_by_call);
	plx_acceptor_fini(&local->acceptor);
	unref(local->service);
}

/* To drain, or to end. No thread uses the lcore's signals after the one to end. */
static void on_stop(struct plx_signal *signal, uint64_t fires, void *arg)
{
	struct service_local *local = arg;
	bool ends = signal == &local->end;
	struct session_link *peer;

	if (ends ? local->ending : local->draining)
		return;
	local->draining = true;
	local->ending = ends;
	LIST_FOREACH (peer, &local->acceptor.links, links) {
		if (!ends)
			peer_drain((struct peer *)peer);
		else if (peer->link)
			plx_link_abort(peer->link);
	}
	service_end_if_idle(local);
}

static void init_part(struct service_local *local, struct plx_rpc_service *service, uint32_t id,
		      uintptr_t number)
{
	*local = (struct service_local){.service = service, .lcore = id};
	request_list_init(&local->duplicates, duplicate_on_timer, local);
	request_list_init(&local->orphans, orphans_on_timer, local);
	plx_task_init(&local->notify, orphans_notify, local);
	plx_acceptor_init(&local->acceptor, &peer_owner, number, id);
	plx_signal_init(&local->drain, id, on_stop, local);
	plx_signal_init(&local->end, id, on_stop, local);
	service->local[id] = local;
}

/* Their acceptors have one number. */
static void init_parts(struct plx_rpc_service *service, const uint32_t *ids)
{
	for (uint32_t i = 0; i < service->part_count; i++)
		init_part(&service->parts[i], service, ids[i],
			  i ? service->parts[0].acceptor.number : 0);
}

/* Other threads may become lcores meanwhile. Return: their number. */
static uint32_t lcores_now(uint32_t ids[PLX_LCORE_MAX])
{
	uint32_t count = 0;

	PLX_LCORE_FOREACH (id)
		ids[count++] = id;
	return count;
}

int plx_rpc_service_create(const struct plx_rpc_service_attr *attr,
			   struct plx_rpc_service **service_out)
{
	struct plx_rpc_service_attr checked;
	struct plx_rpc_service *service;
	uint32_t ids[PLX_LCORE_MAX], count = lcores_now(ids);
	int rc = check_attr(attr, &checked);

	if (rc)
		return rc;
	if (plx_lcore_id() == PLX_LCORE_NONE)
		return plx_fail_no_lcore("plx_rpc_service_create");
	/* On the heap: a part whose lcore never turns again outlives plx_mem_fini, and its acceptor
	 * is still listed. */
	service = aligned_alloc(PLX_CACHE_LINE,
				sizeof(*service) + count * sizeof(service->parts[0]));
	if (!service)
		return plx_fail(ENOMEM, "out of memory");
	*service = (struct plx_rpc_service){
		.attr = checked,
		.self_test_remote = selftest_is_remote || (attr && attr->self_test_rate),
		.lcore = plx_lcore_id(),
		.created_ns = plx_now_ns(),
		.refs = 1 + count,
		.part_count = count,
		.identity = plx_random_id(),
		.multiplier = plx_random_id() | 1,
		.chain_count = checked.open_total < CHAINS_MAX ? checked.open_total : CHAINS_MAX,
	};
	service->keys = rpc_keys_create(service->multiplier, &checked);
	if (!service->keys) {
		free(service);
		return -ENOMEM;
	}
	init_parts(service, ids);
	*service_out = service;
	return 0;
}

int service_freeze(struct plx_rpc_service *service)
{
	if (service->attr.self_test_rate != PLX_NONE && selftest_add(service) != 0)
		return -ENOMEM;
	FOREACH_PART(local, service)
	{
		size_t bytes = (service->method_count + 1) * sizeof(*local->methods);

		/* An earlier attempt may have failed, and methods were added since. */
		plx_mem_free(local->methods);
		free(local->open_by_call);
		local->methods = plx_mem_alloc(bytes, 0, plx_lcore_node(local->lcore), NULL);
		local->open_by_call = calloc(service->chain_count, sizeof(*local->open_by_call));
		if (!local->methods || !local->open_by_call)
			return -ENOMEM;
	}
	service->listens = true;
	return 0;
}

/* Threads that become lcores later have no part of the service. */
static void name_lcores(const struct plx_rpc_service *service, struct plx_listen_attr *attr)
{
	for (uint32_t word = 0; word < PLX_ARRAY_LEN(attr->lcores); word++) {
		if (attr->lcores[word])
			return;
	}
	for (uint32_t i = 0; i < service->part_count; i++) {
		uint32_t id = service->parts[i].lcore;

		attr->lcores[id / 64] |= UINT64_C(1) << id % 64;
	}
}

int plx_rpc_service_listen(struct plx_rpc_service *service, const char *address,
			   const struct plx_listen_attr *listen)
{
	struct plx_listen_attr attr = listen ? *listen : (struct plx_listen_attr){0};
	int rc;

	ASSERT_OWNER(service->lcore);
	if (service->listener_count == RPC_LISTENERS_MAX)
		return plx_fail(EINVAL, "%s: a service listens at %d addresses at most", address,
				RPC_LISTENERS_MAX);
	if (plx_atomic_load(&service->draining, PLX_RELAXED))
		return plx_fail(EBUSY, "%s: the service is being drained", address);
	rc = service->listens ? 0 : service_freeze(service);
	if (rc)
		return rc;
	peer_describe_link(service, &attr.link);
	name_lcores(service, &attr);
	rc = plx_acceptor_listen(&service->local[service->lcore]->acceptor, address, &attr,
				 &service->listeners[service->listener_count]);
	if (rc == 0)
		service->listener_count++;
	return rc;
}

const char *plx_rpc_service_address(const struct plx_rpc_service *service, uint32_t i)
{
	ASSERT_OWNER(service->lcore);
	return i < service->listener_count ? plx_listener_address(service->listeners[i]) : NULL;
}

void plx_rpc_service_stats_read(const struct plx_rpc_service *service,
				struct plx_rpc_service_stats *stats_out)
{
	*stats_out = (struct plx_rpc_service_stats){0};
	for (uint32_t i = 0; i < service->part_count; i++) {
		const struct served *counts = &service->parts[i].counts;

		stats_out->clients += (uint32_t)counter_get(&counts->clients);
		stats_out->open += (uint32_t)counter_get(&counts->open);
		stats_out->requests += counter_get(&counts->requests);
		stats_out->unknown += counter_get(&counts->refused[PLX_RPC_UNKNOWN]);
		stats_out->late += counter_get(&counts->refused[PLX_RPC_DEADLINE]);
		stats_out->cancelled += counter_get(&counts->cancelled);
		stats_out->busy += counter_get(&counts->refused[PLX_RPC_BUSY]);
		stats_out->overloaded += counter_get(&counts->refused[PLX_RPC_OVERLOADED]);
		stats_out->draining += counter_get(&counts->refused[PLX_RPC_DRAINING]);
		stats_out->too_big += counter_get(&counts->refused[PLX_RPC_TOO_BIG]);
		stats_out->repeated += counter_get(&counts->repeated);
		stats_out->deferred += counter_get(&counts->deferred);
		stats_out->protocol += counter_get(&counts->protocol);
	}
}

/* Drain and destroy ------------------------------------------------------------------------- */

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
	FOREACH_PART(local, service)
	plx_signal_fire(&local->drain);
}

bool plx_rpc_service_is_drained(const struct plx_rpc_service *service)
{
	struct plx_rpc_service_stats stats;

	plx_rpc_service_stats_read(service, &stats);
	/* Relaxed: either the caller set it, or a stale false is harmless. */
	return plx_atomic_load(&service->draining, PLX_RELAXED) && !stats.clients && !stats.open;
}

/* The service's lcore waits for all lcores, others for themselves. */
static bool is_drained_here(void *arg)
{
	const struct plx_rpc_service *service = arg;
	const struct service_local *local = service->local[plx_lcore_id()];

	if (service->lcore == plx_lcore_id())
		return plx_rpc_service_is_drained(service);
	return !local || (local->draining && is_idle(local));
}

static void unhold(struct plx_rpc_service **held)
{
	unref(*held);
}

int plx_rpc_service_finish(struct plx_rpc_service *service, uint64_t timeout_ns)
{
	int rc = plx_check_outside("plx_rpc_service_finish");
	struct plx_rpc_service_stats stats;

	if (rc)
		return rc;

	struct plx_rpc_service *held PLX_CLEANUP(unhold) = ref(service);

	if (service->lcore == plx_lcore_id())
		plx_rpc_service_drain(service);
	rc = plx_loop_until(is_drained_here, service, timeout_ns);
	if (rc == -ETIMEDOUT) {
		plx_rpc_service_stats_read(service, &stats);
		plx_fail(ETIMEDOUT, "the service still has %u clients, and owes %u replies",
			 stats.clients, stats.open);
	}
	return rc;
}

/* A running lcore ends its part itself in its loop. The main lcore may end the parts of idle
 * lcores, which no thread uses. */
void plx_rpc_service_destroy(struct plx_rpc_service *service)
{
	if (!service || plx_is_forked())
		return;
	ASSERT_OWNER(service->lcore);
	close_listeners(service);
	FOREACH_PART(local, service)
	{
		if (local->lcore == plx_lcore_id()) {
			on_stop(&local->end, 1, local);
		} else if (lcore_hold_idle(local->lcore)) {
			on_stop(&local->end, 1, local);
			lcore_release_idle();
		} else {
			plx_signal_fire(&local->end);
		}
	}
	unref(service);
}
