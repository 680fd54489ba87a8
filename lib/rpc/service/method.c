/* SPDX-License-Identifier: BSD-3-Clause */
/* A service's methods: a hash table by id and version. */
#include "rpc_service.h"

#include <stdlib.h>

/* The multiplier is 2^32 divided by the golden ratio (Knuth, The Art of Computer Programming 3,
 * 6.4). */
static inline uint32_t place_of(uint32_t id, uint16_t version)
{
	uint32_t mixed = (id ^ (uint32_t)version << 16) * UINT32_C(0x9e3779b9);

	return mixed ^ mixed >> 16;
}

struct method *method_find(const struct plx_rpc_service *service, uint32_t id, uint16_t version)
{
	for (uint32_t at = place_of(id, version);; at++) {
		uint32_t index = service->table[at & service->table_mask];
		struct method *method = service->methods + index - 1;

		if (index == 0)
			return NULL;
		if (method->what.id == id && method->what.version == version)
			return method;
	}
}

/* At least half of the table stays free, so that failed lookups are fast. */
bool method_make_table(struct plx_rpc_service *service)
{
	uint32_t size = 8;

	while (size < 2 * service->method_count)
		size *= 2;
	service->table = calloc(size, sizeof(*service->table));
	service->table_mask = size - 1;
	for (uint32_t i = 0; service->table && i < service->method_count; i++) {
		const struct plx_rpc_method *method = &service->methods[i].what;
		uint32_t at = place_of(method->id, method->version);

		while (service->table[at & service->table_mask])
			at++;
		service->table[at & service->table_mask] = i + 1;
	}
	return service->table;
}

int method_add(struct plx_rpc_service *service, const struct plx_rpc_method *method)
{
	uint32_t count = service->method_count, id = method->id;
	struct method *methods;

	if (!method->handler || !method->name)
		return plx_fail(EINVAL, "method %u: it needs a handler and a name", id);
	if (service->listens)
		return plx_fail(EBUSY, "method %u '%s': register it before the service listens", id,
				method->name);
	for (uint32_t i = 0; i < count; i++) {
		const struct plx_rpc_method *other = &service->methods[i].what;

		if (other->id == id && other->version == method->version)
			return plx_fail(EEXIST, "method %u '%s': version %u is there already", id,
					method->name, method->version);
	}
	methods = realloc(service->methods, (count + 1) * sizeof(*methods));
	if (!methods)
		return plx_fail(ENOMEM, "out of memory");
	service->methods = methods;
	methods[count] = (struct method){
		.what = *method,
		.request_max = method->request_max ?: service->attr.request_max,
		.index = count,
	};
	service->method_count++;
	return 0;
}

int plx_rpc_service_add(struct plx_rpc_service *service, const struct plx_rpc_method *method)
{
	ASSERT_OWNER(service->lcore);
	if (method->id >= PLX_RPC_SELF_TEST)
		return plx_fail(EINVAL, "method %u: ids from %u on are the library's own",
				method->id, PLX_RPC_SELF_TEST);
	return method_add(service, method);
}

int plx_rpc_method_stats(const struct plx_rpc_service *service, uint32_t i,
			 struct plx_rpc_method_stats *stats_out)
{
	uint64_t cycles = 0;

	if (i >= service->method_count)
		return -ENOENT;
	*stats_out = (struct plx_rpc_method_stats){
		.id = service->methods[i].what.id,
		.version = service->methods[i].what.version,
		.name = service->methods[i].what.name,
	};
	PLX_LCORE_FOREACH (id) {
		const struct method_local *local = service->local[id]->methods;

		if (!local)
			continue;
		stats_out->requests += counter_get(&local[i].requests);
		stats_out->replies += counter_get(&local[i].replies);
		stats_out->refused += counter_get(&local[i].refused);
		stats_out->slow += counter_get(&local[i].slow);
		cycles += counter_get(&local[i].cycles);
	}
	stats_out->handler_ns = plx_tsc_to_ns(cycles);
	return 0;
}
