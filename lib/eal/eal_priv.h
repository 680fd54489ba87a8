/* SPDX-License-Identifier: BSD-3-Clause */
/* The option table, and declarations internal to lib/eal. */
#ifndef EAL_PRIV_H
#define EAL_PRIV_H

#include "option_words.h"
#include "plx_eal.h"

/* clang-format off */

/* Every option once: kind, id, letter, long name, value, field of struct plx_eal_conf (a VALUE has
 * a function parse_FIELD in values.c), name in a configuration file, group, help. Help is wrapped. */
#define EAL_OPTIONS(X) \
	X(STRING, LCORES, 'l', "lcores", "LIST", lcores, "lcores", Lcores, \
	  "lcores and their CPUs: 0-3,8 or 2@5; names of CPUs: all, node:N, near:DEVICE (default: " \
	  "lcore 0 on the first free CPU, near an RDMA device if any)") \
	X(STRING, COREMASK, 'c', "coremask", "MASK", coremask, "coremask", Lcores, \
	  "the same as a hexadecimal mask of CPUs: 0xf") \
	X(VALUE, MAIN_LCORE, 0, "main-lcore", "ID", main_lcore, "main_lcore", Lcores, \
	  "the main thread's lcore (default: the lowest id)") \
	X(VALUE, LANE_SLOTS, 0, "lane-slots", "N", lane_slots, "lane_slots", Lcores, \
	  "messages that may wait between two lcores: a power of two, 2 to 65536 (default: 256)") \
	X(STRING, IDLE, 0, "idle", "POLICY", idle, "idle", Lcores, \
	  "what idle lcores do: poll, event (sleep), or adaptive (poll, then sleep), followed by " \
	  "[:latency|:balanced|:eco][:learned|:fixed][:N%]; per lcore: 0:poll,1-3:event (default: " \
	  "adaptive:balanced:learned)") \
	X(VALUE, SOCKET_MEM, 0, "socket-mem", "MB,...", node_bytes, "socket_mem", Memory, \
	  "memory to take at start on NUMA node 0, 1, ...; in MiB, or with K, M or G (default: " \
	  "taken when needed)") \
	X(VALUE, HUGE, 0, "huge", "2M|1G|none", huge, "huge", Memory, \
	  "page size of memory (default: 2M)") \
	X(VALUE, NUMA, 0, "numa", "strict|prefer|any", numa, "numa", Memory, \
	  "memory on the lcore's NUMA node: always, if it has room, or on any node (default: " \
	  "prefer)") \
	X(VALUE, DUMP_MEMORY, 0, "dump-memory", "yes|no", no_dump, "dump_memory", Memory, \
	  "no: core dumps leave out pools, buffers and shared rings (default: yes)") \
	X(STRING, PROVIDER, 0, "provider", "NAME", provider, "provider", Links, \
	  "transport: tcp, shm or verbs (default: auto)") \
	X(STRING, TCP, 0, "tcp", "KEY=VALUE,...", tcp, "tcp", Links, \
	  "settings of links over tcp: send_bytes, receive_bytes, user_timeout_ms, " \
	  "busy_poll_us, connect_ms, handshake_ms, dscp (default: none)") \
	X(VALUE, REQUIRE, 0, "require", "rdma|none", require_rdma, "require", Links, \
	  "rdma: links to other hosts use RDMA or fail (default: none)") \
	X(SIZE, RECEIVE_MEM, 0, "receive-mem", "SIZE", receive_bytes, "receive_mem", Links, \
	  "receive buffers of an lcore's links; beyond half of it new links get fewer (default: " \
	  "256M)") \
	X(SIZE, PARTIAL_MEM, 0, "partial-mem", "SIZE", partial_bytes, "partial_mem", Links, \
	  "upper limit for incomplete long messages of an lcore (default: 1G)") \
	X(VALUE, TURN_MAX, 0, "turn-max", "N", turn_max, "turn_max", Links, \
	  "messages that an lcore receives in one turn of its loop (default: 256)") \
	X(VALUE, TURN_TIME, 0, "turn-time", "TIME", turn_ns, "turn_time", Links, \
	  "for how long it receives in one turn; a callback is not interrupted (default: 100us)") \
	X(LIMIT, LINKS_MAX, 0, "links-max", "N|none", admission.links_max, "links_max", Links, \
	  "links per listener (default: 4096)") \
	X(LIMIT, LINKS_PER_HOST, 0, "links-per-host", "N|none", admission.links_per_host_max, \
	  "links_per_host", Links, \
	  "links from one address, over shm from one user; at most a quarter of --links-max " \
	  "(default: that quarter)") \
	X(LIMIT, ACCEPTS_PER_S, 0, "accepts-per-s", "N|none", admission.accepts_per_s, "accepts_per_s", \
	  Links, \
	  "accepted connections per second; the rest wait, and addresses take turns (default: " \
	  "1000)") \
	X(LIMIT, HANDSHAKES_MAX, 0, "handshakes-max", "N|none", admission.handshakes_max, \
	  "handshakes_max", Links, \
	  "connections per listener that are not open yet; one more closes the oldest silent " \
	  "one of the address with the most (default: 256)") \
	X(VALUE, HEARTBEAT, 0, "heartbeat", "TIME[:TIME]|off", heartbeat_ns, "heartbeat", Links, \
	  "heartbeat of idle peers, and the silence after which a peer is dead (default: " \
	  "100ms:500ms)") \
	X(VALUE, DEAD_AFTER_MAX, 0, "dead-after-max", "TIME", dead_after_max_ns, "dead_after_max", Links, \
	  "the longest such silence that a peer may ask of a listener; a peer without " \
	  "heartbeats gets half of it (default: 1min)") \
	X(VALUE, SELF_TEST, 0, "self-test", "RATE|off", self_test_rate, "self_test", Links, \
	  "calls per second and lcore to the self-test service, from any host: see plx-call " \
	  "--process (default: 100000, from this host only)") \
	X(STRING, CONFIG, 0, "config", "FILE", config, NULL, General, \
	  "read options from FILE; the command line overrides it") \
	X(LEVELS, LOG_LEVEL, 0, "log-level", "[PART:]LEVEL", log_levels, "log_level", General, \
	  "log up to error, warning, notice, info or debug; may be repeated (default: notice)") \
	X(VALUE, DESCRIPTORS, 0, "descriptors", "raise|keep", keep_descriptors, "descriptors", General, \
	  "raise the soft limit of descriptors to the hard one, or keep it: select(2) needs " \
	  "numbers below 1024 (default: raise)") \
	X(FLAG, DRY_RUN, 0, "dry-run", NULL, dry_run, NULL, General, \
	  "check everything, print what would run, start nothing") \
	X(FLAG, VERSION, 'V', "version", NULL, show_version, NULL, General, \
	  "print the version") \
	X(FLAG, HELP, 'h', "help", NULL, show_help, NULL, General, \
	  "print this help")

/* clang-format on */

enum eal_option_kind { EAL_STRING, EAL_VALUE, EAL_SIZE, EAL_LIMIT, EAL_LEVELS, EAL_FLAG };

#define EAL_OPTION_ID(kind, id, ...) OPT_##id,
enum eal_option_id { EAL_OPTIONS(EAL_OPTION_ID) OPT_COUNT };
#undef EAL_OPTION_ID

struct eal_option {
	enum eal_option_kind kind;
	size_t offset; /* of the field in struct plx_eal_conf */
	/* Convert text to the field's number or numbers. given: how the user wrote the option.
	 * Return: 0; -EINVAL. NULL: the field is a string. */
	int (*parse)(const char *given, const char *text, void *field);
	const char *key;   /* key in a configuration file; NULL: not allowed there */
	const char *group; /* heading in the help */
};

extern const struct eal_option eal_options[OPT_COUNT];

/* conf.c: the struct ----------------------------------------------------------------------- */

/** How the user wrote the option, for error texts; its plain name if the program set it. */
const char *eal_conf_origin(const struct plx_eal_conf *conf, enum eal_option_id id);

/** Set an option; lists grow. given: how the user wrote it; copied. value: kept, not copied.
 * Return: 0; -EINVAL given twice, a bad VALUE, or too many log levels; -ENOMEM. */
int eal_conf_set(struct plx_eal_conf *conf, enum eal_option_id id, const char *value,
		 const char *given);
/** Append a log level. origin: NULL if the program set it; both are kept. Return: 0; -EINVAL too
 * many. */
int eal_conf_add_level(struct plx_eal_conf *conf, const char *value, const char *origin);
/** Copy a string into conf. Return: the copy; NULL, plx_error() has the text. */
const char *eal_conf_own(struct plx_eal_conf *conf, const char *text);
/** Return: 0; -EINVAL both --lcores and --coremask are set. */
int eal_conf_check_pair(const struct plx_eal_conf *conf);

/* values.c: texts that stand for numbers ---------------------------------------------------- */

extern const char *const eal_numa_words[]; /* by enum plx_numa */

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
