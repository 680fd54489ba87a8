/* SPDX-License-Identifier: BSD-3-Clause */
/* A push socket and its receivers, on the test's loop. */
#ifndef PUSH_FIXTURE_H
#define PUSH_FIXTURE_H

#include "socket_fixture.h"

#include "push.h"

#define PULLS 4

/* The receivers. The tag of each message is its number. */
static struct heard pulls[PULLS];

/* The recorded events of the push socket. */
static struct netio_push_socket pusher;
static struct netio_push_receiver *receivers[PULLS]; /* in port order; connected ones */
static unsigned established, refused, closed, available, answers, suspects;
static enum plx_link_reason reason;
static uint32_t waiting_at_close; /* messages when the newest closure was reported */
static uint64_t next;             /* number of the next message */
static uint8_t bytes[1 << 20];

static inline void pull_listen(struct heard *pull, const struct netio_listen_attr *attr)
{
	pull->by_tag = true;
	listen_again(pull, attr);
}

static inline unsigned number_of(const struct netio_push_receiver *receiver)
{
	unsigned port = (unsigned)atoi(strrchr(receiver->address, ':') + 1);

	for (unsigned i = 0; i < PULLS; i++)
		if (pulls[i].port == port)
			return i;
	return 0;
}

static inline void on_established(struct netio_push_receiver *receiver)
{
	assert_ptr_equal(receiver->push_socket, &pusher);
	assert_string_not_equal(receiver->provider, "");
	receivers[number_of(receiver)] = receiver;
	established++;
}

static inline void on_refused(struct netio_push_receiver *receiver, enum plx_link_reason why_not,
			      const char *why)
{
	refused++;
	reason = why_not;
}

static inline void on_closed(struct netio_push_receiver *receiver, enum plx_link_reason why_not,
			     const char *why)
{
	struct netio_push_stats stats;

	netio_push_stats_read(&pusher, &stats);
	waiting_at_close = stats.waiting;
	closed++;
	reason = why_not;
}

static inline void on_suspect(struct netio_push_receiver *receiver, bool suspect)
{
	suspects += suspect;
}

static inline void on_available(struct netio_push_socket *socket)
{
	assert_ptr_equal(socket, &pusher);
	available++;
}

static inline void on_answer(struct netio_push_receiver *receiver, const struct netio_msg *msg)
{
	assert_int_equal(msg->source, receiver->id);
	answers++;
}

static inline void make_pusher(const struct netio_push_attr *attr)
{
	established = refused = closed = available = answers = suspects = 0;
	next = 0;
	assert_int_equal(netio_push_socket_init(&ctx.evloop, &pusher, attr), 0);
	pusher.cb_connection_established = on_established;
	pusher.cb_connection_refused = on_refused;
	pusher.cb_connection_closed = on_closed;
	pusher.cb_connection_suspect = on_suspect;
	pusher.cb_buffers_available = on_available;
	pusher.cb_msg_received = on_answer;
}

static inline void connect_to(struct heard *pull)
{
	assert_int_equal(netio_push_connect(&pusher, test_host(), pull->port), 0);
}

/* In sequence, which decides ties. */
static inline void connect_pulls(unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		connect_to(&pulls[i]);
		TURN_UNTIL(established == i + 1 && pulls[i].from);
	}
}

/* `count` receivers with that many buffers each. */
static inline void begin(unsigned count, uint32_t buffer_count, const struct netio_push_attr *attr)
{
	for (unsigned i = 0; i < count; i++)
		pull_listen(&pulls[i], &(struct netio_listen_attr){.buffer_count = buffer_count});
	make_pusher(attr);
	connect_pulls(count);
}

static inline int push_number(uint64_t number, size_t len)
{
	fill(bytes, number, len);
	return netio_pushv_tagged(&pusher, number, &(struct iovec){bytes, len}, 1);
}

/* Return: NETIO_STATUS_OK; or the status of the last one. */
static inline int push_some(unsigned count, size_t len)
{
	for (unsigned i = 0; i < count; i++) {
		int rc = push_number(next, len);

		if (rc)
			return rc;
		next++;
	}
	return NETIO_STATUS_OK;
}

/* Mark the messages of all receivers, and forget them. */
static inline void note_seen(bool *seen)
{
	for (unsigned i = 0; i < PULLS; i++) {
		for (unsigned j = 0; j < pulls[i].messages; j++)
			seen[pulls[i].numbers[j]] = true;
		pulls[i].messages = 0;
	}
}

PLX_READS(struct netio_push_stats, push_stats, (void), netio_push_stats_read(&pusher, &it))
PLX_READS(struct netio_push_receiver_stats, stats_of, (unsigned i),
	  netio_push_receiver_stats_read(receivers[i], &it))

static inline int push_down(void **state)
{
	netio_push_socket_fini(&pusher);
	netio_push_socket_fini(&pusher);
	for (unsigned i = 0; i < PULLS; i++)
		assert_int_equal(hear_no_more(&pulls[i]), 0);
	return sockets_down(state);
}

#define PUSH_TEST(test) PLX_TEST_WITH(test, netio_up, push_down)

/* As the fabric reports it. */
static inline void make_suspect(struct netio_push_receiver *its, bool suspect)
{
	struct push_receiver *receiver = plx_container_of(its, struct push_receiver, pub);
	const struct connection_owner *owner = (const void *)receiver->connection.session.owner;

	owner->suspect(&receiver->connection, suspect);
}

#endif
