/* SPDX-License-Identifier: BSD-3-Clause */
/* A peer that writes garbage over everything it shares, sends anything, and hangs up at any time.
 * It connects through the provider and then bypasses it. */
#ifndef SHM_SCRIBBLER_H
#define SHM_SCRIBBLER_H

#include "prov/pair.h"
#include "shm.h"

struct scribbler {
	struct side side;
	struct shm_ep *ep;
	struct ring_writer writer; /* its private view of what it has written */
	uint64_t random;
	int fds[4]; /* of shared memory */
	int fd_count;
	_Atomic uint64_t *resized;
};

/* Abuse one connection; returns when done with it. */
typedef void (*scribble_fn)(struct scribbler *scribbler);

/* Connect, scribble, hang up, forever. resized: shared with the process that started it: memfds
 * that could be resized or sealed further. */
void scribble_for_ever(const char *port, scribble_fn fn, _Atomic uint64_t *resized);

/* A random mixture of everything. */
void scribble_at_random(struct scribbler *scribbler);
/* One message of very many parts that are all in the ring, which the reader would read in circles;
 * then hang up. */
void scribble_without_end(struct scribbler *scribbler);
/* The same with many messages. */
void scribble_round_and_round(struct scribbler *scribbler);
/* Send wake-up bytes on the socket as fast as possible. */
void scribble_on_the_socket(struct scribbler *scribbler);
/* Consume everything at once, and publish head before reading. */
void scribble_on_the_head(struct scribbler *scribbler);

#endif
