/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The environment abstraction layer: from a command line, a configuration file or a struct to a
 * running set of lcores with memory and fabric, and back. Never prints and never exits.
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

/** Everything that can be set. Fill it by hand, from argv (plx_eal_parse), or both: the command
 * line wins over the configuration file, and the file over what the program set. 0 and NULL are
 * defaults. Strings are the caller's (argv's) or the struct's own `owned` ones; free those with
 * plx_eal_conf_fini. */
struct plx_eal_conf {
	const char *lcores;   /**< core list as for plx_lcore_map_parse_list; NULL: see init */
	const char *coremask; /**< hexadecimal mask instead of a list */
	uint32_t main_lcore;  /**< lcore id; 0: the least */
	uint32_t lane_slots;  /**< as in struct plx_lcore_conf */
	const char *idle;     /**< "POLICY", or "LCORES:POLICY,...", as for plx_idle_parse */
	size_t node_bytes[PLX_EAL_NODES_MAX]; /**< memory to take at start on NUMA node 0, 1, ... */
	enum plx_huge huge;
	enum plx_numa numa;
	bool no_dump;         /**< core dumps leave out zones and shared rings */
	const char *provider; /**< "tcp", "shm", "fi:tcp", ...; NULL: chosen */
	/** As in struct plx_fabric_conf. */
	const char *tcp;
	bool require_rdma;
	uint64_t receive_bytes, partial_bytes;
	struct plx_admission admission;
	uint64_t heartbeat_ns, dead_after_ns;
	/** Calls a second that the self-test service takes on an lcore, of any host; default
	 * 100000, of this host alone; PLX_NONE: there is no such service. */
	uint32_t self_test_rate;
	const char *config;                         /**< path of a libconfig file */
	const char *log_levels[PLX_EAL_LEVELS_MAX]; /**< "[component:]level" */
	uint32_t log_level_count;
	bool dry_run;      /**< check everything, start nothing */
	bool show_version; /**< set by --version: for the caller to act on */
	bool show_help;    /**< set by --help: for the caller to act on */
	/** How each of these was given, for error texts: "-l", "lcores in FILE:3". NULL
	 * for one that the program set. Indexed by plx_eal's option table; private. */
	char *origin[32];
	char *level_origins[PLX_EAL_LEVELS_MAX]; /**< the same for each log level; private */
	char *owned[48]; /**< strings that came from the configuration file; private */
	uint32_t owned_count;
	bool config_read; /**< the configuration file has been read; private */
};

/** Parse options up to "--" or the first word that is no option. conf must be zeroed, or hold what
 * the program sets by itself. The options keep their place: argv is not reordered. Uses getopt_long
 * and so leaves its globals changed.
 * Thread: setup. Return: how many words were used, "--" included, argv[0] not: the application's
 * own begin at argv[1 + n]. -EINVAL an unknown option (with the nearest known one), a missing or
 * repeated value, a number, size, time or word that is none, or two options that exclude each
 * other. What depends on the host is looked at by plx_eal_init. */
int plx_eal_parse(int argc, char **argv, struct plx_eal_conf *conf);

/** Read conf->config, if set, into what the command line did not set. Log levels are taken from
 * both, the command line's last. Done by plx_eal_init too, once: a second call does nothing.
 * The file is libconfig's; its settings are strings named as the long options, with "_" for "-".
 * "@include" is refused: libconfig ends the process when it is given a directory.
 * Thread: setup. Return: 0; -ENOENT; -EACCES and its like; -EINVAL with file, line and what is
 * allowed; -EOPNOTSUPP built without libconfig. */
int plx_eal_conf_file(struct plx_eal_conf *conf);

/** Free what the conf owns; also after a call that failed. plx_eal_init keeps nothing of it. */
void plx_eal_conf_fini(struct plx_eal_conf *conf);

/** Bring everything up: topology, log levels, memory, lcores (WAIT), fabric. Without lcores or
 * coremask: one lcore, id 0, on the first allowed CPU that no other Pollux process has claimed;
 * where none is free, the first allowed one and a warning. With dry_run everything is checked and
 * nothing started. May be repeated after plx_eal_fini.
 * Thread: setup; the caller becomes the main lcore.
 * Return: 0; -EINVAL a bad value (a usage error); -EALREADY; -EPERM plx_is_forked; or what failed.
 * On failure nothing is left running. */
int plx_eal_init(struct plx_eal_conf *conf);

/** Stop the loops, close the main lcore's links without loss (0.5 s), wait for the workers (5 s),
 * close links, free memory. Thread: main. Return: 0; -ETIMEDOUT an lcore hangs; nothing before
 * init. In a process that was forked since (plx_is_forked) it only closes descriptors and frees
 * heap memory, and links and lcores of the parent go on. */
int plx_eal_fini(void);

/** The topology in use; NULL before init. */
const struct plx_topo *plx_eal_topo(void);

/** The help text of all EAL options, with defaults, for an application's --help. */
const char *plx_eal_options_help(void);

/** Several lines for --dry-run: lcores and CPUs, memory, provider. After init. Returns out. */
const char *plx_eal_describe(char *out, size_t size);

PLX_END_DECLS

#endif
