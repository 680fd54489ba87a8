/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether the processes that this one has links with are alive: liveness.c. It stands below
 * fabric_priv.h, whose struct plx_fabric_lcore has one struct pulse. */
#ifndef FABRIC_LIVENESS_H
#define FABRIC_LIVENESS_H

#include "plx_lcore.h"

#include <stdalign.h>
#include <stdatomic.h>

struct frame_hello;
struct peer;
struct plx_fabric_conf;
struct plx_fabric_lcore;
struct plx_link;

/* What one lcore knows of a peer process: the one at the other end of these links. */
struct presence {
	/* The turn that a frame came in last, on any of the links, and the one that one left in.
	 * The lcore writes both with each frame, plainly; other lcores read heard_ns where they
	 * heard nothing themselves. */
	alignas(PLX_CACHE_LINE) _Atomic uint64_t heard_ns;
	uint64_t sent_ns;
	struct plx_fabric_lcore *home;
	struct plx_link *links; /* open or closing */
	struct peer *peer;      /* NULL: there are no heartbeats */
	bool suspect;
	struct presence *next, **prev_next; /* of the lcore */
	struct presence *next_of_peer;      /* of the peer: on other lcores; under the lock */
};

/* Of one lcore: when it looks at its presences. */
struct pulse {
	struct plx_timer timer;
	uint64_t due_ns; /* when it is to look next */
	struct presence *presences;
	struct presence nobody;   /* of the links that have no other */
	_Atomic uint64_t late_ns; /* most that it was late, in this window and the one before */
	uint64_t late_now_ns, late_before_ns, window_ns;
};

/* Of one link: what its HELLOs agreed on. */
struct liveness {
	uint64_t incarnation; /* of the peer */
	uint32_t path;
	uint32_t heartbeat_ms, dead_after_ms; /* 0: none */
	struct presence *presence;            /* never NULL; nobody's where the link is not open */
	struct plx_link *next, **prev_next;   /* in presence->links */
};

/* What this process asks for. Return: 0; -EINVAL. */
int liveness_init(const struct plx_fabric_conf *conf);

void liveness_home_init(struct plx_fabric_lcore *home);

/* This process' part of a HELLO, and the peer's. */
void liveness_offer(const struct plx_link *link, struct frame_hello *hello);
void liveness_agree(struct plx_link *link, const struct frame_hello *hello);

/* The link is open, and it is not any more. */
void liveness_join(struct plx_link *link);
void liveness_leave(struct plx_link *link);

#endif
