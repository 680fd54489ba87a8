/* SPDX-License-Identifier: BSD-3-Clause */
/* The queue of posted receives. They return as completions of messages (receives_complete) or as
 * cancelled. */
#include "prov.h"

#include <stdlib.h>

/* Posting ------------------------------------------------------------------------------------ */

int receives_init(struct prov_receives *rx)
{
	rx->mask = power_of_two(rx->size) - 1;
	rx->all = calloc((size_t)rx->mask + 1, sizeof(*rx->all));
	return rx->all ? 0 : -FI_ENOMEM;
}

void receives_fini(struct prov_receives *rx)
{
	free(rx->all);
	free(rx->pieces);
	rx->all = NULL;
	rx->pieces = NULL;
}

static struct iovec *pieces_of(const struct prov_receives *rx, uint32_t index)
{
	return &rx->pieces[(size_t)(index & rx->mask) * PROV_IOV_MAX];
}

/* The next free place. Return: NULL: all are taken. */
static struct prov_receive *take_place(struct prov_receives *rx)
{
	return plx_likely(rx->tail - rx->head < rx->size) ? &rx->all[rx->tail & rx->mask] : NULL;
}

static ssize_t posted(struct prov_ep *ep)
{
	ep->rx.tail++;
	if (plx_unlikely(ep->starved))
		ep->domain->fabric->prov->ep_ops->posted(ep);
	return 0;
}

static inline bool may_post(const struct prov_ep *ep)
{
	return ep->enabled && ep->state != EP_DEAD;
}

static uint64_t wanted(const struct prov_ep *ep, uint64_t flags)
{
	return !ep->rx_selective || flags & FI_COMPLETION ? FI_COMPLETION : 0;
}

/* All pieces of a receive that has more than one. Return: 0; -FI_ENOMEM. */
static int store_pieces(struct prov_receives *rx, const struct iovec *iov, size_t count)
{
	if (!rx->pieces)
		rx->pieces = calloc((size_t)rx->mask + 1, PROV_IOV_MAX * sizeof(*iov));
	if (!rx->pieces)
		return -FI_ENOMEM;
	memcpy(pieces_of(rx, rx->tail), iov, count * sizeof(*iov));
	return 0;
}

/* Shorter buffers all fit in the cache, and the exchange would cost more than it saves. */
#define REUSE_MIN (32 << 10)

void prov_ep_reuse_receives(struct fid_ep *fid)
{
	((struct prov_ep *)fid)->rx.reuses = true;
}

/* Exchange the receive being posted with the oldest one, unless that holds part of a message. */
static PLX_NOINLINE void put_first(struct prov_receives *rx, struct prov_receive *receive)
{
	struct prov_receive *first = receives_first(rx), oldest = *first;

	if (rx->filling || first == receive || oldest.pieces > 1)
		return;
	*first = *receive;
	*receive = oldest;
}

static inline PLX_ALWAYS_INLINE ssize_t post(struct prov_ep *ep, const struct iovec *iov,
					     size_t count, void *context, uint64_t flags)
{
	struct prov_receive *receive = take_place(&ep->rx);

	if (plx_unlikely(!may_post(ep)))
		return ep_refuses(ep);
	if (plx_unlikely(!receive))
		return -FI_EAGAIN;
	if (count > 1 && store_pieces(&ep->rx, iov, count) != 0)
		return -FI_ENOMEM;
	*receive = (struct prov_receive){
		.buf = iov[0].iov_base,
		.length = iov[0].iov_len,
		.context = context,
		.flags = wanted(ep, flags),
		.total = iov_bytes(iov, count),
		.pieces = (uint32_t)count,
	};
	if (plx_unlikely(ep->rx.reuses && count == 1 && iov[0].iov_len >= REUSE_MIN))
		put_first(&ep->rx, receive);
	return posted(ep);
}

ssize_t receives_post(struct fid_ep *fid, void *buf, size_t length, void *desc, fi_addr_t source,
		      void *context)
{
	struct prov_ep *ep = (struct prov_ep *)fid;

	return post(ep, &(struct iovec){buf, length}, 1, context, ep->rx_flags);
}

ssize_t receives_postmsg(struct fid_ep *fid, const struct fi_msg *msg, uint64_t flags)
{
	struct prov_ep *ep = (struct prov_ep *)fid;

	if (plx_unlikely(flags & ~(PROV_RX_FLAGS | PROV_POST_FLAGS)))
		return -FI_EBADFLAGS;
	if (msg->iov_count > PROV_IOV_MAX)
		return -FI_EINVAL;
	if (msg->iov_count == 0)
		return post(ep, &(struct iovec){0}, 1, msg->context, flags);
	return post(ep, msg->msg_iov, msg->iov_count, msg->context, flags);
}

ssize_t receives_postv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count,
		       fi_addr_t source, void *context)
{
	struct fi_msg msg = {.msg_iov = iov, .iov_count = count, .context = context};

	return receives_postmsg(fid, &msg, ((struct prov_ep *)fid)->rx_flags);
}

/* Being filled ------------------------------------------------------------------------------- */

int iov_after(const struct iovec *iov, uint32_t count, uint64_t skip, struct iovec *out)
{
	int left = 0;

	for (uint32_t i = 0; i < count; i++) {
		if (skip >= iov[i].iov_len) {
			skip -= iov[i].iov_len;
			continue;
		}
		out[left].iov_base = (char *)iov[i].iov_base + skip;
		out[left++].iov_len = iov[i].iov_len - skip;
		skip = 0;
	}
	return left;
}

void iov_fill(const struct iovec *iov, int count, const void *from, uint64_t length)
{
	const uint8_t *at = from;

	for (int i = 0; i < count && length > 0; i++) {
		size_t bytes = length < iov[i].iov_len ? length : iov[i].iov_len;

		memcpy(iov[i].iov_base, at, bytes);
		at += bytes;
		length -= bytes;
	}
}

int receives_pieces(const struct prov_receives *rx, uint64_t skip, struct iovec *out)
{
	const struct prov_receive *receive = receives_first(rx);
	struct iovec whole = {.iov_base = receive->buf, .iov_len = receive->length};

	return iov_after(receive->pieces == 1 ? &whole : pieces_of(rx, rx->head), receive->pieces,
			 skip, out);
}

void receives_copy(const struct prov_receives *rx, uint64_t skip, const void *from, uint64_t length)
{
	struct iovec to[PROV_IOV_MAX];

	iov_fill(to, receives_pieces(rx, skip, to), from, length);
}

/* Coming back without a message --------------------------------------------------------------- */

static void fail(struct prov_ep *ep, const struct prov_receive *receive, int err)
{
	*cq_push(ep->rx_cq) = (struct prov_completion){
		.context = receive->context,
		.flags = FI_RECV | FI_MSG,
		.buf = receive->buf,
		.err = err,
	};
}

/* Cancelled receives have already been reported. */
void receives_drop_cancelled(struct prov_receives *rx)
{
	while (rx->cancelled && receives_first(rx)->cancelled) {
		rx->head++;
		rx->cancelled--;
	}
}

void receives_flush(struct prov_ep *ep, int err)
{
	for (; ep->rx.head != ep->rx.tail; ep->rx.head++) {
		struct prov_receive *receive = receives_first(&ep->rx);

		if (!receive->cancelled)
			fail(ep, receive, err);
	}
	ep->rx.cancelled = 0;
	ep->rx.filling = false;
}

/* Cancel the oldest receive with that context, unless a message is being copied into it. Its
 * completion counts against the CQ size like a received message; the room that endpoints reserved
 * past it is for receives_flush.
 * Return: 0; -FI_ENOENT; -FI_EAGAIN read the queue first. */
ssize_t receives_cancel(struct prov_ep *ep, void *context)
{
	struct prov_receives *rx = &ep->rx;

	for (uint32_t i = rx->head + rx->filling; i != rx->tail; i++) {
		struct prov_receive *receive = &rx->all[i & rx->mask];

		if (receive->context == context && !receive->cancelled) {
			if (!cq_has_room(ep->rx_cq))
				return -FI_EAGAIN;
			receive->cancelled = true;
			rx->cancelled++;
			fail(ep, receive, FI_ECANCELED);
			if (!rx->filling)
				receives_drop_cancelled(rx);
			return 0;
		}
	}
	return -FI_ENOENT;
}
