/* SPDX-License-Identifier: BSD-3-Clause */
/* netio-cat publish: a buffered or unbuffered publish socket. It starts when enough subscribers
 * have joined and ends when all connections are closed. */
#include "cat.h"

#include <inttypes.h>

#define LOOK_US 500 /* between checks for pages in flight */

static struct netio_publish_socket buffered;
static struct netio_unbuffered_publish_socket unbuffered;
static struct netio_subscription_cache cache;
static uint64_t holders; /* subscribers with a subscription */
static uint64_t lost_before;
static bool began, is_over;
static struct netio_timer timer;

static struct netio_publish_stats stats(void)
{
	struct netio_publish_stats now;

	if (cat_conf.unbuffered)
		netio_unbuffered_publish_stats_read(&unbuffered, &now);
	else
		netio_publish_stats_read(&buffered, &now);
	return now;
}

void cat_publish_report(void)
{
	struct netio_publish_stats now = stats();
	uint64_t lost = now.lost - lost_before;
	/* They asked to miss these, and were notified. */
	uint64_t missed = now.dropped_new + now.dropped_old + now.conflated + now.disconnected;

	if (lost_before)
		cat_tell("%" PRIu64 " copies were lost with subscribers that went away",
			 lost_before);
	if (lost)
		cat_fail("%" PRIu64 " copies were lost at the end: subscribers did not take them",
			 lost);
	if (missed)
		cat_tell("%" PRIu64 " copies were not sent: subscribers were too slow (%" PRIu64
			 " dropped as new, %" PRIu64 " as old, %" PRIu64 " conflated, %" PRIu64
			 " disconnected)",
			 missed, now.dropped_new, now.dropped_old, now.conflated, now.disconnected);
}

/* Closing waits only 5 s for a slow peer, so it comes when everything is sent: pages, which a timer
 * checks, and messages by reference. */
static void end_if_sent(void)
{
	if (!is_over || cat_copy_count() > 0 || stats().pages_under_way > 0)
		return;
	netio_timer_stop(&timer);
	cat_end();
}

/* Subscribers --------------------------------------------------------------------------------- */

static void tell_missed_by(const struct netio_subscriber *subscriber)
{
	struct netio_subscriber_stats its;
	char peer[PLX_PEER_BYTES], why[NETIO_GAP_TEXT_BYTES];
	uint64_t missed = 0;
	uint32_t reasons = 0;

	netio_subscriber_stats_read(subscriber, &its);
	for (unsigned i = 0; i < NETIO_GAP_REASON_COUNT; i++) {
		missed += its.missed[i];
		reasons |= its.missed[i] ? NETIO_GAP_BIT(i) : 0;
	}
	if (missed)
		cat_tell("%s missed %" PRIu64 " messages: %s",
			 plx_peer_format(subscriber->peer, subscriber->program, subscriber->pid,
					 peer),
			 missed, netio_gap_reasons_format(reasons, why));
}

static void on_established(struct netio_subscriber *subscriber)
{
	if (is_over)
		netio_subscriber_close(subscriber);
}

static void on_closed(struct netio_subscriber *subscriber, enum plx_link_reason reason,
		      const char *why)
{
	tell_missed_by(subscriber);
	end_if_sent();
}

static void on_suspect(struct netio_subscriber *subscriber, bool suspect)
{
	cat_tell_suspect(subscriber->peer, suspect);
}

static void on_subscribed(struct netio_subscriber *subscriber,
			  const struct netio_subscription *subscription)
{
	uintptr_t count = (uintptr_t)subscriber->data + 1; /* of its subscriptions */

	subscriber->data = (void *)count;
	if (count == 1 && ++holders == cat_conf.subscribers && !began) {
		began = true;
		cat_input_go();
	}
}

static void on_unsubscribed(struct netio_subscriber *subscriber,
			    const struct netio_subscription *subscription)
{
	uintptr_t count = (uintptr_t)subscriber->data - 1;

	subscriber->data = (void *)count;
	holders -= count == 0;
}

/* Buffered ------------------------------------------------------------------------------------ */

static int send_buffered(const void *data, size_t len, bool again)
{
	struct iovec iov = {(void *)data, len};

	return netio_buffered_publishv(&buffered, cat_tag(), &iov, 1, again ? NETIO_REENTRY : 0,
				       &cache);
}

static void flush_buffered(void)
{
	netio_buffered_publish_flush(&buffered);
}

static void on_buffered_available(struct netio_publish_socket *socket)
{
	cat_input_go();
}

static unsigned listen_buffered(struct netio_eventloop *evloop,
				const struct netio_publish_attr *attr)
{
	if (netio_publish_socket_init(evloop, &buffered, attr) != 0)
		return 0;
	buffered.cb_connection_established = on_established;
	buffered.cb_connection_closed = on_closed;
	buffered.cb_connection_suspect = on_suspect;
	buffered.cb_subscribed = on_subscribed;
	buffered.cb_unsubscribed = on_unsubscribed;
	buffered.cb_buffers_available = on_buffered_available;
	netio_publish_listen(&buffered, cat_conf.addresses->host, cat_conf.addresses->port);
	return netio_publish_socket_port(&buffered);
}

/* Unbuffered: messages are kept until published. ---------------------------------------------- */

static int publish_reference(const struct iovec *iov, uint64_t key, bool again)
{
	return netio_unbuffered_publishv(&unbuffered, cat_tag(), (struct iovec *)iov, 1, &key,
					 again ? NETIO_REENTRY : 0, &cache);
}

static int send_unbuffered(const void *data, size_t len, bool again)
{
	return cat_copy_send(data, len, again, publish_reference);
}

static void on_published(struct netio_unbuffered_publish_socket *socket, uint64_t key, int status)
{
	cat_copy_done(key, status);
	end_if_sent();
}

static void on_unbuffered_available(struct netio_unbuffered_publish_socket *socket)
{
	cat_input_go();
}

static unsigned listen_unbuffered(struct netio_eventloop *evloop,
				  const struct netio_publish_attr *attr)
{
	if (netio_unbuffered_publish_socket_init(evloop, &unbuffered, attr) != 0)
		return 0;
	unbuffered.cb_connection_established = on_established;
	unbuffered.cb_connection_closed = on_closed;
	unbuffered.cb_connection_suspect = on_suspect;
	unbuffered.cb_subscribed = on_subscribed;
	unbuffered.cb_unsubscribed = on_unsubscribed;
	unbuffered.cb_buffers_available = on_unbuffered_available;
	unbuffered.cb_msg_published = on_published;
	netio_unbuffered_publish_listen(&unbuffered, cat_conf.addresses->host,
					cat_conf.addresses->port);
	return netio_unbuffered_publish_socket_port(&unbuffered);
}

/* Start and end ------------------------------------------------------------------------------- */

static void finish(void)
{
	is_over = true;
	lost_before = stats().lost;
	if (!cat_conf.unbuffered)
		netio_buffered_publish_flush(&buffered);
	netio_timer_start_us(&timer, LOOK_US);
}

static void on_look(void *data)
{
	end_if_sent();
}

int cat_publish_start(struct netio_eventloop *evloop)
{
	static const struct cat_sender senders[] = {
		{send_buffered, flush_buffered, finish},
		{send_unbuffered, NULL, finish},
	};
	const struct netio_publish_attr attr = {.policy = (enum netio_policy)cat_conf.policy,
						.backlog_bytes = cat_conf.backlog_bytes};
	unsigned port = (cat_conf.unbuffered ? listen_unbuffered : listen_buffered)(evloop, &attr);

	netio_timer_init(evloop, &timer);
	timer.cb = on_look;
	if (port == 0 || cat_input_start(&senders[cat_conf.unbuffered]) != 0)
		return -1;
	cat_tell("listening on %s:%u", cat_conf.addresses->host, port);
	if (cat_conf.subscribers == 0)
		cat_input_go();
	return 0;
}
