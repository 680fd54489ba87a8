/* SPDX-License-Identifier: BSD-3-Clause */
/* Which subscriptions a tag matches. Each is a set of pairs of a mask and a value: one for a tag or
 * a mask, and for a range as many as it takes to cover it with blocks that are a power of two long
 * and aligned, at most 126. A tag is looked up once with each mask that is in use, whatever the
 * number of subscriptions: the tuple space search of Srinivasan, Suri and Varghese, "Packet
 * Classification using Tuple Space Search" (1999). */
#ifndef NETIO_TABLE_H
#define NETIO_TABLE_H

#include "netio_priv.h"

#include <sys/queue.h>

#define TABLE_PREFIXES  65 /* masks whose bits are one run from the top: 0 to 64 of them */
#define TABLE_MASKS_MAX 64 /* different masks of other kinds */
#define TABLE_PAIRS_MAX 126

struct table_cell;

/* A place of a subscription in the table. Of whoever adds it. */
struct table_pair {
	struct table_cell *cell;
	LIST_ENTRY(table_pair) link; /* of those with the same mask and value */
	void *owner;                 /* what a lookup gives */
};

struct table_mask {
	uint64_t bits;
	uint32_t cells; /* 0: it is not in use */
};

struct table {
	struct table_cell **buckets;
	uint64_t bucket_mask;
	uint64_t cell_count;
	uint64_t seed;
	struct table_mask masks[TABLE_PREFIXES + TABLE_MASKS_MAX];
	uint8_t used[TABLE_PREFIXES + TABLE_MASKS_MAX]; /* those with cells */
	uint32_t used_count;
};

/* What a subscription asks for. */
struct table_filter {
	uint64_t first; /* of a range; or the value under a mask */
	uint64_t last;  /* of a range; or the mask */
	bool is_mask;
};

/* How many pairs it takes. filter: not empty, and a value with no bits but its mask's. */
unsigned table_pairs_of(const struct table_filter *filter);

/* seed: random, so that nobody can choose tags that meet in the hash. Return: 0; -ENOMEM. */
int table_init(struct table *table, uint64_t seed);

/* It is empty. Accepts one that is zeroed. */
void table_fini(struct table *table);

/* Add a filter with as many pairs as table_pairs_of says. Return: 0; -ENOMEM; -ENOSPC too many
 * different masks; with an error nothing is added. */
int table_add(struct table *table, const struct table_filter *filter, struct table_pair *pairs,
	      void *owner);

void table_remove(struct table *table, struct table_pair *pairs, unsigned count);

/* A search for what matches a tag. All but the tag is zero at first. */
struct table_search {
	uint64_t tag;
	uint32_t mask; /* the next one in used */
	const struct table_pair *pair;
};

/* Return: the owner of the next pair that matches, which is a subscription once, as its pairs do
 * not overlap; NULL: no more. */
void *table_next(const struct table *table, struct table_search *search);

#endif
