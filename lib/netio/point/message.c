/* SPDX-License-Identifier: BSD-3-Clause */
#include "point.h"

#include "netio_wire.h"

void netio_msg_keep(const struct netio_msg *msg)
{
	plx_buf_ref(msg->buf);
}

void netio_msg_release(const struct netio_msg *msg)
{
	plx_buf_unref(msg->buf);
}

int message_check_max(uint64_t bytes)
{
	if (bytes >= WIRE_MESSAGE_MAX_LEAST && bytes <= WIRE_MESSAGE_MAX_LIMIT)
		return 0;
	return plx_fail(EINVAL, "message_max_bytes %llu: give %d to %llu",
			(unsigned long long)bytes, WIRE_MESSAGE_MAX_LEAST,
			(unsigned long long)WIRE_MESSAGE_MAX_LIMIT);
}

int message_refuse(size_t count, uint64_t message_max)
{
	if (count > NETIO_IOV_MAX)
		return plx_fail(EINVAL, "a message of %zu pieces: give at most %d", count,
				NETIO_IOV_MAX);
	return plx_fail(EMSGSIZE, "longer than %llu bytes, the most that is accepted",
			(unsigned long long)message_max);
}

const char *message_read(struct plx_buf *message, uint64_t message_max, struct netio_msg *msg_out)
{
	if (plx_unlikely(message->len < WIRE_MESSAGE_BYTES))
		return "a message without a header";
	if (plx_unlikely(wire_get64(message->data) != WIRE_MESSAGE))
		return "a message with unknown flags";
	if (plx_unlikely(message->len - WIRE_MESSAGE_BYTES > message_max))
		return MESSAGE_TOO_LONG;
	*msg_out = (struct netio_msg){
		.data = message->data + WIRE_MESSAGE_BYTES,
		.len = message->len - WIRE_MESSAGE_BYTES,
		.tag = wire_get64(message->data + 8),
		.buf = message,
	};
	return NULL;
}

int message_send_copy(struct plx_link *link, const struct message *message)
{
	uint8_t header[WIRE_MESSAGE_BYTES];
	struct iovec pieces[1 + NETIO_IOV_MAX];

	wire_message_write(header, message->tag);
	pieces[0] = (struct iovec){header, sizeof(header)};
	for (size_t i = 0; i < message->count; i++)
		pieces[1 + i] = message->iov[i];
	return plx_link_sendv(link, pieces, 1 + (int)message->count);
}

int message_sendv(struct plx_link *link, uint64_t message_max, netio_tag_t tag,
		  const struct iovec *iov, size_t count)
{
	struct message message = {.tag = tag, .iov = iov, .count = count};
	int rc;

	if (plx_unlikely(!link))
		return netio_fail_closed();
	rc = message_measure(iov, count, message_max, &message.length);
	return plx_unlikely(rc) ? rc : message_send_copy(link, &message);
}
