/* SPDX-License-Identifier: BSD-3-Clause */
/* List the claims of a host. The names of claims belong to a network namespace, but the list of
 * sockets that /proc has for a process is that of its namespace, and every user may read it. The
 * number of this file identifies the namespace. */
#include "base_internal.h"
#include "topo_priv.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define NETWORKS_MAX 256
#define LIMIT_NS     (100 * PLX_NS_PER_MS)

#define PREFIX       "@pollux/cpu/"
#define FLAG_LISTENS 0x10000 /* __SO_ACCEPTCON */

/* linux/nsfs.h: PID_NS_INIT_INO; older headers lack it. */
#define FIRST_PID_NAMESPACE 0xeffffffcu

struct listing {
	struct plx_cpu_claimed *claims;
	unsigned count, max;
	ino_t networks[NETWORKS_MAX]; /* that were read; this process's first */
	unsigned network_count;
};

/* A line is "Num RefCount Protocol Flags Type St Inode Path", the first six in hex. */
static bool read_line(const char *line, struct plx_cpu_claimed *claim)
{
	unsigned flags;
	unsigned long long inode;
	int path_at = 0;

	if (sscanf(line, "%*s %*x %*x %x %*x %*x %llu %n", &flags, &inode, &path_at) < 2 ||
	    !path_at)
		return false;
	const char *path = line + path_at;
	if (!(flags & FLAG_LISTENS) || strncmp(path, PREFIX, strlen(PREFIX)) != 0)
		return false;
	const char *digits = path + strlen(PREFIX);
	char *end;
	unsigned long cpu = strtoul(digits, &end, 10);
	if (end == digits || cpu >= PLX_CPU_MAX)
		return false;
	*claim = (struct plx_cpu_claimed){.cpu = (unsigned)cpu, .inode = inode};
	return true;
}

static void read_sockets(FILE *file, struct listing *listing)
{
	char line[512]; /* a path has at most 108 bytes */
	struct plx_cpu_claimed claim;

	while (fgets(line, sizeof(line), file)) {
		if (!read_line(line, &claim))
			continue;
		claim.elsewhere = listing->network_count > 1;
		if (listing->count < listing->max)
			listing->claims[listing->count] = claim;
		listing->count++;
	}
}

static bool is_read(const struct listing *listing, ino_t network)
{
	for (unsigned i = 0; i < listing->network_count; i++)
		if (listing->networks[i] == network)
			return true;
	return false;
}

/* Read the claims of a namespace, unless they were read. path: its list of sockets. */
static void read_network(const char *path, struct listing *listing)
{
	struct stat list;
	FILE *file;

	if (stat(path, &list) != 0 || is_read(listing, list.st_ino))
		return;
	listing->networks[listing->network_count++] = list.st_ino;
	file = fopen(path, "re");
	if (!file)
		return;
	read_sockets(file, listing);
	fclose(file);
}

/* A host can have thousands of processes, but few network namespaces. */
static void read_processes(const char *root, struct listing *listing)
{
	uint64_t until_ns = plx_kernel_ns(CLOCK_MONOTONIC) + LIMIT_NS;
	char path[PATH_MAX];
	struct dirent *entry;
	DIR *processes;

	snprintf(path, sizeof(path), "%s/proc", root);
	processes = opendir(path);
	while (processes && (entry = readdir(processes)) && listing->network_count < NETWORKS_MAX &&
	       plx_kernel_ns(CLOCK_MONOTONIC) < until_ns) {
		if (entry->d_name[0] < '1' || entry->d_name[0] > '9')
			continue;
		snprintf(path, sizeof(path), "%s/proc/%s/net/unix", root, entry->d_name);
		read_network(path, listing);
	}
	if (processes)
		closedir(processes);
}

static int by_cpu(const void *a, const void *b)
{
	const struct plx_cpu_claimed *left = a, *right = b;

	if (left->cpu != right->cpu)
		return left->cpu < right->cpu ? -1 : 1;
	return left->elsewhere - right->elsewhere;
}

unsigned plx_cpu_claims(const char *root, struct plx_cpu_claimed *claims, unsigned max)
{
	struct listing listing = {.claims = claims, .max = max};
	char path[PATH_MAX];

	root = root ?: "";
	snprintf(path, sizeof(path), "%s/proc/net/unix", root);
	read_network(path, &listing);
	/* Without this process's own namespace, all others look foreign. */
	if (listing.network_count)
		read_processes(root, &listing);
	if (listing.count > max)
		listing.count = max;
	qsort(claims, listing.count, sizeof(claims[0]), by_cpu);
	return listing.count;
}

/* Without a view of other containers ----------------------------------------------------------- */

/* The number of a namespace of this process; 0 if the kernel does not tell. */
static ino_t namespace_number(const char *root, const char *name)
{
	char path[PATH_MAX];
	struct stat link;

	snprintf(path, sizeof(path), "%s/proc/self/ns/%s", root, name);
	return stat(path, &link) == 0 ? link.st_ino : 0;
}

/* Numbers of namespaces follow each other at steps of five or six, so the hash has to mix. */
unsigned topo_spread(const struct plx_cpuset *cpus, uint64_t network)
{
	unsigned count = plx_cpuset_count(cpus), cpu = plx_cpuset_next(cpus, 0);
	unsigned index = count ? (unsigned)(plx_random_next(&network) % count) : 0;

	while (index--)
		cpu = plx_cpuset_next(cpus, cpu + 1);
	return cpu;
}

bool plx_cpu_claims_hidden(const char *root)
{
	ino_t pids = namespace_number(root ?: "", "pid");

	return pids && pids != FIRST_PID_NAMESPACE;
}

unsigned plx_cpu_first(const char *root, const struct plx_cpuset *cpus)
{
	ino_t network = plx_cpu_claims_hidden(root) ? namespace_number(root ?: "", "net") : 0;

	return network ? topo_spread(cpus, network) : plx_cpuset_next(cpus, 0);
}
