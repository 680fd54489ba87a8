/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory, huge pages and limits. */
#include "info.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

static uint64_t meminfo_bytes(const char *meminfo, const char *name)
{
	char value[64];

	if (!info_find_value(meminfo, name, false, value, sizeof(value)))
		return 0;
	return strtoull(value, NULL, 10) * 1024;
}

/* The word in brackets of "always [madvise] never". */
static void bracketed(const char *text, char *out, size_t size)
{
	const char *open = strchr(text, '[');

	out[0] = '\0';
	if (open)
		snprintf(out, size, "%.*s", (int)strcspn(open + 1, "]"), open + 1);
}

static void read_pool(const char *root, int node_id, const char *dir, struct info_memory *memory)
{
	uint64_t page_kib;
	struct info_pool *pool = &memory->pools[memory->pool_count];

	if (memory->pool_count == INFO_POOLS_MAX ||
	    sscanf(dir, "hugepages-%" SCNu64 "kB", &page_kib) != 1)
		return;
	pool->node_id = node_id;
	pool->page_bytes = page_kib * 1024;
	pool->total = info_read_number(
		0, "%s/sys/devices/system/node/node%d/hugepages/%s/nr_hugepages", root, node_id,
		dir);
	pool->free = info_read_number(
		0, "%s/sys/devices/system/node/node%d/hugepages/%s/free_hugepages", root, node_id,
		dir);
	memory->pool_count++;
}

static void read_node_pools(const char *root, int node_id, struct info_memory *memory)
{
	char path[256];
	struct dirent *entry;

	snprintf(path, sizeof(path), "%s/sys/devices/system/node/node%d/hugepages", root, node_id);
	DIR *dir = opendir(path);
	if (!dir)
		return;
	while ((entry = readdir(dir)))
		read_pool(root, node_id, entry->d_name, memory);
	closedir(dir);
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
	char path[256];
	struct dirent *entry;
	int node_id;

	snprintf(path, sizeof(path), "%s/sys/devices/system/node", root);
	DIR *dir = opendir(path);
	if (!dir)
		return;
	while ((entry = readdir(dir))) {
		if (sscanf(entry->d_name, "node%d", &node_id) == 1)
			read_node_pools(root, node_id, memory);
	}
	closedir(dir);
	qsort(memory->pools, memory->pool_count, sizeof(memory->pools[0]), by_node_and_size);
}

static uint64_t limit_of(int resource)
{
	struct rlimit limit;

	if (getrlimit(resource, &limit) != 0)
		return 0;
	return limit.rlim_cur == RLIM_INFINITY ? UINT64_MAX : limit.rlim_cur;
}

void info_gather_memory(const char *root, struct info_memory *memory)
{
	char text[8192];

	memset(memory, 0, sizeof(*memory));
	info_read(text, sizeof(text), "%s/proc/meminfo", root);
	memory->total_bytes = meminfo_bytes(text, "MemTotal");
	memory->available_bytes = meminfo_bytes(text, "MemAvailable");
	read_pools(root, memory);
	info_read(text, sizeof(text), "%s/sys/kernel/mm/transparent_hugepage/enabled", root);
	bracketed(text, memory->thp, sizeof(memory->thp));
	memory->numa_balancing = info_read_number(0, "%s/proc/sys/kernel/numa_balancing", root) !=
				 0;
	memory->memlock_bytes = limit_of(RLIMIT_MEMLOCK);
	memory->nofile = limit_of(RLIMIT_NOFILE);
}
