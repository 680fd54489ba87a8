/* SPDX-License-Identifier: BSD-3-Clause */
/* A lookup finds exactly what a scan of all subscriptions finds. */
#include "dice.h"
#include "plx_test.h"
#include "table.h"

static struct table table;
static uint64_t dice = 42;

struct sub {
	struct netio_subscription what;
	struct table_pair *pairs;
	unsigned count;
	unsigned hits; /* of the newest lookup */
};

static bool matches(const struct netio_subscription *what, uint64_t tag)
{
	return what->mask ? (tag & what->mask) == what->tag
			  : tag >= what->tag && tag <= subscription_last(what);
}

static int add(struct sub *sub, const struct netio_subscription *what)
{
	*sub = (struct sub){.what = *what, .count = table_pairs_of(what)};
	assert_in_range(sub->count, 1, TABLE_PAIRS_MAX);
	sub->pairs = calloc(sub->count, sizeof(*sub->pairs));
	assert_non_null(sub->pairs);
	int rc = table_add(&table, what, sub->pairs, sub);
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

static struct netio_subscription random_what(void)
{
	static const uint64_t masks[] = {UINT64_MAX, 7, 0xf0f, ~UINT64_C(15), UINT64_C(3) << 62};
	uint64_t mask = masks[dice_roll(&dice, PLX_ARRAY_LEN(masks))];
	uint64_t one = random_tag(), other = random_tag();

	switch (dice_roll(&dice, 3)) {
	case 0:
		return (struct netio_subscription){.tag = one};
	case 1:
		return (struct netio_subscription){.tag = one < other ? one : other,
						   .last = one < other ? other : one};
	default:
		return (struct netio_subscription){.tag = one & mask, .mask = mask};
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
			struct netio_subscription what = random_what();

			assert_int_equal(add(&subs[i], &what), 0);
		}
		there[i] = !there[i];
		for (unsigned j = 0; j < PLX_ARRAY_LEN(subs); j++)
			subs[j].hits = 0;
		unsigned hits = look_up(tag);
		for (unsigned j = 0; j < PLX_ARRAY_LEN(subs); j++) {
			bool expected = there[j] && matches(&subs[j].what, tag);

			assert_int_equal(subs[j].hits, expected); /* once */
			hits -= expected;
		}
		assert_int_equal(hits, 0);
	}
	for (unsigned i = 0; i < PLX_ARRAY_LEN(subs); i++)
		if (there[i])
			take_out(&subs[i]);
}

TEST(the_number_of_different_masks_is_bounded)
{
	static struct sub subs[TABLE_MASKS_MAX + 1];
	struct netio_subscription what = {0};

	for (unsigned i = 0; i < TABLE_MASKS_MAX; i++) {
		what.mask = 2 * i + 1;
		assert_int_equal(add(&subs[i], &what), 0);
	}
	what.mask = 2 * TABLE_MASKS_MAX + 1;
	assert_int_equal(add(&subs[TABLE_MASKS_MAX], &what), -ENOSPC);
	/* An existing one still works. */
	what.mask = 3;
	what.tag = 2;
	assert_int_equal(add(&subs[TABLE_MASKS_MAX], &what), 0);
	take_out(&subs[TABLE_MASKS_MAX]);
	/* The slot of a removed one is free. */
	take_out(&subs[10]);
	what = (struct netio_subscription){.mask = 2 * TABLE_MASKS_MAX + 1};
	assert_int_equal(add(&subs[10], &what), 0);
	for (unsigned i = 0; i < TABLE_MASKS_MAX; i++)
		take_out(&subs[i]);
}

PLX_TEST_MAIN()
