/* SPDX-License-Identifier: BSD-3-Clause */
/* Declarations internal to lib/eal. options.c is the table of options; values.c stores their
 * values, and those of programs; conf.c and conf_file.c fill the struct from the command line and a
 * file; checks.c, place.c and idle.c check what depends on the host; eal.c starts and stops. */
#ifndef EAL_PRIV_H
#define EAL_PRIV_H

#include "option_words.h"
#include "plx_eal.h"

/* The index of each option in its table, options.c. */
enum eal_option_id {
	OPT_LCORES,
	OPT_COREMASK,
	OPT_MAIN_LCORE,
	OPT_LANE_SLOTS,
	OPT_IDLE,
	OPT_SOCKET_MEM,
	OPT_HUGE,
	OPT_NUMA,
	OPT_DUMP_MEMORY,
	OPT_PROVIDER,
	OPT_TCP,
	OPT_REQUIRE,
	OPT_RECEIVE_MEM,
	OPT_PARTIAL_MEM,
	OPT_TURN_MAX,
	OPT_TURN_TIME,
	OPT_LINKS_MAX,
	OPT_LINKS_PER_HOST,
	OPT_ACCEPTS_PER_S,
	OPT_HANDSHAKES_MAX,
	OPT_HEARTBEAT,
	OPT_DEAD_AFTER_MAX,
	OPT_SELF_TEST,
	OPT_CONFIG,
	OPT_LOG_LEVEL,
	OPT_DESCRIPTORS,
	OPT_DRY_RUN,
	OPT_VERSION, /* and what follows: also of programs without an EAL */
	OPT_HELP,
	OPT_COUNT
};

/** The field of conf that the option sets. */
void *eal_option_field(struct plx_eal_conf *conf, enum eal_option_id id);

/** Set the EAL's option that begins with argv[0]. first: options before it are unknown. Return: as
 * plx_option_take; -ENOMEM. */
int eal_options_take(enum eal_option_id first, int argc, char *const *argv,
		     struct plx_eal_conf *conf);

/* conf.c: the struct ----------------------------------------------------------------------- */

/** How the user wrote the option, for error texts; its plain name if the program set it. */
const char *eal_conf_origin(const struct plx_eal_conf *conf, enum eal_option_id id);

/** Set an option; log levels add up. given: how the user wrote it; copied. value: kept, not copied.
 * Return: 0; -EINVAL given twice, a bad value, or too many log levels; -ENOMEM. */
int eal_conf_set(struct plx_eal_conf *conf, enum eal_option_id id, const char *value,
		 const char *given);
/** Append a log level. origin: NULL if the program set it; both are kept. Return: 0; -EINVAL too
 * many. */
int eal_conf_add_level(struct plx_eal_conf *conf, const char *value, const char *origin);
/** Copy a string into conf. Return: the copy; NULL, plx_error() has the text. */
const char *eal_conf_own(struct plx_eal_conf *conf, const char *text);
/** Return: 0; -EINVAL both --lcores and --coremask are set. */
int eal_conf_check_pair(const struct plx_eal_conf *conf);

/* checks.c: what depends on the host --------------------------------------------------------- */

extern const char *const eal_numa_words[]; /* options.c; by enum plx_numa */

/** Check node_bytes against this host. *count_out: one more than the last node with memory. Return:
 * 0; -EINVAL. */
int eal_check_memory(const struct plx_eal_conf *conf, const struct plx_topo *topo,
		     unsigned *count_out);
/** Choose the main lcore: the lowest of the map unless conf names one. Return: 0; -EINVAL. */
int eal_check_main_lcore(const struct plx_eal_conf *conf, const struct plx_lcore_map *map,
			 uint32_t *lcore_out);

/** The claims that this process holds: descriptors from plx_cpu_claim. */
struct eal_claims {
	int fds[PLX_CPU_MAX];
	unsigned count;
	struct plx_cpuset contested; /* CPUs that another process claims, or that lcores share */
	char why[512];               /* the CPU of the default lcore was chosen; "": by the user */
};

/** idle.c: the policy of each lcore, in the map's order, and that of threads that are adopted
 * later. idle_out, others_out: zeroed. */
int eal_idle_value(const struct plx_eal_conf *conf, const struct plx_lcore_map *map,
		   const struct eal_claims *claims, struct plx_idle_conf *idle_out,
		   struct plx_idle_conf *others_out);

/** Return whether the lcore has no CPU to itself. */
bool eal_is_contested(const struct plx_lcore_place *place, const struct eal_claims *claims);

/** Determine the lcores from conf and check them. Without --lcores and --coremask: one lcore on a
 * free CPU, near an RDMA device below root if there is one. Claims the CPUs, and warns about CPUs
 * that another process claims or that lcores share. keep: hold the claims; otherwise they are
 * released at once. Ownership: free map_out with plx_lcore_map_fini, claims_out with
 * eal_claims_drop. Return: 0; -EINVAL; -ENOMEM. */
int eal_place(const struct plx_eal_conf *conf, const char *root, const struct plx_topo *topo,
	      bool keep, struct plx_lcore_map *map_out, struct eal_claims *claims_out);
void eal_claims_drop(struct eal_claims *claims);

#endif
