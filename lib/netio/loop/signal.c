/* SPDX-License-Identifier: BSD-3-Clause */
#include "netio_priv.h"

#define CALLS_TURN_MAX 64 /* per signal; the rest runs in the next turn */

/* A backlog fires the signal again to get another turn; that fire is not a call. */
static void on_fired(struct plx_signal *fired, uint64_t fires, void *arg)
{
	struct netio_signal *signal = arg;
	const struct netio_eventloop *evloop = signal->evloop;
	uint64_t left = signal->backlog + fires - (signal->backlog > 0);
	bool gone = false;

	signal->gone = &gone;
	for (unsigned i = 0; i < CALLS_TURN_MAX && left > 0; i++) {
		if (evloop->running && evloop->terminated)
			break;
		left--;
		if (signal->cb)
			signal->cb(signal->data);
		if (gone)
			return;
	}
	signal->gone = NULL;
	signal->backlog = left;
	if (left > 0)
		plx_signal_fire(fired);
}

int netio_signal_init(struct netio_eventloop *evloop, struct netio_signal *signal)
{
	int rc;

	*signal = (struct netio_signal){.evloop = evloop};
	if (!evloop->ready)
		return netio_check(evloop, "netio_signal_init");
	rc = plx_signal_init(&signal->fired, evloop->lcore_id, on_fired, signal);
	return netio_logged(rc);
}

void netio_signal_fire(struct netio_signal *signal)
{
	plx_signal_fire(&signal->fired);
}

void netio_signal_fini(struct netio_signal *signal)
{
	if (signal->gone)
		*signal->gone = true;
	plx_signal_fini(&signal->fired);
	signal->evloop = NULL;
}
