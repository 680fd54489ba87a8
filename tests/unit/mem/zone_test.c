/* SPDX-License-Identifier: BSD-3-Clause */
/* Zones, and the memory allocated in them. */
#include "pools.h"

TEST_BEFORE_INIT(nothing_is_allocated_before_init)
{
	char text[64];

	assert_null(plx_mem_alloc(64, 0, PLX_NODE_ANY, NULL));
	assert_error_has("Pollux is not up; call plx_eal_init or plx_app_start first");
	assert_int_equal(plx_zone_count(), 0);
	assert_null(plx_zone_get(0));
	assert_int_equal(mem_stats().bytes, 0);
	plx_mem_describe(text, sizeof(text));
	assert_string_equal(text, "no memory taken yet");
	plx_mem_free(NULL);
	plx_mem_fini();
}

TEST(a_second_init_is_refused)
{
	assert_fails(plx_mem_init(&ordinary), -EALREADY, "plx_mem_fini first");
}

TEST_BEFORE_INIT(bad_settings_are_refused)
{
	struct plx_mem_conf conf = {.huge = (enum plx_huge)9};

	assert_fails(plx_mem_init(&conf), -EINVAL, "huge 9");
	assert_int_equal(plx_mem_init(&ordinary), 0);
}

TEST(memory_is_zero_aligned_and_inside_its_zone)
{
	static const size_t aligns[] = {0, 8, 64, 4096, MEM_2M, 4 * MEM_2M};
	const struct plx_zone *zone;

	for (size_t i = 0; i < PLX_ARRAY_LEN(aligns); i++) {
		size_t align = aligns[i] < 64 ? 64 : aligns[i];
		char *memory = plx_mem_alloc(1000, aligns[i], 0, &zone);

		assert_non_null(memory);
		assert_int_equal((uintptr_t)memory % align, 0);
		assert_true(is_zero(memory, 1000));
		memset(memory, 0xff, 1000);
		assert_in_range((uintptr_t)memory, (uintptr_t)zone->base,
				(uintptr_t)zone->base + zone->size_bytes - 1000);
		assert_ptr_equal(plx_zone_get(zone->index), zone);
		assert_int_equal(zone->node, 0);
	}
}

TEST(reused_memory_is_zeroed)
{
	char *first = plx_mem_alloc(4096, 0, 0, NULL);
	memset(first, 0xff, 4096);
	plx_mem_free(first);

	char *second = plx_mem_alloc(8192, 0, 0, NULL);
	assert_ptr_equal(second, first);
	assert_true(is_zero(second, 8192));
}

TEST(bad_requests_are_refused)
{
	static const struct {
		size_t bytes, align;
		int node;
		const char *error;
	} cases[] = {
		{0, 0, 0, "0 bytes of memory: give 1 to"},
		{SIZE_MAX, 0, 0, "give 1 to"},
		{64, 96, 0, "alignment of 96 bytes: give a power of two"},
		{64, 0, 999,
		 "NUMA node 999 is not on this host; give one that has memory for this process (0"},
		{64, 0, -7, "NUMA node -7 is not on this host"},
		{(size_t)1 << 50, 0, 0, "not enough memory on node 0: 1 PiB asked for, "},
		{(size_t)1 << 50, 0, 0, " available; ask for less (--socket-mem"},
		{(size_t)1 << 50, 0, PLX_NODE_ANY, "not enough memory on this host: 1 PiB"},
	};

	for (size_t i = 0; i < PLX_ARRAY_LEN(cases); i++) {
		if (plx_mem_alloc(cases[i].bytes, cases[i].align, cases[i].node, NULL))
			fail_msg("memory instead of '%s'", cases[i].error);
		assert_error_has(cases[i].error);
	}
	assert_int_equal(plx_zone_count(), 0);
}

TEST(zones_are_added_when_needed_and_counted)
{
	const struct plx_zone *zones[2];
	char text[128];

	void *a = plx_mem_alloc(MEM_2M, 0, 0, &zones[0]);
	void *b = plx_mem_alloc(64, 0, 0, &zones[1]);
	assert_ptr_not_equal(zones[0], zones[1]);
	void *c = plx_mem_alloc(3 * MEM_2M + 1, 0, PLX_NODE_ANY, NULL);

	struct plx_mem_stats stats = mem_stats();
	assert_int_equal(plx_zone_count(), 3);
	assert_int_equal(stats.bytes, 6 * MEM_2M);
	assert_int_equal(stats.bytes_used, MEM_2M + 64 + 3 * MEM_2M + 64);
	assert_int_equal(stats.page_fallbacks, 0);
	assert_int_equal(stats.node_fallbacks, 0);
	plx_mem_describe(text, sizeof(text));
	assert_string_equal(text, "4 MiB in 4 KiB pages on node 0, 8 MiB in 4 KiB pages on "
				  "any node");
	plx_mem_describe(text, 8);
	assert_string_equal(text, "4 MiB i");

	plx_mem_free(a);
	plx_mem_free(b);
	plx_mem_free(c);
	assert_int_equal(mem_stats().bytes_used, 0);
}

TEST_BEFORE_INIT(memory_requested_at_init_is_available)
{
	const size_t bytes[] = {5 * MEM_2M + 1};
	const struct plx_mem_conf conf = {
		.huge = PLX_HUGE_NONE, .node_bytes = bytes, .node_count = 1};

	assert_int_equal(plx_mem_init(&conf), 0);
	assert_int_equal(plx_zone_count(), 1);
	assert_int_equal(plx_zone_get(0)->size_bytes, 6 * MEM_2M);
	assert_int_equal(plx_zone_get(0)->node, 0);
	assert_non_null(plx_mem_alloc(5 * MEM_2M, 0, 0, NULL));
	assert_int_equal(plx_zone_count(), 1);
}

TEST_BEFORE_INIT(a_failed_init_leaks_nothing)
{
	size_t bytes[65] = {MEM_2M, [64] = 1};
	struct plx_mem_conf conf = {.huge = PLX_HUGE_NONE, .node_bytes = bytes, .node_count = 65};
	assert_fails(plx_mem_init(&conf), -EINVAL, "NUMA node 64 is not on this host");
	conf.node_count = 1;
	bytes[0] = (size_t)1 << 50;
	assert_fails(plx_mem_init(&conf), -ENOMEM, "not enough memory on node 0: 1 PiB");
	assert_int_equal(plx_zone_count(), 0);
	assert_int_equal(plx_mem_init(NULL), 0);
}

TEST(a_full_table_of_zones_is_an_error)
{
	size_t before = mem_growth_max;

	mem_growth_max = 0;
	for (int i = 0; i < PLX_ZONE_MAX; i++) /* each at the start of a zone */
		assert_non_null(plx_mem_alloc(64, MEM_2M, 0, NULL));
	assert_null(plx_mem_alloc(64, MEM_2M, 0, NULL));
	assert_error_has("all 256 zones of memory are taken");
	mem_growth_max = before;
}

static void *allocate_and_free(void *arg)
{
	uint8_t mark = (uint8_t)(uintptr_t)arg;
	uint8_t *held[8] = {NULL};

	for (unsigned i = 0; i < 4000; i++) {
		unsigned slot = i * 7 % 8;
		size_t size = 64 + i % 50 * 100;

		assert_true(!held[slot] || (held[slot][0] == mark && held[slot][63] == mark));
		plx_mem_free(held[slot]);
		held[slot] = plx_mem_alloc(size, 0, 0, NULL);
		assert_true(held[slot] && is_zero(held[slot], size));
		memset(held[slot], mark, size);
	}
	for (unsigned slot = 0; slot < 8; slot++)
		plx_mem_free(held[slot]);
	return NULL;
}

TEST(threads_may_allocate_concurrently)
{
	run_in_threads(2, allocate_and_free, (void *)1, 1);
	assert_int_equal(mem_stats().bytes_used, 0);
}

PLX_TEST_MAIN()
