/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the files of the measuring side. */
#ifndef PING_CLIENT_H
#define PING_CLIENT_H

#include "ping.h"
#include "plx_lcore.h"

#define IN_FLIGHT_MAX 65536 /* of an open loop; a power of two */

/* A message in flight. Answers come in order, so a queue matches them. */
struct flight {
	uint64_t intended, sent; /* TSC */
};

struct client {
	const struct ping_conf *conf;
	struct ping_outcome *outcome;
	struct plx_link *link;
	struct plx_pool *pool; /* for messages too long to copy */
	uint8_t *payload;
	struct flight *flights;
	uint64_t sent, answered;      /* including the warm-up; sent - answered are in flight */
	uint64_t warmup, warm_tsc;    /* its messages; when it ends at the latest */
	uint64_t first_tsc, last_tsc; /* of the measured part */
	uint64_t last_intended, last_sent; /* of an open loop's sends */
	uint64_t stop_tsc;            /* by duration: messages intended from then on are not sent */
	bool blocked;                 /* the next message has already found no room */
	struct plx_schedule schedule; /* of the open loop */
	int64_t trip_tsc;             /* smoothed, of the last answers */
	struct plx_timer deadline, progress, watch;
	uint64_t answered_before; /* at the watchdog's last check */
	unsigned silent_s;
	bool stopped, failed, open;
	bool signalled; /* neither stopped nor failed when the loop ended */
	char error[512];
};

/** Send the next message. intended: TSC; 0 in a closed loop. Return: 0; -EAGAIN; other: failed. */
int client_send_next(struct client *client, uint64_t intended);

/** The client's link callbacks; `user` is the struct client. */
extern const struct plx_link_events client_events;

/** End the run. text: the reason, unless it has already failed. */
void client_fail(struct client *client, const char *text);

/** Whether messages intended for that time are no longer sent. */
bool client_is_enough(const struct client *client, uint64_t tsc);

/** Close the link, which ends the loop. */
void client_stop(struct client *client);

/** A poller: sends the open loop's due messages. */
int open_loop_poll(void *arg, uint64_t now_ns);
int open_loop_arm(void *arg, struct plx_sleep *sleep);

#endif
