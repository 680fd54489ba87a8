/* SPDX-License-Identifier: BSD-3-Clause */
/* A one-way run: one_way.c has the run and its link, one_way_send.c the sender. */
#ifndef PING_ONE_WAY_H
#define PING_ONE_WAY_H

#include "ping.h"
#include "plx_lcore.h"

struct one_way {
	const struct ping_conf *conf;
	struct ping_outcome *outcome;
	struct plx_link *link;
	struct plx_poller *sender;
	struct plx_pool *pool;
	struct plx_buf *message; /* sent repeatedly by reference; NULL: the payload is copied */
	uint8_t *payload;
	uint64_t sent;              /* including the warm-up */
	uint64_t limit;             /* of sent */
	uint64_t first_ns, last_ns; /* of the measured part; first_ns is 0 before it */
	uint64_t stop_ns;           /* by duration; UINT64_MAX: unknown so far, or by count */
	uint64_t again_before;      /* refused in the warm-up */
	uint64_t sent_before;       /* at the watchdog's last check */
	unsigned silent_s;
	bool blocked; /* the link refused a message, and has not reported room yet */
	bool open, stopped, failed;
	bool signalled; /* neither stopped nor failed when the loop ended */
	struct plx_timer progress, watch;
	char error[512];
};

/* one_way.c: end the run; the first reason counts. */
void one_way_fail(struct one_way *run, const char *text);

/* one_way_send.c: start the poller that sends once the link is open. Return: 0, or as
 * plx_poller_add. */
int one_way_start_sender(struct one_way *run);

/* How often the link has had no room for a message. */
uint64_t one_way_refused(const struct one_way *run);

#endif
