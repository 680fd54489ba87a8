/* SPDX-License-Identifier: BSD-3-Clause */
/* The newest message of each tag, for who is too slow for all of them. */
#ifndef NETIO_CONFLATE_H
#define NETIO_CONFLATE_H

#include "message.h"

#include <sys/queue.h>

struct latest {
	netio_tag_t tag;
	uint64_t order;  /* counts up in the order in which their tags came */
	uint64_t behind; /* of the owner: the page that it came behind */
	uint64_t length, room;
	uint8_t *data;
	TAILQ_ENTRY(latest) link;
};

TAILQ_HEAD(latest_queue, latest);

struct conflation {
	uint32_t count;
	void *by_tag; /* struct latest, of tsearch */
	struct latest_queue queue;
	uint64_t bytes; /* that they take, all in all */
	uint64_t order; /* of the newest */
};

void conflation_init(struct conflation *conflation);

/* Keep a copy of a message in place of the one of its tag, or behind all others, which may take
 * bytes_max. Return: 0; 1 another one was replaced; -EAGAIN it would be more; -ENOMEM: the one of
 * its tag stays. */
int conflation_put(struct conflation *conflation, const struct message *message,
		   uint64_t bytes_max);

/* The one of that tag, or the one that came last; NULL: there is none. */
struct latest *conflation_find(const struct conflation *conflation, netio_tag_t tag);
static inline struct latest *conflation_last(const struct conflation *conflation)
{
	return TAILQ_LAST(&conflation->queue, latest_queue);
}

/* The one that waits longest; NULL: there is none. */
static inline struct latest *conflation_first(const struct conflation *conflation)
{
	return TAILQ_FIRST(&conflation->queue);
}

void conflation_drop(struct conflation *conflation, struct latest *latest);

/* Return: how many there were. */
uint32_t conflation_clear(struct conflation *conflation);

#endif
