/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether the peer processes are alive. liveness.c sends heartbeats and checks; peer.c has the
 * table of peers. */
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

/* The values that two HELLOs agreed on. Links for which all of them are equal form a group: it is
 * given up as one. */
struct liveness {
	uint64_t incarnation; /* the peer's, for this host */
	uint64_t own;         /* this process's, as sent to the peer */
	uint32_t path;
	uint32_t heartbeat_ms, dead_after_ms; /* 0: no heartbeats */
};

#define LIVENESS_KEY_BYTES \
	(offsetof(struct liveness, dead_after_ms) + sizeof(uint32_t)) /* without padding */

/* Another process by one path; exists while any lcore has a link of that group. */
struct peer {
	struct liveness key; /* first: see by_key */
	uint64_t period_ns, dead_after_ns;
	LIST_HEAD(, presence) presences; /* under the lock */
	_Atomic uint64_t heard_ns;       /* on any lcore, as of its last check */
	_Atomic uint64_t sent_ns;   /* the same; or when an lcore started to send a heartbeat */
	_Atomic uint64_t silent_ns; /* the verdict: failed after this silence; 0: alive */
};

/* One lcore's view of a peer. */
struct presence {
	/* The last turn in which any of the links received a frame, and sent one. The lcore writes
	 * both with each frame. Other lcores read heard_ns if they received nothing themselves. */
	alignas(PLX_CACHE_LINE) _Atomic uint64_t heard_ns;
	uint64_t sent_ns;
	struct plx_fabric_lcore *home;
	struct peer *peer;               /* NULL: the presence of links that have no peer */
	LIST_HEAD(, plx_link) links;     /* open or closing */
	struct plx_link *next_heartbeat; /* in `links`; NULL: the first */
	LIST_ENTRY(presence) of_home;
	LIST_ENTRY(presence) of_peer; /* across lcores; under the lock */
	bool suspect;
	bool heartbeat_unsent; /* no link accepted the last heartbeat */
};

/* When an lcore checks its presences. */
struct watch {
	struct plx_timer timer;
	uint64_t due_ns;      /* time of the next check */
	uint64_t multiple_ns; /* next multiple of the period */
	bool on_time;         /* this check is at a multiple, not an additional one */
	LIST_HEAD(, presence) presences;
	struct presence *looking;   /* next to check, in a check that takes several turns */
	uint64_t again_ns;          /* when to check one of those before it again */
	struct presence no_peer;    /* for links without any other */
	_Atomic uint64_t looked_ns; /* all frames that had arrived by then were taken; V1 */
	_Atomic uint64_t late_ns;   /* longest delay of this window and the one before */
	uint64_t late_now_ns, late_before_ns, window_ns;
	uint64_t suspended_ns; /* host suspension, as of the last check */
};

/* liveness.c: this process's settings. Return: 0; -EINVAL. */
int liveness_init(const struct plx_fabric_conf *conf);

void liveness_home_init(struct plx_fabric_lcore *home);

/* Fill in this process's part of a HELLO; use the peer's. */
void liveness_offer(const struct plx_link *link, struct frame_hello *hello);
void liveness_agree(struct plx_link *link, const struct frame_hello *hello);

/* Called when the link opens, and when it ends. */
void liveness_join(struct plx_link *link);
void liveness_leave(struct plx_link *link);

/* peer.c: add the link to its group as of now_ns, and remove it. Return: 0; -ENOMEM. */
int peer_join(struct plx_link *link, uint64_t now_ns);
void peer_leave(struct plx_link *link);

/* What all lcores together know of a silent peer. */
struct silence {
	uint64_t heard_ns; /* last frame */
	uint64_t ns;       /* silence, as far as all lcores have polled */
	uint64_t margin_ns;
	uint32_t stuck; /* an lcore that does not poll; PLX_LCORE_NONE */
};

/* Ask all lcores. If the time is over, set the verdict: peer->silent_ns. */
void peer_ask(struct peer *peer, const struct plx_fabric_lcore *asking, uint64_t now_ns,
	      struct silence *silence_out);

/* Relaxed: guards no other data. */
static inline uint64_t peer_silent_ns(const struct peer *peer)
{
	return atomic_load_explicit(&peer->silent_ns, memory_order_relaxed);
}

/* Store a later time. A concurrent store may be lost; the next check repeats it. Relaxed: guards no
 * other data. */
static inline void time_raise(_Atomic uint64_t *time, uint64_t time_ns)
{
	if (atomic_load_explicit(time, memory_order_relaxed) < time_ns)
		atomic_store_explicit(time, time_ns, memory_order_relaxed);
}

#endif
