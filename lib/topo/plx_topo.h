/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * CPUs and NUMA nodes of this host, the CPUs that this process may use, core lists and masks,
 * pinning, and RDMA devices with their nodes. Two kinds of numbers: a *CPU id* is the operating
 * system's, an *lcore id* is Pollux's. `-l 2@5` is lcore 2 on CPU 5.
 */
#ifndef PLX_TOPO_H
#define PLX_TOPO_H

#include "plx_base.h"

#include <sys/types.h>

PLX_BEGIN_DECLS

/* Sets of CPUs ----------------------------------------------------------------------------- */

/** CPU ids are 0 to PLX_CPU_MAX - 1. */
#define PLX_CPU_MAX 4096

/** A set of CPU ids. All zero is the empty set. */
struct plx_cpuset {
	uint64_t words[PLX_CPU_MAX / 64];
};

static inline void plx_cpuset_add(struct plx_cpuset *set, unsigned cpu)
{
	set->words[cpu / 64] |= UINT64_C(1) << (cpu % 64);
}

static inline void plx_cpuset_remove(struct plx_cpuset *set, unsigned cpu)
{
	set->words[cpu / 64] &= ~(UINT64_C(1) << (cpu % 64));
}

static inline bool plx_cpuset_has(const struct plx_cpuset *set, unsigned cpu)
{
	return cpu < PLX_CPU_MAX && (set->words[cpu / 64] >> (cpu % 64) & 1);
}

/** Number of CPUs in the set. */
unsigned plx_cpuset_count(const struct plx_cpuset *set);

/** The lowest CPU in the set that is >= from, or PLX_CPU_MAX. */
unsigned plx_cpuset_next(const struct plx_cpuset *set, unsigned from);

#define PLX_CPUSET_FOREACH(cpu, set)                                      \
	for (unsigned cpu = plx_cpuset_next((set), 0); cpu < PLX_CPU_MAX; \
	     cpu = plx_cpuset_next((set), cpu + 1))

bool plx_cpuset_equal(const struct plx_cpuset *a, const struct plx_cpuset *b);

/** The CPUs that both sets have. */
struct plx_cpuset plx_cpuset_and(const struct plx_cpuset *a, const struct plx_cpuset *b);

/** Add the CPUs of another set, or remove them. */
void plx_cpuset_add_all(struct plx_cpuset *set, const struct plx_cpuset *more);
void plx_cpuset_remove_all(struct plx_cpuset *set, const struct plx_cpuset *less);

/** Format the set as a list, "0-3,8"; "none" if empty. A list that does not fit ends in "...".
 * Return: out. */
const char *plx_cpuset_format(const struct plx_cpuset *set, char *out, size_t size);

/* This host -------------------------------------------------------------------------------- */

struct plx_topo;

/** Discover a topology. source: NULL for this host. "synthetic:DESCRIPTION" (hwloc's, such as
 * "synthetic:numa:2 core:4 pu:1") is another host, which is only for inspection, not for pinning.
 * Ownership: free with plx_topo_close.
 * Thread: setup.
 * Return: 0; -EINVAL bad source, or no allowed CPU in it; -ENOMEM; -EIO hwloc failed. */
int plx_topo_open(const char *source, struct plx_topo **topo_out);

/** Free a topology. Accepts NULL. */
void plx_topo_close(struct plx_topo *topo);

/** All online CPUs. Valid until close. */
const struct plx_cpuset *plx_topo_cpus(const struct plx_topo *topo);

/** CPUs that this process may use: online, in its cgroup's cpuset, and in the calling thread's
 * affinity mask when the topology was opened. Never empty. Valid until close. */
const struct plx_cpuset *plx_topo_allowed(const struct plx_topo *topo);

/** Number of NUMA nodes with CPUs or memory; at least 1. */
unsigned plx_topo_node_count(const struct plx_topo *topo);

/** The operating system's id of the i-th node (0 <= i < node_count). */
int plx_topo_node_id(const struct plx_topo *topo, unsigned i);

/** The CPUs of node `node_id`; the empty set for an unknown node. */
struct plx_cpuset plx_topo_node_cpus(const struct plx_topo *topo, int node_id);

/** The NUMA node id of a CPU; -1 if the CPU is unknown. */
int plx_topo_cpu_node(const struct plx_topo *topo, unsigned cpu);

/** A number shared by the CPUs of a physical core (SMT siblings); -1 if the CPU is unknown. */
int plx_topo_cpu_core(const struct plx_topo *topo, unsigned cpu);

/** A number shared by the CPUs of a package (socket); -1 if the CPU is unknown. */
int plx_topo_cpu_package(const struct plx_topo *topo, unsigned cpu);

/** Pin the calling thread to exactly these CPUs (sched_setaffinity(2)) and read the result
 * back.
 * Thread: the one to pin.
 * Return: 0; -EINVAL empty set, or not this host's topology; -EPERM not allowed; -EIO the result
 * differs. */
int plx_topo_pin(const struct plx_topo *topo, const struct plx_cpuset *cpus);

/** CPUs that the calling thread is pinned to. Return: 0; -EIO. */
int plx_topo_pinned(const struct plx_topo *topo, struct plx_cpuset *cpus_out);

/* RDMA devices ----------------------------------------------------------------------------- */

#define PLX_RDMA_NAME_BYTES 64
#define PLX_RDMA_PORTS_MAX  4

enum plx_rdma_transport {
	PLX_RDMA_UNKNOWN,
	PLX_RDMA_IB, /**< InfiniBand; RoCE on a port with link layer Ethernet */
	PLX_RDMA_IWARP,
	PLX_RDMA_USNIC,
	PLX_RDMA_OWN, /**< vendor-specific, such as EFA */
};

struct plx_rdma_port {
	unsigned number; /**< from 1 */
	bool active;
	double speed_gbps;   /**< 0 unknown; software devices invent one */
	char state[32];      /**< the kernel's text: "4: ACTIVE", "1: DOWN", "2: INIT" */
	char phys_state[32]; /**< likewise: "5: LinkUp", "3: Disabled", "2: Polling" */
	char link_layer[16]; /**< "InfiniBand", "Ethernet" */
	char rate[48];       /**< "100 Gb/sec (4X EDR)" */
	char netdev[16];     /**< network interface of the port; "" unknown */
};

/** Properties that the kernel shows to every user. */
struct plx_rdma_device {
	char name[PLX_RDMA_NAME_BYTES]; /**< "mlx5_0" */
	int node;                       /**< as plx_device_node */
	enum plx_rdma_transport transport;
	char uverbs[16]; /**< "uverbs0", its file in /dev/infiniband; "" without ib_uverbs */
	unsigned port_count;
	struct plx_rdma_port ports[PLX_RDMA_PORTS_MAX]; /**< by number; further ones are omitted */
};

/** List the RDMA devices, sorted by name with numbers compared as numbers: mlx5_2 before mlx5_10.
 * Reads /sys/class/infiniband below root ("" or NULL: this host). Opens no device.
 * Thread: any.
 * Return: number of devices, of which the first max are in devices; 0 if there are none, or the
 * kernel has no RDMA. */
unsigned plx_rdma_devices(const char *root, struct plx_rdma_device *devices, unsigned max);

/** Whether a port of the device is active. */
bool plx_rdma_is_active(const struct plx_rdma_device *device);

/** "InfiniBand", "iWARP", "usNIC", "its own", "unknown". */
const char *plx_rdma_transport_name(enum plx_rdma_transport transport);

/** The NUMA node of a device of this host, as the kernel reports it. name: an RDMA device
 * ("mlx5_0", also libfabric's verbs domain name with FI_EP_MSG), a network interface ("eth0"), or a
 * PCI address ("0000:3b:00.0"). A software RDMA device (rxe, siw) has the node of its network
 * interface. Reads a few small files; needs no topology.
 * Thread: any.
 * Return: the node; -1 unknown, as in most virtual machines and on single-node hosts; -ENODEV no
 * such device. */
int plx_device_node(const char *name);

/* Core lists and masks --------------------------------------------------------------------- */

/** One lcore and its CPUs: usually one; of several the system chooses. */
struct plx_lcore_place {
	uint32_t lcore_id;
	struct plx_cpuset cpus;
};

/** The lcores of a process, sorted by id, each id once. */
struct plx_lcore_map {
	uint32_t count;
	struct plx_lcore_place *places;
};

/** Parse a core list:
 *
 *     list  = item *( "," item )
 *     item  = set [ "@" set ]
 *     set   = range | "(" range *( "," range ) ")"
 *     range = number [ "-" number ]              also descending: 3-1
 *           | "all" | "node:" number | "near:" device
 *
 * Without "@", `0-3,8` is lcores 0,1,2,3,8, each on the CPU of the same number, and `(0,6)` is
 * lcores 0 and 6, each on both CPUs. `2@5` is lcore 2 on CPU 5; `(0-1)@0` lcores 0 and 1, both on
 * CPU 0; `2@(5-7)` lcore 2 on any of CPUs 5 to 7. Blanks are allowed around every token.
 *
 * Names are sets of CPUs that this process may use: `all`, those of a NUMA node (`node:1`), or
 * those of the node of a device (`near:eth0`, as for plx_device_node). `node:1` is one lcore per
 * CPU of the node, with the CPU's number. `0-1@near:eth0` is lcores 0 and 1 on any CPU near eth0.
 * Names are not allowed before "@".
 *
 * option: the name the user gave ("-l", "--lcores", "lcores in FILE:7"). The error text has the
 * option, the text, the column (from 1) and what is allowed there.
 * topo: where names are looked up.
 * Ownership: free *map_out with plx_lcore_map_fini.
 * Thread: setup.
 * Return: 0; -EINVAL; -ENOMEM. */
int plx_lcore_map_parse_list(const char *option, const char *text, const struct plx_topo *topo,
			     struct plx_lcore_map *map_out);

/** Parse a hexadecimal mask of CPUs, of any width, "0x" optional: lcore n on CPU n for each bit n.
 * "_" separates digits anywhere. "," must have 8 digits after it, as in the kernel's masks, because
 * "1,0" would be ambiguous. Otherwise as plx_lcore_map_parse_list. */
int plx_lcore_map_parse_mask(const char *option, const char *text, struct plx_lcore_map *map_out);

/** Check that this process may use every CPU of the map. The error text names the first CPU that
 * it may not, the allowed set, and a core list that would work.
 * Return: 0; -EINVAL. */
int plx_lcore_map_check(const char *option, const char *text, const struct plx_topo *topo,
			const struct plx_lcore_map *map);

/** A map of lcore 0 on one CPU. Return: 0; -EINVAL no such CPU id; -ENOMEM. */
int plx_lcore_map_single(unsigned cpu, struct plx_lcore_map *map_out);

/** Format the map as a core list that parses to the same map. One that does not fit ends in "...",
 * which does not parse. Return: out. */
const char *plx_lcore_map_format(const struct plx_lcore_map *map, char *out, size_t size);

/** Free the places. Accepts a zeroed map. */
void plx_lcore_map_fini(struct plx_lcore_map *map);

/* Claims ----------------------------------------------------------------------------------- */

/** Another process that claims to poll on a CPU. */
struct plx_cpu_holder {
	pid_t pid;       /**< 0: unknown */
	bool other_user; /**< it belongs to another user, not root. Any user can claim, so the claim
			      is ignored */
};

/** Claim a CPU for a poller of this process, so that the next Pollux process takes another one. A
 * claim is a listening abstract UNIX socket, "\0pollux/cpu/N", or "\0pollux/cpu/N.1" to "N.3" if
 * other users hold the former. It ends with the process, however that ends, and is visible
 * in the network namespace.
 * claim_out: a close-on-exec descriptor; close it to release the CPU. A forked child without exec
 * shares it.
 * holder_out: on -EBUSY the holding process; on success other_user and its process, if another
 * user claims the CPU too. Pass NULL if you only search for a free CPU: each query occupies a
 * place in the holder's backlog (4096 by the system's default), and with a full backlog nobody
 * learns the process.
 * Thread: setup.
 * Return: 0; -EBUSY another process (or this one) holds it; -EACCES other users hold all its
 * names; -EINVAL not a CPU id; -EMFILE and the like. */
int plx_cpu_claim(unsigned cpu, int *claim_out, struct plx_cpu_holder *holder_out);

/** A claim that the kernel lists. */
struct plx_cpu_claimed {
	unsigned cpu;
	uint64_t inode; /**< of its socket */
	bool elsewhere; /**< in another network namespace, where plx_cpu_claim does not see it */
};

/** List all claims of this network namespace, and those of the other namespaces of processes in
 * /proc: up to 256 namespaces, in at most 0.1 s. Asks no process. Includes claims that
 * plx_cpu_claim ignores.
 * root: prefix in place of "/"; NULL or "": "/".
 * Thread: any.
 * Return: number of claims in `claims`, at most max, sorted by CPU. */
unsigned plx_cpu_claims(const char *root, struct plx_cpu_claimed *claims, unsigned max);

/** Whether /proc hides processes of this host, because this process is in a PID namespace, as in a
 * container. root: as for plx_cpu_claims. Thread: any. */
bool plx_cpu_claims_hidden(const char *root);

/** The CPU of the set where the search for a free one starts: the lowest; with
 * plx_cpu_claims_hidden one that depends on the network namespace, so that containers differ. root:
 * as for plx_cpu_claims. Thread: any. Return: the CPU; PLX_CPU_MAX if the set is empty. */
unsigned plx_cpu_first(const char *root, const struct plx_cpuset *cpus);

/** CPU quota of this process: the lowest of all its control groups. */
struct plx_cpu_quota {
	double cpus;      /**< CPU time per period, as a number of CPUs; 0: no quota */
	double period_ms; /**< a process that used up its quota stops until the period ends */
	char path[256];   /**< the file with the quota, below root */
};

/** Read the quota. root: a directory that replaces "/" (of a container, of a test); NULL or "":
 * "/". Unreadable files count as no quota.
 * Thread: any. */
void plx_cpu_quota_read(const char *root, struct plx_cpu_quota *quota_out);

PLX_END_DECLS

#endif
