/* SPDX-License-Identifier: BSD-3-Clause */
#include "table.h"

#include "base_internal.h"

#include <assert.h>
#include <stdlib.h>

#define BUCKETS_MIN 64

struct table_cell {
	uint64_t value;
	LIST_ENTRY(table_cell) link; /* in the bucket */
	LIST_HEAD(table_pair_list, table_pair) pairs;
	uint8_t mask; /* its index */
};

LIST_HEAD(table_bucket, table_cell);

/* The mask of the block that starts with this tag: the largest aligned one in the range, or that of
 * the subscription. */
static uint64_t block_at(const struct netio_subscription *what, uint64_t first)
{
	uint64_t mask = UINT64_MAX, last = subscription_last(what);

	if (what->mask)
		return what->mask;
	while (mask && !(first & ~(mask << 1)) && (first | ~(mask << 1)) <= last)
		mask <<= 1;
	return mask;
}

/* Move on to the next block. Return: whether there is one. */
static bool next_block(const struct netio_subscription *what, uint64_t *first, uint64_t mask)
{
	uint64_t end = *first | ~mask;

	*first = end + 1;
	return !what->mask && end != subscription_last(what);
}

unsigned table_pairs_of(const struct netio_subscription *what)
{
	uint64_t first = what->tag;
	unsigned count = 1;

	while (next_block(what, &first, block_at(what, first)))
		count++;
	return count;
}

static struct table_bucket *bucket_of(const struct table *table, uint64_t value, uint8_t mask)
{
	uint64_t state = (value ^ table->seed) + mask * UINT64_C(0x9e3779b97f4a7c15);

	return &table->buckets[plx_random_next(&state) & table->bucket_mask];
}

static struct table_cell *find(const struct table *table, uint64_t value, uint8_t mask)
{
	struct table_cell *cell;

	LIST_FOREACH (cell, bucket_of(table, value, mask), link)
		if (cell->value == value && cell->mask == mask)
			break;
	return cell;
}

int table_init(struct table *table, uint64_t seed)
{
	*table = (struct table){.seed = seed, .bucket_mask = BUCKETS_MIN - 1};
	table->buckets = calloc(BUCKETS_MIN, sizeof(struct table_bucket));
	return table->buckets ? 0 : plx_fail(ENOMEM, "out of memory for subscriptions");
}

void table_fini(struct table *table)
{
	assert(table->cell_count == 0 && "subscriptions are left");
	free(table->buckets);
	table->buckets = NULL;
}

/* Out of memory, the lists just get longer. */
static void grow(struct table *table)
{
	uint64_t count = table->bucket_mask + 1;
	struct table_bucket *old = table->buckets, *buckets = calloc(2 * count, sizeof(*old));
	struct table_cell *cell;

	if (!buckets)
		return;
	table->buckets = buckets;
	table->bucket_mask = 2 * count - 1;
	for (uint64_t i = 0; i < count; i++)
		while ((cell = LIST_FIRST(&old[i]))) {
			LIST_REMOVE(cell, link);
			LIST_INSERT_HEAD(bucket_of(table, cell->value, cell->mask), cell, link);
		}
	free(old);
}

/* Return: its index; -1 too many masks. */
static int mask_index(const struct table *table, uint64_t bits)
{
	int unused = -1;

	if ((~bits & (~bits + 1)) == 0) /* leading ones */
		return __builtin_popcountll(bits);
	for (int i = TABLE_PREFIXES; i < TABLE_PREFIXES + TABLE_MASKS_MAX; i++) {
		if (table->masks[i].cells && table->masks[i].bits == bits)
			return i;
		if (!table->masks[i].cells)
			unused = i;
	}
	return unused;
}

static struct table_cell *cell_create(struct table *table, uint64_t value, uint64_t bits,
				      uint8_t index)
{
	struct table_cell *cell = malloc(sizeof(*cell));

	if (!cell)
		return NULL;
	if (table->cell_count > table->bucket_mask)
		grow(table);
	*cell = (struct table_cell){.value = value, .mask = index};
	LIST_INSERT_HEAD(bucket_of(table, value, index), cell, link);
	table->cell_count++;
	table->masks[index].bits = bits;
	if (table->masks[index].cells++ == 0)
		table->used[table->used_count++] = index;
	return cell;
}

static void cell_destroy(struct table *table, struct table_cell *cell)
{
	uint32_t i = 0;

	LIST_REMOVE(cell, link);
	table->cell_count--;
	if (--table->masks[cell->mask].cells == 0) {
		while (table->used[i] != cell->mask)
			i++;
		table->used[i] = table->used[--table->used_count];
	}
	free(cell);
}

static int add_pair(struct table *table, uint64_t value, uint64_t bits, struct table_pair *pair,
		    void *owner)
{
	int index = mask_index(table, bits);
	struct table_cell *cell;

	if (index < 0)
		return plx_fail(ENOSPC, "more than %d different masks", TABLE_MASKS_MAX);
	cell = find(table, value, (uint8_t)index);
	if (!cell)
		cell = cell_create(table, value, bits, (uint8_t)index);
	if (!cell)
		return plx_fail(ENOMEM, "out of memory for subscriptions");
	pair->cell = cell;
	pair->owner = owner;
	LIST_INSERT_HEAD(&cell->pairs, pair, link);
	return 0;
}

int table_add(struct table *table, const struct netio_subscription *what, struct table_pair *pairs,
	      void *owner)
{
	uint64_t first = what->tag, mask;
	unsigned count = 0;

	do {
		int rc;

		mask = block_at(what, first);
		rc = add_pair(table, first, mask, &pairs[count], owner);
		if (rc) {
			table_remove(table, pairs, count);
			return rc;
		}
		count++;
	} while (next_block(what, &first, mask));
	return 0;
}

void table_remove(struct table *table, struct table_pair *pairs, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		struct table_pair *pair = &pairs[i];

		LIST_REMOVE(pair, link);
		if (LIST_EMPTY(&pair->cell->pairs))
			cell_destroy(table, pair->cell);
	}
}

void *table_next(const struct table *table, struct table_search *search)
{
	const struct table_pair *pair = search->pair;

	while (!pair && search->mask < table->used_count) {
		uint8_t index = table->used[search->mask++];
		const struct table_cell *cell = find(table, search->tag & table->masks[index].bits,
						     index);

		pair = cell ? LIST_FIRST(&cell->pairs) : NULL;
	}
	if (!pair)
		return NULL;
	search->pair = LIST_NEXT(pair, link);
	return pair->owner;
}
