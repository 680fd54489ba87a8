/* SPDX-License-Identifier: BSD-3-Clause */
/* Gets: hot path. One RDMA read each, to the user's buffer or through a bounce buffer. */
#include "tx.h"

#include <rdma/fi_rma.h>

static struct plx_op *free_get(const struct direct *direct)
{
	for (unsigned i = 0; i < DIRECT_GETS; i++) {
		if (!direct->gets[i].buf)
			return &direct->gets[i];
	}
	return NULL;
}

/* Find where to read to: the user's buffer, or a bounce buffer if the provider cannot write there.
 * Return: 0; -ENOMEM. */
static int find_sink(struct plx_link *link, struct plx_op *op, uint8_t **to, void **desc)
{
	struct plx_buf *into = op->buf;
	int rc;

	*to = into->data + into->len;
	*desc = NULL;
	if (link->direct->own_sinks) {
		rc = fi_mr_reg(link->set->fids.domain, *to, op->sink.bytes, FI_READ, 0, 0, 0,
			       &op->sink.mr, NULL);
		if (rc)
			return plx_fail(ENOMEM,
					"%s: registering %u bytes to read into failed: %s; is the "
					"limit of locked memory (ulimit -l) large enough?",
					link->set->label, op->sink.bytes, fi_strerror(-rc));
		*desc = fi_mr_desc(op->sink.mr);
		return 0;
	}
	if (!link->driver->needs_mr || (*desc = set_desc(link->set, into->zone_index)))
		return 0;
	op->bounced = link_buf_get(link->home, op->sink.bytes, true);
	if (!op->bounced)
		return -ENOMEM;
	*to = op->bounced->data;
	*desc = set_desc(link->set, op->bounced->zone_index);
	return *desc ? 0 : set_need_zone(link->set, op->bounced->zone_index);
}

/* Free the operation. */
static void leave_sink(struct plx_op *op)
{
	if (op->sink.mr)
		fi_close(&op->sink.mr->fid);
	plx_buf_unref(op->bounced);
	op->buf = op->bounced = NULL;
	op->sink.mr = NULL;
}

static int submit_get(struct plx_link *link, struct plx_op *op, const struct direct_target *target)
{
	uint8_t *to;
	void *desc;
	ssize_t rc = find_sink(link, op, &to, &desc);

	if (plx_unlikely(rc))
		return (int)rc;
	rc = fi_read(link->ep, to, target->bytes, desc, 0, target->remote->address + target->offset,
		     target->remote->key, &op->context);
	if (plx_unlikely(rc))
		return tx_not_sent(link, rc);
	link->direct->get_count++;
	tx_count_ops(link, 1);
	return 0;
}

int plx_link_get(struct plx_link *link, const struct plx_remote *from, uint64_t offset,
		 uint32_t bytes, struct plx_buf *into, plx_link_sent_fn done, void *arg)
{
	struct direct_target target = {from, offset, bytes};
	struct plx_op *op;
	int rc = direct_check(link, &target, PLX_REMOTE_READ);

	ASSERT_OWNER(link->home->id);
	if (plx_unlikely(rc))
		return rc;
	if (plx_unlikely(bytes == 0))
		return plx_fail(EINVAL, "getting 0 bytes: give 1 or more");
	if (plx_unlikely(bytes > plx_buf_tailroom(into)))
		return plx_fail(EINVAL,
				"getting %u bytes into a buffer with room for %u; give a larger "
				"one, or ask for fewer",
				bytes, plx_buf_tailroom(into));
	op = free_get(link->direct);
	if (plx_unlikely(!op || link->tx_current.head))
		return direct_no_room(link);
	op->buf = into;
	op->sent = done;
	op->sent_arg = arg;
	op->sink.bytes = bytes;
	rc = submit_get(link, op, &target);
	if (plx_unlikely(rc)) {
		leave_sink(op);
		return rc == -EAGAIN ? direct_no_room(link) : rc;
	}
	link->stats.gets++;
	return 0;
}

/* The provider has completed a get. libfabric's net and tcp 1.17 report one twice if the connection
 * breaks while its data arrives. */
void get_done(struct plx_op *op, int status)
{
	struct plx_link *link = op->link;
	struct plx_buf *buf = op->buf;

	if (plx_unlikely(!buf))
		return;
	link->direct->get_count--;
	tx_count_ops(link, -1);
	if (plx_likely(status == 0)) {
		uint8_t *end = plx_buf_append(buf, op->sink.bytes);

		if (op->bounced && end)
			memcpy(end, op->bounced->data, op->sink.bytes);
		link->stats.bytes_got += op->sink.bytes;
		liveness_heard(link); /* on net, a get's data overtakes heartbeats */
	}
	leave_sink(op);
	tx_finished(link, buf, op->sent, op->sent_arg, status);
	tx_completed(link);
}
