/* SPDX-License-Identifier: BSD-3-Clause */
#include "eal_priv.h"
#include "plx_fabric.h"
#include "plx_test.h"

#include <stdio.h>

#define MB ((size_t)1 << 20)

static int open_topo(void **state)
{
	struct plx_topo *topo;

	assert_int_equal(plx_topo_open("synthetic:numa:2 core:2 pu:1", &topo), 0);
	*state = topo;
	return 0;
}

static int close_topo(void **state)
{
	plx_topo_close(*state);
	return 0;
}

PLX_TEST(huge_and_numa_have_their_words)
{
	struct plx_eal_conf conf = {0};
	enum plx_huge huge = PLX_HUGE_NONE;
	enum plx_numa numa = PLX_NUMA_ANY;

	assert_int_equal(eal_huge_value(&conf, &huge), 0);
	assert_int_equal(huge, PLX_HUGE_2M);
	assert_int_equal(eal_numa_value(&conf, &numa), 0);
	assert_int_equal(numa, PLX_NUMA_PREFER);

	conf = (struct plx_eal_conf){.huge = "1G", .numa = "strict"};
	assert_int_equal(eal_huge_value(&conf, &huge), 0);
	assert_int_equal(huge, PLX_HUGE_1G);
	assert_int_equal(eal_numa_value(&conf, &numa), 0);
	assert_int_equal(numa, PLX_NUMA_STRICT);

	conf = (struct plx_eal_conf){.huge = "none", .numa = "any"};
	assert_int_equal(eal_huge_value(&conf, &huge), 0);
	assert_int_equal(huge, PLX_HUGE_NONE);
	assert_int_equal(eal_numa_value(&conf, &numa), 0);
	assert_int_equal(numa, PLX_NUMA_ANY);
}

PLX_TEST(memory_is_dumped_unless_that_is_refused)
{
	struct plx_eal_conf conf = {0};
	bool dump = false;

	assert_int_equal(eal_dump_memory_value(&conf, &dump), 0);
	assert_true(dump);
	conf.dump_memory = "no";
	assert_int_equal(eal_dump_memory_value(&conf, &dump), 0);
	assert_false(dump);
	conf.dump_memory = "never";
	assert_fails(eal_dump_memory_value(&conf, &dump), -EINVAL,
		     "dump-memory never: unknown value");
	assert_error_has("give yes or no");
}

PLX_TEST(other_words_are_refused)
{
	struct plx_eal_conf conf = {.huge = "16G", .numa = "prefered"};
	enum plx_huge huge;
	enum plx_numa numa;

	assert_int_equal(eal_huge_value(&conf, &huge), -EINVAL);
	assert_string_equal(plx_error(),
			    "huge 16G: unknown value, nearest is 1G; give 2M, 1G or none");
	assert_int_equal(eal_numa_value(&conf, &numa), -EINVAL);
	assert_string_equal(plx_error(), "numa prefered: unknown value, nearest is prefer; give "
					 "strict, prefer or any");
}

PLX_TEST(memory_is_read_per_node)
{
	static const struct {
		const char *text;
		size_t bytes[2];
		unsigned count;
	} rows[] = {
		{NULL, {0, 0}, 0},
		{"64", {64 * MB, 0}, 1},
		{"16,32", {16 * MB, 32 * MB}, 2},
		{"0,512K", {0, 512 * 1024}, 2},
		{"8M,0,0,0", {8 * MB, 0}, 4}, /* no memory on a node that is not there */
		{"2048k", {2 * MB, 0}, 1},
	};

	for (size_t i = 0; i < PLX_ARRAY_LEN(rows); i++) {
		struct plx_eal_conf conf = {.socket_mem = rows[i].text};
		size_t bytes[PLX_EAL_NODES_MAX] = {0};
		unsigned count = 99;

		assert_int_equal(eal_socket_mem_value(&conf, *state, bytes, &count), 0);
		assert_int_equal(count, rows[i].count);
		assert_int_equal(bytes[0], rows[i].bytes[0]);
		assert_int_equal(bytes[1], rows[i].bytes[1]);
	}
}

PLX_TEST(wrong_memory_is_refused)
{
	static const struct {
		const char *text, *error;
	} rows[] = {
		{"", "is no amount of memory"},
		{"64,", "socket-mem 64,: '' is no amount of memory; give MB per NUMA node, such as "
			"64 or 64,64, or with a unit, K, M or G: 1G"},
		{"64,abc", "'abc' is no amount of memory"},
		{"-1", "'-1' is no amount of memory"},
		{"1.5", "'1.5' is no amount of memory"},
		{"64MB", "'64MB' is no amount of memory"},
		{"K", "'K' is no amount of memory"},
		{"0,0,1",
		 "there is no NUMA node 2 to take memory on; this host has 2, the first is "
		 "node 0"},
		{"99999999999999", "more memory than this host has ("},
		{"99999999999999999999999", "more memory than this host has ("},
		{"17592186044416", "more memory than this host has ("}, /* 2^64 bytes */
		{"16777216G,1", "more memory than this host has ("},
	};

	for (size_t i = 0; i < PLX_ARRAY_LEN(rows); i++) {
		struct plx_eal_conf conf = {.socket_mem = rows[i].text};
		size_t bytes[PLX_EAL_NODES_MAX] = {0};
		unsigned count;

		assert_fails(eal_socket_mem_value(&conf, *state, bytes, &count), -EINVAL,
			     rows[i].error);
	}
}

PLX_TEST(more_nodes_than_there_can_be_are_refused)
{
	char text[2 * PLX_EAL_NODES_MAX + 2] = "0";
	struct plx_eal_conf conf = {.socket_mem = text};
	size_t bytes[PLX_EAL_NODES_MAX];
	unsigned count;

	for (int i = 0; i < PLX_EAL_NODES_MAX; i++)
		strcat(text, ",0");
	assert_fails(eal_socket_mem_value(&conf, *state, bytes, &count), -EINVAL,
		     "more than 64 NUMA nodes");
}

PLX_TEST(main_lcore_is_one_of_the_map)
{
	struct plx_eal_conf conf = {0};
	struct plx_lcore_map map;
	uint32_t id = 99;

	assert_int_equal(plx_lcore_map_parse_list("-l", "2-3,7", *state, &map), 0);
	assert_int_equal(eal_main_lcore_value(&conf, &map, &id), 0);
	assert_int_equal(id, 2);
	conf.main_lcore = "7";
	assert_int_equal(eal_main_lcore_value(&conf, &map, &id), 0);
	assert_int_equal(id, 7);

	static const struct {
		const char *text, *error;
	} rows[] = {
		{"4", "main-lcore 4: not one of the lcores (2-3,7); give one of them"},
		{"4294967298", "main-lcore 4294967298: not one of the lcores (2-3,7)"},
		{"99999999999999999999", "not an lcore id; give one of the lcores (2-3,7)"},
		{"x", "main-lcore x: not an lcore id; give one of the lcores (2-3,7)"},
		{"-3", "main-lcore -3: not an lcore id"},
		{"2x", "main-lcore 2x: not an lcore id"},
		{" 2", "not an lcore id"},
	};

	for (size_t i = 0; i < PLX_ARRAY_LEN(rows); i++) {
		conf.main_lcore = rows[i].text;
		assert_fails(eal_main_lcore_value(&conf, &map, &id), -EINVAL, rows[i].error);
	}
	plx_lcore_map_fini(&map);
}

PLX_TEST(rdma_is_required_by_its_name)
{
	struct plx_eal_conf conf = {0};
	bool rdma = true;

	assert_int_equal(eal_require_value(&conf, &rdma), 0);
	assert_false(rdma);
	conf.require = "rdma";
	assert_int_equal(eal_require_value(&conf, &rdma), 0);
	assert_true(rdma);
	conf.require = "none";
	assert_int_equal(eal_require_value(&conf, &rdma), 0);
	assert_false(rdma);
	conf.require = "rdna";
	assert_int_equal(eal_require_value(&conf, &rdma), -EINVAL);
	assert_string_equal(plx_error(),
			    "require rdna: unknown value, nearest is rdma; give rdma or none");
}

PLX_TEST(receive_memory_has_bounds)
{
	struct plx_eal_conf conf = {0};
	uint64_t bytes = 0;

	assert_int_equal(eal_receive_mem_value(&conf, &bytes), 0);
	assert_int_equal(bytes, PLX_RECEIVE_BYTES_DEFAULT);
	conf.receive_mem = "48M";
	assert_int_equal(eal_receive_mem_value(&conf, &bytes), 0);
	assert_int_equal(bytes, 48 << 20);
	conf.receive_mem = "1K";
	assert_fails(eal_receive_mem_value(&conf, &bytes), -EINVAL,
		     "receive-mem 1K: out of range; give 1M to 1T");
}

PLX_TEST(partial_memory_has_bounds)
{
	struct plx_eal_conf conf = {0};
	uint64_t bytes = 0;

	assert_int_equal(eal_partial_mem_value(&conf, &bytes), 0);
	assert_int_equal(bytes, 1 << 30);
	conf.partial_mem = "3M";
	assert_int_equal(eal_partial_mem_value(&conf, &bytes), 0);
	assert_int_equal(bytes, 3 << 20);
	conf.partial_mem = "1K";
	assert_fails(eal_partial_mem_value(&conf, &bytes), -EINVAL,
		     "partial-mem 1K: out of range; give 1M to 1T");
}

PLX_TEST(a_self_test_has_a_rate)
{
	struct plx_eal_conf conf = {0};
	uint32_t rate;
	bool remote;

	assert_int_equal(eal_self_test_value(&conf, &rate, &remote), 0);
	assert_int_equal(rate, 100000);
	assert_false(remote);
	conf.self_test = "1";
	assert_int_equal(eal_self_test_value(&conf, &rate, &remote), 0);
	assert_int_equal(rate, 1);
	assert_true(remote);
	conf.self_test = "off";
	assert_int_equal(eal_self_test_value(&conf, &rate, &remote), 0);
	assert_int_equal(rate, PLX_NONE);
	conf.self_test = "0";
	assert_fails(eal_self_test_value(&conf, &rate, &remote), -EINVAL, "self-test 0");
	assert_error_has(", or off");
	conf.self_test = "on";
	assert_int_equal(eal_self_test_value(&conf, &rate, &remote), -EINVAL);
}

PLX_TEST(what_listeners_take_is_given_by_number)
{
	struct plx_eal_conf conf = {0};
	struct plx_admission limits;

	assert_int_equal(eal_admission_value(&conf, &limits), 0);
	assert_int_equal(limits.links_max, 0); /* the default */
	conf.links_max = "10";
	conf.links_per_host = "none";
	conf.accepts_per_s = "4294967294";
	conf.handshakes_max = "1";
	assert_int_equal(eal_admission_value(&conf, &limits), 0);
	assert_int_equal(limits.links_max, 10);
	assert_int_equal(limits.links_per_host_max, PLX_NO_LIMIT);
	assert_int_equal(limits.accepts_per_s, PLX_NO_LIMIT - 1);
	assert_int_equal(limits.handshakes_max, 1);
	conf.handshakes_max = "0";
	assert_fails(eal_admission_value(&conf, &limits), -EINVAL, "handshakes-max 0");
	assert_error_has(", or none");
}

PLX_TEST(heartbeats_have_two_times)
{
	static const struct {
		const char *text;
		uint64_t heartbeat_ms, dead_after_ms;
	} good[] = {
		{NULL, 100, 500},        {"100ms", 100, 500}, {"20ms:80ms", 20, 80},
		{"1s:10s", 1000, 10000}, {"10ms", 10, 50},    {"1h:1d", 3600000, 86400000},
	};
	static const struct {
		const char *text, *error;
	} bad[] = {
		{"9ms", "heartbeat 9ms: out of range; give 10ms to 1h, or off"},
		{"3601", "heartbeat 3601: out of range; give 10ms to 1h, or off"},
		{"100ms:399ms", "heartbeat, silence 399ms: out of range; give 400ms to 1d"},
		{"100ms:", "heartbeat, silence : not a duration"},
		{":500ms", "heartbeat : not a duration"},
		{"", "heartbeat : not a duration"},
		{"1x", "heartbeat 1x: not a duration"},
		{"on", "heartbeat on: not a duration"},
		{"100ms:off", "heartbeat, silence off: not a duration"},
		{"10000000000000000000000000000000000000ms", "out of range"},
	};
	uint64_t heartbeat_ns, dead_after_ns;

	for (size_t i = 0; i < PLX_ARRAY_LEN(good); i++) {
		struct plx_eal_conf conf = {.heartbeat = good[i].text};

		assert_int_equal(eal_heartbeat_value(&conf, &heartbeat_ns, &dead_after_ns), 0);
		assert_int_equal(heartbeat_ns, good[i].heartbeat_ms * PLX_NS_PER_MS);
		assert_int_equal(dead_after_ns, good[i].dead_after_ms * PLX_NS_PER_MS);
	}
	for (size_t i = 0; i < PLX_ARRAY_LEN(bad); i++) {
		struct plx_eal_conf conf = {.heartbeat = bad[i].text};

		assert_fails(eal_heartbeat_value(&conf, &heartbeat_ns, &dead_after_ns), -EINVAL,
			     bad[i].error);
	}

	struct plx_eal_conf off = {.heartbeat = "off"};

	assert_int_equal(eal_heartbeat_value(&off, &heartbeat_ns, &dead_after_ns), 0);
	assert_true(heartbeat_ns == PLX_NEVER);
}

PLX_TEST_MAIN_WITH(open_topo, close_topo)
