/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether the processes that this one has links with are alive: liveness.c says and listens, peer.c
 * knows who they are. */
#ifndef FABRIC_LIVENESS_H
#define FABRIC_LIVENESS_H

#include "plx_lcore.h"

#include <stdalign.h>
#include <stdatomic.h>
#include <sys/queue.h>

struct frame_hello;
struct plx_fabric_conf;
struct plx_fabric_lcore;
struct plx_link;

/* What two HELLOs agreed on. Links that differ in nothing of it form a group: they live and die
 * together. */
struct liveness {
	uint64_t incarnation; /* of the peer, as it tells this host */
	uint64_t own;         /* of this process, as the peer was told */
	uint32_t path;
	uint32_t heartbeat_ms, dead_after_ms; /* 0: there are no heartbeats */
};

/* Another process, by one path: as long as any lcore has a link of that group. */
struct peer {
	LIST_ENTRY(peer) of_bucket; /* under the lock */
	struct liveness key;
	uint64_t period_ns, dead_after_ns;
	LIST_HEAD(, presence) presences; /* under the lock */
	_Atomic uint64_t heard_ns;       /* by any lcore, as of its last look */
	_Atomic uint64_t sent_ns;   /* the same; or when an lcore took it on to send a heartbeat */
	_Atomic uint64_t silent_ns; /* the verdict: dead, after so long; 0: alive */
};

/* What one lcore knows of a peer. */
struct presence {
	/* The turn that a frame came in last, on any of the links, and the one that one left in.
	 * The lcore writes both with each frame, plainly; other lcores read heard_ns where they
	 * heard nothing themselves. */
	alignas(PLX_CACHE_LINE) _Atomic uint64_t heard_ns;
	uint64_t sent_ns;
	struct plx_fabric_lcore *home;
	struct peer *peer;               /* NULL: nobody's */
	LIST_HEAD(, plx_link) links;     /* open or closing */
	struct plx_link *next_heartbeat; /* of those; NULL: the first */
	LIST_ENTRY(presence) of_home;
	LIST_ENTRY(presence) of_peer; /* on other lcores; under the lock */
	bool suspect;
	bool heartbeat_unsent; /* no link took the last heartbeat */
};

/* Of one lcore: when it looks at its presences. */
struct watch {
	struct plx_timer timer;
	uint64_t due_ns;      /* when it is to look next */
	uint64_t multiple_ns; /* of the period: the next one */
	bool on_time;         /* this look is of a multiple, and not for a doubt in between */
	LIST_HEAD(, presence) presences;
	struct presence *looking;   /* inside a look that takes several turns: the next one */
	uint64_t again_ns;          /* in it: when the first of those before is to be looked at */
	struct presence no_peer;    /* of the links that have no other */
	_Atomic uint64_t looked_ns; /* what had come until then was heard; V1 */
	_Atomic uint64_t late_ns;   /* most that it was late, in this window and the one before */
	uint64_t late_now_ns, late_before_ns, window_ns;
	uint64_t suspended_ns; /* the host, as of the last look */
};

/* liveness.c: what this process asks for. Return: 0; -EINVAL. */
int liveness_init(const struct plx_fabric_conf *conf);

void liveness_home_init(struct plx_fabric_lcore *home);

/* This process' part of a HELLO, and the peer's. */
void liveness_offer(const struct plx_link *link, struct frame_hello *hello);
void liveness_agree(struct plx_link *link, const struct frame_hello *hello);

/* The link is open, and it is not any more. */
void liveness_join(struct plx_link *link);
void liveness_leave(struct plx_link *link);

/* peer.c: put the link into its group, of which something was heard and said at now_ns, and take it
 * out. Return: 0; -ENOMEM. */
int peer_join(struct plx_link *link, uint64_t now_ns);
void peer_leave(struct plx_link *link);

/* What all lcores together know of a peer that says nothing. */
struct silence {
	uint64_t heard_ns; /* last */
	uint64_t ns;       /* so long nothing had come, as far as all have looked */
	uint64_t margin_ns;
	uint32_t stuck; /* an lcore that does not look; PLX_LCORE_NONE */
};

/* Ask them, and give the verdict, if it is time: peer->silent_ns. */
void peer_ask(struct peer *peer, const struct plx_fabric_lcore *asking, uint64_t now_ns,
	      struct silence *silence_out);

static inline uint64_t greater(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* A later time; another lcore's that is lost now comes again with its next look. Relaxed: it stands
 * for itself. */
static inline void time_raise(_Atomic uint64_t *time, uint64_t time_ns)
{
	if (atomic_load_explicit(time, memory_order_relaxed) < time_ns)
		atomic_store_explicit(time, time_ns, memory_order_relaxed);
}

#endif
