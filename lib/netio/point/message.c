/* SPDX-License-Identifier: BSD-3-Clause */
#include "point.h"

void netio_msg_keep(const struct netio_msg *msg)
{
	plx_buf_ref(msg->buf);
}

void netio_msg_release(const struct netio_msg *msg)
{
	plx_buf_unref(msg->buf);
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
	if (plx_unlikely(get64(message->data) != WIRE_MESSAGE))
		return "a message with unknown flags";
	if (plx_unlikely(message->len - WIRE_MESSAGE_BYTES > message_max))
		return MESSAGE_TOO_LONG;
	*msg_out = (struct netio_msg){
		.data = message->data + WIRE_MESSAGE_BYTES,
		.len = message->len - WIRE_MESSAGE_BYTES,
		.tag = get64(message->data + 8),
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

/* messages in flight at once, on all links */
#define HEADS 256
#define VIEWS 1024

static int make_pools(struct references *references)
{
	struct plx_pool_attr heads = pool_attr("netio heads", HEADS);
	struct plx_pool_attr views = pool_attr("netio views", VIEWS);
	int rc = 0;

	if (!references->heads)
		rc = plx_buf_pool_create(&heads, WIRE_MESSAGE_BYTES + REFERENCE_PREFIX_MAX,
					 &references->heads);
	return rc ?: plx_buf_view_pool_create(&views, &references->views);
}

static struct plx_buf *make_head(struct references *references, netio_tag_t tag, const void *prefix,
				 size_t prefix_bytes)
{
	struct plx_buf *head = plx_buf_get(references->heads);

	if (plx_unlikely(!head))
		head = plx_buf_alloc(WIRE_MESSAGE_BYTES + REFERENCE_PREFIX_MAX);
	if (!head)
		return NULL;
	wire_message_write(plx_buf_append(head, WIRE_MESSAGE_BYTES), tag);
	if (prefix_bytes)
		memcpy(plx_buf_append(head, (uint32_t)prefix_bytes), prefix, prefix_bytes);
	return head;
}

int references_make(struct references *references, netio_tag_t tag, const void *prefix,
		    size_t prefix_bytes, const struct iovec *iov, size_t count,
		    struct plx_buf **message_out)
{
	struct plx_buf *head, *last;
	int rc = plx_unlikely(!references->views) ? make_pools(references) : 0;

	if (rc)
		return rc;
	head = make_head(references, tag, prefix, prefix_bytes);
	if (!head)
		return -ENOMEM;
	last = head;
	for (size_t i = 0; i < count; i++) {
		void *data = iov[i].iov_base;
		uint32_t bytes = (uint32_t)iov[i].iov_len;

		if (bytes == 0)
			continue;
		last->next = plx_buf_view(references->views, data, bytes)
				   ?: plx_buf_wrap(data, 0, bytes, NULL, NULL);
		last = last->next;
		if (!last) {
			plx_buf_unref(head);
			return -ENOMEM;
		}
	}
	*message_out = head;
	return 0;
}

void references_fini(struct references *references)
{
	plx_pool_destroy(references->heads);
	plx_pool_destroy(references->views);
}
