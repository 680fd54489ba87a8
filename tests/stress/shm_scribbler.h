/* SPDX-License-Identifier: BSD-3-Clause */
/* A peer that writes over everything it shares, sends what it likes, and hangs up when it likes. It
 * connects by the provider and then goes behind its back. */
#ifndef SHM_SCRIBBLER_H
#define SHM_SCRIBBLER_H

#include "prov/pair.h"
#include "shm.h"

/* Shared with who started it. */
struct scribble_report {
	_Atomic uint64_t connections;
	_Atomic uint64_t resized; /* memfds that could be given another size or more seals */
};

struct scribbler {
	struct side side;
	struct shm_ep *ep;
	struct ring_writer writer; /* its own idea of what it has written */
	uint64_t random;
	int fds[4]; /* of shared memory */
	int fd_count;
	struct scribble_report *report;
};

/* What it does with one connection; returns when it has enough of it. */
typedef void (*scribble_fn)(struct scribbler *scribbler);

/* Connect, scribble, hang up, for ever. */
void scribble_for_ever(const char *port, scribble_fn fn, struct scribble_report *report);

/* A bit of everything, in another mixture each time. */
void scribble_at_random(struct scribbler *scribbler);
/* One message of very many parts that are all in the ring, which is read round and round; then hang
 * up. */
void scribble_without_end(struct scribbler *scribbler);
/* The same with many messages. */
void scribble_round_and_round(struct scribbler *scribbler);
/* Ring at the socket as fast as it can. */
void scribble_on_the_socket(struct scribbler *scribbler);
/* Take whatever is sent at once, and say so before it was. */
void scribble_on_the_head(struct scribbler *scribbler);

#endif
