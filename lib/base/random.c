/* SPDX-License-Identifier: BSD-3-Clause */
#include "plx_base.h"

#include <stdlib.h>
#include <sys/random.h>

void plx_random(void *out, size_t size)
{
	uint8_t *at = out;

	while (size) {
		ssize_t got = getrandom(at, size, 0);

		if (got < 0 && errno != EINTR)
			abort();
		if (got > 0) {
			at += got;
			size -= (size_t)got;
		}
	}
}

uint64_t plx_random_id(void)
{
	uint64_t id = 0;

	while (!id)
		plx_random(&id, sizeof(id));
	return id;
}
