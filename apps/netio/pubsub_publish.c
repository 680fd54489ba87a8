/* SPDX-License-Identifier: BSD-3-Clause */
/* The publisher of netio-pubsub-bench: publishes as fast as its subscribers take messages. */
#include "pubsub.h"

#include <inttypes.h>
#include <string.h>

#define BURST       32  /* messages per turn */
#define SLOTS       256 /* messages by reference in flight */
#define PATIENCE_NS (10 * PLX_NS_PER_S)

/* Counters. */
struct count {
	uint64_t now_ns, cycles;
	struct netio_publish_stats stats;
};

static struct run {
	struct netio_context ctx;
	struct netio_publish_socket buffered;
	struct netio_unbuffered_publish_socket unbuffered;
	struct netio_timer timer;
	struct plx_load load;
	uint64_t sequence;    /* of the next message, which starts with it */
	uint64_t ready, gone; /* subscribed, and disconnected, subscribers */
	bool is_again;        /* the message is being published again */
	uint64_t last_until_ns;
	bool done, failed;
	uint8_t *payload; /* of each slot; without --mode unbuffered, of one */
	size_t stride;
	uint64_t slot;          /* of the message that is published */
	bool has_slot;          /* or waits for one */
	uint16_t unused[SLOTS]; /* slots */
	unsigned unused_count;
	struct count before;
	int status;
} run;

static void fail(const char *text)
{
	fprintf(stderr, "netio-pubsub-bench: %s\n", text);
	run.failed = true;
	run.status = 1;
	netio_terminate(&run.ctx.evloop);
}

/* Publishing ---------------------------------------------------------------------------------- */

static netio_tag_t next_tag(void)
{
	return PUBSUB_TAG + run.sequence % pubsub_conf.tags;
}

static int publish_copy(int flags)
{
	memcpy(run.payload, &run.sequence, sizeof(run.sequence));
	return netio_buffered_publish(&run.buffered, next_tag(), run.payload, pubsub_conf.size,
				      flags, NULL);
}

static int publish_reference(int flags)
{
	if (!run.has_slot && run.unused_count == 0)
		return NETIO_STATUS_AGAIN;
	if (!run.has_slot)
		run.slot = run.unused[--run.unused_count];

	struct iovec iov = {run.payload + run.slot * run.stride, pubsub_conf.size};
	int rc;

	memcpy(iov.iov_base, &run.sequence, sizeof(run.sequence));
	rc = netio_unbuffered_publishv(&run.unbuffered, next_tag(), &iov, 1, &run.slot, flags,
				       NULL);
	run.has_slot = rc != NETIO_STATUS_OK;
	return rc;
}

static int publish_one(void)
{
	int flags = run.is_again ? NETIO_REENTRY : 0;
	int rc = pubsub_conf.mode == PUBSUB_UNBUFFERED ? publish_reference(flags)
						       : publish_copy(flags);

	run.is_again = rc == NETIO_STATUS_AGAIN || rc == NETIO_STATUS_PARTIAL;
	run.sequence += rc == NETIO_STATUS_OK;
	return rc;
}

static unsigned publish_burst(struct plx_load *load, unsigned most)
{
	unsigned done = 0;
	int rc = NETIO_STATUS_OK;

	while (done < most && rc == NETIO_STATUS_OK) {
		rc = publish_one();
		done += rc == NETIO_STATUS_OK;
	}
	load->blocked = run.is_again;
	if (rc != NETIO_STATUS_OK && !run.is_again)
		fail(plx_error());
	return done;
}

/* After the run, each millisecond: a message that some subscribers have must still go to the
 * others. */
static void publish_last(void)
{
	if (run.is_again && publish_one() != NETIO_STATUS_OK && !run.is_again)
		fail(plx_error());
	run.done = !run.is_again && !run.failed;
	if (run.done)
		netio_terminate(&run.ctx.evloop);
}

static void count(struct count *now)
{
	struct plx_lcore_stats lcore;

	plx_lcore_stats_read(plx_lcore_id(), &lcore);
	now->now_ns = plx_now_ns();
	now->cycles = lcore.busy_cycles;
	if (pubsub_conf.mode == PUBSUB_UNBUFFERED)
		netio_unbuffered_publish_stats_read(&run.unbuffered, &now->stats);
	else
		netio_publish_stats_read(&run.buffered, &now->stats);
}

static void report(void)
{
	const struct count *before = &run.before;
	struct count now;
	uint64_t copies;

	count(&now);
	copies = now.stats.copies - before->stats.copies;
	if (copies == 0)
		fail("nothing was taken; is a subscriber stopped?");
	else if (pubsub_report(now.stats.messages - before->stats.messages, copies,
			       (double)(now.now_ns - before->now_ns) / 1e9,
			       (double)(now.cycles - before->cycles)) != 0)
		run.status = 1;
}

static void on_warm(struct plx_load *load, uint64_t now_tsc)
{
	count(&run.before);
	plx_load_begin(load, now_tsc);
}

static void on_end(struct plx_load *load)
{
	report();
	run.last_until_ns = plx_now_ns() + PATIENCE_NS;
	netio_timer_start_ns(&run.timer, PLX_NS_PER_MS);
}

static void on_timer(void *data)
{
	if (run.failed || run.done) /* netio_terminate is under way */
		return;
	if (run.load.state == PLX_LOAD_ENDED && plx_now_ns() < run.last_until_ns)
		publish_last();
	else if (run.load.state == PLX_LOAD_ENDED)
		fail("a subscriber does not take the last message; is it stopped?");
	else
		fprintf(stderr,
			"netio-pubsub-bench: waiting for %" PRIu64 " subscriptions; %" PRIu64
			" are here; --subscribers and --tags must be the same on both sides\n",
			pubsub_conf.subscribers * pubsub_conf.tags, run.ready);
}

static void on_subscribed(struct netio_subscriber *subscriber,
			  const struct netio_subscription *subscription)
{
	if (++run.ready != pubsub_conf.subscribers * pubsub_conf.tags ||
	    run.load.state != PLX_LOAD_IDLE)
		return;
	netio_timer_stop(&run.timer);
	plx_load_start(&run.load, plx_tsc());
}

static void on_closed(struct netio_subscriber *subscriber, enum plx_link_reason reason,
		      const char *why)
{
	struct netio_subscriber_stats stats;

	if (!plx_load_is_on(&run.load))
		return;
	netio_subscriber_stats_read(subscriber, &stats);
	if (stats.missed[NETIO_GAP_DISCONNECTED]) { /* as its policy requests */
		plx_app_say("a subscriber that was too slow was disconnected");
		return;
	}
	fprintf(stderr, "netio-pubsub-bench: a subscriber went away: %s\n", why);
	run.status = 1; /* the figures are for fewer subscribers */
	if (++run.gone == pubsub_conf.subscribers)
		fail("none is left");
}

static void on_available(struct netio_publish_socket *socket)
{
	run.load.blocked = false;
}

static void on_unbuffered_available(struct netio_unbuffered_publish_socket *socket)
{
	run.load.blocked = false;
}

static void on_published(struct netio_unbuffered_publish_socket *socket, uint64_t key, int status)
{
	run.unused[run.unused_count++] = (uint16_t)key;
	if (run.has_slot)
		return;
	run.load.blocked = false;
	run.is_again = false;
}

static int listen_at(const char *host, unsigned port)
{
	struct netio_publish_attr attr = {
		.page_bytes = (uint32_t)pubsub_conf.page_bytes,
		.watermark_bytes = pubsub_conf.mode == PUBSUB_AT_ONCE, /* 0: a full page */
		.page_count = (uint32_t)pubsub_conf.page_count,
	};

	if (pubsub_conf.mode == PUBSUB_UNBUFFERED) {
		if (netio_unbuffered_publish_socket_init(&run.ctx.evloop, &run.unbuffered, NULL))
			return -1;
		run.unbuffered.cb_subscribed = on_subscribed;
		run.unbuffered.cb_connection_closed = on_closed;
		run.unbuffered.cb_buffers_available = on_unbuffered_available;
		run.unbuffered.cb_msg_published = on_published;
		return netio_unbuffered_publish_listen(&run.unbuffered, host, port);
	}
	if (netio_publish_socket_init(&run.ctx.evloop, &run.buffered, &attr) != 0)
		return -1;
	run.buffered.cb_subscribed = on_subscribed;
	run.buffered.cb_connection_closed = on_closed;
	run.buffered.cb_buffers_available = on_available;
	return netio_publish_listen(&run.buffered, host, port);
}

static int set_up(void)
{
	char host[PLX_ADDRESS_MAX];
	unsigned port;

	if (plx_address_split("--listen", pubsub_conf.listen, host, &port) != 0 ||
	    netio_init(&run.ctx) != 0 ||
	    plx_load_init(&run.load, &pubsub_conf.run, pubsub_conf.size, 0) != 0)
		return -1;
	netio_timer_init(&run.ctx.evloop, &run.timer);
	run.timer.cb = on_timer;
	run.load.warmup = UINT64_MAX;
	run.load.warmup_ns = PUBSUB_WARMUP_NS;
	run.load.burst_max = BURST;
	run.load.send_burst = publish_burst;
	run.load.on_warm = on_warm;
	run.load.on_end = on_end;
	if (plx_load_enter(&run.load) != 0 || listen_at(host, port) != 0)
		return -1;
	plx_app_say("listening on %s:%u", host,
		    pubsub_conf.mode == PUBSUB_UNBUFFERED
			    ? netio_unbuffered_publish_socket_port(&run.unbuffered)
			    : netio_publish_socket_port(&run.buffered));
	netio_timer_start_ns(&run.timer, PATIENCE_NS);
	return 0;
}

int pubsub_publish(void)
{
	unsigned slots = pubsub_conf.mode == PUBSUB_UNBUFFERED ? SLOTS : 1;

	if (slots > 1 && pubsub_conf.size > 1 << 20) /* at most 256 MiB */
		slots = 16;
	while (run.unused_count < slots) {
		run.unused[run.unused_count] = (uint16_t)run.unused_count;
		run.unused_count++;
	}
	run.stride = (pubsub_conf.size + 63) & ~(uint64_t)63;
	/* Memory that every provider can send from. */
	run.payload = plx_mem_alloc(slots * run.stride, 0, PLX_NODE_ANY, NULL);
	if (!run.payload || set_up() != 0) {
		fail(plx_error());
	} else {
		netio_run(&run.ctx.evloop);
		run.status |= !run.done;
	}
	plx_load_leave(&run.load);
	netio_fini(&run.ctx);
	plx_mem_free(run.payload);
	return run.status;
}
