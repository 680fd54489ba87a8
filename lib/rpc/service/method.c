/* SPDX-License-Identifier: BSD-3-Clause */
/* A service's methods: a hash table by id and version. */
#include "rpc_service.h"

#include <stdlib.h>

/* The multiplier is 2^32 divided by the golden ratio (Knuth, The Art of Computer Programming 3,
 * 6.4). */
static inline uint32_t chain_of(uint32_t id, uint16_t version)
{
	uint32_t mixed = (id ^ (uint32_t)version << 16) * UINT32_C(0x9e3779b9);

	return (mixed ^ mixed >> 16) % METHOD_CHAINS;
}

struct method *method_find(const struct plx_rpc_service *service, uint32_t id, uint16_t version)
{
	struct method *method;

	for (uint32_t i = service->chains[chain_of(id, version)]; i; i = method->next) {
		method = &service->methods[i - 1];
		if (method->what.id == id && method->what.version == version)
			return method;
	}
	return NULL;
}

int method_add(struct plx_rpc_service *service, const struct plx_rpc_method *method)
{
	uint32_t count = service->method_count, id = method->id;
	uint32_t *chain = &service->chains[chain_of(id, method->version)];
	struct method *methods;

	if (!method->handler || !method->name)
		return plx_fail(EINVAL, "method %u: it needs a handler and a name", id);
	if (service->listens)
		return plx_fail(EBUSY, "method %u '%s': register it before the service listens", id,
				method->name);
	if (method_find(service, id, method->version))
		return plx_fail(EEXIST, "method %u '%s': version %u is there already", id,
				method->name, method->version);
	methods = realloc(service->methods, (count + 1) * sizeof(*methods));
	if (!methods)
		return plx_fail(ENOMEM, "out of memory");
	service->methods = methods;
	methods[count] = (struct method){.what = *method, .index = count, .next = *chain};
	methods[count].what.request_max = method->request_max ?: service->attr.request_max;
	methods[count].what.open_max = method->open_max ?: PLX_NO_LIMIT;
	service->method_count = *chain = count + 1;
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

int plx_rpc_method_stats_read(const struct plx_rpc_service *service, uint32_t i,
			      struct plx_rpc_method_stats *stats_out)
{
	if (i >= service->method_count)
		return -ENOENT;
	*stats_out = (struct plx_rpc_method_stats){
		.id = service->methods[i].what.id,
		.version = service->methods[i].what.version,
		.name = service->methods[i].what.name,
	};
	for (uint32_t part = 0; part < service->part_count; part++) {
		const struct method_local *local = service->parts[part].methods;

		if (!local)
			continue;
		stats_out->requests += counter_get(&local[i].requests);
		stats_out->replies += counter_get(&local[i].replies);
		stats_out->refused += counter_get(&local[i].refused);
		stats_out->slow += counter_get(&local[i].slow);
		stats_out->handler_ns += counter_get(&local[i].handler_ns);
	}
	return 0;
}
