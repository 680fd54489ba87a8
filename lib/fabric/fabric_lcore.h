/* SPDX-License-Identifier: BSD-3-Clause */
/* Links between processes over libfabric. One lcore owns each object unless its comment states
 * otherwise. The header of each folder lists its files in reading order:
 *
 *   fabric.c    set-up, the lcore's poller, tear-down
 *   link/       links: open, send, receive, close (fabric_link.h)
 *   provider/   libfabric's objects, and the choice of its provider (fabric_provider.h)
 *   listen/     listeners: incoming connections, and their lcores (fabric_listen.h)
 *   direct/     direct data placement (fabric_direct.h)
 *   liveness.c  detects failed peers (liveness.h)
 *   peer.c      the table of peer processes
 *   address.c   address texts (fabric_address.h)
 *   lookup.c    name look-ups on threads
 */
#ifndef FABRIC_LCORE_H
#define FABRIC_LCORE_H

#include "lcore_internal.h"
#include "liveness.h"
#include "plx_fabric.h"
#include "plx_mem.h"

#include <sys/queue.h>

/* A set without a completion for COLD_AFTER_NS, and without one due, is polled every COLD_TURNS-th
 * turn. */
#define COLD_AFTER_NS PLX_NS_PER_MS
#define COLD_TURNS    16

/* Per turn, for incoming connections and for closing links; the rest waits for the next turn. */
#define TURN_BUDGET_NS     (100 * PLX_NS_PER_US)

#define TX_BUF_BYTES       4096 /* buffers of the lcore's pool for copies and control frames */
#define TX_BUF_COUNT       512
#define LINK_BUF_COUNT     16 /* longer buffers that an lcore keeps for copies */
#define LINK_BUF_BYTES_MAX ((UINT32_C(8) << 20) + LINK_BUF_COUNT * 4096) /* and their total */

/* One per lcore that uses links. */
struct plx_fabric_lcore {
	uint32_t id;
	bool draining; /* its links are closing: open no new ones */
	bool windows_logged;
	uint64_t turn;
	uint64_t turn_ns;  /* clock of the current turn */
	uint64_t rx_bytes; /* receive buffers of its links */
	LIST_HEAD(, plx_set) sets;
	LIST_HEAD(links, plx_link) links;
	struct plx_link *scheduled;
	LIST_HEAD(listeners, plx_listener) listeners;
	LIST_HEAD(requests, request) given_up; /* still in another lcore's lane: see handover.c */
	struct plx_buf *delivering;            /* the message inside on_message */
	struct plx_pool *tx_pool;
	struct plx_buf *link_bufs[LINK_BUF_COUNT];  /* see link_buf.c; NULL: empty */
	uint32_t link_buf_bytes;                    /* their total */
	LIST_HEAD(assemblies, assembly) assemblies; /* with a buffer */
	uint64_t assembly_bytes;                    /* total charged */
	struct plx_timer sweep;                     /* frees idle assemblies */
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

/* The calling lcore's, or NULL. */
struct plx_fabric_lcore *fabric_home(void);
/* Same, created if needed. what: the public function, for the error text. Return: 0; -errno. */
int fabric_here(const char *what, struct plx_fabric_lcore **home_out);

/* Check the range of a setting. Return: 0; -EINVAL with a text. */
int check_range(const char *name, uint64_t value, uint64_t min, uint64_t max);

#endif
