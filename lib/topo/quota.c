/* SPDX-License-Identifier: BSD-3-Clause */
/* The CPU quota of this process' control group: version 2 (Documentation/admin-guide/cgroup-v2.rst,
 * cpu.max) and version 1 (Documentation/scheduler/sched-bwc.rst). */
#include "topo_priv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Keep the smallest quota. */
static void take(struct plx_cpu_quota *least, double quota_us, double period_us, const char *path)
{
	if (!(quota_us > 0) || !(period_us > 0))
		return;
	if (least->cpus > 0 && least->cpus <= quota_us / period_us)
		return;
	least->cpus = quota_us / period_us;
	least->period_ms = period_us / 1000;
	snprintf(least->path, sizeof(least->path), "%s", path);
}

/* "max 100000" or "50000 100000". */
static void read_v2(const char *root, const char *group, struct plx_cpu_quota *least)
{
	char text[64], path[sizeof(least->path)];
	double quota, period;

	snprintf(path, sizeof(path), "/sys/fs/cgroup%s/cpu.max", group);
	if (topo_read(text, sizeof(text), "%s%s", root, path) &&
	    sscanf(text, "%lf %lf", &quota, &period) == 2)
		take(least, quota, period, path);
}

/* A quota of -1 means unlimited. */
static void read_v1(const char *root, const char *group, struct plx_cpu_quota *least)
{
	char text[64], path[sizeof(least->path)];
	double quota, period = 100000; /* the kernel's default */

	snprintf(path, sizeof(path), "/sys/fs/cgroup/cpu%s/cpu.cfs_period_us", group);
	if (topo_read(text, sizeof(text), "%s%s", root, path))
		period = strtod(text, NULL);
	snprintf(path, sizeof(path), "/sys/fs/cgroup/cpu%s/cpu.cfs_quota_us", group);
	if (!topo_read(text, sizeof(text), "%s%s", root, path))
		return;
	quota = strtod(text, NULL);
	take(least, quota, period, path);
}

/* A quota also limits all child groups, so every level up to the root is read. In a container, the
 * path is the host's, but the group's files are at the root; this finds those too. Truncates
 * `group`. */
static void read_all(const char *root, char *group, struct plx_cpu_quota *least,
		     void (*read)(const char *root, const char *group, struct plx_cpu_quota *least))
{
	char *slash = group + strlen(group);

	if (slash[-1] == '/') /* "/" is the root */
		slash--;
	do {
		*slash = '\0';
		read(root, group, least);
		slash = strrchr(group, '/');
	} while (slash);
}

/* Lines of /proc/self/cgroup: "0::/path" (v2) or "N:cpu,cpuacct:/path" (v1). */
void plx_cpu_quota(const char *root, struct plx_cpu_quota *quota_out)
{
	char text[4096], *save = NULL;

	*quota_out = (struct plx_cpu_quota){0};
	root = root ? root : "";
	topo_read(text, sizeof(text), "%s/proc/self/cgroup", root);
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		char *controllers = strchr(line, ':');
		char *group = controllers ? strchr(controllers + 1, ':') : NULL;

		if (!group || group[1] != '/')
			continue;
		*group++ = '\0';
		if (controllers[1] == '\0')
			read_all(root, group, quota_out, read_v2);
		else if (strcmp(controllers, ":cpu") == 0 || strncmp(controllers, ":cpu,", 5) == 0)
			read_all(root, group, quota_out, read_v1);
	}
}
