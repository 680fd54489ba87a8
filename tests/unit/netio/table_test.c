/* SPDX-License-Identifier: BSD-3-Clause */
/* A lookup finds exactly what a scan of all subscriptions finds. */
#include "dice.h"
#include "plx_test.h"
#include "table.h"

static struct table table;
static uint64_t dice = 42;

struct sub {
	struct table_filter filter;
	struct table_pair *pairs;
	unsigned count;
	unsigned hits; /* of the newest lookup */
};

static bool matches(const struct table_filter *filter, uint64_t tag)
{
	return filter->is_mask ? (tag & filter->last) == filter->first
			       : tag >= filter->first && tag <= filter->last;
}

static int add(struct sub *sub, const struct table_filter *filter)
{
	*sub = (struct sub){.filter = *filter, .count = table_pairs_of(filter)};
	assert_in_range(sub->count, 1, TABLE_PAIRS_MAX);
	sub->pairs = calloc(sub->count, sizeof(*sub->pairs));
	assert_non_null(sub->pairs);
	int rc = table_add(&table, filter, sub->pairs, sub);
	if (rc)
		free(sub->pairs);
	return rc;
}

static void take_out(struct sub *sub)
{
	table_remove(&table, sub->pairs, sub->count);
	free(sub->pairs);
	sub->pairs = NULL;
}

static unsigned look_up(uint64_t tag)
{
	struct table_search search = {.tag = tag};
	struct sub *sub;
	unsigned hits = 0;

	while ((sub = table_next(&table, &search))) {
		sub->hits++;
		hits++;
	}
	return hits;
}

PLX_FIXTURE(up, 0, assert_int_equal(table_init(&table, 7), 0))

static int down(void **state)
{
	assert_int_equal(table.cell_count, 0);
	assert_int_equal(table.used_count, 0);
	table_fini(&table);
	return 0;
}

/* Range bounds are error-prone: numbers of few bits, and at both ends of the range. */
static uint64_t random_tag(void)
{
	static const uint64_t bases[] = {0, 0, 1000, UINT64_MAX - 40, UINT64_C(1) << 63};

	return bases[dice_roll(&dice, PLX_ARRAY_LEN(bases))] + dice_roll(&dice, 40);
}

static struct table_filter random_filter(void)
{
	static const uint64_t masks[] = {UINT64_MAX, 7, 0xf0f, ~UINT64_C(15), 0, UINT64_C(3) << 62};
	uint64_t mask = masks[dice_roll(&dice, PLX_ARRAY_LEN(masks))];
	uint64_t one = random_tag(), other = random_tag();

	switch (dice_roll(&dice, 3)) {
	case 0:
		return (struct table_filter){.first = one, .last = one};
	case 1:
		return (struct table_filter){one < other ? one : other, one < other ? other : one,
					     false};
	default:
		return (struct table_filter){one & mask, mask, true};
	}
}

#define TEST(test) PLX_TEST_WITH(test, up, down)

TEST(a_lookup_finds_the_same_as_a_scan)
{
	static struct sub subs[200];
	bool there[200] = {0};

	for (unsigned round = 0; round < 20000; round++) {
		unsigned i = dice_roll(&dice, PLX_ARRAY_LEN(subs));
		uint64_t tag = random_tag();

		if (there[i]) {
			take_out(&subs[i]);
		} else {
			struct table_filter filter = random_filter();

			assert_int_equal(add(&subs[i], &filter), 0);
		}
		there[i] = !there[i];
		for (unsigned j = 0; j < PLX_ARRAY_LEN(subs); j++)
			subs[j].hits = 0;
		unsigned hits = look_up(tag);
		for (unsigned j = 0; j < PLX_ARRAY_LEN(subs); j++) {
			bool expected = there[j] && matches(&subs[j].filter, tag);

			assert_int_equal(subs[j].hits, expected); /* once */
			hits -= expected;
		}
		assert_int_equal(hits, 0);
	}
	for (unsigned i = 0; i < PLX_ARRAY_LEN(subs); i++)
		if (there[i])
			take_out(&subs[i]);
}

TEST(the_widest_ranges_need_few_pairs)
{
	static const struct {
		uint64_t first, last;
		unsigned pairs;
	} cases[] = {
		{0, UINT64_MAX, 1},
		{1, UINT64_MAX - 1, TABLE_PAIRS_MAX},
		{0, UINT64_MAX - 1, 64},
		{1, UINT64_MAX, 64},
		{UINT64_MAX, UINT64_MAX, 1},
		{0, 0, 1},
		{16, 31, 1},
		{15, 32, 3},
	};

	for (unsigned i = 0; i < PLX_ARRAY_LEN(cases); i++) {
		struct table_filter filter = {cases[i].first, cases[i].last, false};
		struct sub sub;

		assert_int_equal(table_pairs_of(&filter), cases[i].pairs);
		assert_int_equal(add(&sub, &filter), 0);
		assert_int_equal(look_up(filter.first), 1);
		assert_int_equal(look_up(filter.last), 1);
		assert_int_equal(look_up(filter.first + (filter.last - filter.first) / 2), 1);
		if (filter.first > 0)
			assert_int_equal(look_up(filter.first - 1), 0);
		if (filter.last < UINT64_MAX)
			assert_int_equal(look_up(filter.last + 1), 0);
		take_out(&sub);
	}
}

TEST(the_number_of_different_masks_is_bounded)
{
	static struct sub subs[TABLE_MASKS_MAX + 1];
	struct table_filter filter = {0, 0, true};

	for (unsigned i = 0; i < TABLE_MASKS_MAX; i++) {
		filter.last = 2 * i + 1;
		assert_int_equal(add(&subs[i], &filter), 0);
	}
	filter.last = 2 * TABLE_MASKS_MAX + 1;
	assert_int_equal(add(&subs[TABLE_MASKS_MAX], &filter), -ENOSPC);
	/* An existing one, and prefixes, still work. */
	filter.last = 3;
	filter.first = 2;
	assert_int_equal(add(&subs[TABLE_MASKS_MAX], &filter), 0);
	take_out(&subs[TABLE_MASKS_MAX]);
	filter = (struct table_filter){UINT64_C(1) << 63, UINT64_C(1) << 63, true};
	assert_int_equal(add(&subs[TABLE_MASKS_MAX], &filter), 0);
	take_out(&subs[TABLE_MASKS_MAX]);
	/* The slot of a removed one is free. */
	take_out(&subs[10]);
	filter = (struct table_filter){0, 2 * TABLE_MASKS_MAX + 1, true};
	assert_int_equal(add(&subs[10], &filter), 0);
	for (unsigned i = 0; i < TABLE_MASKS_MAX; i++)
		take_out(&subs[i]);
}

/* Cells that a lookup reads: the longest list of a bucket. */
TEST(many_tags_spread_over_the_buckets)
{
	const unsigned count = 100000;
	struct sub *subs = calloc(count, sizeof(*subs));
	unsigned hits = 0;

	assert_non_null(subs);
	for (unsigned i = 0; i < count; i++) {
		struct table_filter filter = {(uint64_t)i << 16, (uint64_t)i << 16, false};

		assert_int_equal(add(&subs[i], &filter), 0);
	}
	assert_true(table.bucket_mask + 1 >= count / 2);
	for (unsigned i = 0; i < count; i++)
		hits += look_up((uint64_t)i << 16);
	assert_int_equal(hits, count);
	assert_int_equal(table.used_count, 1);
	for (unsigned i = 0; i < count; i++)
		take_out(&subs[i]);
	free(subs);
}

PLX_TEST_MAIN()
