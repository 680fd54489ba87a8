/* SPDX-License-Identifier: BSD-3-Clause */
/* For raw_test.sh: a server of raw-bare or raw-eventfd whose answer has a wrong number.
 *
 *     raw-wrong-number NAME THERE BACK NUMBER
 *
 * THERE and BACK are the byte offsets of the client's and the answer's number in shared memory. */
#include "raw_local.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static _Atomic uint64_t *at(const struct raw_local *local, const char *offset)
{
	return (_Atomic uint64_t *)(local->shared + strtoul(offset, NULL, 10));
}

static int answer(const struct raw_local *local, char **argv)
{
	const uint64_t one = 1;
	struct raw_wait wait = {0};

	while (!atomic_load_explicit(at(local, argv[2]), memory_order_acquire)) {
		int rc = raw_wait_over(&wait, RAW_PEER_NS, "a message from the client");

		if (rc)
			return rc;
	}
	atomic_store_explicit(at(local, argv[3]), strtoul(argv[4], NULL, 10), memory_order_release);
	return write(local->peer_event, &one, sizeof(one)) == sizeof(one) ? 0 : -EIO;
}

int main(int argc, char **argv)
{
	struct raw_options options = {.address = argv[1], .wait_ns = RAW_CONNECT_NS};
	struct raw_local local;

	if (argc != 5)
		return 2;
	snprintf(options.host, sizeof(options.host), "%s", argv[1]);
	int rc = raw_local_listen(&options, &local);
	rc = rc ? rc : answer(&local, argv);
	raw_local_close(&local);
	return rc != 0;
}
