/* SPDX-License-Identifier: BSD-3-Clause */
/* Links between processes over libfabric. One lcore owns each object unless its comment states
 * otherwise. The header of each folder lists its files in reading order:
 *
 *   fabric.c    set-up, the lcore's poller, tear-down
 *   link/       links: open, send, receive, close (fabric_link.h)
 *   provider/   libfabric's objects, and the choice of its provider (fabric_provider.h)
 *   listen/     listeners: incoming connections, and their lcores (fabric_listen.h)
 *   direct/     direct data placement (fabric_direct.h)
 *   turn.c      what receivers may do in a turn (fabric_internal.h)
 *   slow.c      names links whose callbacks are slow
 *   liveness.c  detects failed peers: sends heartbeats and checks
 *   peer.c      the table of peer processes
 *   address.c   address texts (fabric_address.h)
 *   lookup.c    name look-ups on threads
 */
#ifndef FABRIC_LCORE_H
#define FABRIC_LCORE_H

#include "fabric_internal.h"
#include "lcore_internal.h"
#include "plx_fabric.h"
#include "plx_lcore.h"
#include "plx_mem.h"

#include <stdalign.h>
#include <stdatomic.h>
#include <sys/queue.h>

struct frame_hello;

/* A set without a completion for COLD_AFTER_NS, and without one due, is polled every COLD_TURNS-th
 * turn. */
#define COLD_AFTER_NS PLX_NS_PER_MS
#define COLD_TURNS    16

/* Turns between two looks at the lcore's epoll set, each a system call; and while a connection is
 * being made. If receivers take turns, which may be long ones: the time. */
#define LOOK_EVERY_TURNS   512
#define LOOK_PENDING_TURNS 16
#define LOOK_EVERY_NS      PLX_NS_PER_MS

#define TX_BUF_BYTES       4096 /* buffers of the lcore's pool for copies and control frames */
#define TX_BUF_COUNT       512
#define LINK_BUF_COUNT     16                  /* longer buffers that an lcore keeps for copies */
#define RELEASED_BYTES_MAX (UINT64_C(1) << 30) /* unused memory that an lcore still has to free */
#define LINK_BUF_BYTES_MAX ((UINT32_C(8) << 20) + LINK_BUF_COUNT * 4096) /* and their total */

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
	/* The last turn in which any of the links received a frame, and sent one; or in which an
	 * incomplete frame was seen to arrive. The lcore writes both with each frame. Other lcores
	 * read heard_ns if they received nothing themselves. */
	alignas(PLX_CACHE_LINE) _Atomic uint64_t heard_ns;
	uint64_t sent_ns;
	struct plx_fabric_lcore *home;
	struct peer *peer;               /* NULL: the presence of links that have no peer */
	LIST_HEAD(, plx_link) links;     /* open or closing */
	struct plx_link *next_heartbeat; /* in `links`; NULL: the first */
	LIST_ENTRY(presence) of_home;
	LIST_ENTRY(presence) of_peer; /* across lcores; under the lock */
	uint64_t asked_ns;            /* bytes of frames until then are known; under the lock */
	bool is_delayed;              /* in this silence: see peer_asked; under the lock */
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
	struct plx_link *asking;    /* of `looking`, the next link to ask for bytes */
	uint64_t asking_ns;         /* looked_ns as of then; 0: it is not asked */
	bool is_delayed;            /* as one of these links says */
	uint64_t again_ns;          /* when to check one of those before it again */
	struct presence no_peer;    /* for links without any other */
	_Atomic uint64_t looked_ns; /* all frames that had arrived by then were taken; V1 */
	_Atomic uint64_t late_ns;   /* longest delay of this window and the one before */
	uint64_t late_now_ns, late_before_ns, window_ns;
	uint64_t suspended_ns; /* host suspension, as of the last check */
};

/* Messages in several frames, and their buffers: assembly.c, partial.c. */
struct partials {
	uint64_t bytes, looked_bytes;  /* charged */
	uint32_t begun_count, waiting; /* messages; of these, in waiters */
	/* Of `begun`, the first to look at comes first; of `idle`, the longest unused; of
	 * `waiters`, by rank, the first to continue. */
	TAILQ_HEAD(assemblies, assembly) begun, idle, waiters[2];
	LIST_HEAD(, holder) holders; /* addresses */
	void *by_address;            /* the same: tsearch(3) */
	struct plx_timer look;
	struct plx_task make_room;
	struct plx_log_limit log_limit;
};

/* Looks at frames that are not complete: arrival.c. */
struct arrivals {
	struct plx_timer timer;
	struct plx_link
		*next; /* to look at, in a round that takes several turns; NULL: the first */
};

/* One per lcore that uses links. */
struct plx_fabric_lcore {
	uint32_t id;
	bool draining; /* its links are closing: open no new ones */
	bool windows_logged;
	bool chores;      /* there are unserved links, or kept pools */
	bool takes_turns; /* receivers take turns: some wait, or are slow */
	uint64_t turn;
	uint64_t turn_ns; /* clock of the current turn */
	uint32_t look_in; /* turns until the next look */
	uint64_t look_ns; /* turn of the last one */
	struct plx_watch_set *watches;
	struct turn budget;
	TAILQ_HEAD(, turn_rest) receivers; /* the sets, and those that have a rest */
	uint32_t receiver_count, rest_count;
	struct turn_rest *running; /* the receiver whose turn it is; NULL: none, or none knows */
	struct plx_log_limit slow_limits[2]; /* unsure, sure */
	uint64_t slow_turn;                  /* the last one that was reported as slow */
	uint64_t rx_bytes;                   /* receive buffers of its links */
	LIST_HEAD(, plx_set) sets;
	LIST_HEAD(links, plx_link) links;
	uint32_t link_count;
	struct plx_link *scheduled; /* links that asked for service */
	struct plx_link *unserved;  /* those of an earlier turn that used up its budget */
	LIST_HEAD(listeners, plx_listener) listeners;
	struct listeners ended;         /* whose handles the program has not closed yet */
	TAILQ_HEAD(, request) requests; /* that it read: see handover.c */
	struct plx_buf *delivering;     /* the message inside on_message */
	struct plx_pool *tx_pool;
	struct plx_buf *link_bufs[LINK_BUF_COUNT]; /* see link_buf.c; NULL: empty */
	uint32_t link_buf_bytes;                   /* their total */
	struct partials partials;
	struct arrivals arrivals;
	struct plx_task release; /* frees long buffers: release.c */
	struct released *released;
	uint64_t released_bytes;
	struct plx_poller *poller;
	TAILQ_HEAD(, kept_pool)
	kept_pools; /* receive pools of closed links: the user has buffers */
	uint32_t kept_pool_count;
	LIST_HEAD(lookups, plx_lookup) looked_up; /* guarded by the lock of lookup.c */
	struct plx_signal looked_up_signal;
	struct watch watch;
};

#define MS(ns) ((unsigned long long)((ns) / PLX_NS_PER_MS)) /* for log and error texts */

static inline uint64_t lesser(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static inline uint64_t greater(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

extern struct plx_log_component fabric_log;

#define log_warning(...) plx_log(&fabric_log, PLX_LOG_WARNING, __VA_ARGS__)
#define log_notice(...)  plx_log(&fabric_log, PLX_LOG_NOTICE, __VA_ARGS__)
#define log_info(...)    plx_log(&fabric_log, PLX_LOG_INFO, __VA_ARGS__)

/* The calling lcore's, or NULL. */
struct plx_fabric_lcore *fabric_home(void);
/* Same, created if needed. what: the public function, for the error text. Return: 0; -errno. */
int fabric_here(const char *what, struct plx_fabric_lcore **home_out);
/* drain.c. No more links are accepted. */
void fabric_end_listeners(struct plx_fabric_lcore *home);

/* Check the range of a setting. Return: 0; -EINVAL with a text. */
int check_range(const char *name, uint64_t value, uint64_t min, uint64_t max);

/* slow.c: A burst of that many messages took long; 0: not only that took part of the time. */
void slow_burst(struct plx_fabric_lcore *home, uint64_t took_ns, uint32_t messages);
void slow_home_init(struct plx_fabric_lcore *home);
void slow_home_fini(struct plx_fabric_lcore *home);

/* turn.c: this process's settings. Return: 0; -EINVAL. */
int turn_init(const struct plx_fabric_conf *conf);
extern uint64_t turn_budget_ns; /* plx_fabric_conf.turn_ns */
void turn_home_init(struct plx_fabric_lcore *home);
/* Whether this turn has time left. */
bool turn_has_time(struct turn *turn);
/* Look at the clock after each of some messages: twice as many as the last time. */
void turn_look_often(struct turn *turn);
void turn_add(struct plx_fabric_lcore *home, struct turn_rest *receiver);
/* No effect if it was not added. */
void turn_remove(struct turn_rest *receiver);
/* Let each receiver continue, within the budget of this turn. Return: what they did. */
int turn_run(struct plx_fabric_lcore *home);
/* No receiver continues: this is the child of a fork, or the process shuts down. */
void turn_forget(struct plx_fabric_lcore *home);

/* liveness.c: this process's settings. Return: 0; -EINVAL. */
int liveness_init(const struct plx_fabric_conf *conf);
void liveness_home_init(struct plx_fabric_lcore *home);
/* Fill in this process's part of a HELLO; use the peer's. */
void liveness_offer(const struct plx_link *link, struct frame_hello *hello);
void liveness_agree(struct plx_link *link, const struct frame_hello *hello);
/* Return: why a listener refuses the agreed times: constant text; NULL: it does not. */
const char *liveness_refusal(const struct plx_link *link);
/* Called when the link opens, and when it ends. */
void liveness_join(struct plx_link *link);
void liveness_leave(struct plx_link *link);

/* peer.c: add the link to its group as of now_ns, and remove it. Return: 0; -ENOMEM. */
int peer_join(struct plx_link *link, uint64_t now_ns);
void peer_leave(struct plx_link *link);

/* This lcore has noted all bytes of incomplete frames that had come by then. is_delayed: the
 * bytes that this side has sent may delay the peer's frames. */
void peer_asked(struct presence *presence, uint64_t asked_ns, bool is_delayed);

/* What all lcores together know of a silent peer. */
struct silence {
	uint64_t heard_ns; /* last frame, or bytes of one */
	uint64_t ns;       /* silence, as far as all lcores have polled, and asked their links */
	uint64_t margin_ns;
	bool is_delayed;
	uint32_t stuck; /* an lcore that does not poll; PLX_LCORE_NONE */
};

/* Ask all lcores. If the time is over, set the verdict: peer->silent_ns. */
struct silence peer_ask(struct peer *peer, const struct plx_fabric_lcore *asking, uint64_t now_ns);

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
