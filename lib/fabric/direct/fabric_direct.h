/* SPDX-License-Identifier: BSD-3-Clause */
/* Direct data placement: what a link has that may grant its memory to its peer, and use the peer's.
 * Everything here is owned by the link's lcore.
 *
 *   direct.c     whether both sides have it, what comes in, and the link's end
 *   region.c     memory that is granted, until nothing of it can be reached any more
 *   remote.c     what of it is told to the peer
 *   put.c, get.c what is done with that of the peer
 */
#ifndef FABRIC_DIRECT_H
#define FABRIC_DIRECT_H

#include "plx_direct.h"

#include <rdma/fi_domain.h>
#include <sys/queue.h>

#define DIRECT_GETS 8 /* under way on a link */

/* What lies before a heartbeat on its way has to leave well within the time after which a peer is
 * taken for dead: of one put or get, 0.13 s at 1 Gb/s, and of the puts that are out (put.c). */
#define DIRECT_BYTES_MAX  (UINT64_C(16) << 20)
#define DIRECT_CQ_ENTRIES 512 /* of a link's own queue: twice its receives and its sends */

struct plx_set;
struct plx_op;

/* Where a get puts what it reads. */
struct op_sink {
	struct fid_mr *mr; /* registered for it alone; NULL: not needed */
	uint32_t bytes;
};

struct direct {
	bool agreed;          /* the peer has it, too */
	bool immediate;       /* the provider can tell the peer of a write */
	bool own_sinks;       /* see peer_writes_reads of struct plx_fabric_driver */
	bool revokes_at_once; /* the same */
	bool by_address;    /* the provider counts from address 0, not from where a region begins */
	bool blocked;       /* the user saw -EAGAIN for want of an operation, not of credit */
	uint64_t bytes_max; /* of one operation */
	struct plx_op *gets; /* DIRECT_GETS; with a buffer: under way */
	uint32_t get_count;  /* of those */
	/* Regions: granted; revoked, but the peer was not asked yet whether it is done; asked; and
	 * those that it is done with. */
	TAILQ_HEAD(regions, plx_region) granted, revoked, asked, done;
	uint64_t question; /* the number in the last REVOKE that was sent, or is about to be */
	uint64_t answer;   /* that of the peer, to be sent back */
};

/* A piece of the peer's memory that is to be used. */
struct direct_target {
	const struct plx_remote *remote;
	uint64_t offset, bytes;
};

/* direct.c */
int direct_create(struct plx_link *link, const struct fi_info *info);
void direct_destroy(struct plx_link *link);
void direct_agree(struct plx_link *link, uint32_t features);
int direct_check_set(struct plx_set *set);
int direct_poll(struct plx_set *set);
int direct_check_open(const struct plx_link *link);
int direct_check(const struct plx_link *link, const struct direct_target *target, unsigned access);
int direct_no_room(struct plx_link *link);
bool direct_has_room(const struct plx_link *link);
bool direct_on_put(struct plx_link *link, uint64_t value);
const char *direct_not_agreed(const struct plx_link *link);
void direct_abandon(struct plx_link *link);

static inline bool direct_is_getting(const struct direct *direct)
{
	return direct && direct->get_count;
}

/* Whether some memory may still be reached. */
static inline bool direct_has_regions(const struct direct *direct)
{
	return direct && !(TAILQ_EMPTY(&direct->granted) && TAILQ_EMPTY(&direct->revoked) &&
			   TAILQ_EMPTY(&direct->asked) && TAILQ_EMPTY(&direct->done));
}

/* remote.c. Return: 0; -EINVAL. */
int remote_check(const struct plx_remote *remote);

/* region.c */
void region_on_revoke(struct plx_link *link, uint64_t number);
void region_on_revoked(struct plx_link *link, uint64_t number);
void region_asked(struct plx_link *link);
void region_release_done(struct plx_link *link);
void region_end_all(struct plx_link *link);

/* get.c */
void get_done(struct plx_op *op, int status);

#endif
