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
	ep->into = NULL;
	if (!(ep->frame.flags & WIRE_HAS_DATA))
		return;
	*cq_push(ep->base.rx_cq) = (struct prov_completion){
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

void rma_end_data(struct tcp_ep *ep, int err)
{
	const struct tcp_read *read = rma_oldest(ep);

	ep->reads_head++;
	tcp_report(ep, read->context, read->flags, err);
}

void rma_flush(struct tcp_ep *ep, int err)
{
	ep->into = NULL;
	while (ep->reads_head != ep->reads_tail)
		rma_end_data(ep, err);
	free(ep->reads);
	ep->reads = NULL;
	ep->reads_head = ep->reads_tail = 0;
}

/* Our requests --------------------------------------------------------------------------------- */

static uint64_t completion_of(const struct tcp_ep *ep, uint64_t flags, uint64_t kind)
{
	bool completes = !ep->base.tx_selective || flags & FI_COMPLETION;

	return FI_RMA | kind | (completes ? 0 : TCP_IF_FAILED);
}

/* A read takes a place among the sends, so that the queue has room if it fails. */
static bool has_room(const struct tcp_ep *ep)
{
	return ep->reads_tail - ep->reads_head < WIRE_READS_MAX && under_way(ep) < ep->base.tx_size;
}

/* An access to the peer's memory, as all of libfabric's calls describe it; its kind is not set. */
static struct tcp_message access_of(const struct iovec *iov, size_t count, uint64_t address,
				    uint64_t key, void *context, uint64_t flags)
{
	uint64_t length = count > PROV_IOV_MAX ? 0 : iov_bytes(iov, count);

	return (struct tcp_message){
		.frame = {.length = (uint32_t)length, .address = address, .key = key},
		.iov = iov,
		.count = count,
		.length = length,
		.context = context,
		.flags = flags,
	};
}

/* msg must have a single remote range for all its pieces. */
static bool access_of_message(const struct fi_msg_rma *msg, uint64_t flags,
			      struct tcp_message *access_out)
{
	if (msg->rma_iov_count != 1)
		return false;
	*access_out = access_of(msg->msg_iov, msg->iov_count, msg->rma_iov->addr, msg->rma_iov->key,
				msg->context, flags);
	return access_out->length == msg->rma_iov->len;
}

static ssize_t read_it(struct fid_ep *fid, const struct tcp_message *access)
{
	struct tcp_ep *ep = ep_of(fid);
	struct tcp_message message = {.frame = access->frame, .flags = access->flags & FI_MORE};
	struct tcp_read *read;
	ssize_t rc;

	if (access->count > PROV_IOV_MAX)
		return -FI_EINVAL;
	if (access->length > WIRE_LENGTH_MAX)
		return -FI_EMSGSIZE;
	if (!has_room(ep))
		return -FI_EAGAIN;
	if (!ep->reads)
		ep->reads = calloc(WIRE_READS_MAX, sizeof(*ep->reads));
	if (!ep->reads)
		return -FI_ENOMEM;
	message.frame.kind = WIRE_READ;
	rc = tcp_send_message(ep, &message);
	if (rc)
		return rc;
	read = &ep->reads[ep->reads_tail++ % WIRE_READS_MAX];
	*read = (struct tcp_read){
		.piece_count = (uint32_t)access->count,
		.length = access->frame.length,
		.context = access->context,
		.flags = completion_of(ep, access->flags, FI_READ),
	};
	if (access->count)
		memcpy(read->pieces, access->iov, access->count * sizeof(*access->iov));
	return 0;
}

/* data: for FI_REMOTE_CQ_DATA. is_inject: nothing reports how it ends. */
static ssize_t write_it(struct fid_ep *fid, struct tcp_message access, uint64_t data,
			bool is_inject)
{
	if (access.count > PROV_IOV_MAX ||
	    (access.flags & FI_INJECT && access.length > TCP_INJECT_MAX))
		return -FI_EINVAL;
	access.frame.kind = WIRE_WRITE;
	access.frame.flags = access.flags & FI_REMOTE_CQ_DATA ? WIRE_HAS_DATA : 0;
	access.frame.data = data;
	if (!is_inject)
		access.completion = completion_of(ep_of(fid), access.flags, FI_WRITE);
	return tcp_send_message(ep_of(fid), &access);
}

/* libfabric's calls ---------------------------------------------------------------------------- */

/* A read completes last of all ways: once its data has arrived. */
#define WRITE_FLAGS (PROV_TX_FLAGS | PROV_SEND_FLAGS | TCP_OP_FLAGS)
#define READ_FLAGS  (WRITE_FLAGS & ~(FI_INJECT | FI_REMOTE_CQ_DATA))

static uint64_t default_flags(struct fid_ep *fid)
{
	return ep_of(fid)->base.tx_flags;
}

static ssize_t read_message(struct fid_ep *fid, const struct fi_msg_rma *msg, uint64_t flags)
{
	struct tcp_message access;

	if (plx_unlikely(flags & ~READ_FLAGS))
		return -FI_EBADFLAGS;
	return access_of_message(msg, flags, &access) ? read_it(fid, &access) : -FI_EINVAL;
}

static ssize_t read_pieces(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count,
			   fi_addr_t source, uint64_t address, uint64_t key, void *context)
{
	struct tcp_message access = access_of(iov, count, address, key, context,
					      default_flags(fid));

	return read_it(fid, &access);
}

static ssize_t read_one(struct fid_ep *fid, void *buf, size_t length, void *desc, fi_addr_t source,
			uint64_t address, uint64_t key, void *context)
{
	struct iovec iov = {buf, length};

	return read_pieces(fid, &iov, NULL, 1, source, address, key, context);
}

static ssize_t write_message(struct fid_ep *fid, const struct fi_msg_rma *msg, uint64_t flags)
{
	struct tcp_message access;

	if (plx_unlikely(flags & ~WRITE_FLAGS))
		return -FI_EBADFLAGS;
	return access_of_message(msg, flags, &access) ? write_it(fid, access, msg->data, false)
						      : -FI_EINVAL;
}

static ssize_t write_pieces(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count,
			    fi_addr_t destination, uint64_t address, uint64_t key, void *context)
{
	return write_it(fid, access_of(iov, count, address, key, context, default_flags(fid)), 0,
			false);
}

static ssize_t write_buffer(struct fid_ep *fid, const void *buf, size_t length, uint64_t data,
			    uint64_t address, uint64_t key, void *context, uint64_t flags)
{
	struct iovec iov = {(void *)(uintptr_t)buf, length};

	return write_it(fid, access_of(&iov, 1, address, key, context, flags), data, false);
}

static ssize_t write_one(struct fid_ep *fid, const void *buf, size_t length, void *desc,
			 fi_addr_t destination, uint64_t address, uint64_t key, void *context)
{
	return write_buffer(fid, buf, length, 0, address, key, context, default_flags(fid));
}

static ssize_t write_data(struct fid_ep *fid, const void *buf, size_t length, void *desc,
			  uint64_t data, fi_addr_t destination, uint64_t address, uint64_t key,
			  void *context)
{
	return write_buffer(fid, buf, length, data, address, key, context,
			    default_flags(fid) | FI_REMOTE_CQ_DATA);
}

static ssize_t inject_buffer(struct fid_ep *fid, const void *buf, size_t length, uint64_t data,
			     uint64_t address, uint64_t key, uint64_t flags)
{
	struct iovec iov = {(void *)(uintptr_t)buf, length};

	return write_it(fid, access_of(&iov, 1, address, key, NULL, FI_INJECT | flags), data, true);
}

static ssize_t inject_one(struct fid_ep *fid, const void *buf, size_t length, fi_addr_t destination,
			  uint64_t address, uint64_t key)
{
	return inject_buffer(fid, buf, length, 0, address, key, 0);
}

static ssize_t inject_data(struct fid_ep *fid, const void *buf, size_t length, uint64_t data,
			   fi_addr_t destination, uint64_t address, uint64_t key)
{
	return inject_buffer(fid, buf, length, data, address, key, FI_REMOTE_CQ_DATA);
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
