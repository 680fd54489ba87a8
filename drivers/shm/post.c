/* SPDX-License-Identifier: BSD-3-Clause */
/* Posted receives: a queue of them, from which they come back as completions of messages
 * (receive.c), or cancelled. */
#include "shm.h"

#include <stdlib.h>

/* Posting ------------------------------------------------------------------------------------ */

int receive_init(struct shm_ep *ep)
{
	uint32_t capacity = 1;

	while (capacity < ep->rx_size)
		capacity *= 2;
	ep->rx_mask = capacity - 1;
	ep->receives = calloc(capacity, sizeof(*ep->receives));
	return ep->receives ? 0 : -FI_ENOMEM;
}

void receive_fini(struct shm_ep *ep)
{
	free(ep->receives);
	free(ep->pieces);
	ep->receives = NULL;
	ep->pieces = NULL;
}

/* The next free place. Return: NULL where all are taken. */
static struct shm_receive *take_place(struct shm_ep *ep)
{
	if (plx_unlikely(ep->rx_tail - ep->rx_head >= ep->rx_size))
		return NULL;
	return &ep->receives[ep->rx_tail & ep->rx_mask];
}

static ssize_t posted(struct shm_ep *ep)
{
	ep->rx_tail++;
	if (plx_unlikely(ep->starved))
		progress_activate(ep);
	return 0;
}

static ssize_t cannot_post(const struct shm_ep *ep)
{
	return ep->enabled ? -FI_ENOTCONN : -FI_EOPBADSTATE;
}

static inline bool may_post(const struct shm_ep *ep)
{
	return ep->enabled && ep->state != EP_DEAD;
}

static uint64_t wanted(const struct shm_ep *ep, uint64_t flags)
{
	return !ep->rx_selective || flags & FI_COMPLETION ? FI_COMPLETION : 0;
}

ssize_t shm_receive_post(struct fid_ep *fid, void *buf, size_t length, void *desc, fi_addr_t source,
			 void *context)
{
	struct shm_ep *ep = (struct shm_ep *)fid;
	struct shm_receive *receive = take_place(ep);

	if (plx_unlikely(!may_post(ep)))
		return cannot_post(ep);
	if (plx_unlikely(!receive))
		return -FI_EAGAIN;
	*receive = (struct shm_receive){
		.buf = buf,
		.length = length,
		.context = context,
		.flags = wanted(ep, ep->rx_flags),
		.total = length,
		.pieces = 1,
	};
	return posted(ep);
}

static ssize_t post_pieces(struct shm_ep *ep, const struct iovec *iov, size_t count, void *context,
			   uint64_t flags)
{
	struct shm_receive *receive = take_place(ep);
	size_t total = 0;

	if (!may_post(ep))
		return cannot_post(ep);
	if (!receive)
		return -FI_EAGAIN;
	if (!ep->pieces)
		ep->pieces = calloc((size_t)ep->rx_mask + 1, PROV_IOV_MAX * sizeof(struct iovec));
	if (!ep->pieces)
		return -FI_ENOMEM;
	for (size_t i = 0; i < count; i++) {
		receive_pieces(ep, ep->rx_tail)[i] = iov[i];
		total += iov[i].iov_len;
	}
	*receive = (struct shm_receive){
		.buf = iov[0].iov_base,
		.length = iov[0].iov_len,
		.context = context,
		.flags = wanted(ep, flags),
		.total = total,
		.pieces = (uint32_t)count,
	};
	return posted(ep);
}

ssize_t shm_receive_postmsg(struct fid_ep *fid, const struct fi_msg *msg, uint64_t flags)
{
	struct iovec none = {0};

	if (msg->iov_count > PROV_IOV_MAX)
		return -FI_EINVAL;
	if (msg->iov_count == 0)
		return post_pieces((struct shm_ep *)fid, &none, 1, msg->context, flags);
	return post_pieces((struct shm_ep *)fid, msg->msg_iov, msg->iov_count, msg->context, flags);
}

ssize_t shm_receive_postv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count,
			  fi_addr_t source, void *context)
{
	struct fi_msg msg = {.msg_iov = iov, .iov_count = count, .context = context};

	return shm_receive_postmsg(fid, &msg, ((struct shm_ep *)fid)->rx_flags);
}

/* Coming back without a message --------------------------------------------------------------- */

static void fail(struct shm_ep *ep, const struct shm_receive *receive, int err)
{
	*cq_push(&ep->rx_cq->q) = (struct prov_completion){
		.context = receive->context,
		.flags = FI_RECV | FI_MSG,
		.buf = receive->buf,
		.err = err,
	};
}

/* Those that were cancelled have told so. */
void receive_drop_cancelled(struct shm_ep *ep)
{
	while (ep->rx_cancelled && ep->receives[ep->rx_head & ep->rx_mask].cancelled) {
		ep->rx_head++;
		ep->rx_cancelled--;
	}
}

void receive_flush(struct shm_ep *ep, int err)
{
	for (; ep->rx_head != ep->rx_tail; ep->rx_head++) {
		struct shm_receive *receive = &ep->receives[ep->rx_head & ep->rx_mask];

		if (!receive->cancelled)
			fail(ep, receive, err);
	}
	ep->rx_cancelled = 0;
	ep->part_kind = 0;
}

/* The oldest with that context; not one that a message is being put into. Its completion takes the
 * place of a received message: what endpoints reserved beyond the size is for receive_flush.
 * Return: 0; -FI_ENOENT; -FI_EAGAIN read the queue first. */
ssize_t receive_cancel(struct shm_ep *ep, void *context)
{
	for (uint32_t i = ep->rx_head + (ep->part_kind != 0); i != ep->rx_tail; i++) {
		struct shm_receive *receive = &ep->receives[i & ep->rx_mask];

		if (receive->context == context && !receive->cancelled) {
			if (!cq_has_room(&ep->rx_cq->q))
				return -FI_EAGAIN;
			receive->cancelled = true;
			ep->rx_cancelled++;
			fail(ep, receive, FI_ECANCELED);
			if (!ep->part_kind)
				receive_drop_cancelled(ep);
			return 0;
		}
	}
	return -FI_ENOENT;
}
