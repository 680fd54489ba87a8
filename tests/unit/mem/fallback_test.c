/* SPDX-License-Identifier: BSD-3-Clause */
/* Other memory than was asked for: page sizes, denied system calls, and NUMA policies on a node
 * that exists, but has no memory for this process. What is logged once per process runs in
 * children. */
#include "pools.h"

#include <numa.h>

/* Twice, and with two zones each: the line must still appear once. */
static int fall_back(enum plx_huge huge, size_t size_bytes)
{
	const struct plx_mem_conf conf = {.huge = huge};

	for (int i = 0; i < 2; i++) {
		if (plx_mem_init(&conf) || !plx_mem_alloc(size_bytes, 0, 0, NULL) ||
		    !plx_mem_alloc(size_bytes, 0, 0, NULL))
			return 1;
		const struct plx_zone *zone = plx_zone_get(0);
		if (mem_stats().page_fallbacks != 2 || zone->backing == PLX_BACKING_HUGETLB ||
		    (zone->backing == PLX_BACKING_4K && zone->page_bytes != 4096) ||
		    zone->size_bytes != mem_round_up(size_bytes, MEM_2M))
			return 2;
		plx_mem_fini();
	}
	return 0;
}

static bool denies_transparent_pages(void)
{
	return prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) == 0;
}

static int fall_back_from_2m(void)
{
	if (!denies_transparent_pages())
		return CHILD_SKIP;
	return fall_back(PLX_HUGE_2M, (size_t)(free_pages(MEM_2M) + 2) * MEM_2M);
}

static int fall_back_from_1g(void)
{
	return fall_back(PLX_HUGE_1G, MEM_2M);
}

TEST_BEFORE_INIT(fallback_from_2m_is_logged_once)
{
	uint64_t needed = mem_hugepages(MEM_2M, "nr_hugepages") + 2;
	char remedy[64];

	skip_if_emulated();
	snprintf(remedy, sizeof(remedy), "sysctl vm.nr_hugepages=%llu;",
		 (unsigned long long)(needed < 256 ? 256 : needed));
	assert_child_says(fall_back_from_2m, 1, "mem: notice: ", "asked for 2 MiB hugetlb pages (",
			  " pages free, ", " needed), got ", " in transparent huge pages, ",
			  " in 4 KiB pages (smaps); for reserved pages: ", remedy);
}

TEST_BEFORE_INIT(a_fallback_from_1g_pages_allocates_no_gigabyte)
{
	skip_if_emulated();
	if (free_pages(MEM_1G) > 0)
		skip();
	assert_child_says(fall_back_from_1g, 1, "asked for 1 GiB hugetlb pages (",
			  "/sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages");
}

/* Denied system calls ----------------------------------------------------------------------- */

static int without_mbind(void)
{
	const size_t bytes[] = {MEM_2M};
	const struct plx_mem_conf conf = {
		.huge = PLX_HUGE_2M, .numa = PLX_NUMA_STRICT, .node_bytes = bytes, .node_count = 1};

	if (child_deny(SYS_mbind, -1, 0, EPERM))
		return CHILD_SKIP;
	if (plx_mem_init(&conf) != -ENOMEM || plx_zone_count() != 0)
		return 1;
	fprintf(stderr, "%s\n", plx_error());
	if (plx_mem_init(&ordinary) || !plx_mem_alloc(MEM_2M, 0, 0, NULL))
		return 2;
	plx_mem_fini();
	return 0;
}

/* SIGXFSZ would end it. */
static int with_small_files(void)
{
	const struct rlimit limit = {102400, 102400};

	if (!denies_transparent_pages() || setrlimit(RLIMIT_FSIZE, &limit))
		return CHILD_SKIP;
	return fall_back(PLX_HUGE_2M, MEM_2M);
}

/* Kernels before 5.14 lack MADV_POPULATE_WRITE. */
static int without_populate(void)
{
	if (child_deny(SYS_madvise, 2, 23, EINVAL))
		return CHILD_SKIP;
	if (plx_mem_init(NULL) || !plx_mem_alloc(MEM_2M, 0, 0, NULL))
		return 1;
	const struct plx_zone *zone = plx_zone_get(0);
	if (!is_populated(zone))
		return 3;
	if (!is_zero(zone->base, zone->size_bytes))
		return 4;
	plx_mem_fini();
	return 0;
}

/* Policy prefer logs it if there are several nodes. */
TEST_BEFORE_INIT(without_mbind_policy_strict_fails_and_prefer_works)
{
	assert_child_says(without_mbind, mem_node_count() > 1 ? 2 : 1,
			  "--numa strict: memory cannot be bound to node 0 (mbind: Operation not "
			  "permitted); allow the mbind system call");
}

TEST_BEFORE_INIT(zones_fall_back_under_a_limit_on_file_sizes)
{
	assert_child_says(with_small_files, 1,
			  "2097152 bytes are needed; this process may create files of at most "
			  "102400; raise the limit with ulimit -f",
			  "for reserved pages: ulimit -f unlimited;");
}

TEST_BEFORE_INIT(memory_is_populated_on_older_kernels_too)
{
	struct child_end end;

	child_succeeds(without_populate, &end);
}

/* A node without memory ---------------------------------------------------------------------- */

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
	assert_non_null(plx_mem_alloc(64, 0, 0, NULL));
	assert_null(plx_mem_alloc(64, 0, BARE_NODE, NULL));
	assert_error_has("--numa strict: NUMA node 63 has no memory for this process (allowed: 0");
	assert_error_has("or use --numa prefer");
	assert_int_equal(plx_pool_create(&attr, &pool), -ENOMEM);
	assert_int_equal(plx_zone_count(), 1); /* on node 0 */
	/* A missing node is an error, not a shortage. */
	attr.node = BARE_NODE - 1;
	assert_fails(plx_pool_create(&attr, &pool), -EINVAL, "NUMA node 62 is not on this host");
}

TEST(other_policies_use_memory_elsewhere_and_prefer_counts_it)
{
	size_t bytes[BARE_NODE + 1] = {[BARE_NODE] = MEM_2M};
	struct plx_mem_conf conf = ordinary;
	const struct plx_zone *zone;

	conf.node_bytes = bytes;
	conf.node_count = BARE_NODE + 1;
	conf.numa = PLX_NUMA_STRICT;
	assert_fails(plx_mem_init(&conf), -ENOMEM, "node 63 has no memory for this process");
	conf.numa = PLX_NUMA_PREFER;
	assert_int_equal(plx_mem_init(&conf), 0);
	assert_int_equal(mem_stats().node_fallbacks, 1);
	/* Each such request counts, even if it needs no new zone. */
	assert_non_null(plx_mem_alloc(4096, 0, BARE_NODE, &zone));
	assert_int_equal(zone->node, PLX_NODE_ANY);
	assert_int_equal(plx_zone_count(), 1);
	assert_int_equal(mem_stats().node_fallbacks, 2);
	plx_mem_fini();
	init_with(PLX_NUMA_ANY);
	assert_non_null(plx_mem_alloc(4096, 0, BARE_NODE, NULL));
	assert_int_equal(mem_stats().node_fallbacks, 0);
}

PLX_TEST_MAIN()
