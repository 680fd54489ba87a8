/* SPDX-License-Identifier: BSD-3-Clause */
/* Lists all parameters below a name, page by page, as often as requested. A failed page is
 * requested again. Thread: the client's lcore. */
#ifndef LISTING_H
#define LISTING_H

#include "param.h"
#include "plx_lcore.h"
#include "plx_rpc.h"
#include "wire.h"

struct listing {
	struct plx_rpc_client *client;
	const char *below; /**< "": all parameters */
	uint64_t deadline_ns;
	void (*begun)(void *arg); /**< called at the start of each listing */
	void (*found)(const struct param *param, void *arg);
	void (*ended)(void *arg);
	void (*failed)(int rc, void *arg); /**< a permanent failure, with an error text */
	void *arg;

	/* private from here on */
	bool wanted, calls, anew, lists, once_more;
	struct plx_timer again;
	struct list_place place;
};

/** Start a listing, abandoning one in progress. Set the fields above first, and zero the others. */
void listing_begin(struct listing *listing);

/** List everything again: a listing in progress completes, and another follows. So each completes,
 * however often this is called. */
void listing_once_more(struct listing *listing);

/** Stop reporting until the next start. While a call is in flight, the struct must outlive the
 * client, or callbacks must be impossible. */
void listing_stop(struct listing *listing);

#endif
