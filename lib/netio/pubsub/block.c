/* SPDX-License-Identifier: BSD-3-Clause */
/* Subscribers that block their publisher (NETIO_POLICY_BLOCK). The publisher waits from AGAIN or
 * PARTIAL until the subscriber has room. Only these two events do work here, so a message costs
 * nothing. A publisher that waits calls nothing, so a timer finds those that block for long. */
#include "pubsub_priv.h"

#include <inttypes.h>
#include <stdio.h>

#define LOG_AFTER_NS PLX_NS_PER_S

static uint64_t blocked_ns(const struct subscriber *subscriber)
{
	return plx_time_since(subscriber->block.since_ns, plx_loop_now_ns());
}

static void log_begin(struct subscriber *subscriber)
{
	struct netio_publish_core *core = subscriber_core(subscriber);
	const struct outbox *outbox = &subscriber->outbox;
	struct plx_link_stats link;
	char who[PLX_PEER_BYTES], on_the_way[64];
	uint32_t under_way;

	if (!plx_log_allowed(&core->acceptor.log_limit, plx_loop_now_ns()))
		return;
	plx_link_stats_read(subscriber->accepted.session.link, &link);
	under_way = link.tx_queued + link.tx_inflight;
	snprintf(on_the_way, sizeof(on_the_way), "%u messages are on the way to it", under_way);
	subscriber->block.is_logged = true;
	plx_log(netio_log, PLX_LOG_WARNING,
		WHO " has blocked its publisher for %" PRIu64 " ms: %" PRIu64 " bytes wait at the "
		    "publisher, %u of %u pages are in use, and %s",
		WHO_ARGS(subscriber, who), blocked_ns(subscriber) / PLX_NS_PER_MS,
		outbox_backlog_bytes(outbox), outbox->count - outbox->free_count, outbox->count,
		/* The link waits for credit. */
		under_way ? on_the_way
			  : "nothing is on the way to it: its receive buffers are full");
}

static void disconnect(struct subscriber *subscriber)
{
	struct netio_publish_core *core = subscriber_core(subscriber);
	struct accepted *accepted = &subscriber->accepted;
	char who[PLX_PEER_BYTES];

	if (plx_log_allowed(&core->acceptor.log_limit, plx_loop_now_ns()))
		plx_log(netio_log, PLX_LOG_WARNING,
			WHO " is disconnected: it has blocked its publisher for %" PRIu64
			    " ms; block_max_ns is %" PRIu64 " ms",
			WHO_ARGS(subscriber, who), blocked_ns(subscriber) / PLX_NS_PER_MS,
			core->attr.block_max_ns / PLX_NS_PER_MS);
	subscriber->block.is_logged = false; /* that was the last line */
	block_end(subscriber);
	pending_forget(core, subscriber, NETIO_GAP_DISCONNECTED);
	outbox_drop_all(&subscriber->outbox, 0);
	accepted->closed_why = "it blocked the publisher for longer than block_max_ns";
	session_link_close(&accepted->session);
	publish_report_room(core); /* last: it may release the socket */
}

/* Start the timer for what follows next, if anything. */
static void start_timer(struct subscriber *subscriber)
{
	uint64_t passed_ns = blocked_ns(subscriber);
	uint64_t due_ns = subscriber_core(subscriber)->attr.block_max_ns ?: PLX_NEVER;

	if (passed_ns < LOG_AFTER_NS && due_ns > LOG_AFTER_NS)
		due_ns = LOG_AFTER_NS;
	if (due_ns != PLX_NEVER)
		plx_timer_start(&subscriber->block.timer, plx_time_since(passed_ns, due_ns));
}

static void on_timer(struct plx_timer *timer, void *arg)
{
	struct subscriber *subscriber = arg;
	uint64_t limit_ns = subscriber_core(subscriber)->attr.block_max_ns ?: PLX_NEVER;

	if (!subscriber->block.since_ns || !subscriber_is_there(subscriber))
		return;
	if (blocked_ns(subscriber) >= limit_ns) {
		disconnect(subscriber);
		return;
	}
	if (blocked_ns(subscriber) >= LOG_AFTER_NS)
		log_begin(subscriber);
	start_timer(subscriber);
}

void block_init(struct subscriber *subscriber)
{
	plx_timer_init(&subscriber->block.timer, on_timer, subscriber);
	plx_timer_set_lax(&subscriber->block.timer, true);
}

void block_fini(struct subscriber *subscriber)
{
	plx_timer_stop(&subscriber->block.timer);
}

void block_begin(struct subscriber *subscriber)
{
	struct block *block = &subscriber->block;

	if (block->since_ns)
		return;
	block->since_ns = plx_loop_now_ns();
	if (!plx_timer_running(&block->timer))
		start_timer(subscriber);
}

uint64_t block_total_ns(const struct subscriber *subscriber)
{
	const struct block *block = &subscriber->block;

	return block->total_ns + (block->since_ns ? blocked_ns(subscriber) : 0);
}

void block_end(struct subscriber *subscriber)
{
	struct block *block = &subscriber->block;
	bool is_logged = block->is_logged;
	char who[PLX_PEER_BYTES];
	uint64_t passed_ns;

	if (!block->since_ns)
		return;
	passed_ns = blocked_ns(subscriber);
	block->total_ns += passed_ns;
	block->since_ns = 0;
	block->is_logged = false;
	if (passed_ns >= LOG_AFTER_NS) /* it may run for block_max_ns now, past a later log */
		plx_timer_stop(&block->timer);
	if (is_logged)
		plx_log(netio_log, PLX_LOG_NOTICE,
			WHO " %s after it had blocked its publisher for %" PRIu64 " ms",
			WHO_ARGS(subscriber, who),
			subscriber_is_there(subscriber) ? "has room" : "is disconnected",
			passed_ns / PLX_NS_PER_MS);
}
