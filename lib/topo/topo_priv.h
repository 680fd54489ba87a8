/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of this library share and no other library sees. */
#ifndef TOPO_PRIV_H
#define TOPO_PRIV_H

#include "plx_topo.h"

struct hwloc_topology;

/* Everything is asked of hwloc when it is needed: nothing here is on a hot path. */
struct plx_topo {
	struct hwloc_topology *hwloc;
	bool this_host;
	const char *overridden_by; /* a variable of the environment; NULL: none is set */
	struct plx_cpuset cpus;
	struct plx_cpuset allowed;
};

/** Read the beginning of a small file of /proc or /sys, without the white space at its end. path:
 * made from format. Returns whether there is anything in it; out is "" otherwise. */
bool topo_read(char *out, size_t size, const char *format, ...) PLX_PRINTF(3, 4);

/** The NUMA node of the device that the kernel shows in that folder, "/sys/class/net/eth0/device",
 * or of the one above it; -1 unknown. path: made from format. */
int topo_read_node(const char *format, ...) PLX_PRINTF(1, 2);

/** As plx_device_node. root: stands for "/". */
int topo_kernel_node(const char *root, const char *name);

/** Read an RDMA device below root. Return: false: the name is too long. */
bool topo_rdma_read(const char *root, const char *name, struct plx_rdma_device *device);

/* A list of items written into a bounded buffer. One that does not fit is cut after its last whole
 * item and ends in "...", so that a cut list is never taken for a complete one. */
struct topo_text {
	char *out;
	size_t size;
	size_t used;
	size_t keep; /* the longest prefix of whole items that leaves room for ",..." */
	bool nested; /* what follows is inside one item */
	bool cut;
};

void topo_text_start(struct topo_text *text, char *out, size_t size);

/** Begin an item: writes the comma, if one is due. */
void topo_text_item(struct topo_text *text);

void topo_text_add(struct topo_text *text, const char *format, ...) PLX_PRINTF(2, 3);

/** Write the items of a set: "0-3", "8". */
void topo_text_ids(struct topo_text *text, const struct plx_cpuset *ids);

/** Returns out. */
const char *topo_text_end(struct topo_text *text);

/** Add first to last, both included; last is cut to PLX_CPU_MAX - 1. */
void topo_cpuset_add_range(struct plx_cpuset *set, unsigned first, unsigned last);

struct plx_cpuset topo_cpuset_and(const struct plx_cpuset *a, const struct plx_cpuset *b);

#define TOPO_EXCERPT_BYTES 96

/** The user's text as an error shows it: quoted where it is empty or has blanks, control characters
 * as '?', and of a long one only what lies around `at`. Returns out. */
const char *topo_excerpt(const char *text, const char *at, char out[TOPO_EXCERPT_BYTES]);

/** plx_fail with "OPTION TEXT: column N: " in front. Returns -EINVAL. */
int topo_fail_at(const char *option, const char *text, const char *at, const char *format, ...)
	PLX_PRINTF(4, 5);

/** Fail: at `at` stands something else than `expected`. hint: what to do, or "". */
int topo_fail_expected(const char *option, const char *text, const char *at, const char *expected,
		       const char *hint);

/** Read "all", "node:1" or "near:eth0" at *at, which moves past it. Return: 1; 0 none of them is
 * there; -EINVAL. */
int topo_parse_cpu_name(const char *option, const char *text, const char **at,
			const struct plx_topo *topo, struct plx_cpuset *cpus_out);

/** Past blanks. */
const char *topo_skip_blanks(const char *at);

/** Whether each lcore of the map runs on the CPU of its own number, and on no other. */
bool topo_map_is_plain(const struct plx_lcore_map *map);

/** Lcore n on CPU n for each CPU of the set that is a possible lcore id. */
int topo_map_plain(const struct plx_cpuset *cpus, struct plx_lcore_map *map_out);

/** Make room for `count` zeroed places; map->count stays 0. Return: 0; -ENOMEM. */
int topo_map_alloc(struct plx_lcore_map *map, uint32_t count);

#endif
