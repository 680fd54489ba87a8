/* SPDX-License-Identifier: BSD-3-Clause */
/* NUMA policies on a node that exists, but has no memory for this process. */
#include "pools.h"

#include <numa.h>

#define BARE_NODE 63

/* libnuma's data with one more node, which has no memory, or none that the cpuset allows; a process
 * cannot tell the difference. */
PLX_FIXTURE(with_bare_node, 0, numa_bitmask_setbit(numa_nodes_ptr, BARE_NODE))
PLX_FIXTURE(without_bare_node, teardown(state), numa_bitmask_clearbit(numa_nodes_ptr, BARE_NODE))

#undef TEST
#define TEST(name) PLX_TEST_WITH(name, with_bare_node, without_bare_node)

static int ask_for_a_bare_node(void)
{
	if (plx_mem_init(&ordinary) || !plx_mem_alloc(64, 0, BARE_NODE, NULL) ||
	    !plx_mem_alloc(64, 0, BARE_NODE, NULL))
		return 1;
	plx_mem_fini();
	return 0;
}

/* Logged once per process: so this runs before anything was logged. */
TEST(a_node_without_memory_is_logged_once)
{
	assert_child_says(ask_for_a_bare_node, 1,
			  "mem: notice: NUMA node 63 has no memory for this process (allowed: 0");
}

TEST(policy_strict_fails_and_names_the_nodes_that_have_memory)
{
	struct plx_pool_attr attr = {.name = "bare",
				     .object_bytes = 64,
				     .object_count = 8,
				     .node = BARE_NODE,
				     .owner = PLX_LCORE_NONE};
	struct plx_pool *pool;

	init_with(PLX_NUMA_STRICT);
	assert_null(plx_mem_alloc(64, 0, BARE_NODE, NULL));
	assert_error_has("--numa strict: NUMA node 63 has no memory for this process (allowed: 0");
	assert_error_has("or use --numa prefer");
	assert_int_equal(plx_pool_create(&attr, &pool), -ENOMEM);
	assert_int_equal(plx_zone_count(), 0);
	/* A missing node is an error, not a shortage. */
	attr.node = BARE_NODE - 1;
	assert_fails(plx_pool_create(&attr, &pool), -EINVAL, "NUMA node 62 is not on this host");
}

TEST(policy_prefer_uses_memory_elsewhere_and_counts_it)
{
	const struct plx_zone *zone;

	init_with(PLX_NUMA_PREFER);
	assert_non_null(plx_mem_alloc(4096, 0, BARE_NODE, &zone));
	assert_int_equal(zone->node, PLX_NODE_ANY);
	assert_int_equal(mem_stats().node_fallbacks, 1);
	/* Each such request counts, even if it needs no new zone. */
	assert_non_null(plx_mem_alloc(4096, 0, BARE_NODE, NULL));
	assert_int_equal(plx_zone_count(), 1);
	assert_int_equal(mem_stats().node_fallbacks, 2);
	assert_non_null(plx_mem_alloc(4096, 0, PLX_NODE_ANY, NULL));
	assert_int_equal(mem_stats().node_fallbacks, 2);
	assert_null(plx_mem_alloc(4096, 0, BARE_NODE - 1, NULL));
}

TEST(policy_any_ignores_the_node)
{
	init_with(PLX_NUMA_ANY);
	assert_non_null(plx_mem_alloc(4096, 0, BARE_NODE, NULL));
	assert_int_equal(mem_stats().node_fallbacks, 0);
}

TEST(memory_at_init_follows_the_policy_too)
{
	size_t bytes[BARE_NODE + 1] = {0};
	struct plx_mem_conf conf = ordinary;

	bytes[BARE_NODE] = MEM_2M;
	conf.node_bytes = bytes;
	conf.node_count = BARE_NODE + 1;
	conf.numa = PLX_NUMA_STRICT;
	assert_fails(plx_mem_init(&conf), -ENOMEM, "node 63 has no memory for this process");
	conf.numa = PLX_NUMA_PREFER;
	assert_int_equal(plx_mem_init(&conf), 0);
	assert_int_equal(plx_zone_count(), 1);
	assert_int_equal(plx_zone_get(0)->node, PLX_NODE_ANY);
	assert_int_equal(mem_stats().node_fallbacks, 1);
	plx_mem_fini();
	conf.numa = PLX_NUMA_ANY;
	assert_int_equal(plx_mem_init(&conf), 0);
	assert_int_equal(mem_stats().node_fallbacks, 0);
}

PLX_TEST_MAIN()
