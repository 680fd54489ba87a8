/* SPDX-License-Identifier: BSD-3-Clause */
/* A tree of names (tsearch) for lookups, and a list in name order for everything below a name.
 * Neither ever needs rebuilding. */
#include "store.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

struct node {
	struct param param; /* must be first */
	TAILQ_ENTRY(node) link;
	char *text; /* of the value; NULL: none */
	char name[];
};

TAILQ_HEAD(nodes, node);

struct store {
	void *tree; /* of struct node */
	struct nodes nodes;
	uint32_t count;
};

int store_create(struct store **store_out)
{
	struct store *store = calloc(1, sizeof(*store));

	if (!store)
		return plx_fail(ENOMEM, "out of memory");
	TAILQ_INIT(&store->nodes);
	*store_out = store;
	return 0;
}

static void free_node(void *node)
{
	free(((struct node *)node)->text);
	free(node);
}

void store_destroy(struct store *store)
{
	if (!store)
		return;
	tdestroy(store->tree, free_node);
	free(store);
}

uint32_t store_count(const struct store *store)
{
	return store->count;
}

/* Lookups ------------------------------------------------------------------------------------- */

/* A name to look for. A search passes by the first node above it. */
struct place {
	struct param param; /* must be first: the tree compares it with nodes */
	struct node *above;
	bool after; /* equal names are below, too */
};

static int compare(const void *key, const void *node)
{
	const struct param *a = key, *b = node;

	return param_name_order(a->name, a->name_length, b->name, b->name_length);
}

static int compare_place(const void *key, const void *node)
{
	struct place *place = (struct place *)key;
	int order = compare(key, node);

	if (order == 0 && place->after)
		return 1;
	if (order < 0)
		place->above = (struct node *)node;
	return order;
}

const struct param *store_find(const struct store *store, const char *name, size_t length)
{
	const struct param key = {.name = name, .name_length = (uint32_t)length};
	struct param **found = tfind(&key, &store->tree, compare);

	return found ? *found : NULL;
}

const struct param *store_first(const struct store *store, const char *name, size_t length,
				bool after)
{
	struct place place = {
		.param = {.name = name, .name_length = (uint32_t)length},
		.after = after,
	};
	struct param **found = tfind(&place, &store->tree, compare_place);

	return found ? *found : (const struct param *)place.above;
}

static struct node *node_of(const struct param *param)
{
	return (struct node *)param;
}

const struct param *store_next(const struct param *param)
{
	return (const struct param *)TAILQ_NEXT(node_of(param), link);
}

/* Changes ------------------------------------------------------------------------------------- */

/* Return: false: out of memory; the node is unchanged. */
static bool copy_into(struct node *node, const struct param *param)
{
	char *text = NULL;

	if (param->value.type == PARAM_TEXT) {
		text = malloc(param->value.text.length + 1);
		if (!text)
			return false;
		memcpy(text, param->value.text.bytes, param->value.text.length);
	}
	free(node->text);
	node->text = text;
	node->param = *param;
	node->param.name = node->name;
	if (text)
		node->param.value.text.bytes = text;
	return true;
}

/* Return: whether there was memory for it. */
static bool insert(struct store *store, struct node *node)
{
	struct node *above = node_of(
		store_first(store, node->param.name, node->param.name_length, true));

	if (!tsearch(node, &store->tree, compare))
		return false;
	if (above)
		TAILQ_INSERT_BEFORE(above, node, link);
	else
		TAILQ_INSERT_TAIL(&store->nodes, node, link);
	store->count++;
	return true;
}

const struct param *store_put(struct store *store, const struct param *param)
{
	struct node *node = node_of(store_find(store, param->name, param->name_length));

	if (node && copy_into(node, param))
		return &node->param;
	if (!node) {
		node = calloc(1, sizeof(*node) + param->name_length + 1);
		if (node) {
			memcpy(node->name, param->name, param->name_length);
			if (copy_into(node, param) && insert(store, node))
				return &node->param;
			free_node(node);
		}
	}
	plx_fail(ENOMEM, "out of memory");
	return NULL;
}

void store_remove(struct store *store, const struct param *param)
{
	struct node *node = node_of(param);

	tdelete(node, &store->tree, compare);
	TAILQ_REMOVE(&store->nodes, node, link);
	store->count--;
	free_node(node);
}
