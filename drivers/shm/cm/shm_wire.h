/* SPDX-License-Identifier: BSD-3-Clause */
/* What two processes give each other when they connect: memory, and the messages that bring it. */
#ifndef SHM_WIRE_H
#define SHM_WIRE_H

#include "../ring/segment.h"
#include "peer.h"

#include <sys/socket.h>
#include <sys/types.h>

#define WIRE_VERSION 2 /* of the handshake and of segment.h; both sides have the same */

/* segment.c: memory shared with a peer ------------------------------------------------------ */

/* Whether memory is taken as a whole when it is made; set by segment_look_at_overcommit. */
extern bool segment_takes_all;
void segment_look_at_overcommit(void);
/* Whether this process can share memory: it is made, sealed and checked as a peer's would be. Where
 * the system, or a seccomp profile, does not let it, that is logged. */
bool segment_try(void);

/* A new ring, on the calling thread's NUMA node, sealed. fd: to be sent and closed by the caller.
 */
int segment_create(uint32_t ring_bytes, struct segment *segment_out, int *fd_out);
/* Check and map what a peer gave: -FI_EINVAL with a reason in the log. Does not close fd. */
int segment_map(int fd, uint32_t ring_bytes, struct segment *segment_out);
void segment_unmap(struct segment *segment); /* accepts one that is all zero */
int bell_create(struct bell **bell_out, int *fd_out);
void bell_unmap(struct bell *bell); /* accepts NULL */
/* The bell that a peer gave, as segment_map; one that is mapped already is shared. Thread: any. */
int peer_bell_map(int fd, struct bell **bell_out);
void peer_bell_release(struct bell *mapped); /* accepts NULL */

/* wire.c: messages of the handshake ---------------------------------------------------------- */

/* The other side's half of a connection, as its message told and checks let it pass. Owns what it
 * holds until the endpoint takes it over. */
struct shm_offer {
	struct segment segment; /* we send into it */
	struct bell *bell;
	uint32_t bell_bit;
	struct shm_peer peer;
	struct sockaddr_storage address; /* the peer's own */
};

enum wire_kind { WIRE_CONNECT = 1, WIRE_ACCEPT = 2, WIRE_REJECT = 3 };

/* Our half, to be sent. */
struct wire_half {
	uint32_t ring_bytes, bell_bit;
	uint64_t probe_address, probe_value;
	struct sockaddr_storage address;
	int segment_fd, bell_fd; /* stay the caller's */
};

/* Send one message. half: NULL for WIRE_REJECT. Return: 0; -FI_EAGAIN; -FI_ENOTCONN ... */
int wire_send(int fd, enum wire_kind kind, const struct wire_half *half, const void *data,
	      size_t length);

/* Receive one, check all of it and who sent it, and map what it brings. data_out has room for
 * PROV_CM_DATA_MAX. Return: 0; -FI_EAGAIN nothing there; else the connection is of no use:
 * -FI_EACCES another user; -FI_ENOTCONN hung up; -FI_EINVAL broken. */
int wire_receive(int fd, enum wire_kind *kind_out, struct shm_offer *offer_out, void *data_out,
		 uint32_t *length_out);
void offer_release(struct shm_offer *offer);

#endif
