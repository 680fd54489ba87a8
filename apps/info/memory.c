/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory, huge pages and limits. */
#include "info.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

/* The word in brackets of "always [madvise] never". */
static void bracketed(const char *text, char *out, size_t size)
{
	const char *open = strchr(text, '[');

	out[0] = '\0';
	if (open)
		snprintf(out, size, "%.*s", (int)strcspn(open + 1, "]"), open + 1);
}

/* name: "hugepages-2048kB" */
static void read_pool(const char *root, int node_id, const char *name, struct info_memory *memory)
{
	uint64_t page_kib;
	struct info_pool *pool = &memory->pools[memory->pool_count];

	if (memory->pool_count == INFO_POOLS_MAX ||
	    sscanf(name, "hugepages-%" SCNu64 "kB", &page_kib) != 1)
		return;
	pool->node_id = node_id;
	pool->page_bytes = page_kib * 1024;
	pool->total = info_read_number(
		0, "%s/sys/devices/system/node/node%d/hugepages/%s/nr_hugepages", root, node_id,
		name);
	pool->free = info_read_number(
		0, "%s/sys/devices/system/node/node%d/hugepages/%s/free_hugepages", root, node_id,
		name);
	memory->pool_count++;
}

static void read_node_pools(const char *root, int node_id, struct info_memory *memory)
{
	DIR *pools = info_open_dir("%s/sys/devices/system/node/node%d/hugepages", root, node_id);
	const char *name;

	while ((name = info_next_name(pools)))
		read_pool(root, node_id, name, memory);
	info_close_dir(pools);
}

static int by_node_and_size(const void *a, const void *b)
{
	const struct info_pool *left = a, *right = b;

	if (left->node_id != right->node_id)
		return (left->node_id > right->node_id) - (left->node_id < right->node_id);
	return (left->page_bytes > right->page_bytes) - (left->page_bytes < right->page_bytes);
}

static void read_pools(const char *root, struct info_memory *memory)
{
	DIR *nodes = info_open_dir("%s/sys/devices/system/node", root);
	const char *name;
	int node_id;

	while ((name = info_next_name(nodes))) {
		if (sscanf(name, "node%d", &node_id) == 1)
			read_node_pools(root, node_id, memory);
	}
	info_close_dir(nodes);
	qsort(memory->pools, memory->pool_count, sizeof(memory->pools[0]), by_node_and_size);
}

/* hard: which of the two. */
static uint64_t limit_of(int resource, bool hard)
{
	struct rlimit limit;
	rlim_t value;

	if (getrlimit(resource, &limit) != 0)
		return 0;
	value = hard ? limit.rlim_max : limit.rlim_cur;
	return value == RLIM_INFINITY ? UINT64_MAX : value;
}

/* Capability 14 in include/uapi/linux/capability.h. */
static bool may_lock_all(const char *root)
{
	char text[8192], set[32];

	info_read(text, sizeof(text), "%s/proc/self/status", root);
	info_find_value(text, "CapEff", false, set, sizeof(set));
	return strtoull(set, NULL, 16) >> 14 & 1;
}

void info_gather_memory(const char *root, struct info_memory *memory)
{
	char text[8192];

	memset(memory, 0, sizeof(*memory));
	info_read(text, sizeof(text), "%s/proc/meminfo", root);
	memory->total_bytes = info_find_bytes(text, "MemTotal");
	memory->available_bytes = info_find_bytes(text, "MemAvailable");
	read_pools(root, memory);
	info_read(text, sizeof(text), "%s/sys/kernel/mm/transparent_hugepage/enabled", root);
	bracketed(text, memory->thp, sizeof(memory->thp));
	memory->numa_balancing = info_read_number(0, "%s/proc/sys/kernel/numa_balancing", root) !=
				 0;
	memory->memlock_bytes = limit_of(RLIMIT_MEMLOCK, false);
	memory->memlock_exempt = may_lock_all(root);
	memory->nofile = limit_of(RLIMIT_NOFILE, true);
}
