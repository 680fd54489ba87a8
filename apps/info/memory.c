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

/* path: of a node's folder "hugepages-2048kB" */
static void read_pool(const char *path, struct info_memory *memory)
{
	struct info_pool *pool = &memory->pools[memory->pool_count];
	uint64_t page_kib;

	if (memory->pool_count == INFO_POOLS_MAX ||
	    sscanf(strstr(path, "/node/node"), "/node/node%d/hugepages/hugepages-%" SCNu64 "kB",
		   &pool->node_id, &page_kib) != 2)
		return;
	pool->page_bytes = page_kib * 1024;
	pool->total = info_read_number(0, "%s/nr_hugepages", path);
	pool->free = info_read_number(0, "%s/free_hugepages", path);
	memory->pool_count++;
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
	glob_t pools = info_glob("%s/sys/devices/system/node/node*/hugepages/*", root);

	for (size_t i = 0; i < pools.gl_pathc; i++)
		read_pool(pools.gl_pathv[i], memory);
	globfree(&pools);
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
