/* SPDX-License-Identifier: BSD-3-Clause */
/* Updates come by two paths, and one path may deliver older ones than the other: they are ordered
 * by revision per parameter. Revisions only rise during one run of the service; after a restart
 * every difference is news. */
#include "mirror.h"

#include "wire.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

struct known {
	struct param param; /* the entry owns its name and text */
	char *text;
	uint64_t listing; /* the latest listing in which the service reported it */
	bool removed;     /* kept until the listing is complete, because a page may be older */
	TAILQ_ENTRY(known) link;
	char name[];
};

TAILQ_HEAD(known_queue, known);

struct mirror {
	void *by_name; /* struct known, for tsearch */
	struct known_queue all;
	uint64_t listing; /* counts listings and losses */
	uint64_t lost;    /* entries with a lower number are from an earlier run */
	bool lists;
	uint32_t count;
};

static int by_name(const void *a, const void *b)
{
	const struct param *x = a, *y = b;

	return param_name_order(x->name, x->name_length, y->name, y->name_length);
}

int mirror_create(struct mirror **mirror_out)
{
	struct mirror *mirror = calloc(1, sizeof(*mirror));

	if (!mirror)
		return plx_fail(ENOMEM, "out of memory");
	TAILQ_INIT(&mirror->all);
	*mirror_out = mirror;
	return 0;
}

static void forget(struct mirror *mirror, struct known *entry)
{
	tdelete(entry, &mirror->by_name, by_name);
	TAILQ_REMOVE(&mirror->all, entry, link);
	mirror->count--;
	free(entry->text);
	free(entry);
}

void mirror_destroy(struct mirror *mirror)
{
	struct known *entry;

	if (!mirror)
		return;
	while ((entry = TAILQ_FIRST(&mirror->all)))
		forget(mirror, entry);
	free(mirror);
}

uint32_t mirror_count(const struct mirror *mirror)
{
	return mirror->count;
}

/* Entries ----------------------------------------------------------------------------------------
 */

static struct known *find(const struct mirror *mirror, const struct param *param)
{
	struct known **found = tfind(param, &mirror->by_name, by_name);

	return found ? *found : NULL;
}

/* Return: NULL: out of memory. */
static struct known *add(struct mirror *mirror, const struct param *param)
{
	struct known *entry = calloc(1, sizeof(*entry) + param->name_length);

	if (!entry)
		return NULL;
	memcpy(entry->name, param->name, param->name_length);
	entry->param.name = entry->name;
	entry->param.name_length = param->name_length;
	if (!tsearch(entry, &mirror->by_name, by_name)) {
		free(entry);
		return NULL;
	}
	TAILQ_INSERT_TAIL(&mirror->all, entry, link);
	mirror->count++;
	return entry;
}

/* Return: false: out of memory; the entry is unchanged. */
static bool update(struct known *entry, const struct param *param)
{
	char *text = NULL;

	if (param->value.type == PARAM_TEXT) {
		text = malloc(param->value.text.length + 1);
		if (!text)
			return false;
		memcpy(text, param->value.text.bytes, param->value.text.length);
	}
	free(entry->text);
	entry->text = text;
	entry->param = *param;
	entry->param.name = entry->name;
	if (text)
		entry->param.value.text.bytes = text;
	return true;
}

/* News -------------------------------------------------------------------------------------------
 */

static int take_new(struct mirror *mirror, const struct param *param, bool removed)
{
	struct known *entry;

	if (removed && !mirror->lists)
		return 0;
	entry = add(mirror, param);
	if (entry && !update(entry, param)) {
		forget(mirror, entry);
		entry = NULL;
	}
	if (!entry)
		return plx_fail(ENOMEM, "out of memory");
	entry->removed = removed;
	entry->listing = mirror->listing;
	return !removed;
}

/* Two runs on copies of one file, such as a backup, use the same revisions. */
static bool differs(const struct param *a, const struct param *b)
{
	uint8_t x[WIRE_RECORD_MAX], y[WIRE_RECORD_MAX];
	size_t length = record_write(a, false, x);

	return record_write(b, false, y) != length || memcmp(x, y, length) != 0;
}

static bool is_news(const struct mirror *mirror, const struct known *entry,
		    const struct param *param)
{
	if (entry->listing < mirror->lost)
		return entry->removed || differs(param, &entry->param);
	return param->revision > entry->param.revision;
}

int mirror_take(struct mirror *mirror, const struct param *param, bool removed)
{
	struct known *entry = find(mirror, param);
	bool news, was_there;

	if (!entry)
		return take_new(mirror, param, removed);
	news = is_news(mirror, entry, param);
	entry->listing = mirror->listing;
	if (!news)
		return 0;
	was_there = !entry->removed;
	if (removed && !mirror->lists) {
		forget(mirror, entry);
		return was_there;
	}
	if (!update(entry, param))
		return plx_fail(ENOMEM, "out of memory");
	entry->removed = removed;
	return !removed || was_there;
}

/* Lists ------------------------------------------------------------------------------------------
 */

void mirror_lose(struct mirror *mirror)
{
	mirror->lost = ++mirror->listing;
}

void mirror_begin(struct mirror *mirror)
{
	mirror->listing++;
	mirror->lists = true;
}

void mirror_end(struct mirror *mirror, void (*gone)(const struct param *param, void *arg),
		void *arg)
{
	struct known *next;

	mirror->lists = false;
	for (struct known *entry = TAILQ_FIRST(&mirror->all); entry; entry = next) {
		next = TAILQ_NEXT(entry, link);
		if (!entry->removed && entry->listing < mirror->listing)
			gone(&entry->param, arg);
		if (entry->removed || entry->listing < mirror->listing)
			forget(mirror, entry);
	}
}
