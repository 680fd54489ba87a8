/* SPDX-License-Identifier: BSD-3-Clause */
/* Sending and listening sockets, and what all sockets share. In reading order:
 *
 *   point.h        messages, sent and received, and notices to users
 *   netio_wire.c   the wire format: netio_wire.h
 *   message.c      messages: sent as a copy or by reference, and received
 *   connection.c   the connecting side of sessions: connection.h
 *   outbox.c       what waits for one peer: outbox.h
 *   send.c         the unbuffered send socket: sender.h
 *   buffered.c     the buffered send socket
 *   accept.c       the accepting side of sessions: accept.h
 *   spread.c       a listening socket on several lcores
 *   listener.c     the listening socket: listener.h
 *   queue.c        its messages to another thread */
#ifndef NETIO_POINT_H
#define NETIO_POINT_H

#include "fabric_internal.h"
#include "netio_priv.h"
#include "netio_wire.h"

#include <search.h>

/* For trees of tsearch(3). */
static inline void *tree_find(const void *wanted, void *const *root,
			      int (*compare)(const void *a, const void *b))
{
	void **found = tfind(wanted, root, compare);

	return found ? *found : NULL;
}

static inline int compare_numbers(uint64_t one, uint64_t other)
{
	return (one > other) - (one < other);
}

/* message.c ---------------------------------------------------------------------------------- */

/* plx_buf_pool_create for this lcore. */
int message_make_pool(const char *name, uint32_t count, size_t room_bytes,
		      struct plx_pool **pool_out);

#define MESSAGE_MAX_DEFAULT (UINT64_C(16) << 20) /* default of attributes */

/* Check a socket's maximum message length. Return: 0; -EINVAL. */
static inline int message_check_max(uint64_t bytes)
{
	return netio_check_range("message_max_bytes", bytes, WIRE_MESSAGE_MAX_LEAST,
				 WIRE_MESSAGE_MAX_LIMIT);
}

/* The protocol error for a message longer than the socket accepts. */
#define MESSAGE_TOO_LONG "a message that is longer than it may be"

/* A message to send. */
struct message {
	netio_tag_t tag; /* 0: none */
	const struct iovec *iov;
	size_t count;
	uint64_t length; /* of all pieces */
};

/* The longest message that is sent as a copy to a peer that accepts message_max. */
static inline uint64_t message_copy_max(uint64_t message_max)
{
	return message_max < PLX_SEND_COPY_MAX ? message_max : PLX_SEND_COPY_MAX;
}

/* Add up all pieces. Return: whether they are at most NETIO_IOV_MAX, and `most` bytes; otherwise
 * call message_refuse. */
static inline bool message_measure(const struct iovec *iov, size_t count, uint64_t most,
				   uint64_t *length_out)
{
	uint64_t length = 0;

	if (plx_likely(count == 1 && iov->iov_len <= most)) {
		*length_out = iov->iov_len;
		return true;
	}
	*length_out = 0;
	if (plx_unlikely(count > NETIO_IOV_MAX))
		return false;
	for (size_t i = 0; i < count; i++) {
		if (plx_unlikely(iov[i].iov_len > most - length))
			return false;
		length += iov[i].iov_len;
	}
	*length_out = length;
	return true;
}

/* Set the error text. message_max: of the peer. by_reference: what to call for a message that is
 * too long to copy; NULL: this copies nothing. Return: -EINVAL too many pieces;
 * NETIO_STATUS_TOO_BIG. */
int message_refuse(const struct iovec *iov, size_t count, uint64_t message_max,
		   const char *by_reference);

static inline void message_copy(const struct message *message, uint8_t *to)
{
	for (size_t i = 0; i < message->count; i++) {
		if (plx_likely(message->iov[i].iov_len > 0)) /* otherwise it may be NULL */
			memcpy(to, message->iov[i].iov_base, message->iov[i].iov_len);
		to += message->iov[i].iov_len;
	}
}

/* Read a message from its own frame. Return: NULL; or the error as text. */
const char *message_read(struct plx_buf *message, uint64_t message_max, struct netio_msg *msg_out);
/* Send a copy of a measured message of at most NETIO_IOV_MAX pieces that the peer accepts. Return:
 * enum netio_status; -ENOMEM. */
int message_send_copy(struct plx_link *link, const struct message *message);
/* The same for one that message_may_be_sent_long: as link_send_copied. */
int message_send_long(struct plx_link *link, const struct message *message, plx_link_sent_fn sent,
		      void *arg);

/* Whether message_send_long sends it from the caller's memory. */
static inline bool message_may_be_sent_long(const struct plx_link *link,
					    const struct message *message)
{
	return message->count <= 2 && WIRE_MESSAGE_BYTES + message->length <= link_copied_max(link);
}

/* Measure a message and send a copy. by_reference: as message_refuse. Return: enum netio_status;
 * -EINVAL; -ENOMEM. */
static inline int message_sendv(struct plx_link *link, uint64_t message_max, netio_tag_t tag,
				const struct iovec *iov, size_t count, const char *by_reference)
{
	struct message message = {.tag = tag, .iov = iov, .count = count};

	if (plx_unlikely(!link))
		return netio_fail_closed();
	if (plx_unlikely(
		    !message_measure(iov, count, message_copy_max(message_max), &message.length)))
		return message_refuse(iov, count, message_max, by_reference);
	return message_send_copy(link, &message);
}

/* By reference ------------------------------------------------------------------------------- */

#define REFERENCE_PREFIX_MAX 8

/* Buffers for headers and for views of the pieces; when they run out, the heap. Start zeroed. */
struct references {
	struct plx_pool *heads, *views; /* NULL: nothing was sent by reference yet */
};

/* Make the header of a message with prefix_bytes of prefix, followed by views of iov. The caller
 * may use its headroom until it is sent. Return: 0; -ENOMEM. */
int references_make(struct references *references, netio_tag_t tag, const void *prefix,
		    size_t prefix_bytes, const struct iovec *iov, size_t count,
		    struct plx_buf **message_out);
/* Measure a message and send it from the caller's memory. on_sent gets the key by reference_key.
 * Return: enum netio_status; -EINVAL; -ENOMEM. */
static inline int references_send(struct references *references, struct plx_link *link,
				  uint64_t message_max, const struct message *message, uint64_t key,
				  plx_link_sent_fn on_sent, void *arg)
{
	const struct iovec *iov = message->iov;
	struct plx_buf *buf;
	uint64_t length;
	int rc;

	if (plx_unlikely(!link))
		return netio_fail_closed();
	if (plx_unlikely(!message_measure(iov, message->count, message_max, &length)))
		return message_refuse(iov, message->count, message_max, NULL);
	rc = references_make(references, message->tag, NULL, 0, iov, message->count, &buf);
	if (plx_unlikely(rc))
		return rc;
	memcpy(buf->base, &key, sizeof(key));
	rc = plx_link_send_buf(link, buf, on_sent, arg);
	if (plx_unlikely(rc))
		plx_buf_unref(buf);
	return rc;
}

/* The key is stored in the headroom, which is unused until the message is sent. */
static inline uint64_t reference_key(const struct plx_buf *message)
{
	uint64_t key;

	memcpy(&key, message->base, sizeof(key));
	return key;
}

/* Call when all buffers that can return have returned. */
void references_fini(struct references *references);

/* Receiving ---------------------------------------------------------------------------------- */

struct intake {
	/* Take a message. Return: whether there was room; otherwise it is offered again. */
	bool (*give)(struct intake *intake, const struct netio_msg *msg);
	/* The next messages were not sent. NULL: a gap is a protocol error. */
	void (*miss)(struct intake *intake, uint64_t count, uint32_t reasons);
	/* What is neither a message nor a page. NULL: a protocol error. */
	const char *(*answer)(struct intake *intake, const struct plx_buf *message);
	/* After it took some of what it held. wrong: as intake_take. Last: may free the intake. */
	void (*went_on)(struct intake *intake, const char *wrong);
	bool dropped;         /* takes nothing more */
	bool outlives_link;   /* what it holds may be taken after on_close of its link */
	uint64_t source;      /* netio_msg.source */
	uint64_t message_max; /* the longest accepted */
	struct plx_link *link;
	struct turn *turn; /* of its lcore */
	const uint8_t *at; /* next entry of the page being taken; NULL: not begun, or a message */

	/* Messages that the turn had no time for, or that found no room: a chain. */
	struct plx_buf *held, **held_end;
	uint32_t held_count, held_max;
	struct turn_rest rest; /* waits while it holds messages */
};

/* Check the sizes of a link's buffers, 0: the default, and set them, so that pages and messages
 * that fit into a buffer arrive in one piece. Return: 0; -EINVAL. */
int intake_set_buffers(uint32_t bytes, uint32_t count, uint64_t message_max,
		       struct plx_link_attr *attr);
void intake_open(struct intake *intake, struct plx_link *link);
/* Give the message, and hold the rest if the turn is over or there is no room. Return: NULL; the
 * error as constant text. */
const char *intake_take(struct intake *intake, struct plx_buf *message);
/* Drop held messages, and take no more. */
void intake_drop(struct intake *intake);

/* Callbacks ----------------------------------------------------------------------------------- */

/* Call a callback of a user's socket if both exist. It may free the socket. */
#define CALL_USER(socket, callback, ...)                 \
	do {                                             \
		if ((socket) && (socket)->callback)      \
			(socket)->callback(__VA_ARGS__); \
	} while (0)

#endif
