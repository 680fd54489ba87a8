/* SPDX-License-Identifier: BSD-3-Clause */
/* What plx-info gathers, how it judges it, and how it prints it. All paths in /proc and /sys are
 * relative to a root, "" for this host, so that tests can provide a fake host. */
#ifndef PLX_INFO_H
#define PLX_INFO_H

#include "base_internal.h"
#include "plx_topo.h"

#include <glob.h>
#include <stdio.h>

struct ifaddrs;
struct plx_fabric_driver;

#define INFO_NODES_MAX     64
#define INFO_POOLS_MAX     (4 * INFO_NODES_MAX)
#define INFO_CLAIMS_MAX    256
#define INFO_SHARERS_MAX   256
#define INFO_PROVIDERS_MAX 48
#define INFO_DRIVERS_MAX   8
#define INFO_DEVICES_MAX   32
#define INFO_GIDS_MAX      32
#define INFO_FINDINGS_MAX  64

/* Texts of /proc and /sys (text.c) ---------------------------------------------------------- */

/** Parse the kernel's list format, "0-3,8". Returns false, and the empty set, for anything else. */
bool info_parse_cpulist(const char *text, struct plx_cpuset *cpus_out);

/** The value of `name` in "name: value" or "name=value" text, up to the end of the line or, if
 * blank_ends, the next blank. Returns false, with out "", if the name is missing. */
bool info_find_value(const char *text, const char *name, bool blank_ends, char *out, size_t size);

/** The value of `name` in lines of "name: N kB", as in /proc/meminfo; 0 if it is missing. */
uint64_t info_find_bytes(const char *text, const char *name);

/** A state in the kernel's format, "4: ACTIVE", without its number. */
const char *info_state_word(const char *state);

/** All paths of a pattern, which comes from format, in no order; none if a folder is not readable.
 * Ownership: globfree. */
glob_t info_glob(const char *format, ...) PLX_PRINTF(1, 2);

/** Add a word to a list once. A full list ends in "...". separator: " " or ", ". */
void info_add_word(char *list, size_t size, const char *separator, const char *word);

/* CPUs (cpus.c, claims.c) ------------------------------------------------------------------ */

struct info_node {
	int id;
	struct plx_cpuset cpus;
	uint64_t total_bytes, free_bytes;
};

struct info_claim {
	unsigned cpu;
	uint64_t inode;   /* of the claim's socket */
	bool elsewhere;   /* in another network namespace */
	bool shared;      /* the claim before it is of the same CPU; see info_complete */
	pid_t pid;        /* 0: the owner's descriptors are not readable */
	char command[64]; /* printable; "" if pid is 0 */
};

/* A process with an lcore on a CPU that another process has claimed. */
struct info_sharer {
	unsigned cpu;
	pid_t pid;
	char command[64]; /* printable */
};

struct info_cpus {
	char model[128];
	struct plx_cpuset online, allowed;
	struct plx_cpuset isolated;     /* kernel: isolcpus= or a cpuset partition */
	struct plx_cpuset nohz_full;    /* kernel: no timer tick while one thread runs */
	struct plx_cpuset rcu_nocbs;    /* kernel: RCU callbacks offloaded */
	struct plx_cpuset one_per_core; /* of the allowed ones, without SMT siblings */
	struct plx_cpuset not_governed; /* of the allowed ones: governor is not "performance" */
	char governor[32];              /* "": no frequency control; "mixed": they differ */
	unsigned package_count;
	unsigned core_count;
	struct info_node nodes[INFO_NODES_MAX];
	unsigned node_count;
	struct info_claim claims[INFO_CLAIMS_MAX];
	unsigned claim_count;
	bool claims_hidden;                           /* other containers may have more */
	char first_cpu[8];                            /* where lcores then look from; or "" */
	struct info_sharer sharers[INFO_SHARERS_MAX]; /* by CPU, then by pid */
	unsigned sharer_count;
};

void info_gather_cpus(const char *root, const struct plx_topo *topo, struct info_cpus *cpus);

/** Gather all claims and their owners, without taking or requesting any. And other processes that
 * have an lcore on a claimed CPU without a claim: programs that link to the shared library and
 * whose /proc this user may read. Skips this process. */
void info_gather_claims(const char *root, struct info_cpus *cpus);

/* Memory (host.c) --------------------------------------------------------------------------- */

struct info_pool {
	int node_id;
	uint64_t page_bytes;
	uint64_t total, free; /* pages */
};

struct info_memory {
	uint64_t total_bytes, available_bytes;
	struct info_pool pools[INFO_POOLS_MAX];
	unsigned pool_count;
	char thp[16];           /* transparent huge pages: "always", "madvise", "never" or "" */
	bool numa_balancing;    /* the kernel migrates pages between nodes */
	uint64_t memlock_bytes; /* RLIMIT_MEMLOCK, soft; UINT64_MAX: unlimited */
	bool memlock_exempt;    /* CAP_IPC_LOCK: the limit does not apply */
	uint64_t nofile;        /* RLIMIT_NOFILE, hard: see plx_eal_init */
};

void info_gather_memory(const char *root, struct info_memory *memory);

/* Kernel and clock (host.c) ----------------------------------------------------------------- */

struct info_kernel {
	char release[136];
	char machine[72];
	bool guest;          /* runs in a virtual machine */
	char hypervisor[16]; /* its name from CPUID, or "" */
	double steal;        /* share of CPU time since boot that other guests got; <0: unknown */
	struct plx_cpu_quota quota;
	char clocksource[32];
	char clocksources[96]; /* available ones, separated by blanks */
	struct plx_clock_info clock;
};

void info_gather_kernel(const char *root, struct info_kernel *kernel);

/* libfabric and RDMA (fabric.c, rdma.c) ----------------------------------------------------- */

struct info_provider {
	char name[64];
	bool msg, rdm, dgram; /* endpoint types on this host */
	char domains[256];    /* separated by blanks, each once */
};

struct info_driver {
	const char *name;
	const char *summary;
	char provider[64]; /* what links of this driver use */
	bool available;    /* that provider has connected endpoints (FI_EP_MSG) on this host */
	bool same_host;    /* it only reaches this host */
	char domains[256];
};

struct info_fabric {
	uint32_t version; /* of libfabric, FI_MAJOR and FI_MINOR */
	char version_text[16];
	struct info_provider providers[INFO_PROVIDERS_MAX];
	unsigned provider_count;
	struct info_driver drivers[INFO_DRIVERS_MAX];
	unsigned driver_count;
};

/** drivers: NULL-terminated. Takes about 100 ms: libfabric probes every provider. */
void info_gather_fabric(const struct plx_fabric_driver *const *drivers, struct info_fabric *fabric);

/* A file that programs must open. */
enum info_file { INFO_FILE_MISSING, INFO_FILE_CLOSED, INFO_FILE_OPEN };

struct info_gid {
	unsigned port, index;
	char text[48];   /**< as an IPv6 address, which a RoCE v2 GID is */
	char type[16];   /**< "InfiniBand", "RoCE v1", "RoCE v2", "iWARP" */
	char netdev[16]; /**< "": none */
};

/** Device properties that only openers can query. */
struct info_details {
	int inline_max_bytes; /**< of a one-piece send on a connected queue pair; -1: unknown */
	unsigned max_sge;     /**< pieces of one send or receive */
	unsigned max_cqe;     /**< entries of one completion queue */
	struct {
		unsigned mtu_bytes, mtu_max_bytes; /**< 0: unknown */
	} ports[PLX_RDMA_PORTS_MAX];               /**< in the device's order */
	unsigned gid_count;
	struct info_gid gids[INFO_GIDS_MAX]; /**< those in use; the rest are omitted */
};

/** Open a device of this host with libibverbs, query it and close it. The inline limit is found by
 * creating queue pairs, because no query returns it. Takes some milliseconds; the first device of a
 * process takes longer, while libibverbs loads its drivers. Thread: setup.
 * Return: 0; -ENXIO the module ib_uverbs is not loaded; -ENOENT no file in /dev/infiniband;
 * -EACCES no permission for it; -ENODEV no user-space driver; -EOPNOTSUPP built without libibverbs;
 * -EIO opening or querying failed. */
int info_probe_device(const struct plx_rdma_device *device, struct info_details *details_out);

/** What that error of info_probe_device means. */
const char *info_hurdle(int error);

/* All that is known about a port; see info_complete. */
struct info_port {
	struct plx_rdma_port seen;
	unsigned mtu_bytes, mtu_max_bytes; /* 0: unknown */
	char addresses[128];               /* separated by blanks */
};

struct info_device {
	struct plx_rdma_device seen; /* what the kernel shows to everyone */
	bool usable;                 /* user space can open it */
	int error;                   /* why not, from info_probe_device; 0: not tried */
	const char *unusable;        /* the same as text; NULL: usable */
	struct info_details details; /* if usable */
	bool has_address; /* an active port has an address that other hosts can route to */

	/* See info_complete. */
	const char *transport, *protocol; /* "InfiniBand", "RoCE" */
	int inline_max_bytes;             /* -1: unknown */
	char cpus[4096];                  /* of its NUMA node; "": unknown */
	struct info_port ports[PLX_RDMA_PORTS_MAX];
};

struct info_rdma {
	struct info_device devices[INFO_DEVICES_MAX];
	unsigned device_count;
	unsigned device_total; /* including those that do not fit into devices */
	unsigned device_more;  /* those that do not fit; see info_complete */
	enum info_file cm;     /* /dev/infiniband/rdma_cm, needed to connect */
};

/** Gather what the kernel shows below root. */
void info_gather_rdma(const char *root, struct info_rdma *rdma);

/** Open and query this host's devices. */
void info_probe_rdma(struct info_rdma *rdma);

/** Assign interface addresses to the ports. list: from getifaddrs. */
void info_take_addresses(const struct ifaddrs *list, struct info_rdma *rdma);

/* Everything, and what to change (doctor.c, doctor_*.c) -------------------------------------- */

enum info_severity {
	INFO_PROBLEM, /* something fails, or is unusably slow */
	INFO_ADVICE,  /* costs latency, or a tail */
	INFO_NOTE,    /* good to know */
};

struct info_finding {
	enum info_severity severity;
	const char *id; /* stable, for scripts: "hugepages" */
	char seen[256];
	const char *why;
	char command[256]; /* "" if there is no command */
};

extern const char *const info_severity_names[];

struct info {
	struct info_cpus cpus;
	struct info_memory memory;
	struct info_kernel kernel;
	struct info_fabric fabric;
	struct info_rdma rdma;

	/* See info_complete. */
	unsigned schema;
	const char *version; /* of Pollux */
	struct info_finding findings[INFO_FINDINGS_MAX];
	unsigned finding_count;
};

/** After gathering: fill in what is made of other values, and the findings. */
void info_complete(struct info *info);

/** Judge a host; the most severe findings come first. Returns how many. */
unsigned info_doctor(const struct info *info, struct info_finding findings[INFO_FINDINGS_MAX]);

/* Printing (describe.c, show.c) -------------------------------------------------------------- */

#define INFO_JSON_SCHEMA 1

void info_print(const struct info *info, FILE *out);
void info_print_findings(const struct info *info, FILE *out);

/** Print one JSON object and a newline. Return: 0; -EIO. */
int info_print_json(const struct info *info, FILE *out);

#endif
