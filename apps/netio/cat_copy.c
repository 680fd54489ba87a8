/* SPDX-License-Identifier: BSD-3-Clause */
#include "cat.h"

#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

struct copy {
	LIST_ENTRY(copy) link;
	size_t len;
	uint8_t bytes[];
};

static LIST_HEAD(copies, copy) copies = LIST_HEAD_INITIALIZER(copies);
static unsigned count;

static struct copy *copy_of(uint64_t key)
{
	return (struct copy *)(uintptr_t)key;
}

int cat_copy_make(const void *data, size_t len, uint64_t *key_out)
{
	struct copy *copy = malloc(sizeof(*copy) + len);

	if (!copy)
		return plx_fail(ENOMEM, "out of memory for a message of %zu bytes", len);
	copy->len = len;
	memcpy(copy->bytes, data, len);
	LIST_INSERT_HEAD(&copies, copy, link);
	count++;
	*key_out = (uintptr_t)copy;
	return 0;
}

struct iovec cat_copy_iov(uint64_t key)
{
	return (struct iovec){copy_of(key)->bytes, copy_of(key)->len};
}

void cat_copy_done(uint64_t key, int status)
{
	struct copy *copy = copy_of(key);

	LIST_REMOVE(copy, link);
	count--;
	if (status != -ETIMEDOUT) /* otherwise the peer may still read it: never free it */
		free(copy);
}

unsigned cat_copy_count(void)
{
	return count;
}

void cat_copy_free_all(void)
{
	struct copy *next;

	for (struct copy *copy = LIST_FIRST(&copies); copy; copy = next) {
		next = LIST_NEXT(copy, link);
		free(copy);
	}
	LIST_INIT(&copies);
	count = 0;
}
