/* SPDX-License-Identifier: BSD-3-Clause */
/* What the host offers: nodes, huge pages, free memory, and the real page size of a mapping. */
#include "base_internal.h"
#include "mem_priv.h"

#include <inttypes.h>
#include <limits.h>
#include <numa.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>

#define LINE_BYTES 1024

/* Read the number after `key` in a file of "key number" lines; with an empty key, the first number.
 * The format gives the path. */
PLX_PRINTF(3, 4)
static bool read_number(const char *key, uint64_t *value_out, const char *format, ...)
{
	char path[PATH_MAX], text[8192];
	const char *at;
	va_list args;

	va_start(args, format);
	vsnprintf(path, sizeof(path), format, args);
	va_end(args);
	plx_read_file(text, sizeof(text), "%s", path);
	at = strstr(text, key);
	return at && sscanf(at + strlen(key), "%" SCNu64, value_out) == 1;
}

/* Nodes ------------------------------------------------------------------------------------ */

static bool usable[MEM_NODE_MAX];

/* libnuma reads /proc and /sys, so this works even if get_mempolicy is denied. */
static void find_nodes(void)
{
	bool is_any = false;
	long long free_bytes;

	for (int node = 0; numa_all_nodes_ptr && node < MEM_NODE_MAX; node++) {
		usable[node] = numa_bitmask_isbitset(numa_all_nodes_ptr, (unsigned)node) &&
			       numa_node_size64(node, &free_bytes) > 0;
		is_any |= usable[node];
	}
	usable[0] |= !is_any; /* a system that reports no nodes has one */
}

/* Every pool and every link asks, so nodes are looked up once. */
bool mem_node_usable(int node)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, find_nodes);
	return node >= 0 && node < MEM_NODE_MAX && usable[node];
}

bool mem_node_exists(int node)
{
	return mem_node_usable(node) ||
	       (node >= 0 && numa_nodes_ptr &&
		numa_bitmask_isbitset(numa_nodes_ptr, (unsigned)node)); /* false past its end */
}

unsigned mem_node_count(void)
{
	unsigned count = 0;

	for (int node = 0; node < MEM_NODE_MAX; node++)
		count += mem_node_usable(node);
	return count;
}

const char *mem_nodes_format(char *out, size_t size)
{
	char number[12];

	out[0] = '\0';
	for (int node = 0; node < MEM_NODE_MAX; node++) {
		snprintf(number, sizeof(number), "%d", node);
		if (mem_node_usable(node))
			plx_list_add(out, size, number);
	}
	return out;
}

/* Free memory ------------------------------------------------------------------------------ */

/* Lower *arg to the memory left in a control group. */
static void take_group(void *arg, const char *folder, bool is_v2)
{
	uint64_t *least = arg, limit, usage, cache = 0, left;

	if (!read_number("", &limit, "%s/%s", folder,
			 is_v2 ? "memory.max" : "memory.limit_in_bytes") ||
	    !read_number("", &usage, "%s/%s", folder,
			 is_v2 ? "memory.current" : "memory.usage_in_bytes"))
		return;
	/* Counted as used, but reclaimable. */
	read_number(is_v2 ? "inactive_file" : "total_inactive_file", &cache, "%s/memory.stat",
		    folder);
	usage -= cache < usage ? cache : usage;
	left = usage < limit ? limit - usage : 0;
	*least = left < *least ? left : *least;
}

/* Free memory on a node plus the file cache, which the kernel can reclaim. */
static uint64_t node_available(int node)
{
	static const char *const parts[] = {"MemFree:", "Active(file):", "Inactive(file):"};
	uint64_t sum_kb = 0, kb;

	for (size_t i = 0; i < PLX_ARRAY_LEN(parts); i++) {
		if (!read_number(parts[i], &kb, "/sys/devices/system/node/node%d/meminfo", node))
			return UINT64_MAX;
		sum_kb += kb;
	}
	return sum_kb << 10;
}

uint64_t mem_available(int node)
{
	uint64_t least = UINT64_MAX, kb;

	plx_cgroup_visit("", "memory", take_group, &least);
	if (read_number("MemAvailable:", &kb, "/proc/meminfo") && kb << 10 < least)
		least = kb << 10;
	if (node != PLX_NODE_ANY && node_available(node) < least)
		least = node_available(node);
	return least;
}

uint64_t mem_hugepages(size_t page_bytes, const char *counter)
{
	uint64_t pages = 0;

	read_number("", &pages, "/sys/kernel/mm/hugepages/hugepages-%zukB/%s", page_bytes >> 10,
		    counter);
	return pages;
}

size_t mem_huge_bytes(const void *base)
{
	FILE *file = fopen("/proc/self/smaps", "re");
	uintptr_t start, end;
	bool is_here = false;
	size_t kb = 0;
	char line[LINE_BYTES];

	while (file && kb == 0 && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR, &start, &end) == 2)
			is_here = start <= (uintptr_t)base && (uintptr_t)base < end;
		else if (is_here)
			sscanf(line, "AnonHugePages: %zu", &kb);
	}
	if (file)
		fclose(file);
	return kb << 10;
}

const char *mem_format_bytes(char *out, size_t size, uint64_t bytes)
{
	static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	size_t unit = 0;

	while (unit + 1 < PLX_ARRAY_LEN(units) && bytes >> (10 * (unit + 1)))
		unit++;
	double value = (double)bytes / (double)(UINT64_C(1) << (10 * unit));
	bool whole = bytes == (bytes >> (10 * unit)) << (10 * unit);
	snprintf(out, size, whole ? "%.0f %s" : "%.1f %s", value, units[unit]);
	return out;
}
