/* SPDX-License-Identifier: BSD-3-Clause */
/* Writing and reading the peer's memory: hot path. A put is one RDMA write, with immediate data or
 * a frame after it, in order with messages. A get is one RDMA read, to the user's buffer or through
 * a bounce buffer. */
#include "tx.h"

#include <rdma/fi_rma.h>

/* Puts ----------------------------------------------------------------------------------------- */

/* Arguments of a put. */
struct put {
	struct direct_target target;
	struct plx_buf *buf, *bounced;
	plx_link_sent_fn sent;
	void *arg;
	bool notify;
	uint32_t value;
};

/* Return: the number of pieces; an empty put has one, because libfabric's verbs 1.17 writes to the
 * address of the first. -E2BIG: more than one operation takes, or a piece that the provider cannot
 * read. */
static int gather(struct plx_link *link, const struct plx_buf *buf, struct iovec *iov, void **desc)
{
	int count = 0;

	for (; buf; buf = buf->next) {
		if (!buf->len)
			continue;
		if (count == (int)link->iov_max)
			return -E2BIG;
		desc[count] = set_desc(link->set, buf->zone_index);
		if (link->driver->needs_mr && !desc[count])
			return -E2BIG;
		iov[count++] = (struct iovec){buf->data, buf->len};
	}
	if (count == 0) {
		static uint8_t nothing;

		desc[count] = NULL;
		iov[count++] = (struct iovec){&nothing, 0};
	}
	return count;
}

/* Return: 0; -EAGAIN; -ENOTCONN the link has ended. */
static int submit_put(struct plx_link *link, struct plx_op *op, const struct put *put,
		      const struct iovec *iov, void **desc, int count)
{
	const struct plx_remote *remote = put->target.remote;
	struct fi_rma_iov to = {
		.addr = remote->address + put->target.offset,
		.len = put->target.bytes,
		.key = remote->key,
	};
	struct fi_msg_rma msg = {
		.msg_iov = iov,
		.desc = put->target.bytes ? desc : NULL,
		.iov_count = (size_t)count,
		.rma_iov = &to,
		.rma_iov_count = 1,
		.context = &op->context,
		.data = put->value,
	};
	bool immediate = put->notify && link->direct->immediate;
	ssize_t rc = fi_writemsg(link->ep, &msg,
				 FI_COMPLETION | (immediate ? FI_REMOTE_CQ_DATA : 0));

	if (plx_unlikely(rc))
		return tx_not_sent(link, rc);
	tx_count_ops(link, 1);
	tx_signalled(link);
	if (immediate) {
		link->tx_frames++;
		liveness_sent(link);
	}
	return 0;
}

/* The put was posted: its notification must follow, in order. */
static void notify_by_frame(struct plx_link *link, uint32_t value)
{
	uint8_t frame[FRAME_HEADER_BYTES + FRAME_PUT_BYTES];

	tx_write_header(link, frame, FRAME_PUT, 0, FRAME_PUT_BYTES);
	put32(frame + FRAME_HEADER_BYTES, value);
	if (tx_send_small(link, frame, sizeof(frame), false) == 0)
		tx_count_frame(link);
	else
		close_now(link, PLX_LINK_LOCAL, "%s took a put, but not the frame after it",
			  link->set->label);
}

static int put_now(struct plx_link *link, struct put *put)
{
	struct iovec iov[LINK_IOV_MAX];
	void *desc[LINK_IOV_MAX];
	int count = gather(link, put->buf, iov, desc);
	struct plx_op *op;
	int rc;

	if (plx_unlikely(count < 0)) { /* through a copy */
		put->bounced = send_buf_bounce(link, put->buf, put->target.bytes);
		count = put->bounced ? gather(link, put->bounced, iov, desc) : -ENOMEM;
	}
	if (plx_unlikely(count < 0))
		return count;
	op = tx_take_op(link, LINK_TX_CONTROL); /* start_put checked */
	rc = submit_put(link, op, put, iov, desc, count);
	if (plx_unlikely(rc)) {
		tx_give_op(link, op);
		plx_buf_unref(put->bounced);
		return rc == -EAGAIN ? direct_no_room(link) : rc;
	}
	op->buf = put->buf;
	op->bounced = put->bounced;
	op->sent = put->sent;
	op->sent_arg = put->arg;
	link->stats.puts++;
	link->stats.bytes_put += put->target.bytes;
	if (put->notify && !link->direct->immediate)
		notify_by_frame(link, put->value);
	return 0;
}

static int start_put(struct plx_link *link, struct put *put)
{
	uint32_t frames;
	int rc;

	ASSERT_OWNER(link->home->id);
	put->target.bytes = plx_buf_total(put->buf);
	rc = direct_check(link, &put->target, PLX_REMOTE_WRITE);
	if (plx_unlikely(rc))
		return rc;
	frames = put->notify && !link->direct->immediate; /* which take another operation */
	if (plx_unlikely(link->tx_current.head || link->tx_free_count <= LINK_TX_CONTROL + frames))
		return direct_no_room(link);
	/* Bounds long puts: a put of n MiB waits until at most 16 / n operations are in flight.
	 * That allows about 32 MiB if all have one length, 80 MiB otherwise (16 + 16 * (1 + 1/2 +
	 * ... + 1/31)). */
	if (plx_unlikely(put->target.bytes * link->tx_inflight > DIRECT_BYTES_MAX))
		return direct_no_room(link);
	if (plx_unlikely(put->notify && !tx_frames_left(link)))
		return tx_would_block(link);
	return put_now(link, put);
}

int plx_link_put(struct plx_link *link, const struct plx_remote *to, uint64_t offset,
		 struct plx_buf *buf, plx_link_sent_fn sent, void *arg)
{
	struct put put = {.target = {to, offset, 0}, .buf = buf, .sent = sent, .arg = arg};

	return start_put(link, &put);
}

int plx_link_put_and_tell(struct plx_link *link, const struct plx_remote *to, uint64_t offset,
			  struct plx_buf *buf, uint32_t value, plx_link_sent_fn sent, void *arg)
{
	struct put put = {
		.target = {to, offset, 0},
		.buf = buf,
		.sent = sent,
		.arg = arg,
		.notify = true,
		.value = value,
	};

	return start_put(link, &put);
}

/* Gets ----------------------------------------------------------------------------------------- */

/* Find where to read to: the user's buffer, or a bounce buffer if the provider cannot write there.
 * Return: 0; -ENOMEM. */
static int find_sink(struct plx_link *link, struct plx_op *op, uint8_t **to, void **desc)
{
	struct plx_buf *into = op->buf;
	int rc;

	*to = into->data + into->len;
	*desc = NULL;
	if (link->is_iwarp) {
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
	struct plx_op *op = NULL;
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
	for (unsigned i = 0; i < DIRECT_GETS && !op; i++)
		op = link->direct->gets[i].buf ? NULL : &link->direct->gets[i];
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

/* The provider has completed a get. libfabric's tcp 1.17 reports one twice if the connection breaks
 * while its data arrives. */
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
		liveness_heard(link,
			       link->home->turn_ns); /* a get's data may overtake heartbeats */
	}
	leave_sink(op);
	tx_finished(link, buf, op->sent, op->sent_arg, status);
	tx_completed(link);
}
