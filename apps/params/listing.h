/* SPDX-License-Identifier: BSD-3-Clause */
/* All parameters below a name, page by page, as often as is asked; a page that does not come is
 * asked for again. Thread: the client's lcore. */
#ifndef LISTING_H
#define LISTING_H

#include "param.h"
#include "plx_lcore.h"
#include "plx_rpc.h"
#include "wire.h"

struct listing {
	struct plx_rpc_client *client;
	const char *below; /**< "": all */
	uint64_t deadline_ns;
	void (*begun)(void *arg); /**< from the beginning */
	void (*found)(const struct param *param, void *arg);
	void (*ended)(void *arg);
	void (*failed)(int rc, void *arg); /**< what no repetition mends; there is an error text */
	void *arg;

	/* The rest is private. */
	bool wanted, calls, anew, lists, once_more;
	struct plx_timer again;
	struct list_place place;
};

/** List from the beginning; one that is under way is given up for that. Set the fields above
 * before, and zero the others. */
void listing_begin(struct listing *listing);

/** List all that is there from now on: one that is under way goes on to its end, and another one
 * follows. So each ends, however often this is called. */
void listing_once_more(struct listing *listing);

/** Nothing is found any more, until it begins anew. One that calls is not gone before its client
 * is, or its callbacks may not be called. */
void listing_stop(struct listing *listing);

#endif
