/* SPDX-License-Identifier: BSD-3-Clause */
/* Direct data placement: a link that may grant its memory to the peer, and use the peer's. The
 * link's lcore owns everything here.
 *
 *   direct.c       whether both sides have it, completions, and the link's end
 *   region.c       granted memory, until the peer can no longer reach it; the grant as bytes
 *   operations.c   writing and reading the peer's memory
 */
#ifndef FABRIC_DIRECT_H
#define FABRIC_DIRECT_H

#include "plx_direct.h"

#include <rdma/fi_domain.h>
#include <sys/queue.h>

#define DIRECT_GETS 8 /* in flight per link */

/* A heartbeat waits for what is queued before it, and must leave well before the peer gives up.
 * This bounds one put or get (0.13 s at 1 Gb/s), and the puts in flight (operations.c). */
#define DIRECT_BYTES_MAX  (UINT64_C(16) << 20)
#define DIRECT_CQ_ENTRIES 512 /* of a link's own queue: twice its receives and sends */

struct plx_set;
struct plx_op;

/* Where a get reads to. */
struct op_sink {
	struct fid_mr *mr; /* registered for this get; NULL: not needed */
	uint32_t bytes;
};

struct direct {
	bool agreed;          /* the peer has it, too */
	bool immediate;       /* the provider supports writes with immediate data */
	bool revokes_at_once; /* see struct plx_fabric_driver */
	bool by_address;      /* the provider uses addresses, not offsets into a region */
	bool blocked;         /* the user saw -EAGAIN because of an operation, not credit */
	uint64_t bytes_max;   /* per operation */
	struct plx_op *gets;  /* DIRECT_GETS, in memory after this; with a buffer: in flight */
	struct plx_op *puts;  /* follows them: the context of the peer's puts (name_writes) */
	uint32_t get_count;   /* in flight */
	/* Regions: granted; revoked, with REVOKE still to send; revoked, waiting for REVOKED; and
	 * those the peer can no longer reach. */
	TAILQ_HEAD(regions, plx_region) granted, revoked, asked, done;
	uint64_t question; /* number in the last REVOKE sent, or about to be */
	uint64_t answer;   /* the peer's number, to send back */
};

/* A range of the peer's memory. */
struct direct_target {
	const struct plx_remote *remote;
	uint64_t offset, bytes;
};

/* direct.c */
int direct_create(struct plx_link *link, const struct fi_info *info);
void direct_destroy(struct plx_link *link);
int direct_check_set(struct plx_set *set);
void direct_done(struct plx_op *op, uint64_t length);
int direct_check_open(const struct plx_link *link);
int direct_check(const struct plx_link *link, const struct direct_target *target, unsigned access);
int direct_no_room(struct plx_link *link);
bool direct_has_room(const struct plx_link *link);
bool direct_on_put(struct plx_link *link, uint64_t value);
const char *direct_not_agreed(const struct plx_link *link);
void direct_abandon(struct plx_link *link);

/* Whether the peer may still reach some memory. */
static inline bool direct_has_regions(const struct direct *direct)
{
	return direct && !(TAILQ_EMPTY(&direct->granted) && TAILQ_EMPTY(&direct->revoked) &&
			   TAILQ_EMPTY(&direct->asked) && TAILQ_EMPTY(&direct->done));
}

/* region.c */
int remote_check(const struct plx_remote *remote); /* 0; -EINVAL */
void region_on_revoke(struct plx_link *link, uint64_t number);
void region_on_revoked(struct plx_link *link, uint64_t number);
void region_asked(struct plx_link *link);
void region_release_done(struct plx_link *link);
void region_end_all(struct plx_link *link);

/* operations.c */
void get_done(struct plx_op *op, int status);

#endif
