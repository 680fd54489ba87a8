/* SPDX-License-Identifier: BSD-3-Clause */
/* What is behind a subscribe socket: a feed for each publisher, with what it is asked for. */
#ifndef NETIO_FEED_H
#define NETIO_FEED_H

#include "connection.h"
#include "intake.h"

#include <sys/queue.h>

enum want_state {
	WANT_NEW,    /* to be asked for, when there is a connection */
	WANT_ASKED,  /* the answer is due */
	WANT_ACTIVE, /* the publisher has it */
	WANT_ENDING, /* its end is to be asked for */
	WANT_ENDED,  /* the answer to that is due; or nobody had been asked for it */
};

/* A subscription. */
struct want {
	struct netio_subscription what;
	enum want_state state;
	bool was_lost;   /* the publisher had it, and then the connection ended */
	bool is_untold;  /* which is to be told */
	bool answer_due; /* to what asked for it */
	uint32_t id;     /* its place in the feed's wants */
	TAILQ_ENTRY(want) link;
};

TAILQ_HEAD(want_queue, want);

/* One publisher. */
struct feed {
	struct netio_connection connection; /* first */
	struct netio_publisher pub;
	struct netio_feeds *feeds; /* NULL: the socket is gone */
	struct intake intake;
	uint64_t number;       /* of messages on this connection, that came or were missed */
	LIST_ENTRY(feed) link; /* of the socket's */

	void *by_what;       /* struct want, of tsearch; but for those that end */
	struct want **wants; /* by id; NULL: unused */
	uint32_t want_room, want_count;
	uint32_t unused_from;     /* no id below it is unused */
	bool is_full;             /* the link takes no requests now */
	struct want_queue to_ask; /* WANT_NEW and WANT_ENDING */
	struct want_queue to_end; /* WANT_ENDED that nobody had been asked for */
	struct plx_task tell;     /* of those */
	unsigned port;
	char host[PLX_ADDRESS_MAX];
	char address[PLX_ADDRESS_MAX];
};

struct netio_feeds {
	struct netio_subscribe_socket *socket;
	struct netio_eventloop *evloop;
	struct netio_connect_attr connect; /* checked; its provider is `provider` */
	struct plx_link_attr link_attr;
	uint64_t next_id;
	struct netio_subscribe_stats stats;
	LIST_HEAD(feed_list, feed) all;
	LIST_ENTRY(netio_feeds) link; /* of the lcore's */
	char provider[64];
};

/* NULL: there is none of that address. */
struct feed *feed_find(const struct netio_feeds *feeds, const char *address);

/* Return: NULL: out of memory. */
struct feed *feed_create(struct netio_feeds *feeds, const char *host, unsigned port,
			 const char *address);

/* Connect it, if it is not about to be. Return: 0; as netio_connect. */
int feed_open(struct feed *feed);

/* The socket is gone, or wants nothing of it any more. */
void feed_release(struct feed *feed);

/* want.c ------------------------------------------------------------------------------------- */

static inline struct netio_subscribe_socket *feed_socket(const struct feed *feed)
{
	return feed->feeds ? feed->feeds->socket : NULL;
}

/* Call a callback of the socket, if it is there. args: in parentheses. */
#define TELL(feed, callback, args)                                       \
	do {                                                             \
		struct netio_subscribe_socket *told = feed_socket(feed); \
		if (told && told->callback)                              \
			told->callback args;                             \
	} while (0)

/* what: checked. Return: 0; -EEXIST; -ENOMEM. */
int feed_subscribe(struct feed *feed, const struct netio_subscription *what);

/* The same undone at once, before it was asked for. */
void feed_forget(struct feed *feed, const struct netio_subscription *what);

/* Return: 0; -ENOENT. */
int feed_unsubscribe(struct feed *feed, const struct netio_subscription *what);

/* Send as many requests as the link takes. */
void feed_ask(struct feed *feed);

/* Return: NULL; or what is wrong with them. */
const char *feed_take_answers(struct feed *feed, const struct plx_buf *message);

/* Tell of those in to_end. */
void feed_tell_ended(struct feed *feed);

/* The connection has ended: what the publisher knew of the wants is gone. */
void feed_lose(struct feed *feed);
void feed_tell_lost(struct feed *feed, const char *why);

/* Free all. */
void feed_drop_wants(struct feed *feed);

/* All of a loop that ends; subscribe.c. */
void feeds_release_all(struct netio_eventloop *evloop);

#endif
