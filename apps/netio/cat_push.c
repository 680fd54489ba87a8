/* SPDX-License-Identifier: BSD-3-Clause */
/* netio-cat push: a push socket. It starts when each receiver has been tried and ends when all
 * pushed messages are finished. */
#include "cat.h"

#include <inttypes.h>

#define LOOK_MS 2
#define STILL_MS \
	1000 /* without news, everything in flight has arrived and waits for a slow reader */

static struct netio_push_socket pusher;
static struct netio_timer timer;
static unsigned untried; /* receivers that have neither connected nor refused yet */
static bool is_closing;  /* no more messages, and all are sent */
static unsigned left;    /* receivers to close */
static uint64_t finished;
static unsigned still_ms;

static struct netio_push_stats stats(void)
{
	struct netio_push_stats now;

	netio_push_stats_read(&pusher, &now);
	return now;
}

static void tried(struct netio_push_receiver *receiver)
{
	if (receiver->data)
		return;
	receiver->data = &pusher; /* any non-NULL value */
	untried--;
}

static void on_available(struct netio_push_socket *socket)
{
	if (untried == 0)
		cat_input_go();
}

static void on_established(struct netio_push_receiver *receiver)
{
	cat_tell_connected(receiver->address, receiver->program, receiver->pid, receiver->provider,
			   receiver->choice);
	tried(receiver);
	on_available(&pusher);
}

/* Attempts continue; only the first failure in a row is reported. */
static void on_refused(struct netio_push_receiver *receiver, enum plx_link_reason reason,
		       const char *why)
{
	if (!receiver->data)
		cat_tell("%s; trying again", why);
	tried(receiver);
	if (stats().connected > 0)
		on_available(&pusher);
}

static void tell_end(void)
{
	struct netio_push_stats now = stats();

	if (now.handed_again)
		cat_tell("%" PRIu64 " messages were handed to another receiver, and may have "
			 "arrived twice",
			 now.handed_again);
	if (now.lost + now.waiting)
		cat_fail("%" PRIu64 " messages were lost with receivers that went away",
			 now.lost + now.waiting);
	cat_end();
}

static void on_closed(struct netio_push_receiver *receiver, enum plx_link_reason reason,
		      const char *why)
{
	struct netio_push_receiver_stats its;

	netio_push_receiver_stats_read(receiver, &its);
	if (!is_closing)
		cat_tell("%s gone: %s; %" PRIu64 " of %" PRIu64
			 " messages were not finished; trying again",
			 receiver->address, plx_link_reason_name(reason), its.taken_away,
			 its.handed);
	else if (--left == 0)
		tell_end();
}

static void on_suspect(struct netio_push_receiver *receiver, bool suspect)
{
	cat_tell_suspect(receiver->address, suspect);
}

static int push(const void *data, size_t len, bool again)
{
	return netio_pushv_tagged(&pusher, cat_tag(), &(struct iovec){(void *)data, len}, 1);
}

/* The end ------------------------------------------------------------------------------------ */

static void close_all(void)
{
	is_closing = true;
	left = cat_conf.address_count;
	netio_timer_stop(&timer);
	for (unsigned i = 0; i < cat_conf.address_count; i++)
		netio_push_disconnect(&pusher, cat_conf.addresses[i].host,
				      cat_conf.addresses[i].port);
}

/* Receivers delay their acknowledgements while they have much room, and closing waits only 5 s. */
static void on_look(void *data)
{
	struct netio_push_stats now = stats();

	still_ms = now.finished == finished ? still_ms + LOOK_MS : 0;
	finished = now.finished;
	if (now.waiting == 0 && (now.under_way == 0 || still_ms >= STILL_MS))
		close_all();
}

static void finish(void)
{
	netio_timer_start_ms(&timer, LOOK_MS);
}

int cat_push_start(struct netio_eventloop *evloop)
{
	static const struct cat_sender sender = {push, NULL, finish};
	struct netio_push_attr attr = {.promise = cat_conf.at_most_once ? NETIO_PUSH_AT_MOST_ONCE
									: NETIO_PUSH_AT_LEAST_ONCE};

	if (netio_timer_init(evloop, &timer) != 0 ||
	    netio_push_socket_init(evloop, &pusher, &attr) != 0)
		return -1;
	timer.cb = on_look;
	pusher.cb_connection_established = on_established;
	pusher.cb_connection_refused = on_refused;
	pusher.cb_connection_closed = on_closed;
	pusher.cb_connection_suspect = on_suspect;
	pusher.cb_buffers_available = on_available;
	untried = cat_conf.address_count;
	for (unsigned i = 0; i < cat_conf.address_count; i++)
		if (netio_push_connect(&pusher, cat_conf.addresses[i].host,
				       cat_conf.addresses[i].port) != 0)
			return -1;
	return cat_input_start(&sender);
}
