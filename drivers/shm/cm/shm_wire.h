/* SPDX-License-Identifier: BSD-3-Clause */
/* What two processes exchange when they connect: memory, and the messages that carry it. */
#ifndef SHM_WIRE_H
#define SHM_WIRE_H

#include "../ring/segment.h"
#include "peer.h"

#include <sys/socket.h>
#include <sys/types.h>

#define WIRE_VERSION 2 /* of the handshake and of segment.h; must be equal on both sides */

/* segment.c: memory shared with a peer ------------------------------------------------------ */

/* Whether segments are fully allocated when created; set by segment_look_at_overcommit. */
extern bool segment_takes_all;
void segment_look_at_overcommit(void);
/* Whether this process can share memory: creates, seals and checks a segment as if from a peer.
 * Logs it if the system or a seccomp profile forbids that. */
bool segment_try(void);

/* Create a sealed ring on the calling thread's NUMA node. fd: the caller sends and closes it. */
int segment_create(uint32_t ring_bytes, struct segment *segment_out, int *fd_out);
/* Check and map a segment from a peer: -FI_EINVAL, with the reason in the log. Does not close
 * fd. */
int segment_map(int fd, uint32_t ring_bytes, struct segment *segment_out);
void segment_unmap(struct segment *segment); /* accepts a zeroed one */
int bell_create(struct bell **bell_out, int *fd_out);
void bell_unmap(struct bell *bell); /* accepts NULL */
/* Map a peer's bell, checked like a segment; one that is already mapped is shared. Thread: any. */
int peer_bell_map(int fd, struct bell **bell_out);
void peer_bell_release(struct bell *mapped); /* accepts NULL */

/* wire.c: handshake messages ----------------------------------------------------------------- */

/* The peer's half of a connection, from its checked message. Owns its contents until the endpoint
 * takes them over. */
struct shm_offer {
	struct segment segment; /* for our sends */
	struct bell *bell;
	uint32_t bell_bit;
	struct shm_peer peer;
	struct sockaddr_storage address; /* the peer's own */
};

enum wire_kind { WIRE_CONNECT = 1, WIRE_ACCEPT = 2, WIRE_REJECT = 3 };

/* Our half, to send. */
struct wire_half {
	uint32_t ring_bytes, bell_bit;
	uint64_t probe_address, probe_value;
	struct sockaddr_storage address;
	int segment_fd, bell_fd; /* the caller keeps them */
};

/* Send one message. half: NULL for WIRE_REJECT. Return: 0; -FI_EAGAIN; -FI_ENOTCONN ... */
int wire_send(int fd, enum wire_kind kind, const struct wire_half *half, const void *data,
	      size_t length);

/* Receive one message, check it and its sender, and map its memory. data_out has room for
 * PROV_CM_DATA_MAX. Return: 0; -FI_EAGAIN no message yet; else the connection is useless:
 * -FI_EACCES another user; -FI_ENOTCONN hung up; -FI_EINVAL malformed. */
int wire_receive(int fd, enum wire_kind *kind_out, struct shm_offer *offer_out, void *data_out,
		 uint32_t *length_out);
void offer_release(struct shm_offer *offer);

#endif
