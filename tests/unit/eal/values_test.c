/* SPDX-License-Identifier: BSD-3-Clause */
#include "eal_priv.h"
#include "plx_fabric.h"
#include "plx_test.h"

#define MB ((size_t)1 << 20)

static int open_topo(void **state)
{
	struct plx_topo *topo;

	assert_int_equal(plx_topo_open("synthetic:numa:2 core:2 pu:1", &topo), 0);
	*state = topo;
	return 0;
}

PLX_FIXTURE(close_topo, 0, plx_topo_close(*state))

static struct plx_eal_conf conf;

PLX_FIXTURE(forget, 0, memset(&conf, 0, sizeof(conf)))

#define TEST(name) PLX_TEST_WITH(name, forget, NULL)

static int set(enum eal_option_id id, const char *text)
{
	const struct eal_option *option = &eal_options[id];

	return option->parse(plx_eal_options[id].name, text, (char *)&conf + option->offset);
}

struct bad {
	const char *text, *error;
};

/* Each text is refused with its error. */
static void assert_refused(enum eal_option_id id, const struct bad *bad, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		conf = (struct plx_eal_conf){0};
		if (set(id, bad[i].text) != -EINVAL)
			fail_msg("%s %s is taken", plx_eal_options[id].name, bad[i].text);
		assert_error_has(bad[i].error);
	}
}

#define ASSERT_REFUSED(id, ...)                               \
	assert_refused(id, (const struct bad[]){__VA_ARGS__}, \
		       sizeof((const struct bad[]){__VA_ARGS__}) / sizeof(struct bad))

TEST(huge_and_numa_accept_their_keywords)
{
	assert_int_equal(conf.huge, PLX_HUGE_2M); /* the default */
	assert_int_equal(conf.numa, PLX_NUMA_PREFER);
	assert_works(set(OPT_HUGE, "1G"));
	assert_int_equal(conf.huge, PLX_HUGE_1G);
	assert_works(set(OPT_HUGE, "none"));
	assert_int_equal(conf.huge, PLX_HUGE_NONE);
	assert_works(set(OPT_HUGE, "2M"));
	assert_int_equal(conf.huge, PLX_HUGE_2M);
	assert_works(set(OPT_NUMA, "strict"));
	assert_int_equal(conf.numa, PLX_NUMA_STRICT);
	assert_works(set(OPT_NUMA, "any"));
	assert_int_equal(conf.numa, PLX_NUMA_ANY);
	ASSERT_REFUSED(OPT_HUGE, {"16G", "huge 16G: unknown value; give one of: 2M, 1G, none"});
	ASSERT_REFUSED(OPT_NUMA, {"prefered", "numa prefered: unknown value; give one of: "
					      "prefer, strict, any"});
}

TEST(memory_is_dumped_unless_disabled)
{
	assert_works(set(OPT_DUMP_MEMORY, "no"));
	assert_true(conf.no_dump);
	assert_works(set(OPT_DUMP_MEMORY, "yes"));
	assert_false(conf.no_dump);
	ASSERT_REFUSED(OPT_DUMP_MEMORY, {"never", "dump-memory never: unknown value"},
		       {"never", "give one of: yes, no"});
}

TEST(memory_can_be_given_per_node)
{
	static const struct {
		const char *text;
		size_t bytes[2];
		unsigned count;
	} rows[] = {
		{"0", {0, 0}, 0},
		{"64", {64 * MB, 0}, 1},
		{"16,32", {16 * MB, 32 * MB}, 2},
		{"0,512K", {0, 512 * 1024}, 2},
		{"8M,0,0,0", {8 * MB, 0}, 1}, /* no memory on a missing node */
		{"2048k", {2 * MB, 0}, 1},
	};

	for (size_t i = 0; i < PLX_ARRAY_LEN(rows); i++) {
		unsigned count = 99;

		conf = (struct plx_eal_conf){.node_bytes = {1, 1, 1}}; /* the program's */
		assert_works(set(OPT_SOCKET_MEM, rows[i].text));
		assert_works(eal_check_memory(&conf, *state, &count));
		assert_int_equal(count, rows[i].count);
		assert_int_equal(conf.node_bytes[0], rows[i].bytes[0]);
		assert_int_equal(conf.node_bytes[1], rows[i].bytes[1]);
	}
}

TEST(bad_amounts_of_memory_are_refused)
{
	char many[2 * PLX_EAL_NODES_MAX + 2] = "0";

	for (int i = 0; i < PLX_EAL_NODES_MAX; i++)
		strcat(many, ",0");
	ASSERT_REFUSED(
		OPT_SOCKET_MEM, {"", "not an amount of memory"},
		{"64,", "socket-mem, node 1: : not an amount of memory; give MiB, or a unit after "
			"the number: 64, 512K, 1G"},
		{"64,abc", "node 1: abc: not an amount of memory"},
		{"-1", "-1: out of range; give 0 to 1024T"},
		{"1.5", "1.5: not an amount of memory"}, {"64MB", "64MB: not an amount of memory"},
		{"K", "K: not an amount of memory"},
		{"0000000000000000000000000000064x", "not an amount of memory"},
		{many, "more than 64 NUMA nodes"}, {"99999999999999", "out of range"},
		{"99999999999999999999999", "out of range"},
		{"17592186044416", "out of range"} /* 2^64 bytes */);
}

TEST(memory_that_the_host_lacks_is_refused)
{
	static const struct bad rows[] = {
		{"0,0,1", "socket-mem: there is no NUMA node 2 to take memory on; this host has 2, "
			  "the first is node 0"},
		{"1024T", "more memory than this host has ("},
		{"1048576G,1", "more memory than this host has ("},
	};

	for (size_t i = 0; i < PLX_ARRAY_LEN(rows); i++) {
		unsigned count;

		conf = (struct plx_eal_conf){0};
		assert_works(set(OPT_SOCKET_MEM, rows[i].text));
		assert_fails(eal_check_memory(&conf, *state, &count), -EINVAL, rows[i].error);
	}
}

TEST(the_main_lcore_must_be_in_the_map)
{
	struct plx_lcore_map map;
	uint32_t id = 99;

	assert_works(plx_lcore_map_parse_list("-l", "2-3,7", *state, &map));
	assert_works(eal_check_main_lcore(&conf, &map, &id));
	assert_int_equal(id, 2); /* the smallest */
	assert_works(set(OPT_MAIN_LCORE, "7"));
	assert_works(eal_check_main_lcore(&conf, &map, &id));
	assert_int_equal(id, 7);
	assert_works(set(OPT_MAIN_LCORE, "4"));
	assert_fails(eal_check_main_lcore(&conf, &map, &id), -EINVAL,
		     "main-lcore 4: not one of the lcores (2-3,7); give one of them, or add it");
	assert_works(eal_conf_set(&conf, OPT_MAIN_LCORE, "0", "--main-lcore"));
	assert_fails(eal_check_main_lcore(&conf, &map, &id), -EINVAL,
		     "--main-lcore 0: not one of the lcores (2-3,7)");
	plx_eal_conf_fini(&conf);
	plx_lcore_map_fini(&map);
	ASSERT_REFUSED(OPT_MAIN_LCORE, {"256", "main-lcore 256: "}, {"4294967298", "0 to 255"},
		       {"99999999999999999999", "main-lcore "}, {"x", "main-lcore x: "},
		       {"-3", "main-lcore -3: "}, {"2x", "main-lcore 2x: "});
}

TEST(the_length_of_lanes_is_a_power_of_two)
{
	assert_works(set(OPT_LANE_SLOTS, "65536"));
	assert_int_equal(conf.lane_slots, 65536);
	ASSERT_REFUSED(OPT_LANE_SLOTS, {"1", "lane-slots 1: "}, {"131072", "2 to 65536"},
		       {"many", "lane-slots many: "},
		       {"100", "lane-slots 100: not a power of two; give one from 2 to 65536"});
}

TEST(rdma_is_required_by_its_name)
{
	assert_works(set(OPT_REQUIRE, "rdma"));
	assert_true(conf.require_rdma);
	assert_works(set(OPT_REQUIRE, "none"));
	assert_false(conf.require_rdma);
	ASSERT_REFUSED(OPT_REQUIRE,
		       {"rdna", "require rdna: unknown value; give one of: none, rdma"});
}

TEST(the_memory_of_links_has_bounds)
{
	assert_works(set(OPT_RECEIVE_MEM, "48M"));
	assert_int_equal(conf.receive_bytes, 48 << 20);
	assert_works(set(OPT_PARTIAL_MEM, "3M"));
	assert_int_equal(conf.partial_bytes, 3 << 20);
	ASSERT_REFUSED(OPT_RECEIVE_MEM, {"1K", "receive-mem 1K: out of range; give 1M to 1T"});
	ASSERT_REFUSED(OPT_PARTIAL_MEM, {"1K", "partial-mem 1K: out of range; give 1M to 1T"});
}

TEST(a_turn_has_a_budget)
{
	assert_works(set(OPT_TURN_MAX, "64"));
	assert_int_equal(conf.turn_max, 64);
	assert_works(set(OPT_TURN_TIME, "20us"));
	assert_int_equal(conf.turn_ns, 20 * PLX_NS_PER_US);
	ASSERT_REFUSED(OPT_TURN_MAX, {"0", "turn-max 0: out of range; give 1 to 4294967295"});
	ASSERT_REFUSED(OPT_TURN_TIME, {"2s", "turn-time 2s: out of range; give 1us to 1s"});
}

TEST(a_self_test_has_a_rate)
{
	assert_works(set(OPT_SELF_TEST, "1"));
	assert_int_equal(conf.self_test_rate, 1);
	assert_works(set(OPT_SELF_TEST, "off"));
	assert_int_equal(conf.self_test_rate, PLX_NONE);
	ASSERT_REFUSED(OPT_SELF_TEST, {"0", "self-test 0"}, {"0", ", or off"}, {"on", ", or off"});
}

TEST(limits_of_listeners_are_numbers_or_none)
{
	assert_works(set(OPT_LINKS_MAX, "10"));
	assert_works(set(OPT_LINKS_PER_HOST, "none"));
	assert_works(set(OPT_ACCEPTS_PER_S, "4294967294"));
	assert_works(set(OPT_HANDSHAKES_MAX, "1"));
	assert_int_equal(conf.admission.links_max, 10);
	assert_int_equal(conf.admission.links_per_host_max, PLX_NO_LIMIT);
	assert_int_equal(conf.admission.accepts_per_s, PLX_NO_LIMIT - 1);
	assert_int_equal(conf.admission.handshakes_max, 1);
	ASSERT_REFUSED(OPT_HANDSHAKES_MAX, {"0", "handshakes-max 0"}, {"0", ", or none"});
}

TEST(heartbeats_have_two_times)
{
	static const struct {
		const char *text;
		uint64_t heartbeat_ms, dead_after_ms; /* 0: the default */
	} good[] = {
		{"100ms", 100, 0}, {"20ms:80ms", 20, 80},        {"1s:10s", 1000, 10000},
		{"10ms", 10, 0},   {"1h:1d", 3600000, 86400000},
	};

	for (size_t i = 0; i < PLX_ARRAY_LEN(good); i++) {
		conf = (struct plx_eal_conf){.dead_after_ns = 1};
		assert_works(set(OPT_HEARTBEAT, good[i].text));
		assert_int_equal(conf.heartbeat_ns, good[i].heartbeat_ms * PLX_NS_PER_MS);
		assert_int_equal(conf.dead_after_ns, good[i].dead_after_ms * PLX_NS_PER_MS);
	}
	assert_works(set(OPT_HEARTBEAT, "off"));
	assert_true(conf.heartbeat_ns == PLX_NEVER);
	ASSERT_REFUSED(
		OPT_HEARTBEAT, {"9ms", "heartbeat 9ms: out of range; give 10ms to 1h, or off"},
		{"3601", "heartbeat 3601: out of range; give 10ms to 1h, or off"},
		{"100ms:399ms", "heartbeat, silence 399ms: out of range; give 400ms to 1d"},
		{"100ms:", "heartbeat, silence : not a duration"},
		{":500ms", "heartbeat : not a duration"}, {"", "heartbeat : not a duration"},
		{"1x", "heartbeat 1x: not a duration"}, {"on", "heartbeat on: not a duration"},
		{"100ms:off", "heartbeat, silence off: not a duration"},
		{"10000000000000000000000000000000000000ms", "out of range"});
}

TEST(the_limit_of_silence_is_a_time)
{
	assert_works(set(OPT_DEAD_AFTER_MAX, "5min"));
	assert_int_equal(conf.dead_after_max_ns, 300 * PLX_NS_PER_S);
	ASSERT_REFUSED(OPT_DEAD_AFTER_MAX,
		       {"39ms", "dead-after-max 39ms: out of range; give 40ms to 1d"},
		       {"25h", "dead-after-max 25h: out of range; give 40ms to 1d"},
		       {"off", "dead-after-max off: not a duration"});
}

TEST(the_limit_of_descriptors_is_raised_or_kept)
{
	assert_works(set(OPT_DESCRIPTORS, "keep"));
	assert_true(conf.keep_descriptors);
	assert_works(set(OPT_DESCRIPTORS, "raise"));
	assert_false(conf.keep_descriptors);
	ASSERT_REFUSED(OPT_DESCRIPTORS,
		       {"1024", "descriptors 1024: unknown value; give one of: raise, keep"});
}

PLX_TEST_MAIN_WITH(open_topo, close_topo)
