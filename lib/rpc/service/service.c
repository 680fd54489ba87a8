/* SPDX-License-Identifier: BSD-3-Clause */
/* A service's life cycle, addresses and statistics. */
#include "rpc_service.h"

#include <inttypes.h>
#include <stdlib.h>

#define REQUEST_MAX_DEFAULT   (UINT64_C(16) << 20)
#define WAITING_MAX_DEFAULT   (UINT64_C(64) << 20)
#define OPEN_MAX_DEFAULT      1024
#define OPEN_TOTAL_DEFAULT    (1u << 20)
#define TURN_MAX_DEFAULT      64
#define TURN_NS_DEFAULT       (100 * PLX_NS_PER_US)
#define KEYS_MAX_DEFAULT      (1u << 20)
#define KEY_BYTES_MAX_DEFAULT (UINT64_C(64) << 20)
#define KEY_NS_DEFAULT        (10 * PLX_NS_PER_S)
#define KEY_NS_MAX            (24 * 3600 * PLX_NS_PER_S)
#define SLOW_NS_DEFAULT       (100 * PLX_NS_PER_US)

void service_free(struct plx_rpc_service *service)
{
	for (unsigned id = 0; id < PLX_LCORE_MAX; id++) {
		if (service->local[id])
			free(service->local[id]->methods);
		free(service->local[id]);
	}
	rpc_keys_destroy(service->keys);
	free(service->methods);
	free(service->table);
	free(service);
}

static uint64_t cycles_of(uint64_t ns)
{
	double cycles = (double)ns * plx_clock_info()->hz / 1e9;

	return cycles < 9e18 ? (uint64_t)cycles : UINT64_MAX;
}

static int check_attr(const struct plx_rpc_service_attr *attr, struct plx_rpc_service_attr *out)
{
	*out = attr ? *attr : (struct plx_rpc_service_attr){0};
	out->request_max = out->request_max ?: REQUEST_MAX_DEFAULT;
	out->open_max = out->open_max ?: OPEN_MAX_DEFAULT;
	out->open_total = out->open_total ?: OPEN_TOTAL_DEFAULT;
	out->turn_max = out->turn_max ?: TURN_MAX_DEFAULT;
	out->waiting_max = out->waiting_max ?: WAITING_MAX_DEFAULT;
	out->self_test_rate = out->self_test_rate ?: selftest_rate;
	out->turn_ns = out->turn_ns ?: TURN_NS_DEFAULT;
	out->slow_ns = out->slow_ns ?: SLOW_NS_DEFAULT;
	out->keys_max = out->keys_max ?: KEYS_MAX_DEFAULT;
	out->key_bytes_max = out->key_bytes_max ?: KEY_BYTES_MAX_DEFAULT;
	out->key_ns = out->key_ns ?: KEY_NS_DEFAULT;
	if (out->key_ns < PLX_NS_PER_MS || out->key_ns > KEY_NS_MAX)
		return plx_fail(EINVAL, "key_ns %" PRIu64 ": give 1 ms to 24 h", out->key_ns);
	if (out->request_max > PLX_RPC_PAYLOAD_MAX)
		return plx_fail(EINVAL, "request_max %" PRIu64 ": give 1 to %" PRIu64,
				out->request_max, PLX_RPC_PAYLOAD_MAX);
	return 0;
}

/* Zeroed private cache lines, so that an lcore's writes do not disturb others. */
static void *lines(size_t bytes)
{
	size_t whole = (bytes + PLX_CACHE_LINE - 1) & ~(size_t)(PLX_CACHE_LINE - 1);
	void *memory = aligned_alloc(PLX_CACHE_LINE, whole);

	if (memory)
		memset(memory, 0, whole);
	return memory;
}

/* Return: 0; -ENOMEM. */
static int make_parts(struct plx_rpc_service *service)
{
	uintptr_t number;

	PLX_LCORE_FOREACH (id) {
		struct service_local *local = lines(sizeof(*local));

		if (!local)
			return plx_fail(ENOMEM, "out of memory");
		service->local[id] = local;
		local->service = service;
		local->lcore = id;
		request_list_init(&local->duplicates, duplicate_on_timer, local);
		request_list_init(&local->orphans, orphans_on_timer, local);
	}
	number = plx_acceptor_new_number();
	PLX_LCORE_FOREACH (id) {
		struct service_local *local = service->local[id];

		plx_acceptor_init(&local->acceptor, &peer_owner, number, id);
		plx_signal_init(&local->drain, id, service_on_drain, local);
		plx_signal_init(&local->end, id, service_on_end, local);
		atomic_fetch_add_explicit(&service->refs, 1,
					  memory_order_relaxed); /* not shared yet */
	}
	return 0;
}

int plx_rpc_service_create(const struct plx_rpc_service_attr *attr,
			   struct plx_rpc_service **service_out)
{
	struct plx_rpc_service_attr checked;
	struct plx_rpc_service *service;
	int rc = check_attr(attr, &checked);

	if (rc)
		return rc;
	if (plx_lcore_id() == PLX_LCORE_NONE)
		return plx_fail_no_lcore("plx_rpc_service_create");
	service = calloc(1, sizeof(*service));
	if (!service)
		return plx_fail(ENOMEM, "out of memory");
	service->attr = checked;
	service->self_test_remote = selftest_is_remote || (attr && attr->self_test_rate);
	service->lcore = plx_lcore_id();
	service->created_ns = plx_now_ns();
	atomic_init(&service->refs, 1);
	service->slow_cycles = cycles_of(checked.slow_ns);
	service->turn_cycles = cycles_of(checked.turn_ns);
	service->identity = plx_random_id();
	service->multiplier = plx_random_id() | 1;
	rc = rpc_keys_create(service->multiplier, checked.keys_max, checked.key_bytes_max,
			     checked.key_ns, &service->keys);
	if (rc == 0)
		rc = make_parts(service);
	if (rc) {
		service_free(service);
		return rc;
	}
	*service_out = service;
	return 0;
}

int service_freeze(struct plx_rpc_service *service)
{
	if (!service->has_self_test && service->attr.self_test_rate != PLX_NONE &&
	    selftest_add(service) != 0)
		return -ENOMEM;
	service->has_self_test = true;
	if (!service->table && !method_make_table(service, 0))
		return plx_fail(ENOMEM, "out of memory");
	PLX_LCORE_FOREACH (id) {
		struct service_local *local = service->local[id];

		if (!local->methods)
			local->methods = lines((service->method_count + 1) *
					       sizeof(*local->methods));
		if (!local->methods)
			return plx_fail(ENOMEM, "out of memory");
	}
	service->listens = true;
	return 0;
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

void plx_rpc_service_stats(const struct plx_rpc_service *service,
			   struct plx_rpc_service_stats *stats_out)
{
	*stats_out = (struct plx_rpc_service_stats){0};
	PLX_LCORE_FOREACH (id) {
		const struct served *counts = &service->local[id]->counts;

		stats_out->clients += (uint32_t)counter_get(&counts->clients);
		stats_out->open += (uint32_t)counter_get(&counts->open);
		stats_out->requests += counter_get(&counts->requests);
		stats_out->unknown += counter_get(&counts->unknown);
		stats_out->late += counter_get(&counts->late);
		stats_out->cancelled += counter_get(&counts->cancelled);
		stats_out->busy += counter_get(&counts->busy);
		stats_out->overloaded += counter_get(&counts->overloaded);
		stats_out->draining += counter_get(&counts->draining);
		stats_out->too_big += counter_get(&counts->too_big);
		stats_out->repeated += counter_get(&counts->repeated);
		stats_out->deferred += counter_get(&counts->deferred);
		stats_out->protocol += counter_get(&counts->protocol);
	}
}
