/* SPDX-License-Identifier: BSD-3-Clause */
/* Reports of one run of the service are ordered by revision, per parameter. Runs are not: a later
 * one may have lower revisions, or the same ones for other values, so any difference is news. */
#include "params.h"

#include "wire.h"

#include <string.h>

int snapshot_init(struct snapshot *snapshot, void (*news)(const struct param *param))
{
	*snapshot = (struct snapshot){.news = news};
	return store_create(&snapshot->now);
}

void snapshot_fini(struct snapshot *snapshot)
{
	store_destroy(snapshot->now);
	store_destroy(snapshot->next);
}

int snapshot_lose(struct snapshot *snapshot)
{
	snapshot->losses++;
	snapshot->is_lost = true;
	store_destroy(snapshot->next);
	snapshot->next = NULL;
	return snapshot_begin(snapshot);
}

int snapshot_begin(struct snapshot *snapshot)
{
	return snapshot->next ? 0 : store_create(&snapshot->next);
}

/* News ---------------------------------------------------------------------------------------- */

static const struct param *find(const struct store *store, const struct param *param)
{
	return store ? store_find(store, param->name, param->name_length) : NULL;
}

static int set_now(struct snapshot *snapshot, const struct param *param)
{
	if (param->removed)
		store_remove(snapshot->now, find(snapshot->now, param));
	else if (!store_put(snapshot->now, param))
		return -ENOMEM;
	if (snapshot->news)
		snapshot->news(param);
	return 0;
}

static bool differs(const struct param *a, const struct param *b)
{
	uint8_t x[WIRE_RECORD_MAX], y[WIRE_RECORD_MAX];
	size_t length = record_write(a, x);

	return record_write(b, y) != length || memcmp(x, y, length) != 0;
}

static bool is_news(const struct snapshot *snapshot, const struct param *now,
		    const struct param *param)
{
	if (!now)
		return !param->removed;
	return snapshot->is_lost ? differs(now, param) : param->revision > now->revision;
}

int snapshot_take(struct snapshot *snapshot, const struct param *param)
{
	const struct param *now = find(snapshot->now, param);
	const struct param *latest = snapshot->next ? find(snapshot->next, param) : now;

	if (latest && param->revision <= latest->revision)
		return 0;
	/* Removals stay until the list is complete, because a page may be older. */
	if (snapshot->next && !store_put(snapshot->next, param))
		return -ENOMEM;
	return is_news(snapshot, now, param) ? set_now(snapshot, param) : 0;
}

/* The end of a list --------------------------------------------------------------------------- */

static void remove_missing(struct snapshot *snapshot)
{
	const struct param *next;

	for (const struct param *param = store_first(snapshot->now, "", 0, false); param;
	     param = next) {
		struct param last = *param;

		next = store_next(param);
		last.removed = true;
		if (!find(snapshot->next, param)) {
			if (snapshot->news)
				snapshot->news(&last);
			store_remove(snapshot->now, param);
		}
	}
}

void snapshot_end(struct snapshot *snapshot)
{
	remove_missing(snapshot);
	store_destroy(snapshot->next);
	snapshot->next = NULL;
	snapshot->is_lost = false;
}
