/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * CPUs and NUMA nodes of this host, which of them this process may use, core lists and masks,
 * pinning, and RDMA devices and where they are. Two number spaces are kept apart by name
 * throughout: a *CPU id* is the operating system's, an *lcore id* is Pollux's own; `-l 2@5` is
 * lcore 2 on CPU 5.
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

/** How many CPUs are in the set. */
unsigned plx_cpuset_count(const struct plx_cpuset *set);

/** The least CPU in the set that is >= from, or PLX_CPU_MAX. */
unsigned plx_cpuset_next(const struct plx_cpuset *set, unsigned from);

#define PLX_CPUSET_FOREACH(cpu, set)                                      \
	for (unsigned cpu = plx_cpuset_next((set), 0); cpu < PLX_CPU_MAX; \
	     cpu = plx_cpuset_next((set), cpu + 1))

bool plx_cpuset_equal(const struct plx_cpuset *a, const struct plx_cpuset *b);

/** Write the set as a list, "0-3,8"; "none" if empty; a list that does not fit ends in "...".
 * Returns out. */
const char *plx_cpuset_format(const struct plx_cpuset *set, char *out, size_t size);

/* This host -------------------------------------------------------------------------------- */

struct plx_topo;

/** Discover a topology. source: NULL for this host, "synthetic:DESCRIPTION" (hwloc's own, such as
 * "synthetic:numa:2 core:4 pu:1") or "xml:PATH" for another one, which can be looked at but not
 * pinned to. Ownership: free with plx_topo_close. Thread: setup.
 * Return: 0; -EINVAL bad source, or no CPU in it is allowed; -ENOENT no such XML file; -ENOMEM;
 * -EIO hwloc failed. */
int plx_topo_open(const char *source, struct plx_topo **topo_out);

/** Accepts NULL. */
void plx_topo_close(struct plx_topo *topo);

/** Every CPU that is online. Valid until close. */
const struct plx_cpuset *plx_topo_cpus(const struct plx_topo *topo);

/** The CPUs that this process may use: online, in its cgroup's cpuset, and in the affinity mask it
 * had when the topology was opened (that of the calling thread). Never empty. Valid until close. */
const struct plx_cpuset *plx_topo_allowed(const struct plx_topo *topo);

/** How many NUMA nodes have CPUs or memory; at least 1. */
unsigned plx_topo_node_count(const struct plx_topo *topo);

/** The operating system's id of the i-th node (0 <= i < node_count). */
int plx_topo_node_id(const struct plx_topo *topo, unsigned i);

/** The CPUs of node `node_id`; the empty set for an unknown node. */
struct plx_cpuset plx_topo_node_cpus(const struct plx_topo *topo, int node_id);

/** The id of the NUMA node that the CPU belongs to; -1 if the CPU is unknown. */
int plx_topo_cpu_node(const struct plx_topo *topo, unsigned cpu);

/** A number that CPUs of one physical core (SMT siblings) share; -1 if the CPU is unknown. */
int plx_topo_cpu_core(const struct plx_topo *topo, unsigned cpu);

/** A number that CPUs of one package (socket) share; -1 if the CPU is unknown. */
int plx_topo_cpu_package(const struct plx_topo *topo, unsigned cpu);

/** Bind the calling thread to exactly those CPUs (hwloc_set_cpubind, strict) and read it back.
 * Thread: the one to pin. Return: 0; -EINVAL empty set or a topology that is not this host;
 * -EPERM not allowed; -EIO the read-back differs. */
int plx_topo_pin(const struct plx_topo *topo, const struct plx_cpuset *cpus);

/** The CPUs that the calling thread is bound to now. Return: 0; -EIO. */
int plx_topo_pinned(const struct plx_topo *topo, struct plx_cpuset *cpus_out);

/* RDMA devices ----------------------------------------------------------------------------- */

#define PLX_RDMA_NAME_BYTES 64
#define PLX_RDMA_PORTS_MAX  4

enum plx_rdma_transport {
	PLX_RDMA_UNKNOWN,
	PLX_RDMA_IB, /**< InfiniBand's; RoCE on a port whose link layer is Ethernet */
	PLX_RDMA_IWARP,
	PLX_RDMA_USNIC,
	PLX_RDMA_OWN, /**< the maker's own, such as EFA */
};

struct plx_rdma_port {
	unsigned number; /**< from 1 */
	bool active;
	double speed_gbps;   /**< 0 unknown; software devices make one up */
	char state[32];      /**< the kernel's text: "4: ACTIVE", "1: DOWN", "2: INIT" */
	char phys_state[32]; /**< likewise: "5: LinkUp", "3: Disabled", "2: Polling" */
	char link_layer[16]; /**< "InfiniBand", "Ethernet" */
	char rate[48];       /**< "100 Gb/sec (4X EDR)" */
	char netdev[16];     /**< the network interface that is the same port; "" unknown */
};

/** What the kernel shows of a device to everybody. */
struct plx_rdma_device {
	char name[PLX_RDMA_NAME_BYTES]; /**< "mlx5_0" */
	int node;                       /**< as plx_device_node */
	enum plx_rdma_transport transport;
	char uverbs[16]; /**< "uverbs0", its file in /dev/infiniband; "" without ib_uverbs */
	unsigned port_count;
	struct plx_rdma_port ports[PLX_RDMA_PORTS_MAX]; /**< by number; further ones are left out */
};

/** List the RDMA devices, sorted by name, a number in it as a number: mlx5_2 before mlx5_10. Reads
 * /sys/class/infiniband below root, where "" or NULL is this host, and opens no device.
 * Return: how many there are, of which the first max are in devices; 0 where there are none, or no
 * RDMA in this kernel. Thread: any. */
unsigned plx_rdma_devices(const char *root, struct plx_rdma_device *devices, unsigned max);

/** Whether a port of the device is active. */
bool plx_rdma_is_active(const struct plx_rdma_device *device);

/** "InfiniBand", "iWARP", "usNIC", "its own", "unknown". */
const char *plx_rdma_transport_name(enum plx_rdma_transport transport);

/** The NUMA node of a device of this host, as the kernel shows it. name: an RDMA device ("mlx5_0",
 * also that of libfabric's verbs domain with FI_EP_MSG), a network interface ("eth0"), or a PCI
 * address ("0000:3b:00.0"). An RDMA device in software (rxe, siw) is where the network interface
 * below it is. Needs no topology, and reads a few small files. Thread: any. Return: the node; -1
 * unknown, as in most virtual machines and on hosts with one node; -ENODEV no such device. */
int plx_device_node(const char *name);

/** The same on the host of that topology: one from XML has devices if it was exported with them,
 * but no PCI addresses. Thread: setup. Return: as plx_device_node. */
int plx_topo_device_node(const struct plx_topo *topo, const char *name);

/* Core lists and masks --------------------------------------------------------------------- */

/** One lcore and the CPUs it may run on: one by custom; of several the system chooses. */
struct plx_lcore_place {
	uint32_t lcore_id;
	struct plx_cpuset cpus;
};

/** The lcores of a process, in the order of their ids, each id once. */
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
 * Names stand for CPUs that this process may use: `all` for each of them, `node:1` for those of
 * NUMA node 1, and `near:` with a device as for plx_device_node for those of its node. So `node:1`
 * is an lcore on each CPU of the node, with the CPU's number, and `0-1@near:eth0` lcores 0 and 1 on
 * any CPU near eth0. They do not stand before "@".
 *
 * option: how the user named it ("-l", "--lcores", "lcores in FILE:7"), for the error text, which
 * names the option, the text, the column (from 1) and what is allowed there.
 * topo: where the names are looked up.
 * Ownership: free *map_out with plx_lcore_map_fini. Thread: setup. Return: 0; -EINVAL; -ENOMEM. */
int plx_lcore_map_parse_list(const char *option, const char *text, const struct plx_topo *topo,
			     struct plx_lcore_map *map_out);

/** Parse a hexadecimal mask of CPUs, any width, "0x" optional: lcore n on CPU n for each bit n.
 * "_" separates digits anywhere; "," as the kernel writes masks, with 8 digits after each, because
 * "1,0" would mean two things. Otherwise as plx_lcore_map_parse_list. */
int plx_lcore_map_parse_mask(const char *option, const char *text, struct plx_lcore_map *map_out);

/** Check that every CPU of the map is allowed to this process. The error names the first CPU that
 * is not, the allowed set, and an option text that would work.
 * Return: 0; -EINVAL. */
int plx_lcore_map_check(const char *option, const char *text, const struct plx_topo *topo,
			const struct plx_lcore_map *map);

/** One lcore, id 0, on one CPU. Return: 0; -EINVAL no such CPU id; -ENOMEM. */
int plx_lcore_map_single(unsigned cpu, struct plx_lcore_map *map_out);

/** Write the map as a core list that parses to the same map; one that does not fit ends in "...",
 * which does not parse. Returns out. */
const char *plx_lcore_map_format(const struct plx_lcore_map *map, char *out, size_t size);

/** Free the places. Accepts a zeroed map. */
void plx_lcore_map_fini(struct plx_lcore_map *map);

/* Claims ----------------------------------------------------------------------------------- */

/** Another process that says that it polls on a CPU. */
struct plx_cpu_holder {
	pid_t pid;       /**< 0: not known */
	bool other_user; /**< it is of another user, who is not root: anybody can say so, and it is
			      not believed */
};

/** Claim a CPU for a poller of this process, so that the next Pollux process takes another one.
 * A claim is a listening abstract UNIX socket, "\0pollux/cpu/N", or "\0pollux/cpu/N.1" to "N.3"
 * where other users hold those before: it ends with the process however that ends, and leaves
 * nothing behind. It is seen by processes of the same network namespace.
 * claim_out: a close-on-exec descriptor; close it to give the CPU back.
 * A child that is forked without exec shares it.
 * holder_out: on -EBUSY the process that has it; on success other_user, and its process, where
 * another user claims it too. May be NULL, which is right for one who only looks for a free CPU:
 * each question costs the holder a place in its backlog (4096 by the system's default), and with
 * the backlog full nobody learns which process it is.
 * Thread: setup. Return: 0; -EBUSY another process (or this one) holds it; -EACCES other users hold
 * all its names; -EINVAL no CPU id; -EMFILE and its like. */
int plx_cpu_claim(unsigned cpu, int *claim_out, struct plx_cpu_holder *holder_out);

/** How much CPU time this process may have: of all control groups that it is in, the one that
 * grants least. */
struct plx_cpu_quota {
	double cpus;      /**< CPU time in a period, as so many CPUs; 0: there is no quota */
	double period_ms; /**< who has used it up stands still until the period is over */
	char path[256];   /**< the file that says so, below root */
};

/** Read it. root: a directory that stands for "/" (of a container, of a test); NULL or "": "/"
 * itself. What cannot be read is no quota. Thread: any. */
void plx_cpu_quota(const char *root, struct plx_cpu_quota *quota_out);

PLX_END_DECLS

#endif
