/* SPDX-License-Identifier: BSD-3-Clause */
/* --numa strict, prefer and any when a node is full, or has no memory at all. */
#include "pages.h"

#include <sched.h>

#define HUGE_BYTES ((size_t)2 << 20)
#define GIANT_NODE 1 /* the guest has one page of 1 GiB, on this node */

static void *taken;
static size_t taken_bytes;

static void fill(int node, size_t leave)
{
	taken = node_fill_huge(node, leave, &taken_bytes);
}

static int teardown(void **state)
{
	plx_mem_fini();
	if (taken)
		munmap(taken, taken_bytes);
	taken = NULL;
	return 0;
}

static void *take(size_t size_bytes, int node, const struct plx_zone **zone_out)
{
	void *memory = plx_mem_alloc(size_bytes, 0, node, zone_out);

	if (!memory)
		fail_msg("%s", plx_error());
	return memory;
}

static size_t node_free_bytes(int node)
{
	long long free_bytes;

	assert_true(numa_node_size64(node, &free_bytes) > 0);
	return (size_t)free_bytes;
}

/* More than the node has free, less than all nodes have. */
static size_t more_than_free(int node)
{
	size_t size_bytes = node_free_bytes(node) + 32 * HUGE_BYTES;

	assert_true(node_free_bytes(!node) > 2 * size_bytes);
	return size_bytes;
}

#define TEST(name) PLX_TEST_WITH(name, NULL, teardown)

TEST(pages_lie_on_their_node)
{
	static const enum plx_huge kinds[] = {PLX_HUGE_2M, PLX_HUGE_NONE};
	static const enum plx_numa policies[] = {PLX_NUMA_PREFER, PLX_NUMA_STRICT};

	for (unsigned i = 0; i < 8; i++) {
		enum plx_huge huge = kinds[i / 4];
		int node = i % 2;
		const struct plx_zone *zone;

		use(huge, policies[i / 2 % 2]);
		take(4 * HUGE_BYTES, node, &zone); /* everything is in use and has its pages */
		assert_int_equal(zone->node, node);
		assert_int_equal(zone->backing == PLX_BACKING_HUGETLB, huge == PLX_HUGE_2M);
		assert_populated_on("the zone", zone->base, zone->size_bytes, node);
		assert_int_equal(mem_stats().node_fallbacks, 0);
		assert_int_equal(mem_stats().page_fallbacks, 0);
		plx_mem_fini();
	}
}

TEST(a_page_of_1_gib_lies_on_its_node)
{
	const struct plx_zone *zone;

	use(PLX_HUGE_1G, PLX_NUMA_STRICT);
	take(HUGE_BYTES, GIANT_NODE, &zone);
	assert_int_equal(zone->backing, PLX_BACKING_HUGETLB);
	assert_int_equal(zone->page_bytes, (size_t)1 << 30);
	assert_populated_on("the page of 1 GiB", zone->base, PAGE_BYTES, GIANT_NODE);
}

TEST(strict_takes_smaller_pages_before_another_node)
{
	const struct plx_zone *zone;

	use(PLX_HUGE_2M, PLX_NUMA_STRICT);
	fill(0, 1);
	take(2 * HUGE_BYTES, 0, &zone);
	assert_int_not_equal(zone->backing, PLX_BACKING_HUGETLB);
	assert_populated_on("strict", zone->base, zone->size_bytes, 0);
	assert_int_equal(mem_stats().page_fallbacks, 1);
	assert_int_equal(mem_stats().node_fallbacks, 0);
}

TEST(strict_fails_where_the_node_has_no_room)
{
	use(PLX_HUGE_NONE, PLX_NUMA_STRICT);
	assert_null(plx_mem_alloc(more_than_free(0), 0, 0, NULL));
	assert_error_has("not enough memory on node 0: ");
	assert_error_has(" asked for, ");
	assert_error_has(" available; ask for less (--socket-mem, or smaller pools), or use --numa "
			 "prefer");
	assert_int_equal(plx_zone_count(), 0);
}

TEST(prefer_takes_huge_pages_of_another_node_and_counts_it)
{
	const struct plx_zone *zone;

	use(PLX_HUGE_2M, PLX_NUMA_PREFER);
	fill(1, 0);
	take(HUGE_BYTES, 1, &zone);
	assert_int_equal(zone->backing, PLX_BACKING_HUGETLB);
	assert_int_equal(zone->node, 1);
	assert_populated_on("prefer, node 1 full", zone->base, zone->size_bytes, 0);
	assert_int_equal(mem_stats().node_fallbacks, 1);
	assert_int_equal(mem_stats().page_fallbacks, 0);
}

/* The node has room for a whole zone except its last page. */
TEST(prefer_counts_a_zone_that_lies_on_another_node_in_part)
{
	const struct plx_zone *zone;
	size_t room = 19;

	use(PLX_HUGE_2M, PLX_NUMA_PREFER);
	fill(0, room);
	take((room + 1) * HUGE_BYTES, 0, &zone);
	assert_populated_on("what fits", zone->base, room * HUGE_BYTES, 0);
	assert_populated_on("the rest", (char *)zone->base + room * HUGE_BYTES, HUGE_BYTES, 1);
	assert_int_equal(mem_stats().node_fallbacks, 1);
}

/* CPU n of the guest is on node n; by default the system allocates there. */
static void run_on_node(int node)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET((size_t)node, &cpus);
	assert_int_equal(sched_setaffinity(0, sizeof(cpus), &cpus), 0);
}

TEST(any_leaves_the_place_to_the_system)
{
	use(PLX_HUGE_2M, PLX_NUMA_ANY);
	for (int node = 0; node < 2; node++) {
		const struct plx_zone *zone;

		run_on_node(node);
		/* Not in the existing zone, although that is for any node too. */
		take((size_t)(node + 1) * HUGE_BYTES, !node, &zone);
		assert_int_equal(zone->node, PLX_NODE_ANY);
		assert_populated_on("any", zone->base, zone->size_bytes, node);
	}
	assert_int_equal(plx_zone_count(), 2);
	assert_int_equal(mem_stats().node_fallbacks, 0);
}

/* A node with a CPU and no memory ------------------------------------------------------------ */

/* For each kind of pages and policy. */
TEST(memory_for_a_bare_node_is_elsewhere_unless_strict)
{
	static const enum plx_huge kinds[] = {PLX_HUGE_2M, PLX_HUGE_NONE};
	static const enum plx_numa policies[] = {PLX_NUMA_PREFER, PLX_NUMA_ANY};
	const struct plx_zone *zone;

	for (unsigned i = 0; i < 4; i++) {
		use(kinds[i / 2], policies[i % 2]);
		take(HUGE_BYTES / 2, guest_bare_node(), &zone);
		assert_in_range(page_node(zone->base), 0, guest_nodes() - 1);
		assert_int_equal(zone->node, PLX_NODE_ANY);
		assert_int_equal(zone->backing == PLX_BACKING_HUGETLB, kinds[i / 2] == PLX_HUGE_2M);
		assert_int_equal(mem_stats().node_fallbacks, policies[i % 2] == PLX_NUMA_PREFER);
		plx_mem_fini();
	}
	use(PLX_HUGE_2M, PLX_NUMA_STRICT);
	assert_null(plx_mem_alloc(HUGE_BYTES / 2, 0, guest_bare_node(), NULL));
	assert_error_has("NUMA node 2 has no memory for this process (allowed: 0, 1)");
}

int main(void)
{
	if (guest_nodes() != 2) {
		puts("skipped: this fills the nodes of a host that has two; scripts/guest.sh "
		     "--numa "
		     "has a guest for it");
		return SKIP_STATUS;
	}
	assert_int_equal(numa_max_node(), guest_bare_node());
	return plx_test_run("numa/policy", NULL, NULL);
}
