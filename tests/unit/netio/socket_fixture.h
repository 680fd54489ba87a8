/* SPDX-License-Identifier: BSD-3-Clause */
/* A listening socket and its recorded events, on the test's loop. */
#ifndef SOCKET_FIXTURE_H
#define SOCKET_FIXTURE_H

#include "netio_fixture.h"

#include "listener.h"

#define LIMIT_NS (20 * PLX_NS_PER_S)

/* Turn the loop until cond holds; fail if it never does. */
#define TURN_UNTIL(cond) wait_doing(cond, plx_loop_turn())

static inline void turn_ms(unsigned ms)
{
	uint64_t end_ns = plx_now_ns() + ms * PLX_NS_PER_MS;

	while (plx_now_ns() < end_ns)
		plx_loop_turn();
}

/* Messages that a receiver keeps, oldest first. */
struct keeper {
	unsigned more; /* further ones to keep */
	unsigned count;
	struct netio_msg msgs[512];
};

static inline void keep_message(struct keeper *keeper, const struct netio_msg *msg)
{
	if (keeper->more == 0)
		return;
	keeper->more--;
	netio_msg_keep(msg);
	keeper->msgs[keeper->count++] = *msg;
}

static inline void release_messages(struct keeper *keeper, unsigned count)
{
	assert_in_range(count, 0, keeper->count);
	for (unsigned i = 0; i < count; i++)
		netio_msg_release(&keeper->msgs[i]);
	keeper->count -= count;
	memmove(keeper->msgs, keeper->msgs + count, keeper->count * sizeof(keeper->msgs[0]));
}

/* It keeps no more. */
static inline void release_all(struct keeper *keeper)
{
	keeper->more = 0;
	release_messages(keeper, keeper->count);
}

/* Messages of 8 bytes and more start with their number; the other bytes are its lowest. Return:
 * whether it has a number. */
static inline bool read_number(const struct netio_msg *msg, uint64_t *number_out, unsigned *wrong)
{
	const uint8_t *data = msg->data;

	if (msg->len < sizeof(*number_out))
		return false;
	memcpy(number_out, data, sizeof(*number_out));
	for (size_t i = sizeof(*number_out); i < msg->len; i++)
		*wrong += data[i] != (uint8_t)*number_out;
	return true;
}

/* A listening socket, and what it heard. */
struct heard {
	struct netio_listen_socket socket;
	unsigned port;
	struct netio_recv_socket *from; /* the newest connection; NULL: closed */
	unsigned established, closed, messages;
	enum plx_link_reason reason;
	char why[256];
	size_t len; /* of the newest message */
	netio_tag_t tag;
	uint64_t source;
	uint8_t *bytes; /* a copy */
	uint64_t next;  /* the expected number, unless by_tag: then it is the message's tag */
	bool by_tag;
	uint64_t numbers[4096]; /* of the messages that have one */
	unsigned wrong;
	struct keeper kept;
};

static struct heard heard;

static inline void hear_established(struct netio_recv_socket *socket)
{
	struct heard *it = socket->listen_socket->data;

	it->from = socket;
	it->established++;
}

static inline void hear_closed(struct netio_recv_socket *socket, enum plx_link_reason reason,
			       const char *why)
{
	struct heard *it = socket->listen_socket->data;

	if (it->from == socket)
		it->from = NULL;
	it->closed++;
	it->reason = reason;
	snprintf(it->why, sizeof(it->why), "%s", why);
}

static inline void hear_message(struct netio_recv_socket *socket, const struct netio_msg *msg)
{
	struct heard *it = socket->listen_socket->data;
	uint64_t number;

	assert_int_equal((uintptr_t)msg->data % 8, 0);
	it->len = msg->len;
	it->tag = msg->tag;
	it->source = msg->source;
	free(it->bytes);
	it->bytes = malloc(msg->len + 1);
	assert_non_null(it->bytes);
	memcpy(it->bytes, msg->data, msg->len);
	if (read_number(msg, &number, &it->wrong)) {
		it->wrong += number != (it->by_tag ? msg->tag : it->next++);
		it->numbers[it->messages % PLX_ARRAY_LEN(it->numbers)] = number;
	} else {
		it->wrong += it->by_tag;
	}
	it->messages++;
	keep_message(&it->kept, msg);
}

/* As if the process or the network of the newest connection's peer failed. */
static inline void cut_connection(struct heard *it)
{
	assert_non_null(it->from);
	plx_link_abort(receiver_of(it->from)->accepted.session.link);
}

/* At the same port as before, if any. */
static inline void listen_again(struct heard *it, const struct netio_listen_attr *attr)
{
	assert_works(netio_listen_socket_init(&ctx.evloop, &it->socket, attr));
	it->socket.data = it;
	it->socket.cb_connection_established = hear_established;
	it->socket.cb_connection_closed = hear_closed;
	it->socket.cb_msg_received = hear_message;
	assert_works(netio_listen(&it->socket, test_host(), it->port));
	it->port = netio_listen_socket_port(&it->socket);
}

static inline void listen_with(const struct netio_listen_attr *attr)
{
	heard.port = 0;
	listen_again(&heard, attr);
}

/* Return: the number of wrong messages. */
static inline unsigned hear_no_more(struct heard *it)
{
	unsigned wrong = it->wrong;

	release_all(&it->kept);
	free(it->bytes);
	netio_listen_socket_fini(&it->socket);
	*it = (struct heard){0};
	return wrong;
}

/* Take what is in its queue. Return: how many messages. */
static inline unsigned take_queued(void)
{
	struct netio_msg msg;
	unsigned count = 0;

	while (netio_recv(&heard.socket, &msg) == 0) {
		netio_msg_release(&msg);
		count++;
	}
	return count;
}

static inline void connect_to_listening(struct netio_send_socket *socket)
{
	unsigned port = netio_listen_socket_port(&heard.socket);

	assert_works(netio_connect(socket, test_host(), port));
}

static inline void connect_buffered_to_listening(struct netio_buffered_send_socket *socket)
{
	unsigned port = netio_listen_socket_port(&heard.socket);

	assert_works(netio_buffered_connect(socket, test_host(), port));
}

/* The loop turns between the sockets and netio_fini, or not: both must work. */
PLX_FIXTURE(sockets_down, netio_down(state), hear_no_more(&heard))

/* A message with a number. */
static inline void fill(void *to, uint64_t number, size_t len)
{
	memset(to, (uint8_t)number, len);
	if (len >= sizeof(number))
		memcpy(to, &number, sizeof(number));
}

#define SOCKET_TEST(test) PLX_TEST_WITH(test, netio_up, sockets_down)

#endif
