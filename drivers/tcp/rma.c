/* SPDX-License-Identifier: BSD-3-Clause */
/* One-sided reads and writes. Peers access memory that this side registered, by key. Each access is
 * checked on arrival; an invalid one ends the connection, as a device would. */
#include "tcp.h"

#include <rdma/fi_rma.h>
#include <stdlib.h>

static struct tcp_ep *ep_of(struct fid_ep *fid)
{
	return (struct tcp_ep *)fid;
}

/* Requests of a peer --------------------------------------------------------------------------- */

enum tcp_breach rma_begin_write(struct tcp_ep *ep)
{
	ep->target = tcp_mr_find(ep, ep->frame.key, ep->frame.address, ep->frame.length,
				 FI_REMOTE_WRITE, &ep->into);
	return ep->target ? TCP_BREACH_NONE : TCP_BREACH_WRITE;
}

void rma_end_write(struct tcp_ep *ep)
{
	struct prov_completion *completion;

	ep->into = NULL;
	if (!(ep->frame.flags & WIRE_HAS_DATA))
		return;
	completion = cq_push(ep->base.rx_cq);
	*completion = (struct prov_completion){
		.context = ep->write_context,
		.flags = FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA,
		.length = ep->write_context ? ep->frame.data : ep->frame.length,
		.data = ep->frame.data,
	};
}

enum tcp_breach rma_answer(struct tcp_ep *ep, bool *stalled_out)
{
	struct prov_mr *mr;
	uint8_t *from = tcp_mr_find(ep, ep->frame.key, ep->frame.address, ep->frame.length,
				    FI_REMOTE_READ, &mr);
	struct iovec iov = {from, ep->frame.length};
	struct tcp_message message = {
		.frame = {.length = ep->frame.length, .kind = WIRE_READ_DATA},
		.iov = &iov,
		.count = 1,
		.length = ep->frame.length,
		.mr = mr,
		.flags = FI_MORE, /* more requests may follow in the received bytes */
	};

	if (!from)
		return TCP_BREACH_READ;
	if (ep->answers >= WIRE_READS_MAX)
		return TCP_BREACH_READS;
	if (ep->send_failed)
		return TCP_BREACH_NONE; /* it would not arrive; the connection closes next */
	*stalled_out = tcp_send_message(ep, &message) != 0;
	return TCP_BREACH_NONE;
}

enum tcp_breach rma_begin_data(struct tcp_ep *ep)
{
	if (ep->reads_head == ep->reads_tail)
		return TCP_BREACH_UNASKED;
	if (rma_oldest(ep)->length != ep->frame.length)
		return TCP_BREACH_ANSWER;
	return TCP_BREACH_NONE;
}

void rma_end_data(struct tcp_ep *ep)
{
	const struct tcp_read *read = rma_oldest(ep);

	ep->reads_head++;
	if (read->flags)
		cq_push_done(ep->base.tx_cq, read->context, read->flags, 0);
}

void rma_flush(struct tcp_ep *ep, int err)
{
	ep->into = NULL;
	for (; ep->reads_head != ep->reads_tail; ep->reads_head++) {
		const struct tcp_read *read = rma_oldest(ep);

		if (read->flags)
			cq_push_done(ep->base.tx_cq, read->context, read->flags, err);
	}
	free(ep->reads);
	ep->reads = NULL;
	ep->reads_head = ep->reads_tail = 0;
}

/* Our requests --------------------------------------------------------------------------------- */

static uint64_t completion_of(const struct tcp_ep *ep, uint64_t flags, uint64_t kind)
{
	return !ep->base.tx_selective || flags & FI_COMPLETION ? FI_RMA | kind : 0;
}

/* A read takes a place among the sends, so that the queue has room if it fails. */
static bool has_room(const struct tcp_ep *ep)
{
	return ep->reads_tail - ep->reads_head < WIRE_READS_MAX && under_way(ep) < ep->base.tx_size;
}

/* Whether a single remote range serves all our pieces. */
static bool is_one_place(const struct fi_msg_rma *msg)
{
	return msg->iov_count <= PROV_IOV_MAX && msg->rma_iov_count == 1 &&
	       iov_bytes(msg->msg_iov, msg->iov_count) == msg->rma_iov->len;
}

static ssize_t read_message(struct fid_ep *fid, const struct fi_msg_rma *msg, uint64_t flags)
{
	struct tcp_ep *ep = ep_of(fid);
	struct tcp_message message = {.frame = {.kind = WIRE_READ}, .flags = flags & FI_MORE};
	struct tcp_read *read;
	ssize_t rc;

	if (!is_one_place(msg))
		return -FI_EINVAL;
	if (msg->rma_iov->len > WIRE_LENGTH_MAX)
		return -FI_EMSGSIZE;
	if (!has_room(ep))
		return -FI_EAGAIN;
	if (!ep->reads)
		ep->reads = calloc(WIRE_READS_MAX, sizeof(*ep->reads));
	if (!ep->reads)
		return -FI_ENOMEM;
	message.frame.length = (uint32_t)msg->rma_iov->len;
	message.frame.address = msg->rma_iov->addr;
	message.frame.key = msg->rma_iov->key;
	rc = tcp_send_message(ep, &message);
	if (rc)
		return rc;
	read = &ep->reads[ep->reads_tail++ % WIRE_READS_MAX];
	*read = (struct tcp_read){
		.piece_count = (uint32_t)msg->iov_count,
		.length = (uint32_t)msg->rma_iov->len,
		.context = msg->context,
		.flags = completion_of(ep, flags, FI_READ),
	};
	if (msg->iov_count)
		memcpy(read->pieces, msg->msg_iov, msg->iov_count * sizeof(*msg->msg_iov));
	return 0;
}

/* completion: its flags; 0: none wanted. */
static ssize_t post_write(struct fid_ep *fid, const struct fi_msg_rma *msg, uint64_t flags,
			  uint64_t completion)
{
	struct tcp_message message = {
		.frame = {.kind = WIRE_WRITE},
		.iov = msg->msg_iov,
		.count = msg->iov_count,
		.context = msg->context,
		.flags = flags,
		.completion = completion,
	};

	if (!is_one_place(msg) || (flags & FI_INJECT && msg->rma_iov->len > TCP_INJECT_MAX))
		return -FI_EINVAL;
	message.length = msg->rma_iov->len;
	message.frame.length = (uint32_t)message.length;
	message.frame.address = msg->rma_iov->addr;
	message.frame.key = msg->rma_iov->key;
	if (flags & FI_REMOTE_CQ_DATA) {
		message.frame.flags = WIRE_HAS_DATA;
		message.frame.data = msg->data;
	}
	return tcp_send_message(ep_of(fid), &message);
}

static ssize_t write_message(struct fid_ep *fid, const struct fi_msg_rma *msg, uint64_t flags)
{
	return post_write(fid, msg, flags, completion_of(ep_of(fid), flags, FI_WRITE));
}

/* libfabric's other calls ------------------------------------------------------------------------
 */

/* An access built from the arguments of the other calls. */
struct access {
	struct iovec iov;
	struct fi_rma_iov to;
	struct fi_msg_rma msg;
};

static const struct fi_msg_rma *one(struct access *access, const void *buf, size_t length,
				    uint64_t address, uint64_t key, uint64_t data, void *context)
{
	access->iov = (struct iovec){(void *)(uintptr_t)buf, length};
	access->to = (struct fi_rma_iov){.addr = address, .len = length, .key = key};
	access->msg = (struct fi_msg_rma){
		.msg_iov = &access->iov,
		.iov_count = 1,
		.rma_iov = &access->to,
		.rma_iov_count = 1,
		.context = context,
		.data = data,
	};
	return &access->msg;
}

static const struct fi_msg_rma *many(struct access *access, const struct iovec *iov, size_t count,
				     uint64_t address, uint64_t key, void *context)
{
	one(access, NULL, count > PROV_IOV_MAX ? 0 : iov_bytes(iov, count), address, key, 0,
	    context);
	access->msg.msg_iov = iov;
	access->msg.iov_count = count;
	return &access->msg;
}

static ssize_t read_one(struct fid_ep *fid, void *buf, size_t length, void *desc, fi_addr_t source,
			uint64_t address, uint64_t key, void *context)
{
	struct access access;

	return read_message(fid, one(&access, buf, length, address, key, 0, context),
			    ep_of(fid)->base.tx_flags);
}

static ssize_t read_pieces(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count,
			   fi_addr_t source, uint64_t address, uint64_t key, void *context)
{
	struct access access;

	return read_message(fid, many(&access, iov, count, address, key, context),
			    ep_of(fid)->base.tx_flags);
}

static ssize_t write_one(struct fid_ep *fid, const void *buf, size_t length, void *desc,
			 fi_addr_t destination, uint64_t address, uint64_t key, void *context)
{
	struct access access;

	return write_message(fid, one(&access, buf, length, address, key, 0, context),
			     ep_of(fid)->base.tx_flags & ~(FI_INJECT | FI_REMOTE_CQ_DATA));
}

static ssize_t write_pieces(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count,
			    fi_addr_t destination, uint64_t address, uint64_t key, void *context)
{
	struct access access;

	return write_message(fid, many(&access, iov, count, address, key, context),
			     ep_of(fid)->base.tx_flags & ~(FI_INJECT | FI_REMOTE_CQ_DATA));
}

static ssize_t write_data(struct fid_ep *fid, const void *buf, size_t length, void *desc,
			  uint64_t data, fi_addr_t destination, uint64_t address, uint64_t key,
			  void *context)
{
	struct access access;

	return write_message(fid, one(&access, buf, length, address, key, data, context),
			     (ep_of(fid)->base.tx_flags & ~FI_INJECT) | FI_REMOTE_CQ_DATA);
}

/* The next two produce no completion. */
static ssize_t inject_one(struct fid_ep *fid, const void *buf, size_t length, fi_addr_t destination,
			  uint64_t address, uint64_t key)
{
	struct access access;

	return post_write(fid, one(&access, buf, length, address, key, 0, NULL), FI_INJECT, 0);
}

static ssize_t inject_data(struct fid_ep *fid, const void *buf, size_t length, uint64_t data,
			   fi_addr_t destination, uint64_t address, uint64_t key)
{
	struct access access;

	return post_write(fid, one(&access, buf, length, address, key, data, NULL),
			  FI_INJECT | FI_REMOTE_CQ_DATA, 0);
}

struct fi_ops_rma tcp_rma_ops = {
	.size = sizeof(struct fi_ops_rma),
	.read = read_one,
	.readv = read_pieces,
	.readmsg = read_message,
	.write = write_one,
	.writev = write_pieces,
	.writemsg = write_message,
	.inject = inject_one,
	.writedata = write_data,
	.injectdata = inject_data,
};
