/* SPDX-License-Identifier: BSD-3-Clause */
/* What two processes exchange when they connect: memory, and the messages that carry it; the names
 * of their sockets; and the peer process. */
#ifndef SHM_WIRE_H
#define SHM_WIRE_H

#include "../../prov/prov.h"
#include "../ring/segment.h"
#include "base_internal.h"

#define WIRE_VERSION 3 /* of the handshake and of segment.h; must be equal on both sides */

/* pep.c: names of UNIX sockets ------------------------------------------------------------ */

/* The abstract UNIX socket names for an address, in the order that a connector tries them: the
 * address itself, then the wildcards that cover it. A listener uses only the first. Returns how
 * many, at most 3. */
int shm_address_names(const struct sockaddr *address, struct plx_unix_name names_out[3]);

/* Any user can bind any name. So each name has substitutes, used when another user holds the
 * earlier ones; index 0 is the name itself. */
#define SHM_NAME_STANDINS 4
struct plx_unix_name shm_name_standin(const struct plx_unix_name *name, unsigned index);
/* Whether another user holds the name, or nobody does by now. With FI_PLX_SHM_GROUP no user counts
 * as another, nor does one that the kernel does not report. */
bool shm_name_is_foreign(const struct plx_unix_name *name);

/* peer.c: the peer process --------------------------------------------------------------- */

/* From the kernel, as of connecting, and from the peer's message. */
struct shm_peer {
	pid_t pid;
	uid_t user;
	bool same_user;                      /* as this process */
	uint64_t probe_address, probe_value; /* a word of its memory that identifies it */
};

/* Fill in everything except the probe. Return: whether we may talk to it; if not, it logs why. */
bool peer_identify(int fd, struct shm_peer *peer_out);

/* Whether we may and can read its memory: it is the same user's, and the probe word matches. */
bool peer_can_be_read(const struct shm_peer *peer);

/* Read from its memory. to, from: pieces of as many bytes on both sides, and room for one more
 * piece. Return: bytes; -ESRCH its probe word is not there after them, so they may be those of
 * another process, or its endpoint is closed; -errno. */
ssize_t peer_read(const struct shm_peer *peer, struct iovec *to, int to_count, struct iovec *from,
		  int from_count);

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

/* pep.c: incoming requests --------------------------------------------------------------- */

#define SHM_BACKLOG 1024 /* per passive endpoint: pending in the kernel, and unanswered */

struct shm_request {
	struct prov_request base;
	struct shm_offer offer;
};

#endif
