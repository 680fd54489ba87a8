/* SPDX-License-Identifier: BSD-3-Clause */
/* The CPU quota of this process' control group: version 2 (Documentation/admin-guide/cgroup-v2.rst,
 * cpu.max) and version 1 (Documentation/scheduler/sched-bwc.rst). */
#include "topo_priv.h"

#include <stdio.h>
#include <stdlib.h>

struct search {
	const char *root;
	struct plx_cpu_quota *least;
};

/* Keep the smallest quota. */
static void take(void *arg, const char *folder, bool is_v2)
{
	const struct search *search = arg;
	const char *file = is_v2 ? "cpu.max" : "cpu.cfs_quota_us";
	struct plx_cpu_quota *least = search->least;
	double quota_us = 0, period_us = 100000; /* the kernel's default */
	char text[64];

	/* "max 100000" or "50000 100000"; in version 1 "-1" or "50000". */
	plx_read_file(text, sizeof(text), "%s%s/%s", search->root, folder, file);
	sscanf(text, "%lf %lf", &quota_us, &period_us);
	if (!is_v2 &&
	    plx_read_file(text, sizeof(text), "%s%s/cpu.cfs_period_us", search->root, folder))
		period_us = strtod(text, NULL);
	if (!(quota_us > 0) || !(period_us > 0) ||
	    (least->cpus > 0 && least->cpus <= quota_us / period_us))
		return;
	least->cpus = quota_us / period_us;
	least->period_ms = period_us / 1000;
	snprintf(least->path, sizeof(least->path), "%s/%s", folder, file);
}

void plx_cpu_quota_read(const char *root, struct plx_cpu_quota *quota_out)
{
	struct search search = {.root = root ? root : "", .least = quota_out};

	*quota_out = (struct plx_cpu_quota){0};
	plx_cgroup_visit(search.root, "cpu", take, &search);
}
