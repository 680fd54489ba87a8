/* SPDX-License-Identifier: BSD-3-Clause */
/* The EAL's options: how each value reaches struct plx_eal_conf, and what is refused.
 * app_options_test.c tests how words become options. */
#include "eal_priv.h"
#include "plx_fabric_driver.h"
#include "plx_test.h"

#include <stdio.h>

#define WORDS_MAX 32
#define MB        (UINT64_C(1) << 20)

static struct plx_eal_conf conf;
static struct plx_topo *topo; /* two NUMA nodes */

static int open_topo(void **state)
{
	return plx_topo_open("synthetic:numa:2 core:2 pu:1", &topo);
}

PLX_FIXTURE(close_topo, 0, plx_topo_close(topo))
PLX_FIXTURE(forget, 0, plx_eal_conf_fini(&conf))

/* Parse the NULL-terminated words after an argv[0]. */
static int parse(const char *const *words)
{
	const char *argv[WORDS_MAX] = {"program"};
	int argc = 1;

	for (; *words; words++)
		argv[argc++] = *words;
	return plx_eal_parse(argc, (char **)argv, &conf);
}

#define PARSE(...) parse((const char *const[]){__VA_ARGS__, NULL})
#define TEST(name) PLX_TEST_WITH(name, NULL, forget)

TEST(texts_and_flags_reach_their_fields)
{
	assert_int_equal(PARSE("-c", "f", "--provider", "net", "--config", "x.conf", "--idle",
			       "poll", "--tcp", "dscp=46", "--log-level", "eal:debug",
			       "--log-level", "info", "--dry-run", "--version", "--help"),
			 17);
	assert_null(conf.lcores);
	assert_string_equal(conf.coremask, "f");
	assert_string_equal(conf.provider, "net");
	assert_string_equal(conf.config, "x.conf");
	assert_string_equal(conf.idle, "poll");
	assert_string_equal(conf.tcp, "dscp=46");
	assert_int_equal(conf.log_level_count, 2);
	assert_string_equal(conf.log_levels[0], "eal:debug");
	assert_string_equal(conf.log_levels[1], "info");
	assert_true(conf.dry_run && conf.show_version && conf.show_help);
}

#define FIELD(name) offsetof(struct plx_eal_conf, name), sizeof(conf.name)

TEST(values_reach_their_fields)
{
	static const struct {
		const char *word;
		size_t offset, bytes;
		uint64_t value;
	} rows[] = {
		{"--main-lcore=255", FIELD(main_lcore), 255},
		{"--lane-slots=65536", FIELD(lane_slots), 65536},
		{"--huge=1G", FIELD(huge), PLX_HUGE_1G},
		{"--numa=strict", FIELD(numa), PLX_NUMA_STRICT},
		{"--dump-memory=no", FIELD(no_dump), true},
		{"--require=rdma", FIELD(require_rdma), true},
		{"--receive-mem=48M", FIELD(receive_bytes), 48 * MB},
		{"--partial-mem=3M", FIELD(partial_bytes), 3 * MB},
		{"--turn-max=64", FIELD(turn_max), 64},
		{"--turn-time=20us", FIELD(turn_ns), 20 * PLX_NS_PER_US},
		{"--links-max=10", FIELD(admission.links_max), 10},
		{"--links-per-host=none", FIELD(admission.links_per_host_max), PLX_NO_LIMIT},
		{"--accepts-per-s=4294967294", FIELD(admission.accepts_per_s), PLX_NO_LIMIT - 1},
		{"--handshakes-max=1", FIELD(admission.handshakes_max), 1},
		{"--heartbeat=100ms", FIELD(dead_after_ns), 0}, /* the default */
		{"--heartbeat=1h:1d", FIELD(heartbeat_ns), 3600 * PLX_NS_PER_S},
		{"--heartbeat=1h:1d", FIELD(dead_after_ns), 86400 * PLX_NS_PER_S},
		{"--heartbeat=off", FIELD(heartbeat_ns), PLX_NEVER},
		{"--heartbeat=off", FIELD(dead_after_ns), PLX_NEVER},
		{"--dead-after-max=5min", FIELD(dead_after_max_ns), 300 * PLX_NS_PER_S},
		{"--self-test=off", FIELD(self_test_rate), PLX_NONE},
		{"--descriptors=keep", FIELD(keep_descriptors), true},
		{"--socket-mem=64", FIELD(node_bytes[1]), 0},
		{"--socket-mem=16,512K", FIELD(node_bytes[1]), 512 * 1024},
	};

	for (size_t i = 0; i < PLX_ARRAY_LEN(rows); i++) {
		uint64_t value = 0;

		/* The command line replaces what the program sets. */
		memset(conf.node_bytes, 1, sizeof(conf.node_bytes));
		conf.dead_after_ns = 1;
		assert_int_equal(PARSE(rows[i].word), 1);
		memcpy(&value, (char *)&conf + rows[i].offset, rows[i].bytes);
		if (value != rows[i].value)
			fail_msg("%s gives %llu", rows[i].word, (unsigned long long)value);
		plx_eal_conf_fini(&conf);
	}
}

TEST(parsing_ends_at_the_options_of_the_application)
{
	const char *argv[] = {"program", "-l", "0", "word", "--huge", "none", NULL};
	const char *before[PLX_ARRAY_LEN(argv)];

	assert_int_equal(PARSE("-l", "0", "--", "--huge", "none"), 3);
	assert_int_equal(conf.huge, PLX_HUGE_2M);
	plx_eal_conf_fini(&conf);
	memcpy(before, argv, sizeof(argv));
	assert_int_equal(plx_eal_parse(6, (char **)argv, &conf), 2);
	assert_int_equal(conf.huge, PLX_HUGE_2M);
	assert_memory_equal(before, argv, sizeof(argv)); /* not reordered */
	assert_int_equal(plx_eal_parse(0, (char *[]){NULL}, &conf), 0);
}

TEST(bad_options_are_reported)
{
	static char many_nodes[16 + 2 * PLX_EAL_NODES_MAX] = "--socket-mem=0";
	static const struct {
		const char *words[6];
		const char *text;
	} rows[] = {
		{{"-l", "--", "x"}, "-l: a value is missing, and '--' follows; give -l LIST"},
		{{"-l", "0", "--lcores", "1"}, "--lcores 1: given before as -l; give one of them"},
		{{"--dry-run", "--dry-run"}, "--dry-run: given twice; give it once"},
		{{"--numa", "any", "--numa=any"}, "--numa any: given before as --numa; give one"},
		{{"-l", "0", "-c", "1"},
		 "-l 0 and -c 1: give one of them, a list or a mask, not both"},
		{{"--provider=\x1b[31m"}, "--provider \"\\x1b[31m\": a control character"},
		{{"--huge=16G"}, "--huge 16G: unknown value; give one of: 2M, 1G, none"},
		{{"--main-lcore=4294967298"}, "out of range; give 0 to 255"},
		{{"--lane-slots=100"}, "100: not a power of two; give one from 2 to 65536"},
		{{"--receive-mem=1K"}, "--receive-mem 1K: out of range; give 1M to 1T"},
		{{"--partial-mem=1K"}, "--partial-mem 1K: out of range; give 1M to 1T"},
		{{"--turn-max=0"}, "--turn-max 0: out of range; give 1 to 4294967295"},
		{{"--turn-time=2s"}, "--turn-time 2s: out of range; give 1us to 1s"},
		{{"--handshakes-max=0"}, "out of range; give 1 to 4294967294, or none"},
		{{"--links-max=off"},
		 "--links-max off: not a whole number; give digits only, or "
		 "none"},
		{{"--self-test=on"},
		 "--self-test on: not a whole number; give digits only, or off"},
		{{"--dead-after-max=39ms"}, "39ms: out of range; give 40ms to 1d"},
		{{"--heartbeat=9ms"}, "9ms: out of range; give 10ms to 1h, or off"},
		{{"--heartbeat=100ms:399ms"}, "silence 399ms: out of range; give 400ms to 1d"},
		{{"--heartbeat=100ms:"}, "--heartbeat, silence : not a duration"},
		{{"--heartbeat=100ms:off"}, "--heartbeat, silence off: not a duration"},
		{{"--socket-mem=64,"}, "--socket-mem, node 1: : not an amount of memory; give MiB"},
		{{"--socket-mem=-1"}, "-1: out of range; give 0 to 1024T"},
		{{"--socket-mem=17592186044416"}, "out of range"}, /* 2^64 bytes */
		{{many_nodes}, "more than 64 NUMA nodes"},
	};

	for (int i = 0; i < PLX_EAL_NODES_MAX; i++)
		strcat(many_nodes, ",0");
	for (size_t i = 0; i < PLX_ARRAY_LEN(rows); i++) {
		assert_fails(parse(rows[i].words), -EINVAL, rows[i].text);
		plx_eal_conf_fini(&conf);
	}
}

TEST(the_number_of_owned_strings_is_bounded)
{
	for (size_t i = 0; i < PLX_ARRAY_LEN(conf.owned); i++)
		assert_non_null(eal_conf_own(&conf, "text"));
	assert_null(eal_conf_own(&conf, "one more"));
	assert_error_has("out of memory");
}

/* Checks that need the host ----------------------------------------------------------------- */

TEST(memory_that_the_host_lacks_is_refused)
{
	static const struct {
		const char *word, *error; /* error: NULL: it has it */
		unsigned count;
	} rows[] = {
		{"--socket-mem=0", NULL, 0},
		{"--socket-mem=0,512K", NULL, 2},
		{"--socket-mem=8M,0,0,0", NULL, 1}, /* no memory on a missing node */
		{"--socket-mem=0,0,1",
		 "--socket-mem: there is no NUMA node 2 to take memory on; "
		 "this host has 2, the first is node 0",
		 0},
		{"--socket-mem=1024T", "more memory than this host has (", 0},
	};

	for (size_t i = 0; i < PLX_ARRAY_LEN(rows); i++) {
		unsigned count = 99;

		assert_int_equal(PARSE(rows[i].word), 1);
		if (rows[i].error) {
			assert_fails(eal_check_memory(&conf, topo, &count), -EINVAL, rows[i].error);
		} else {
			assert_works(eal_check_memory(&conf, topo, &count));
			assert_int_equal(count, rows[i].count);
		}
		plx_eal_conf_fini(&conf);
	}
}

TEST(the_main_lcore_must_be_in_the_map)
{
	struct plx_lcore_map map;
	uint32_t id = 99;

	assert_works(plx_lcore_map_parse_list("-l", "2-3,7", topo, &map));
	assert_works(eal_check_main_lcore(&conf, &map, &id));
	assert_int_equal(id, 2); /* the smallest */
	conf.main_lcore = 7;
	assert_works(eal_check_main_lcore(&conf, &map, &id));
	assert_int_equal(id, 7);
	assert_int_equal(PARSE("--main-lcore=0"), 1);
	assert_fails(eal_check_main_lcore(&conf, &map, &id), -EINVAL,
		     "--main-lcore 0: not one of the lcores (2-3,7); give one of them, or add it");
	plx_lcore_map_fini(&map);
}

/* Help -------------------------------------------------------------------------------------- */

PLX_TEST(the_help_describes_every_option_in_eighty_columns)
{
	const char *help = plx_eal_options_help();
	char wanted[64];

	for (size_t i = 0; i < OPT_COUNT; i++) {
		const struct plx_option *option = &plx_eal_options[i];

		snprintf(wanted, sizeof(wanted), "--%s %s", option->name,
			 option->placeholder ? option->placeholder : "");
		assert_non_null(strstr(help, wanted));
	}
	assert_non_null(strstr(help, "Lcores:\n  -l, --lcores LIST"));
	assert_non_null(strstr(help, "(default: auto)"));
	assert_ptr_equal(plx_eal_options_help(), help);
	for (const char *line = help; *line; line += strcspn(line, "\n"), line += *line == '\n')
		assert_in_range(strcspn(line, "\n"), 1, 80);
}

PLX_TEST_MAIN_WITH(open_topo, close_topo)
