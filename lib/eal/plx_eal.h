/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Environment abstraction layer: starts lcores, memory and fabric from a command line, a
 * configuration file or a struct, and stops them. Never prints and never exits. plx_app.h has one
 * call for main that uses it.
 */
#ifndef PLX_EAL_H
#define PLX_EAL_H

#include "plx_base.h"
#include "plx_fabric.h"
#include "plx_lcore.h"
#include "plx_mem.h"

PLX_BEGIN_DECLS

#define PLX_EAL_NODES_MAX  64
#define PLX_EAL_LEVELS_MAX 16

/** All settings. Fill it in code, from argv (plx_eal_parse), or both: the command line overrides
 * the configuration file, which overrides the program. 0 and NULL are defaults.
 * Ownership: strings belong to the caller (argv) or to the struct (`owned`); free the latter with
 * plx_eal_conf_fini. */
struct plx_eal_conf {
	const char *lcores;   /**< core list as for plx_lcore_map_parse_list; NULL: see
				   plx_eal_init */
	const char *coremask; /**< hexadecimal mask instead of a list */
	bool any_cpu;        /**< without lcores and coremask: lcore 0 on any allowed CPU, without a
				  claim; for short runs that sleep */
	uint32_t main_lcore; /**< lcore id; 0: the lowest */
	uint32_t lane_slots; /**< as in struct plx_lcore_conf */
	const char *idle;    /**< "POLICY", or "LCORES:POLICY,...", as for plx_idle_parse */
	size_t node_bytes[PLX_EAL_NODES_MAX]; /**< bytes to reserve at start on NUMA node 0, 1,
						   ... */
	enum plx_huge huge;
	enum plx_numa numa;
	bool no_dump;         /**< exclude zones and shared rings from core dumps */
	const char *provider; /**< "tcp", "shm", "verbs"; NULL: selected per link */
	/** As in struct plx_fabric_conf. */
	const char *tcp;
	bool require_rdma;
	uint64_t receive_bytes, partial_bytes;
	uint64_t turn_ns;
	uint32_t turn_max;
	struct plx_admission admission;
	uint64_t heartbeat_ns, dead_after_ns, dead_after_max_ns;
	/** Self-test calls per second and lcore, from any host. Default: 100000, from this host
	 * only. PLX_NONE: no self-test service. */
	uint32_t self_test_rate;
	const char *config;                         /**< path of a libconfig file */
	const char *log_levels[PLX_EAL_LEVELS_MAX]; /**< "[component:]level" */
	uint32_t log_level_count;
	bool keep_descriptors; /**< leave the soft limit of descriptors (RLIMIT_NOFILE) as it is */
	bool dry_run;          /**< check everything, start nothing */
	bool show_version;     /**< set by --version: the caller prints and ends */
	bool show_help;        /**< set by --help: the same */
	/** Origin of each setting, for error texts: "-l", "lcores in FILE:3"; NULL: set by the
	 * program. Indexed by the option table; private. */
	const char *origin[32];
	const char *level_origins[PLX_EAL_LEVELS_MAX]; /**< the same for each log level; private */
	char *owned[100]; /**< origins, and strings from the configuration file; private */
	uint32_t owned_count;
	bool config_read; /**< the configuration file was read; private */
};

/** Parse options up to "--" or the first word that is not an option. conf must be zeroed, or hold
 * the program's own settings. argv is not reordered.
 * Thread: setup.
 * Return: number of words used, including "--" but not argv[0]: the application's words start at
 * argv[1 + n]. -EINVAL unknown option (the error text names the nearest one), missing or repeated
 * value, malformed number, size, time or word, or two options that exclude each other.
 * plx_eal_init checks what depends on the host. */
int plx_eal_parse(int argc, char **argv, struct plx_eal_conf *conf);

/** Read the file conf->config, if set, into the settings that the command line left unset. Log
 * levels come from both, the command line's last. plx_eal_init does it too; a second call does
 * nothing.
 * The format is libconfig's. Settings are strings, named as the long options with "_" for "-".
 * "@include" is refused, because libconfig ends the process if it names a directory.
 * Thread: setup.
 * Return: 0; -ENOENT; -EACCES and the like; -EINVAL, the error text has file, line and what is
 * allowed; -EOPNOTSUPP built without libconfig. */
int plx_eal_conf_file(struct plx_eal_conf *conf);

/** Free the strings that conf owns; also after a failed call. plx_eal_init keeps no reference to
 * conf. */
void plx_eal_conf_fini(struct plx_eal_conf *conf);

/** Start everything: topology, log levels, memory, lcores (WAIT), fabric. Raises the soft limit of
 * descriptors to the hard one for the rest of the process's life. Without lcores or
 * coremask: lcore 0 on the first allowed CPU that no other Pollux process has claimed; if all are
 * claimed, on the first allowed one, with a warning; any_cpu: on any allowed CPU. dry_run: check
 * everything, start nothing; plx_lcore_count() is then 0. show_help or show_version is refused. May
 * be repeated after plx_eal_fini.
 * Thread: setup; the caller becomes the main lcore.
 * Return: 0; -EINVAL bad value, show_help or show_version (a usage error); -EALREADY; -EPERM
 * plx_is_forked; or the error of the failed step. After an error nothing runs. */
int plx_eal_init(struct plx_eal_conf *conf);

/** Stop the loops, close the main lcore's links without loss (0.5 s), wait for the workers
 * (PLX_CLOSE_NS in all), abort remaining links, free memory. Does nothing before init. In a forked
 * child (plx_is_forked) it only closes descriptors and frees heap memory; the parent is not
 * affected.
 * Thread: main, outside its loop; any that is not an lcore, if the main lcore's thread has left.
 * Return: 0; -EBUSY in a callback, -EPERM another thread: nothing was done; -ETIMEDOUT an lcore
 * hangs: call it again. */
int plx_eal_fini(void);

/** The topology; NULL before init. */
const struct plx_topo *plx_eal_topo(void);

/** Help text of all EAL options, with defaults, for an application's --help. */
const char *plx_eal_options_help(void);

/** Several lines for --dry-run: lcores and CPUs, memory, provider. Call it after init. Return:
 * out. */
const char *plx_eal_describe(char *out, size_t size);

PLX_END_DECLS

#endif
