/* SPDX-License-Identifier: BSD-3-Clause */
/* The subscribers of netio-pubsub-bench, each on a separate connection. */
#include "pubsub.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* One subscriber. */
struct member {
	struct netio_subscribe_socket socket;
	uint64_t messages, bytes;
	uint64_t next;   /* expected sequence number */
	uint64_t wrong;  /* messages out of sequence */
	uint64_t missed; /* as on_gap reports */
	/* Messages of one turn arrived together, so those of the turn in which counting starts do
	 * not count. */
	bool is_counting;
	uint64_t begin_ns, last_ns; /* begin may be the time of the first message to come */
	uint64_t begin_messages;    /* before begin_ns */
};

static struct netio_context ctx;
static struct member *members;
static uint64_t closed, subscribed;
static int status;

static void on_refused(struct netio_publisher *publisher, enum plx_link_reason reason,
		       const char *why)
{
	fprintf(stderr, "netio-pubsub-bench: %s\n", why);
	status = 1;
	netio_terminate(&ctx.evloop);
}

/* The publisher is done. */
static void on_closed(struct netio_publisher *publisher, enum plx_link_reason reason,
		      const char *why)
{
	if (reason != PLX_LINK_CLOSED)
		on_refused(publisher, reason, why);
	else if (++closed == pubsub_conf.subscribers)
		netio_terminate(&ctx.evloop);
}

static void on_not_taken(struct netio_publisher *publisher,
			 const struct netio_subscription *subscription, const char *why)
{
	on_refused(publisher, PLX_LINK_REFUSED, why);
}

static void on_subscribed(struct netio_publisher *publisher,
			  const struct netio_subscription *subscription)
{
	if (++subscribed == pubsub_conf.subscribers * pubsub_conf.tags)
		plx_app_say("subscribed");
}

static void on_gap(struct netio_publisher *publisher, const struct netio_gap *gap)
{
	struct member *member = publisher->subscribe_socket->data;

	member->missed += gap->count;
	member->next += gap->count;
}

/* Conflated messages only keep the order per tag. */
static bool is_off(const struct member *member, uint64_t sequence)
{
	if (pubsub_conf.policy == NETIO_POLICY_CONFLATE && pubsub_conf.tags > 1)
		return false;
	return member->messages > 0 && sequence != member->next;
}

static void count(struct member *member, uint64_t now_ns)
{
	if (member->messages++ == 0)
		member->begin_ns = now_ns + PUBSUB_WARMUP_NS;
	if (now_ns > member->begin_ns && !member->is_counting) {
		member->is_counting = true;
		member->begin_ns = now_ns;
	}
	if (now_ns <= member->begin_ns)
		member->begin_messages = member->messages;
	member->last_ns = now_ns;
}

/* The first message may have any sequence number. */
static void on_message(struct netio_subscribe_socket *socket, const struct netio_msg *msg)
{
	struct member *member = socket->data;
	uint64_t sequence = member->next;

	if (plx_likely(msg->len >= sizeof(sequence)))
		memcpy(&sequence, msg->data, sizeof(sequence));
	member->wrong += is_off(member, sequence);
	member->next = sequence + 1;
	count(member, plx_loop_now_ns());
	member->bytes += msg->len;
}

static int start(struct member *member, const char *host, unsigned port)
{
	const struct netio_subscribe_attr attr = {
		.connect.reconnect_min_ns = PLX_NEVER,
		.buffer_bytes = (uint32_t)pubsub_conf.page_bytes,
	};

	if (netio_subscribe_socket_init(&ctx.evloop, &member->socket, &attr) != 0)
		return -1;
	member->socket.data = member;
	member->socket.cb_connection_refused = on_refused;
	member->socket.cb_connection_closed = on_closed;
	member->socket.cb_subscribed = on_subscribed;
	member->socket.cb_subscription_refused = on_not_taken;
	member->socket.cb_gap = on_gap;
	member->socket.cb_msg_received = on_message;
	for (uint64_t i = 0; i < pubsub_conf.tags; i++)
		if (netio_subscribe_to(&member->socket, host, port,
				       &(struct netio_subscription){
					       .tag = PUBSUB_TAG + i,
					       .policy = (enum netio_policy)pubsub_conf.policy,
				       }) != 0)
			return -1;
	return 0;
}

static int start_all(void)
{
	char host[PLX_ADDRESS_MAX];
	unsigned port;

	if (plx_address_split("--connect", pubsub_conf.connect, host, &port) != 0 ||
	    netio_init(&ctx) != 0)
		return -1;
	for (uint64_t i = 0; i < pubsub_conf.subscribers; i++)
		if (start(&members[i], host, port) != 0)
			return -1;
	return 0;
}

/* Of the slowest subscriber; 0: one ran too briefly. */
static double least_per_s(void)
{
	double least = HUGE_VAL;

	for (uint64_t i = 0; i < pubsub_conf.subscribers; i++) {
		const struct member *member = &members[i];
		double got = 0;

		if (member->is_counting && member->last_ns > member->begin_ns)
			got = (double)(member->messages - member->begin_messages) * 1e9 /
			      (double)(member->last_ns - member->begin_ns);
		least = got < least ? got : least;
	}
	return least;
}

static void report(void)
{
	uint64_t messages = 0, bytes = 0, wrong = 0, missed = 0;
	double least = least_per_s();

	for (uint64_t i = 0; i < pubsub_conf.subscribers; i++) {
		messages += members[i].messages;
		bytes += members[i].bytes;
		wrong += members[i].wrong;
		missed += members[i].missed;
	}
	plx_app_say("%" PRIu64 " subscribers got %" PRIu64 " messages, %" PRIu64 " bytes; %" PRIu64
		    " out of sequence",
		    pubsub_conf.subscribers, messages, bytes, wrong);
	if (missed)
		plx_app_say("%" PRIu64 " were missed, and told", missed);
	if (messages == 0)
		fprintf(stderr, "netio-pubsub-bench: nothing came; --subscribers and --tags have "
				"to be the publisher's\n");
	if (pubsub_write(json_pack(
		    "{s:I, s:I, s:I, s:o}", "subscribers", (json_int_t)pubsub_conf.subscribers,
		    "messages", (json_int_t)messages, "missed", (json_int_t)missed,
		    "messages_per_s_least", least > 0 ? json_real(least) : json_null())) != 0 ||
	    wrong || messages == 0)
		status = 1;
}

int pubsub_subscribe(void)
{
	members = calloc(pubsub_conf.subscribers, sizeof(*members));
	if (!members || start_all() != 0) {
		fprintf(stderr, "netio-pubsub-bench: %s\n",
			members ? plx_error() : "out of memory");
		status = 1;
	} else {
		netio_run(&ctx.evloop);
		report();
	}
	netio_fini(&ctx);
	free(members);
	return status;
}
