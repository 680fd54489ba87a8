/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * How far a message has arrived that is not complete. A completion reports a message once all of it
 * is here, which takes seconds on a slow network. plx_tcp and plx_shm report this meanwhile:
 *
 *     const struct plx_arrival_ops *ops;
 *     struct plx_arrival arrival;
 *     fi_open_ops(&ep->fid, PLX_ARRIVAL_OPS, 0, (void **)&ops, NULL);
 *     ops->look(ep, &arrival);
 *
 * fi_open_ops returns -FI_ENOSYS for other names, and for providers without it. The table is
 * constant and valid as long as the provider is loaded. */
#ifndef PLX_ARRIVAL_H
#define PLX_ARRIVAL_H

#include <stdbool.h>
#include <stdint.h>

struct fid_ep;

/* Of an endpoint, as of the last read of its receiving queue. */
struct plx_arrival {
	/* That came in parts, of all messages so far, and of remote writes and reads. Never
	 * decreases. It need not count headers, nor messages that came whole. */
	uint64_t bytes;
	/* The same when the incomplete message began; == bytes: none has. Differs for each. */
	uint64_t begin;
	/* Its rest waits for this side: for a posted receive, for room in a queue, or because this
	 * side copies it from the peer's memory. */
	bool is_held;
};

/* Version 1: a change of the structures changes the name. */
#define PLX_ARRIVAL_OPS "plx_arrival/1"

struct plx_arrival_ops {
	/* Reads a few words of the endpoint, which may be in any state. Thread: the domain's. */
	void (*look)(const struct fid_ep *ep, struct plx_arrival *out);
	/* Bytes that were sent and that the peer's host has not acknowledged; 0: also if unknown. A
	 * system call. Thread: the domain's. */
	uint64_t (*in_flight)(const struct fid_ep *ep);
};

#endif
