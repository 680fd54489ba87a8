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

static struct copy *make(const void *data, size_t len)
{
	struct copy *copy = malloc(sizeof(*copy) + len);

	if (!copy) {
		plx_fail(ENOMEM, "out of memory for a message of %zu bytes", len);
		return NULL;
	}
	copy->len = len;
	memcpy(copy->bytes, data, len);
	LIST_INSERT_HEAD(&copies, copy, link);
	count++;
	return copy;
}

int cat_copy_send(const void *data, size_t len, bool again,
		  int (*send)(const struct iovec *iov, uint64_t key, bool again))
{
	struct copy *copy = again ? LIST_FIRST(&copies) : make(data, len);
	int rc;

	if (!copy)
		return -ENOMEM;
	rc = send(&(struct iovec){copy->bytes, copy->len}, (uintptr_t)copy, again);
	if (rc != NETIO_STATUS_OK && rc != NETIO_STATUS_AGAIN && rc != NETIO_STATUS_PARTIAL)
		cat_copy_done((uintptr_t)copy, 0);
	return rc;
}

void cat_copy_done(uint64_t key, int status)
{
	struct copy *copy = (struct copy *)(uintptr_t)key;

	LIST_REMOVE(copy, link);
	count--;
	if (status != -ETIMEDOUT) /* otherwise the peer may still read it: never free it */
		free(copy);
}

unsigned cat_copy_count(void)
{
	return count;
}
