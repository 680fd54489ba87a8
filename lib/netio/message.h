/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages that go by themselves, each one of its link. */
#ifndef NETIO_MESSAGE_H
#define NETIO_MESSAGE_H

#include "netio_priv.h"

/* What is wrong with a message that is longer than the socket accepts. */
#define MESSAGE_TOO_LONG "a message that is longer than it may be"

/* A message that came by itself, of at most message_max bytes. Return: NULL; or what is wrong with
 * it. */
const char *message_read(struct plx_buf *message, uint64_t message_max, struct netio_msg *msg_out);

/* Send a copy of a message. Return: enum netio_status; -EINVAL; -ENOMEM. */
int message_sendv(struct plx_link *link, uint64_t message_max, netio_tag_t tag,
		  const struct iovec *iov, size_t count);

/* The bytes of all pieces. Return: 0; -EINVAL; NETIO_STATUS_TOO_BIG. */
int message_measure(const struct iovec *iov, size_t count, uint64_t message_max,
		    uint64_t *length_out);

#endif
