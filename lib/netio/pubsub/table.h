/* SPDX-License-Identifier: BSD-3-Clause */
/* Find the subscriptions that match a tag. Each subscription is a set of (mask, value) pairs. A tag
 * or a mask needs one pair. A range is covered by aligned power-of-two blocks, at most 126. A tag
 * is looked up once per mask in use, regardless of the number of subscriptions: the tuple space
 * search of Srinivasan, Suri and Varghese, "Packet Classification using Tuple Space Search"
 * (1999). */
#ifndef NETIO_TABLE_H
#define NETIO_TABLE_H

#include "netio_wire.h"

#include <sys/queue.h>

#define TABLE_PREFIXES  65 /* masks of leading ones: 0 to 64 bits */
#define TABLE_MASKS_MAX 64 /* different masks of other forms */
#define TABLE_PAIRS_MAX 126

struct table_cell;

/* A subscription's entry in the table. Allocated by the caller. */
struct table_pair {
	struct table_cell *cell;
	LIST_ENTRY(table_pair) link; /* those with the same mask and value */
	void *owner;                 /* result of a lookup */
};

struct table_mask {
	uint64_t bits;
	uint32_t cells; /* 0: not in use */
};

struct table {
	struct table_bucket *buckets;
	uint64_t bucket_mask;
	uint64_t cell_count;
	uint64_t seed;
	struct table_mask masks[TABLE_PREFIXES + TABLE_MASKS_MAX];
	uint8_t used[TABLE_PREFIXES + TABLE_MASKS_MAX]; /* masks with cells */
	uint32_t used_count;
};

/* How many pairs it needs. what: as read from a request. */
unsigned table_pairs_of(const struct netio_subscription *what);
/* seed: random, so that nobody can choose colliding tags. Return: 0; -ENOMEM. */
int table_init(struct table *table, uint64_t seed);
/* The table must be empty. Accepts a zeroed one. */
void table_fini(struct table *table);
/* Add all table_pairs_of pairs, or nothing. Return: 0; -ENOMEM; -ENOSPC too many masks. */
int table_add(struct table *table, const struct netio_subscription *what, struct table_pair *pairs,
	      void *owner);

void table_remove(struct table *table, struct table_pair *pairs, unsigned count);

/* A search for matches of a tag. Zero all but the tag. */
struct table_search {
	uint64_t tag;
	uint32_t mask; /* index of the next in `used` */
	const struct table_pair *pair;
};

/* Return: the owner of the next matching pair; NULL: no more. Each subscription is found once,
 * because its pairs do not overlap. */
void *table_next(const struct table *table, struct table_search *search);

#endif
