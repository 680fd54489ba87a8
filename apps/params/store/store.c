/* SPDX-License-Identifier: BSD-3-Clause */
/* A hash table with chaining for lookups, and a skip list (Pugh, "Skip Lists: A Probabilistic
 * Alternative to Balanced Trees", 1990) for everything below a name. The skip list never needs
 * rebuilding. */
#include "store.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LEVELS        12 /* each level has a quarter of the one below: 16 million */
#define BUCKETS_FIRST 1024

struct node {
	struct param param; /* must be first */
	struct node *next_in_bucket;
	uint64_t hash;
	char *text;
	uint32_t levels;
	struct node *next[]; /* skip list links; the name follows them */
};

struct store {
	struct node **buckets;
	uint32_t mask, count;
	uint64_t last_id, revision;
	struct plx_siphash_key key; /* hashes names, which clients choose */
	struct node *first[LEVELS];
};

int store_create(struct store **store_out)
{
	struct store *store = calloc(1, sizeof(*store));

	if (!store || !(store->buckets = calloc(BUCKETS_FIRST, sizeof(struct node *)))) {
		free(store);
		return plx_fail(ENOMEM, "out of memory");
	}
	store->mask = BUCKETS_FIRST - 1;
	plx_random(&store->key, sizeof(store->key));
	*store_out = store;
	return 0;
}

void store_destroy(struct store *store)
{
	if (!store)
		return;
	for (struct node *node = store->first[0], *next; node; node = next) {
		next = node->next[0];
		free(node->text);
		free(node);
	}
	free(store->buckets);
	free(store);
}

uint32_t store_count(const struct store *store)
{
	return store->count;
}

uint64_t store_revision(const struct store *store)
{
	return store->revision;
}

uint64_t store_last_id(const struct store *store)
{
	return store->last_id;
}

const struct param *store_find(const struct store *store, const char *name, size_t length)
{
	uint64_t hash = plx_siphash(&store->key, name, length);
	const struct node *node = store->buckets[hash & store->mask];

	for (; node; node = node->next_in_bucket) {
		if (node->hash == hash && node->param.name_length == length &&
		    memcmp(node->param.name, name, length) == 0)
			return &node->param;
	}
	return NULL;
}

static int compare(const struct node *node, const char *name, size_t length)
{
	return param_name_order(node->param.name, node->param.name_length, name, length);
}

/* For each level, find the pointer to the first node not before the name. */
static void find_places(struct store *store, const char *name, size_t length,
			struct node **places[LEVELS])
{
	struct node **next = store->first;

	for (int level = LEVELS - 1; level >= 0; level--) {
		while (next[level] && compare(next[level], name, length) < 0)
			next = next[level]->next;
		places[level] = &next[level];
	}
}

const struct param *store_first(const struct store *store, const char *name, size_t length,
				bool after)
{
	struct node **places[LEVELS];
	struct node *node;

	find_places((struct store *)store, name, length, places);
	node = *places[0];
	if (node && after && compare(node, name, length) == 0)
		node = node->next[0];
	return node ? &node->param : NULL;
}

static struct node *node_of(const struct param *param)
{
	return (struct node *)param;
}

const struct param *store_next(const struct param *param)
{
	struct node *next = node_of(param)->next[0];

	return next ? &next->param : NULL;
}

/* Random, from hash bits that do not select the bucket. */
static uint32_t levels_of(uint64_t hash)
{
	uint32_t levels = 1;

	for (uint64_t bits = hash >> 32; (bits & 3) == 0 && levels < LEVELS; bits >>= 2)
		levels++;
	return levels;
}

/* value: checked. Return: false: out of memory; the node is unchanged. */
static bool set_value(struct node *node, const struct param_value *value)
{
	char *text = NULL;

	if (value->type == PARAM_TEXT && !(text = malloc(value->text.length + 1)))
		return false;
	if (text)
		memcpy(text, value->text.bytes, value->text.length);
	free(node->text);
	node->text = text;
	node->param.value = *value;
	if (text)
		node->param.value.text.bytes = text;
	return true;
}

/* Return: NULL: out of memory. */
static struct node *make_node(struct store *store, const char *name, size_t length,
			      const struct param_value *value)
{
	uint64_t hash = plx_siphash(&store->key, name, length);
	uint32_t levels = levels_of(hash);
	size_t bytes = sizeof(struct node) + levels * sizeof(struct node *);
	struct node *node = calloc(1, bytes + length + 1);

	if (!node || !set_value(node, value)) {
		free(node);
		return NULL;
	}
	node->levels = levels;
	node->hash = hash;
	node->param.name = memcpy((char *)node + bytes, name, length);
	node->param.name_length = (uint32_t)length;
	return node;
}

/* Double the table. Without memory the chains grow longer. Takes some ms for a hundred thousand
 * parameters, each time their number doubles. */
static void more_buckets(struct store *store)
{
	uint32_t mask = 2 * store->mask + 1;
	struct node **buckets = calloc((size_t)mask + 1, sizeof(struct node *));

	if (!buckets)
		return;
	for (struct node *node = store->first[0]; node; node = node->next[0]) {
		node->next_in_bucket = buckets[node->hash & mask];
		buckets[node->hash & mask] = node;
	}
	free(store->buckets);
	store->buckets = buckets;
	store->mask = mask;
}

static void put_in(struct store *store, struct node *node)
{
	struct node **places[LEVELS], **bucket = &store->buckets[node->hash & store->mask];

	find_places(store, node->param.name, node->param.name_length, places);
	for (uint32_t i = 0; i < node->levels; i++) {
		node->next[i] = *places[i];
		*places[i] = node;
	}
	node->next_in_bucket = *bucket;
	*bucket = node;
	if (++store->count > store->mask)
		more_buckets(store);
}

int store_restore(struct store *store, const struct param *param)
{
	struct node *node;

	if (store_find(store, param->name, param->name_length))
		return plx_fail(EEXIST, "%.*s is there twice", (int)param->name_length,
				param->name);
	node = make_node(store, param->name, param->name_length, &param->value);
	if (!node)
		return plx_fail(ENOMEM, "out of memory");
	node->param.id = param->id;
	node->param.revision = param->revision;
	node->param.kind = param->kind;
	node->param.alarm = param->alarm;
	put_in(store, node);
	return 0;
}

void store_set_revision(struct store *store, uint64_t revision, uint64_t last_id)
{
	if (revision > store->revision)
		store->revision = revision;
	if (last_id > store->last_id)
		store->last_id = last_id;
}

static void changed(struct store *store, struct node *node, uint64_t now_ns)
{
	node->param.alarm = param_alarm_next(&node->param.kind, node->param.alarm,
					     &node->param.value, now_ns);
	node->param.revision = ++store->revision;
}

int store_define(struct store *store, const char *name, size_t length,
		 const struct param_kind *kind, const struct param_value *value, uint64_t now_ns,
		 const struct param **param_out)
{
	struct node *node = node_of(store_find(store, name, length));

	if (node && !set_value(node, value))
		return plx_fail(ENOMEM, "out of memory");
	if (!node) {
		node = make_node(store, name, length, value);
		if (!node)
			return plx_fail(ENOMEM, "out of memory");
		node->param.id = ++store->last_id;
		put_in(store, node);
	}
	node->param.kind = *kind;
	node->param.alarm = (struct param_alarm){
		.since_ns = now_ns}; /* the old alarm was for other limits */
	changed(store, node, now_ns);
	*param_out = &node->param;
	return 0;
}

int store_set(struct store *store, const struct param *param, const struct param_value *value,
	      uint64_t now_ns)
{
	if (!set_value(node_of(param), value))
		return plx_fail(ENOMEM, "out of memory");
	changed(store, node_of(param), now_ns);
	return 0;
}

bool store_acknowledge(struct store *store, const struct param *param, uint64_t now_ns)
{
	struct param_alarm alarm = param_alarm_acknowledged(param->alarm, now_ns);

	if (alarm.state == param->alarm.state)
		return false;
	node_of(param)->param.alarm = alarm;
	node_of(param)->param.revision = ++store->revision;
	return true;
}

uint64_t store_remove(struct store *store, const struct param *param)
{
	struct node *node = node_of(param), **places[LEVELS];
	struct node **at = &store->buckets[node->hash & store->mask];

	find_places(store, node->param.name, node->param.name_length, places);
	for (uint32_t i = 0; i < node->levels; i++)
		*places[i] = node->next[i];
	while (*at != node)
		at = &(*at)->next_in_bucket;
	*at = node->next_in_bucket;
	free(node->text);
	free(node);
	store->count--;
	return ++store->revision;
}
