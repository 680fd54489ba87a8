/* SPDX-License-Identifier: BSD-3-Clause */
/* Links between processes over libfabric. Everything is owned by one lcore, except where said. What
 * each folder is made of, in reading order, is said in its header:
 *
 *   fabric.c    set-up, what an lcore's loop does for its links, and the end
 *   link/       links: how they open, send, receive and close (fabric_link.h)
 *   provider/   libfabric's objects, and which of its providers a link uses (fabric_provider.h)
 *   listen/     listeners: what comes in, and which lcore gets it (fabric_listen.h)
 *   direct/     direct data placement (fabric_direct.h)
 *   liveness.c  whether the processes at the other ends are alive (liveness.h)
 *   peer.c      which processes those are
 *   address.c   texts of addresses (fabric_address.h)
 *   lookup.c    what names stand for, found out on threads (lookup.h)
 */
#ifndef FABRIC_LCORE_H
#define FABRIC_LCORE_H

#include "lcore_internal.h"
#include "liveness.h"
#include "plx_fabric.h"
#include "plx_mem.h"

#include <sys/queue.h>

/* A set without a completion for this long, and with none due, is polled every COLD_TURNS-th turn
 * only. */
#define COLD_AFTER_NS PLX_NS_PER_MS
#define COLD_TURNS    16

/* Of a turn, for connections that come, and for links that go: the others wait for the next one. */
#define TURN_BUDGET_NS     (100 * PLX_NS_PER_US)

#define TX_BUF_BYTES       4096 /* of the lcore's own pool, for copies and control frames */
#define TX_BUF_COUNT       512
#define LINK_BUF_COUNT     16 /* longer buffers that an lcore keeps for copies, and */
#define LINK_BUF_BYTES_MAX ((UINT32_C(8) << 20) + LINK_BUF_COUNT * 4096) /* how long together */

/* One for each lcore that uses links. */
struct plx_fabric_lcore {
	uint32_t id;
	bool draining; /* its links are being closed: no new ones */
	bool windows_logged;
	uint64_t turn;
	uint64_t turn_ns;  /* the present turn's clock */
	uint64_t rx_bytes; /* of the receive buffers of its links */
	LIST_HEAD(, plx_set) sets;
	LIST_HEAD(links, plx_link) links;
	struct plx_link *scheduled;
	LIST_HEAD(listeners, plx_listener) listeners;
	LIST_HEAD(requests, request) given_up; /* still in another lcore's lane: see handover.c */
	struct plx_buf *delivering;            /* inside on_message: that message */
	struct plx_pool *tx_pool;
	struct plx_buf *link_bufs[LINK_BUF_COUNT];  /* of link_buf.c; NULL: none */
	uint32_t link_buf_bytes;                    /* in all of them */
	LIST_HEAD(assemblies, assembly) assemblies; /* those that have a buffer */
	uint64_t assembly_bytes;                    /* that count, of all of them */
	struct plx_timer sweep;                     /* of those */
	struct plx_poller *poller;
	struct plx_pool **kept_pools; /* receive pools of closed links: the user has some buffers */
	uint32_t kept_pool_count, kept_pool_room, kept_pool_next;
	LIST_HEAD(lookups, plx_lookup) looked_up; /* of lookup.c, and under its lock */
	struct plx_signal looked_up_signal;
	struct watch watch;
};

#define MS(ns) ((unsigned long long)((ns) / PLX_NS_PER_MS)) /* for texts */

static inline uint64_t lesser(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

extern struct plx_log_component fabric_log;

/* The calling lcore's, or NULL. */
struct plx_fabric_lcore *fabric_home(void);
/* The same, opened if need be. what: the public function, for the error text. Return: 0; -errno. */
int fabric_here(const char *what, struct plx_fabric_lcore **home_out);

/* What a setting may be. Return: 0; -EINVAL with a text. */
int fabric_check_range(const char *name, uint64_t value, uint64_t min, uint64_t max);

#endif
