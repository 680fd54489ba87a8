/* SPDX-License-Identifier: BSD-3-Clause */
/* Internal to lib/topo. */
#ifndef TOPO_PRIV_H
#define TOPO_PRIV_H

#include "base_internal.h"
#include "plx_topo.h"

struct hwloc_topology;

/* Queries hwloc on demand: nothing here is on a hot path. */
struct plx_topo {
	struct hwloc_topology *hwloc;
	bool this_host;
	const char *overridden_by; /* an environment variable; NULL: none set */
	const char *root;          /* prefix of the paths of devices */
	struct plx_cpuset cpus, allowed;
};

/** Read the NUMA node of a device, or of its parent: of a name in a folder of sysfs, such as
 * "/sys/class/net". device: "/device", if its folder is below that. Return: the node; -1 unknown.
 */
int topo_read_node(const char *root, const char *folder, const char *name, const char *device);

/** plx_device_node from sysfs. root: prefix in place of "/". */
int topo_kernel_node(const char *root, const char *name);
/** Read an RDMA device below `root`. Return false if the name is too long. */
bool topo_rdma_read(const char *root, const char *name, struct plx_rdma_device *device);

/* A list of items. One that does not fit is cut after a whole item and ends in "...", so nobody
 * mistakes it for a complete one. */
void topo_text_item(struct plx_text *text); /* starts an item: writes a comma if needed */
/** Write the ids as items: "0-3", "8". */
void topo_text_ids(struct plx_text *text, const struct plx_cpuset *ids);
const char *topo_text_end(struct plx_text *text); /* finishes the list. Return: out */

/** Choose one of the CPUs by a hash of the number of a network namespace. Return: PLX_CPU_MAX if
 * the set is empty. */
unsigned topo_spread(const struct plx_cpuset *cpus, uint64_t network);

/* An option and its text, as the user gave them. */
struct topo_given {
	const char *option, *text;
};

#define TOPO_EXCERPT_BYTES 96

/** Quote the user's text for an error: in quotes if it is empty or has blanks, control characters
 * as '?', only the part around `at` if it is long. Return: out. */
const char *topo_excerpt(const char *text, const char *at, char out[TOPO_EXCERPT_BYTES]);

/** plx_fail with the prefix "OPTION TEXT: column N: ". Return: -EINVAL. */
int topo_fail_at(const struct topo_given *given, const char *at, const char *format, ...)
	PLX_PRINTF(3, 4);
/** Report that `expected` is missing at `at`. hint: what to do, or "". */
int topo_fail_expected(const struct topo_given *given, const char *at, const char *expected,
		       const char *hint);
/** Report that `cpu` is beyond the lcore ids. advice: how to give a CPU with another lcore id. */
int topo_fail_no_lcore(const struct topo_given *given, const char *at, const char *what,
		       unsigned cpu, const char *advice);

const char *topo_skip_blanks(const char *at);

/** Map lcore n to CPU n for each CPU of the set that is a valid lcore id. */
int topo_map_plain(const struct plx_cpuset *cpus, struct plx_lcore_map *map_out);
/** Allocate `count` zeroed places; map->count stays 0. Return: 0; -ENOMEM. */
int topo_map_alloc(struct plx_lcore_map *map, uint32_t count);

#endif
