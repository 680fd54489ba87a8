/* SPDX-License-Identifier: BSD-3-Clause */
/* The loops of a ping-pong over libfabric. Included by the program that defines, for its `struct
 * side`: at_of, its endpoint; receive, which waits for a message of the right size and returns the
 * index of its buffer, or -errno, -EPIPE once the client has left; and transmit. The receive of the
 * last message is reposted while the next one is in flight. */
#ifndef RAW_TRIPS_H
#define RAW_TRIPS_H

#include "raw_endpoint.h"

static int echo(struct side *side)
{
	struct raw_endpoint *at = at_of(side);
	int last = -1;

	for (;;) {
		int index = receive(side);
		if (plx_unlikely(index < 0))
			return index == -EPIPE ? 0 : index;
		int rc = transmit(side, at->buffers[index], at->desc);
		if (!rc && last >= 0)
			rc = raw_endpoint_post(at, (unsigned)last);
		if (plx_unlikely(rc))
			return rc;
		last = index;
	}
}

static int trips(struct side *side, uint8_t *message, void *desc, struct raw_run *run)
{
	struct raw_endpoint *at = at_of(side);
	uint64_t number = 0;
	int last = -1;
	bool more;

	do {
		raw_number(message, side->size, ++number);
		uint64_t sent = plx_tsc();
		int rc = transmit(side, message, desc);
		if (!rc && last >= 0)
			rc = raw_endpoint_post(at, (unsigned)last);
		last = plx_likely(!rc) ? receive(side) : rc;
		uint64_t seen = plx_tsc_after_loads();
		rc = plx_likely(last >= 0) ? raw_check_number(at->buffers[last], side->size, number)
					   : last;
		if (plx_unlikely(rc))
			return rc;
		more = raw_run_add(run, sent, seen);
	} while (more);
	return raw_check_message(message, at->buffers[last], side->size, "the last answer");
}

#endif
