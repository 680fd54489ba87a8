/* SPDX-License-Identifier: BSD-3-Clause */
/* One message of a user: its pieces, and how it is sent in a frame of its own. */
#ifndef NETIO_MESSAGE_H
#define NETIO_MESSAGE_H

#include "netio_priv.h"

#include <string.h>

/* What is wrong with a message that is longer than the socket accepts. */
#define MESSAGE_TOO_LONG "a message that is longer than it may be"

/* A message to send. */
struct message {
	netio_tag_t tag; /* 0: none */
	const struct iovec *iov;
	size_t count;
	uint64_t length; /* of all pieces */
};

/* Its text says which of the two it is. Return: -EINVAL too many pieces; NETIO_STATUS_TOO_BIG. */
int message_refuse(size_t count, uint64_t message_max);

/* The bytes of all pieces. Return: 0; -EINVAL; NETIO_STATUS_TOO_BIG. */
static inline int message_measure(const struct iovec *iov, size_t count, uint64_t message_max,
				  uint64_t *length_out)
{
	uint64_t length = 0;

	*length_out = 0;
	if (plx_unlikely(count > NETIO_IOV_MAX))
		return message_refuse(count, message_max);
	for (size_t i = 0; i < count; i++) {
		if (plx_unlikely(iov[i].iov_len > message_max - length))
			return message_refuse(count, message_max);
		length += iov[i].iov_len;
	}
	*length_out = length;
	return 0;
}

static inline void message_copy(const struct message *message, uint8_t *to)
{
	for (size_t i = 0; i < message->count; i++) {
		if (plx_likely(message->iov[i].iov_len > 0)) /* else it may be NULL */
			memcpy(to, message->iov[i].iov_base, message->iov[i].iov_len);
		to += message->iov[i].iov_len;
	}
}

/* A message that came in a frame of its own, of at most message_max bytes. Return: NULL; or what is
 * wrong with it. */
const char *message_read(struct plx_buf *message, uint64_t message_max, struct netio_msg *msg_out);

/* Send a copy of a message. Return: enum netio_status; -EINVAL; -ENOMEM. */
int message_sendv(struct plx_link *link, uint64_t message_max, netio_tag_t tag,
		  const struct iovec *iov, size_t count);

/* The same for a message that was measured, of at most NETIO_IOV_MAX pieces, and that the peer
 * accepts. */
int message_send_copy(struct plx_link *link, const struct message *message);

#endif
