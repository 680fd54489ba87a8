/* SPDX-License-Identifier: BSD-3-Clause */
/* A node with a CPU and no memory: allocations for it, and an lcore on it. */
#include "lcores.h"
#include "pages.h"

#define BYTES ((size_t)1 << 20)

static int teardown(void **state)
{
	plx_mem_fini();
	return 0;
}

static void is_where_memory_is(const struct plx_zone *zone)
{
	int node = page_node(zone->base);

	assert_in_range(node, 0, guest_nodes() - 1);
	assert_int_equal(zone->node, PLX_NODE_ANY);
}

#define TEST(name) PLX_TEST_WITH(name, NULL, teardown)

TEST(prefer_goes_elsewhere_with_all_kinds_of_pages)
{
	static const enum plx_huge kinds[] = {PLX_HUGE_2M, PLX_HUGE_NONE};
	const struct plx_zone *zone;

	for (size_t i = 0; i < PLX_ARRAY_LEN(kinds); i++) {
		use(kinds[i], PLX_NUMA_PREFER);
		if (!plx_mem_alloc(BYTES, 0, guest_bare_node(), &zone))
			fail_msg("%s", plx_error());
		is_where_memory_is(zone);
		assert_int_equal(zone->backing == PLX_BACKING_HUGETLB, kinds[i] == PLX_HUGE_2M);
		assert_int_equal(mem_stats().node_fallbacks, 1);
		plx_mem_fini();
	}
}

TEST(strict_says_where_there_is_memory)
{
	use(PLX_HUGE_2M, PLX_NUMA_STRICT);
	assert_null(plx_mem_alloc(BYTES, 0, guest_bare_node(), NULL));
	assert_error_has("NUMA node 2 has no memory for this process (allowed: 0, 1)");
}

TEST(any_leaves_it_to_the_system)
{
	const struct plx_zone *zone;

	use(PLX_HUGE_2M, PLX_NUMA_ANY);
	assert_non_null(plx_mem_alloc(BYTES, 0, guest_bare_node(), &zone));
	is_where_memory_is(zone);
	assert_int_equal(mem_stats().node_fallbacks, 0);
}

#define BARE 20 /* lcores.h: on the third CPU */

static unsigned answers;

static void answered(void *arg)
{
	answers++;
}

static int use_it_all(void *arg)
{
	void *memory = plx_mem_alloc(BYTES, 0, plx_lcore_node(plx_lcore_id()), NULL);
	void *object = plx_pool_get(arg);

	if (!memory || !object)
		return 1;
	plx_mem_free(memory);
	plx_pool_put(arg, object);
	return plx_lcore_send(0, answered, NULL);
}

TEST(an_lcore_runs_there)
{
	struct plx_pool_attr attr = {.name = "shared",
				     .object_bytes = 64,
				     .object_count = 100,
				     .node = guest_bare_node(),
				     .owner = PLX_LCORE_NONE};
	struct plx_pool *pool;

	lcores_up(3);
	assert_int_equal(plx_lcore_node(BARE), guest_bare_node());
	assert_int_equal(plx_pool_create(&attr, &pool), 0);
	assert_int_equal(run_on(BARE, use_it_all, pool), 0);
	turns_until_idle(NULL);
	assert_int_equal(answers, 1);
	assert_true(mem_stats().node_fallbacks > 0);
	plx_pool_destroy(pool);
	lcores_down();
}

int main(void)
{
	if (guest_bare_node() < 0) {
		puts("skipped: this needs a node without memory; scripts/guest.sh --numa has a "
		     "guest "
		     "with one");
		return SKIP_STATUS;
	}
	return plx_test_run("numa/bare", NULL, NULL);
}
