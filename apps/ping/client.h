/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of the measuring side share. */
#ifndef PING_CLIENT_H
#define PING_CLIENT_H

#include "ping.h"
#include "plx_lcore.h"

#define IN_FLIGHT_MAX 65536 /* of an open loop; a power of two */

/* A message on its way. Answers come in order, so that a queue finds its own. */
struct flight {
	uint64_t intended, sent; /* TSC */
};

struct client {
	const struct ping_conf *conf;
	struct ping_outcome *outcome;
	struct plx_link *link;
	struct plx_pool *pool; /* of messages too long to copy */
	uint8_t *payload;
	struct flight *flights;
	uint64_t sent, answered;           /* warm-up included; sent - answered are in flight */
	uint64_t first_tsc, last_tsc;      /* of the measured part */
	uint64_t last_intended, last_sent; /* of an open loop's sends */
	uint64_t stop_tsc;            /* by duration: what is intended from then on is not sent */
	bool blocked;                 /* the next message found no room once already */
	struct plx_schedule schedule; /* open loop's */
	int64_t trip_tsc;             /* of the last answers, smoothed */
	struct plx_timer deadline, progress, watch;
	uint64_t answered_before; /* when the watch looked last */
	unsigned silent_s;
	bool stopped, failed, open;
	bool signalled; /* neither stopped nor failed when the loop ended */
	char error[512];
};

/** Send the next message. intended: TSC; 0 in a closed loop. Return: 0; -EAGAIN; other: failed. */
int client_send_next(struct client *client, uint64_t intended);

/** What the client's link calls. Its user is the struct client. */
extern const struct plx_link_events client_events;

/** End the run: text, unless it has failed before, is the reason. */
void client_fail(struct client *client, const char *text);

/** Whether messages that are intended for tsc no longer leave. */
bool client_is_enough(const struct client *client, uint64_t tsc);

/** Close the link, and end the loop with it. */
void client_stop(struct client *client);

/** A poller: send what an open loop has due. */
int open_loop_poll(void *arg, uint64_t now_ns);
int open_loop_arm(void *arg, struct plx_sleep *sleep);

#endif
