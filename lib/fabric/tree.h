/* SPDX-License-Identifier: BSD-3-Clause */
/* Trees of tsearch(3), whose nodes start with their key. */
#ifndef FABRIC_TREE_H
#define FABRIC_TREE_H

#include <netinet/in.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

typedef int (*tree_order)(const void *a, const void *b);

/* Of nodes that start with an address. */
static inline int tree_by_address(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct in6_addr));
}

/* The node with that key; created if needed, with zeroes after the key. Return: NULL: no memory. */
static inline void *tree_get(void **tree, tree_order order, const void *key, size_t key_bytes,
			     size_t node_bytes)
{
	void **found = tfind(key, tree, order), *node;

	if (found)
		return *found;
	node = calloc(1, node_bytes);
	if (node) {
		memcpy(node, key, key_bytes);
		found = tsearch(node, tree, order);
	}
	if (!found)
		free(node);
	return found ? node : NULL;
}

#endif
