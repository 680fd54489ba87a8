/* SPDX-License-Identifier: BSD-3-Clause */
#include "point.h"

#include "netio_wire.h"

/* messages in flight at once, on all links */
#define HEADS 256
#define VIEWS 1024

static int make_pools(struct references *references)
{
	struct plx_pool_attr attr = {
		.name = "netio heads",
		.object_count = HEADS,
		.node = plx_lcore_node(plx_lcore_id()),
		.owner = plx_lcore_id(),
	};
	int rc = plx_buf_pool_create(&attr, WIRE_MESSAGE_BYTES + REFERENCE_PREFIX_MAX,
				     &references->heads);

	if (rc)
		return rc;
	attr.name = "netio views";
	attr.object_count = VIEWS;
	rc = plx_buf_view_pool_create(&attr, &references->views);
	if (rc) {
		plx_pool_destroy(references->heads);
		references->heads = NULL;
	}
	return rc;
}

static struct plx_buf *view(struct references *references, const struct iovec *piece)
{
	struct plx_buf *buf = plx_buf_view(references->views, piece->iov_base,
					   (uint32_t)piece->iov_len);

	return buf ? buf : plx_buf_wrap(piece->iov_base, 0, (uint32_t)piece->iov_len, NULL, NULL);
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

	if (plx_unlikely(!references->views)) {
		int rc = make_pools(references);

		if (rc)
			return rc;
	}
	head = make_head(references, tag, prefix, prefix_bytes);
	if (!head)
		return -ENOMEM;
	last = head;
	for (size_t i = 0; i < count; i++) {
		if (iov[i].iov_len == 0)
			continue;
		last->next = view(references, &iov[i]);
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
