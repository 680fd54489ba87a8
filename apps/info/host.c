/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernel, its clock, the hypervisor, and the cgroup's CPU quota; memory, huge pages and limits.
 */
#include "info.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>

#ifdef __x86_64__
#include <cpuid.h>

/* CPUID 1 ECX bit 31 is set in guests; leaf 40000000h names the hypervisor. */
static bool ask_cpu(char *name, size_t size)
{
	unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
	unsigned words[4] = {0};

	if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx) || !(ecx & 1u << 31))
		return false;
	__cpuid(0x40000000, eax, words[0], words[1], words[2]);
	snprintf(name, size, "%.12s", (const char *)words);
	return true;
}
#else
static bool ask_cpu(char *name, size_t size)
{
	return false;
}
#endif

/* The common name of a hypervisor, from its CPUID name. */
static const char *hypervisor_name(const char *name)
{
	static const char *const names[][2] = {
		{"KVMKVMKVM", "KVM"},           {"Microsoft Hv", "Hyper-V"},
		{"VMwareVMware", "VMware"},     {"XenVMMXenVMM", "Xen"},
		{"TCGTCGTCGTCG", "QEMU"},       {"bhyve bhyve ", "bhyve"},
		{"VBoxVBoxVBox", "VirtualBox"}, {"ACRNACRNACRN", "ACRN"},
		{" lrpepyh  vr", "Parallels"},  {"OpenBSDVMM58", "OpenBSD VMM"},
	};

	for (size_t i = 0; i < PLX_ARRAY_LEN(names); i++)
		if (strcmp(names[i][0], name) == 0)
			return names[i][1];
	return name;
}

/* The first line of /proc/stat: user nice system idle iowait irq softirq steal, in ticks. guest and
 * guest_nice follow; user and nice already include them. */
static double read_steal(const char *root)
{
	char text[512];
	unsigned long long ticks[8], total = 0;

	plx_read_file(text, sizeof(text), "%s/proc/stat", root);
	if (sscanf(text, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &ticks[0], &ticks[1],
		   &ticks[2], &ticks[3], &ticks[4], &ticks[5], &ticks[6], &ticks[7]) != 8)
		return -1;
	for (int i = 0; i < 8; i++)
		total += ticks[i];
	return total ? (double)ticks[7] / (double)total : 0;
}

void info_gather_kernel(const char *root, struct info_kernel *kernel)
{
	static const char clocks[] = "/sys/devices/system/clocksource/clocksource0";
	char hypervisor[sizeof(kernel->hypervisor)] = "";
	struct utsname name;

	memset(kernel, 0, sizeof(*kernel));
	if (uname(&name) == 0) {
		snprintf(kernel->release, sizeof(kernel->release), "%s %s", name.sysname,
			 name.release);
		snprintf(kernel->machine, sizeof(kernel->machine), "%s", name.machine);
	}
	kernel->guest = ask_cpu(hypervisor, sizeof(hypervisor));
	snprintf(kernel->hypervisor, sizeof(kernel->hypervisor), "%s", hypervisor_name(hypervisor));
	kernel->steal = read_steal(root);
	plx_cpu_quota_read(root, &kernel->quota);
	plx_read_file(kernel->clocksource, sizeof(kernel->clocksource), "%s%s/current_clocksource",
		      root, clocks);
	plx_read_file(kernel->clocksources, sizeof(kernel->clocksources),
		      "%s%s/available_clocksource", root, clocks);
	kernel->clock = *plx_clock_info_read();
}

/* Memory -------------------------------------------------------------------------------------- */

/* 0 if there is no such file. */
static uint64_t read_number(const char *folder, const char *name)
{
	char text[64];

	plx_read_file(text, sizeof(text), "%s/%s", folder, name);
	return strtoull(text, NULL, 10);
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
	pool->total = read_number(path, "nr_hugepages");
	pool->free = read_number(path, "free_hugepages");
	memory->pool_count++;
}

static int by_node_and_size(const void *a, const void *b)
{
	const struct info_pool *left = a, *right = b;

	if (left->node_id != right->node_id)
		return left->node_id - right->node_id;
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

	plx_read_file(text, sizeof(text), "%s/proc/self/status", root);
	info_find_value(text, "CapEff", false, set, sizeof(set));
	return strtoull(set, NULL, 16) >> 14 & 1;
}

void info_gather_memory(const char *root, struct info_memory *memory)
{
	char text[8192], *open;

	memset(memory, 0, sizeof(*memory));
	plx_read_file(text, sizeof(text), "%s/proc/meminfo", root);
	memory->total_bytes = info_find_bytes(text, "MemTotal");
	memory->available_bytes = info_find_bytes(text, "MemAvailable");
	read_pools(root, memory);
	plx_read_file(text, sizeof(text), "%s/sys/kernel/mm/transparent_hugepage/enabled", root);
	open = strchr(text, '['); /* "always [madvise] never" */
	if (open)
		snprintf(memory->thp, sizeof(memory->thp), "%.*s", (int)strcspn(open + 1, "]"),
			 open + 1);
	memory->numa_balancing = read_number(root, "proc/sys/kernel/numa_balancing") != 0;
	memory->memlock_bytes = limit_of(RLIMIT_MEMLOCK, false);
	memory->memlock_exempt = may_lock_all(root);
	memory->nofile = limit_of(RLIMIT_NOFILE, true);
}
