/* SPDX-License-Identifier: BSD-3-Clause */
/* libfabric's calls that send a message. A provider's send.c includes this after defining
 *
 *   SEND_INJECT_MAX                                                       bytes
 *   SEND_OP_FLAGS                              in addition to those of every provider
 *   static ssize_t send_it(struct prov_ep *ep, const struct prov_message *message);
 *
 * The compiler inlines send_it into each call. SEND_OPS is the table of the calls. */
#ifndef PROV_SEND_CALLS_H
#define PROV_SEND_CALLS_H

/* Without flags the endpoint's default flags apply. */
static inline bool send_completes(const struct prov_ep *ep, uint64_t flags)
{
	return !ep->tx_selective || flags & FI_COMPLETION;
}

/* FI_INJECT, of the call or by default: the caller may reuse its memory once the call returns. */
static inline ssize_t send_within_limit(struct prov_ep *ep, const struct prov_message *message)
{
	if (plx_unlikely(message->flags & FI_INJECT && message->length > SEND_INJECT_MAX))
		return -FI_EINVAL;
	return send_it(ep, message);
}

static inline ssize_t send_buffer(struct fid_ep *fid, const void *buf, size_t length, bool has_data,
				  uint64_t data, void *context)
{
	struct prov_ep *ep = (struct prov_ep *)fid;
	struct iovec iov = {(void *)(uintptr_t)buf, length};
	struct prov_message message = {
		.iov = &iov,
		.count = 1,
		.length = length,
		.data = data,
		.has_data = has_data,
		.context = context,
		.flags = ep->tx_flags,
		.wants_completion = send_completes(ep, ep->tx_flags),
	};

	return send_within_limit(ep, &message);
}

static ssize_t send_one(struct fid_ep *fid, const void *buf, size_t length, void *desc,
			fi_addr_t destination, void *context)
{
	return send_buffer(fid, buf, length, false, 0, context);
}

static ssize_t send_data(struct fid_ep *fid, const void *buf, size_t length, void *desc,
			 uint64_t data, fi_addr_t destination, void *context)
{
	return send_buffer(fid, buf, length, true, data, context);
}

static ssize_t send_msg(struct fid_ep *fid, const struct fi_msg *msg, uint64_t flags)
{
	struct prov_ep *ep = (struct prov_ep *)fid;
	struct prov_message message = {
		.iov = msg->msg_iov,
		.count = msg->iov_count,
		.data = msg->data,
		.has_data = flags & FI_REMOTE_CQ_DATA,
		.context = msg->context,
		.flags = flags,
		.wants_completion = send_completes(ep, flags),
	};

	if (plx_unlikely(flags & ~(PROV_TX_FLAGS | PROV_SEND_FLAGS | SEND_OP_FLAGS)))
		return -FI_EBADFLAGS;
	if (msg->iov_count > PROV_IOV_MAX)
		return -FI_EINVAL;
	message.length = iov_bytes(msg->msg_iov, msg->iov_count);
	return send_within_limit(ep, &message);
}

static ssize_t send_pieces(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count,
			   fi_addr_t destination, void *context)
{
	struct fi_msg msg = {.msg_iov = iov, .iov_count = count, .context = context};

	return send_msg(fid, &msg, ((struct prov_ep *)fid)->tx_flags);
}

static inline ssize_t inject_buffer(struct fid_ep *fid, const void *buf, size_t length,
				    bool has_data, uint64_t data)
{
	struct iovec iov = {(void *)(uintptr_t)buf, length};
	struct prov_message message = {
		.iov = &iov, .count = 1, .length = length, .flags = FI_INJECT, .is_inject = true};

	if (has_data) {
		message.has_data = true;
		message.data = data;
	}
	return send_within_limit((struct prov_ep *)fid, &message);
}

static ssize_t send_inject(struct fid_ep *fid, const void *buf, size_t length,
			   fi_addr_t destination)
{
	return inject_buffer(fid, buf, length, false, 0);
}

static ssize_t send_inject_data(struct fid_ep *fid, const void *buf, size_t length, uint64_t data,
				fi_addr_t destination)
{
	return inject_buffer(fid, buf, length, true, data);
}

struct fi_ops_msg SEND_OPS = {
	.size = sizeof(struct fi_ops_msg),
	.recv = receives_post,
	.recvv = receives_postv,
	.recvmsg = receives_postmsg,
	.send = send_one,
	.sendv = send_pieces,
	.sendmsg = send_msg,
	.inject = send_inject,
	.senddata = send_data,
	.injectdata = send_inject_data,
};

#endif
