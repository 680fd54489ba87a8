/* SPDX-License-Identifier: BSD-3-Clause */
/* The option table, parsing argv with it, and its help text. */
#include "eal_priv.h"
#include "plx_fabric_driver.h"

#include <assert.h>
#include <string.h>

static_assert(sizeof(enum plx_huge) == sizeof(unsigned) &&
		      sizeof(enum plx_numa) == sizeof(unsigned),
	      "PLX_CHOICE stores both");

#define SELF_TEST_RATE_MAX 1000000000
#define NODE_BYTES_MAX     (UINT64_C(1) << 50)

/* Rows of the kinds of option_words.h. word: stands for UINT32_MAX: PLX_NONE, PLX_NO_LIMIT. */
#define EAL_ROW(kind, ...) PLX_OPTION((enum plx_app_kind)PLX_OPTION_##kind, __VA_ARGS__)
#define NUMBER(name, placeholder, to, min, max, word, ...) \
	EAL_ROW(NUMBER, uint32_t, name, placeholder, to, min, max, word, __VA_ARGS__)
#define LIMIT(name, to, ...) NUMBER(name, "N|none", to, 1, PLX_NO_LIMIT - 1, none, __VA_ARGS__)
#define TWO_WORDS(name, placeholder, to, words, ...) \
	EAL_ROW(BOOL, bool, name, placeholder, to, 0, 0, words, __VA_ARGS__)

const char *const eal_numa_words[] = {
	[PLX_NUMA_PREFER] = "prefer", [PLX_NUMA_STRICT] = "strict", [PLX_NUMA_ANY] = "any", NULL};
static const char *const huge_words[] = {
	[PLX_HUGE_2M] = "2M", [PLX_HUGE_1G] = "1G", [PLX_HUGE_NONE] = "none", NULL};
static const char *const dump_words[] = {"yes", "no", NULL};
static const char *const require_words[] = {"none", "rdma", NULL};
static const char *const descriptor_words[] = {"raise", "keep", NULL};
static const char *const none[] = {"none", NULL}, *const off[] = {"off", NULL};

/* The rows name fields of this one; eal_option_field finds them in another. */
static struct plx_eal_conf model;

/* clang-format off */

/* In a configuration file, names have "_" for "-". Help is wrapped. */
static const struct plx_option options[OPT_COUNT + 1] = {
	[OPT_LCORES] = PLX_TEXT("lcores", "LIST", &model.lcores,
		"lcores and their CPUs: 0-3,8 or 2@5; names of CPUs: all, node:N, near:DEVICE (default: "
		"lcore 0 on the first free CPU, near an RDMA device if any)", .letter = 'l'),
	[OPT_COREMASK] = PLX_TEXT("coremask", "MASK", &model.coremask,
		"the same as a hexadecimal mask of CPUs: 0xf", .letter = 'c'),
	[OPT_MAIN_LCORE] = NUMBER("main-lcore", "ID", &model.main_lcore, 0, PLX_LCORE_MAX - 1, NULL,
		"the main thread's lcore (default: the lowest id)"),
	[OPT_LANE_SLOTS] = EAL_ROW(POWER, uint32_t, "lane-slots", "N", &model.lane_slots,
		PLX_LANE_SLOTS_MIN, PLX_LANE_SLOTS_MAX, NULL,
		"messages that may wait between two lcores: a power of two, 2 to 65536 (default: 256)"),
	[OPT_IDLE] = PLX_TEXT("idle", "POLICY", &model.idle,
		"what idle lcores do: poll, event (sleep), or adaptive (poll, then sleep), followed by "
		"[:latency|:balanced|:eco][:learned|:fixed][:N%]; per lcore: 0:poll,1-3:event (default: "
		"adaptive:balanced:learned)"),
	[OPT_SOCKET_MEM] = EAL_ROW(NODE_BYTES, size_t, "socket-mem", "MB,...",
		model.node_bytes, 0, NODE_BYTES_MAX, NULL,
		"memory to take at start on NUMA node 0, 1, ...; in MiB, or with K, M or G (default: "
		"taken when needed)"),
	[OPT_HUGE] = PLX_CHOICE("huge", "2M|1G|none", &model.huge, huge_words,
		"page size of memory (default: 2M)"),
	[OPT_NUMA] = PLX_CHOICE("numa", "strict|prefer|any", &model.numa, eal_numa_words,
		"memory on the lcore's NUMA node: always, if it has room, or on any node (default: prefer)"),
	[OPT_DUMP_MEMORY] = TWO_WORDS("dump-memory", "yes|no", &model.no_dump, dump_words,
		"no: core dumps leave out pools, buffers and shared rings (default: yes)"),
	[OPT_PROVIDER] = PLX_TEXT("provider", "NAME", &model.provider,
		"transport: tcp, shm or verbs (default: auto)"),
	[OPT_TCP] = PLX_TEXT("tcp", "KEY=VALUE,...", &model.tcp,
		"settings of links over tcp: send_bytes, receive_bytes, user_timeout_ms, busy_poll_us, "
		"connect_ms, handshake_ms, dscp (default: none)"),
	[OPT_REQUIRE] = TWO_WORDS("require", "rdma|none", &model.require_rdma, require_words,
		"rdma: links to other hosts use RDMA or fail (default: none)"),
	[OPT_RECEIVE_MEM] = PLX_SIZE("receive-mem", "SIZE", &model.receive_bytes,
		PLX_RECEIVE_BYTES_MIN, PLX_RECEIVE_BYTES_MAX,
		"receive buffers of an lcore's links; beyond half of it new links get fewer (default: "
		"256M)"),
	[OPT_PARTIAL_MEM] = PLX_SIZE("partial-mem", "SIZE", &model.partial_bytes,
		PLX_PARTIAL_BYTES_MIN, PLX_PARTIAL_BYTES_MAX,
		"upper limit for incomplete long messages of an lcore (default: 1G)"),
	[OPT_TURN_MAX] = NUMBER("turn-max", "N", &model.turn_max, 1, UINT32_MAX, NULL,
		"messages that an lcore receives in one turn of its loop (default: 256)"),
	[OPT_TURN_TIME] = PLX_TIME("turn-time", "TIME", &model.turn_ns, PLX_TURN_NS_MIN, PLX_TURN_NS_MAX,
		"for how long it receives in one turn; a callback is not interrupted (default: 100us)"),
	[OPT_LINKS_MAX] = LIMIT("links-max", &model.admission.links_max,
		"links per listener (default: 4096)"),
	[OPT_LINKS_PER_HOST] = LIMIT("links-per-host", &model.admission.links_per_host_max,
		"links from one address, over shm from one user; at most a quarter of --links-max "
		"(default: that quarter)"),
	[OPT_ACCEPTS_PER_S] = LIMIT("accepts-per-s", &model.admission.accepts_per_s,
		"accepted connections per second; the rest wait, and addresses take turns (default: 1000)"),
	[OPT_HANDSHAKES_MAX] = LIMIT("handshakes-max", &model.admission.handshakes_max,
		"connections per listener that are not open yet; one more closes the oldest silent one "
		"of the address with the most (default: 256)"),
	[OPT_HEARTBEAT] = EAL_ROW(HEARTBEAT, uint64_t, "heartbeat", "TIME[:TIME]|off",
		&model.heartbeat_ns, PLX_HEARTBEAT_NS_MIN, PLX_HEARTBEAT_NS_MAX, off,
		"heartbeat of idle peers, and the silence after which a peer is dead (default: "
		"100ms:500ms)"),
	[OPT_DEAD_AFTER_MAX] = PLX_TIME("dead-after-max", "TIME", &model.dead_after_max_ns,
		PLX_DEAD_AFTER_MIN * PLX_HEARTBEAT_NS_MIN, PLX_DEAD_AFTER_NS_MAX,
		"the longest such silence that a peer may ask of a listener; a peer without heartbeats "
		"gets half of it (default: 1min)"),
	[OPT_SELF_TEST] = NUMBER("self-test", "RATE|off", &model.self_test_rate, 1, SELF_TEST_RATE_MAX,
		off,
		"calls per second and lcore to the self-test service, from any host: see plx-call "
		"--process (default: 100000, from this host only)"),
	[OPT_CONFIG] = PLX_TEXT("config", "FILE", &model.config,
		"read options from FILE; the command line overrides it"),
	[OPT_LOG_LEVEL] = PLX_TEXT("log-level", "[PART:]LEVEL", model.log_levels,
		"log up to error, warning, notice, info or debug; may be repeated (default: notice)"),
	[OPT_DESCRIPTORS] = TWO_WORDS("descriptors", "raise|keep", &model.keep_descriptors,
		descriptor_words,
		"raise the soft limit of descriptors to the hard one, or keep it: select(2) needs numbers "
		"below 1024 (default: raise)"),
	[OPT_DRY_RUN] = PLX_FLAG("dry-run", &model.dry_run,
		"check everything, print what would run, start nothing"),
	[OPT_VERSION] = PLX_FLAG("version", &model.show_version, "print the version", .letter = 'V'),
	[OPT_HELP] = PLX_FLAG("help", &model.show_help, "print this help", .letter = 'h'),
};

/* clang-format on */

/* Headings of the help, by their first option. */
static const char *const groups[OPT_COUNT] = {
	[OPT_LCORES] = "Lcores",
	[OPT_SOCKET_MEM] = "Memory",
	[OPT_PROVIDER] = "Links",
	[OPT_CONFIG] = "General",
};

const struct plx_option *const plx_eal_options = options;

void *eal_option_field(struct plx_eal_conf *conf, enum eal_option_id id)
{
	return (char *)conf + ((char *)options[id].to - (char *)&model);
}

int eal_options_take(enum eal_option_id first, int argc, char *const *argv,
		     struct plx_eal_conf *conf)
{
	struct plx_option_use use;
	int count = plx_option_take(options + first, argc, argv, &use);

	if (count == -ENOENT)
		return plx_option_unknown(options + first, NULL, argv[0]);
	if (count < 0)
		return count;
	return eal_conf_set(conf, first + (unsigned)use.index, use.text, use.given) ?: count;
}

int plx_eal_parse(int argc, char **argv, struct plx_eal_conf *conf)
{
	int at = 1, count;

	for (; at < argc && argv[at][0] == '-' && argv[at][1]; at += count) {
		if (strcmp(argv[at], "--") == 0)
			return eal_conf_check_pair(conf) ?: at;
		count = eal_options_take(0, argc - at, argv + at, conf);
		if (count < 0)
			return count;
	}
	return argc < 1 ? 0 : eal_conf_check_pair(conf) ?: at - 1;
}

const char *plx_eal_options_help(void)
{
	static char out[8192]; /* the text is the same at each call */
	struct plx_text text = {.out = out, .size = sizeof(out)};

	for (size_t i = 0; i < OPT_COUNT; i++) {
		if (groups[i])
			plx_text_add(&text, "%s:\n", groups[i]);
		plx_option_help(&text, &options[i]);
	}
	assert(text.used < text.size);
	return out;
}
