/* SPDX-License-Identifier: BSD-3-Clause */
/* Huge pages, limits, and automatic page migration. */
#include "doctor_priv.h"

#include <inttypes.h>
#include <string.h>

#define MIB            (UINT64_C(1) << 20)
#define MEMLOCK_ENOUGH (64 * MIB)
#define NOFILE_ENOUGH  4096

/* Count the nodes that have pools, and those among them without a free huge page of any size. The
 * pools of a node are adjacent. */
static void count_nodes(const struct info_memory *memory, unsigned *nodes_out, unsigned *empty_out)
{
	*nodes_out = *empty_out = 0;
	for (unsigned i = 0; i < memory->pool_count;) {
		int node_id = memory->pools[i].node_id;
		uint64_t free = 0;

		for (; i < memory->pool_count && memory->pools[i].node_id == node_id; i++)
			free += memory->pools[i].free;
		*nodes_out += 1;
		*empty_out += free == 0;
	}
}

void doctor_check_hugepages(struct report *report)
{
	unsigned node_count, empty;

	count_nodes(&report->info->memory, &node_count, &empty);
	if (node_count && !empty)
		return;
	doctor_find(
		report, INFO_ADVICE, "hugepages",
		"buffers then lie on small pages, or on huge ones only if the kernel has some at "
		"hand: more TLB misses, longer registration with RDMA devices",
		node_count && empty < node_count ? "%u of %u NUMA nodes have no free huge page"
						 : "no huge page is free (%u of %u NUMA nodes)",
		empty, node_count);
	doctor_suggest(report,
		       "sudo sysctl vm.nr_hugepages=256   # 512 MiB over all nodes; per node: "
		       "scripts/hugepages.sh reserve 512");
}

void doctor_check_thp(struct report *report)
{
	if (strcmp(report->info->memory.thp, "never") != 0)
		return;
	doctor_find(report, INFO_NOTE, "thp",
		    "where huge pages run out, memory falls back to pages of 4 KiB at once",
		    "transparent huge pages are switched off");
	doctor_suggest(report,
		       "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled");
}

void doctor_check_memlock(struct report *report)
{
	const struct info_memory *memory = &report->info->memory;
	bool rdma = report->info->rdma.device_count > 0;

	if (memory->memlock_bytes >= MEMLOCK_ENOUGH || memory->memlock_exempt)
		return;
	doctor_find(
		report, rdma ? INFO_PROBLEM : INFO_NOTE, "memlock",
		rdma ? "buffers for an RDMA device are locked, once for each lcore with links over "
		       "it: 4 MiB for plx-echo, 16 MiB more for a NetIO socket that sends pages; "
		       "beyond the limit they cannot be registered, and links fail"
		     : "RDMA devices, once there are some, need their buffers locked",
		"the limit of locked memory is %" PRIu64 " KiB", memory->memlock_bytes / 1024);
	doctor_suggest(
		report,
		"ulimit -l unlimited || sudo prlimit --memlock=unlimited --pid $$   # for good: "
		"'USER - memlock unlimited' in /etc/security/limits.d/pollux.conf, and log in "
		"again; in a systemd unit LimitMEMLOCK=infinity");
}

void doctor_check_nofile(struct report *report)
{
	if (report->info->memory.nofile >= NOFILE_ENOUGH)
		return;
	doctor_find(report, INFO_NOTE, "nofile",
		    "each link takes a descriptor or more; a server runs out of them at that many",
		    "the limit of open descriptors is %" PRIu64, report->info->memory.nofile);
	doctor_suggest(report, "ulimit -n 65536   # for good: LimitNOFILE=65536, or "
			       "/etc/security/limits.d/pollux.conf");
}

void doctor_check_balancing(struct report *report)
{
	if (!report->info->memory.numa_balancing || report->info->cpus.node_count < 2)
		return;
	doctor_find(
		report, INFO_ADVICE, "numa-balancing",
		"the kernel unmaps pages now and then to learn who uses them: page faults on the "
		"message path",
		"automatic NUMA balancing is on, on %u nodes", report->info->cpus.node_count);
	doctor_suggest(report, "sudo sysctl kernel.numa_balancing=0");
}
