/* SPDX-License-Identifier: BSD-3-Clause */
/* Receiving. A socket is read into its queue's block, and frames are taken from there. Hot path:
 * whole messages for receives of one piece. Long payloads are read directly into their destination.
 * Nothing that a peer announces is allocated: of an incomplete frame the endpoint keeps the header,
 * and its payload goes to its destination as it arrives. Without a receive, or without room in the
 * queue, the endpoint takes over the block with the rest of its bytes. */
#include "tcp.h"

#include <errno.h>

#define DIRECT_MIN  4096 /* a remaining payload this long is read directly to its destination */
#define BEHIND_MOST 4096 /* bytes of the next frame read in the same call */

/* Frames ------------------------------------------------------------------------------------- */

/* Always returns false. */
static bool stall(struct tcp_ep *ep)
{
	ep->is_stalled = true;
	return false;
}

static bool begin_message(struct tcp_ep *ep)
{
	if (plx_unlikely(receives_is_empty(&ep->base.rx))) {
		ep->base.starved = true;
		return stall(ep);
	}
	ep->base.rx.filling = true;
	return true;
}

/* A header is complete. Return: whether to continue with the next bytes. */
static bool begin_frame(struct tcp_ep *ep)
{
	enum tcp_breach breach = TCP_BREACH_NONE;
	bool stalled = false;

	wire_read(ep->header, &ep->frame);
	ep->frame_done = 0;
	switch (ep->frame.kind) {
	case WIRE_MESSAGE:
		if (!begin_message(ep))
			return false;
		break;
	case WIRE_WRITE:
		breach = rma_begin_write(ep);
		break;
	case WIRE_READ:
		breach = rma_answer(ep, &stalled);
		break;
	case WIRE_READ_DATA:
		breach = rma_begin_data(ep);
		break;
	}
	if (breach) {
		tcp_ep_break(ep, breach);
		return false;
	}
	if (stalled)
		return stall(ep);
	ep->in_frame = ep->frame.kind != WIRE_READ;
	ep->header_have = 0;
	ep->pending = ep->in_frame && ep->frame.length == 0;
	return true;
}

/* A payload is complete. Return: whether its completion found room. */
static bool end_frame(struct tcp_ep *ep)
{
	struct prov_cq *cq = ep->frame.kind == WIRE_READ_DATA ? ep->base.tx_cq : ep->base.rx_cq;

	if (plx_unlikely(!cq_has_room(cq)))
		return stall(ep);
	switch (ep->frame.kind) {
	case WIRE_MESSAGE:
		receives_complete(&ep->base, ep->frame.length, ep->frame.flags & WIRE_HAS_DATA,
				  ep->frame.data);
		ep->base.rx.filling = false;
		receives_drop_cancelled(&ep->base.rx);
		break;
	case WIRE_WRITE:
		rma_end_write(ep);
		break;
	case WIRE_READ_DATA:
		rma_end_data(ep, 0);
		break;
	}
	ep->in_frame = ep->pending = false;
	return true;
}

/* Act on a complete header or payload. Return: whether to continue with the next bytes. */
static PLX_NOINLINE bool act(struct tcp_ep *ep)
{
	while (ep->pending) {
		if (!(ep->in_frame ? end_frame(ep) : begin_frame(ep)))
			return false;
	}
	return true;
}

/* The destination of the payload's rest. out: PROV_IOV_MAX. Return: how many pieces; 0: drop what
 * does not fit. */
static int target_pieces(const struct tcp_ep *ep, struct iovec *out)
{
	switch (ep->frame.kind) {
	case WIRE_MESSAGE:
		return receives_pieces(&ep->base.rx, ep->frame_done, out);
	case WIRE_WRITE:
		out[0].iov_base = ep->target + ep->frame_done;
		out[0].iov_len = ep->frame.length - ep->frame_done;
		return 1;
	default: {
		const struct tcp_read *read = rma_oldest(ep);

		return iov_after(read->pieces, read->piece_count, ep->frame_done, out);
	}
	}
}

static void got_payload(struct tcp_ep *ep, size_t length)
{
	ep->frame_done += (uint32_t)length;
	ep->base.part_bytes += length;
	ep->pending = ep->frame_done == ep->frame.length;
}

/* Bytes of the incoming header, as far as they are known. Return: 0: it is invalid. */
static uint32_t header_need(const struct tcp_ep *ep)
{
	return ep->header_have < WIRE_FRAME_BYTES ? WIRE_FRAME_BYTES
						  : wire_check(get64(ep->header));
}

/* Take a header or part of it. Return: bytes taken. */
static size_t take_header(struct tcp_ep *ep, const uint8_t *from, size_t length)
{
	size_t taken = 0;

	if (!ep->header_have)
		ep->base.part_begin = ep->base.part_bytes;
	while (taken < length && !ep->pending) {
		size_t need = header_need(ep) - ep->header_have;
		size_t bytes = need < length - taken ? need : length - taken;

		memcpy(ep->header + ep->header_have, from + taken, bytes);
		ep->header_have += (uint8_t)bytes;
		taken += bytes;
		if (!header_need(ep)) {
			tcp_ep_break(ep, TCP_BREACH_FRAME);
			break;
		}
		ep->pending = ep->header_have == header_need(ep);
	}
	ep->base.part_bytes += taken;
	return taken;
}

static size_t take_payload(struct tcp_ep *ep, const uint8_t *from, size_t length)
{
	size_t left = ep->frame.length - ep->frame_done;
	struct iovec to[PROV_IOV_MAX];

	length = length < left ? length : left;
	iov_fill(to, target_pieces(ep, to), from, length);
	got_payload(ep, length);
	return length;
}

/* Take a whole message for a receive whose first piece has room. Return: its bytes with the header;
 * 0: take it the slow way. */
static inline size_t take_whole(struct tcp_ep *ep, const uint8_t *from, size_t length)
{
	struct prov_receives *rx = &ep->base.rx;
	const struct prov_receive *receive = receives_first(rx);
	uint64_t most = length - WIRE_FRAME_BYTES, word;

	if (plx_unlikely(length < WIRE_FRAME_BYTES || receives_is_empty(rx) || rx->cancelled ||
			 !cq_has_room(ep->base.rx_cq)))
		return 0;
	word = get64(from);
	most = most < receive->length ? most : receive->length;
	if (plx_unlikely(!wire_is_plain(word, most)))
		return 0;
	if (plx_likely((uint32_t)word))
		memcpy(receive->buf, from + WIRE_FRAME_BYTES, (uint32_t)word);
	receives_complete(&ep->base, (uint32_t)word, false, 0);
	return WIRE_FRAME_BYTES + (uint32_t)word;
}

/* Take received bytes. Return: bytes taken; fewer than given: it stalled or broke off. */
static size_t take(struct tcp_ep *ep, const uint8_t *bytes, size_t length)
{
	size_t taken = 0;

	while (!ep->pending || act(ep)) {
		size_t step = 0;

		if (plx_unlikely(ep->breach) || taken == length)
			break;
		if (plx_likely(!ep->in_frame && !ep->header_have))
			step = take_whole(ep, bytes + taken, length - taken);
		if (plx_unlikely(!step))
			step = ep->in_frame ? take_payload(ep, bytes + taken, length - taken)
					    : take_header(ep, bytes + taken, length - taken);
		taken += step;
	}
	return taken;
}

/* Sockets ------------------------------------------------------------------------------------ */

/* The endpoint takes over the queue's block with the rest of its bytes. */
static void keep_unread(struct tcp_ep *ep, uint32_t begin, uint32_t end)
{
	struct tcp_cq *cq = rx_cq_of(ep);

	if (begin == end)
		return;
	ep->unread = cq->stage;
	ep->unread->begin = begin;
	ep->unread->end = end;
	cq->stage = NULL;
}

/* Bytes have arrived in the block. */
static void received(struct tcp_ep *ep, size_t length)
{
	size_t taken = take(ep, rx_cq_of(ep)->stage->bytes, length);

	if (plx_unlikely(ep->breach)) {
		tcp_ep_finish(ep);
	} else if (plx_unlikely(ep->is_stalled)) {
		keep_unread(ep, (uint32_t)taken, (uint32_t)length);
		poll_wait(ep);
	}
}

/* Read the payload's rest directly to its destination; further bytes belong to the next frame.
 * Return: how many pieces; 0: use the block, also for bytes that do not fit. */
static int direct_pieces(const struct tcp_ep *ep, struct iovec *iov)
{
	size_t left = ep->frame.length - ep->frame_done;

	if (left < DIRECT_MIN || !ep->in_frame)
		return 0;
	return iov_first(iov, target_pieces(ep, iov), left);
}

static ssize_t read_direct(struct tcp_ep *ep, struct iovec *iov, int count)
{
	size_t left = ep->frame.length - ep->frame_done;
	struct msghdr msg = {.msg_iov = iov, .msg_iovlen = (size_t)count + 1};
	ssize_t got;

	iov[count] = (struct iovec){rx_cq_of(ep)->stage->bytes, BEHIND_MOST};
	got = tcp_sys.recvmsg(ep->base.source.fd, &msg, MSG_DONTWAIT);
	if (got > 0) {
		got_payload(ep, (size_t)got < left ? (size_t)got : left);
		received(ep, (size_t)got < left ? 0 : (size_t)got - left);
	}
	return got;
}

static inline ssize_t read_some(struct tcp_ep *ep)
{
	struct iovec iov[PROV_IOV_MAX + 1];
	int count = direct_pieces(ep, iov);
	ssize_t got;

	if (plx_unlikely(count))
		return read_direct(ep, iov, count);
	got = tcp_sys.recv(ep->base.source.fd, rx_cq_of(ep)->stage->bytes, BLOCK_BYTES,
			   MSG_DONTWAIT);
	if (got > 0)
		received(ep, (size_t)got);
	return got;
}

bool tcp_receive_read(struct tcp_ep *ep)
{
	struct tcp_cq *cq = rx_cq_of(ep);
	ssize_t got;

	if (plx_unlikely(ep->is_stalled || ep->base.state != EP_CONNECTED))
		return false;
	if (plx_unlikely(!cq->stage)) {
		cq->stage = block_get(ep->base.domain);
		if (!cq->stage)
			return true; /* read again */
	}
	got = read_some(ep);
	if (plx_likely(got > 0))
		return true;
	if (plx_likely(got < 0 && errno == EAGAIN))
		return false;
	if (got < 0 && (errno == EINTR || errno == ENOBUFS || errno == ENOMEM))
		return true; /* read again */
	tcp_ep_finish(ep);   /* the peer closed, or the connection failed */
	return false;
}

bool tcp_receive_is_in_parts(const struct prov_ep *base, bool *is_held_out)
{
	const struct tcp_ep *ep = (const struct tcp_ep *)base;

	*is_held_out = ep->is_stalled;
	return ep->in_frame || ep->header_have;
}

void tcp_receive_resume(struct tcp_ep *ep)
{
	struct block *unread = ep->unread;

	ep->is_stalled = false;
	if (unread) {
		unread->begin += (uint32_t)take(ep, unread->bytes + unread->begin,
						unread->end - unread->begin);
	} else {
		take(ep, NULL, 0);
	}
	if (ep->is_stalled && !ep->breach) {
		poll_wait(ep);
		return;
	}
	block_put(ep->base.domain, ep->unread);
	ep->unread = NULL;
	if (ep->breach)
		tcp_ep_finish(ep);
	else
		poll_heat(ep);
}
