/* SPDX-License-Identifier: BSD-3-Clause */
/* Sending. Short messages are copied into the endpoint's block. Long ones are sent from the
 * caller's memory, after the block's bytes that precede them. Both complete once the kernel has
 * them; in a gathering domain, copied ones complete at once. The first message of a poll is sent at
 * once. Messages with FI_MORE, and in a gathering domain all further messages of that poll, are
 * sent together at the next read of a queue, or once they reach GATHER_BYTES. If a socket has no
 * room, queued bytes wait; beyond TCP_QUEUED_MAX calls return -FI_EAGAIN. */
#include "tcp.h"

#include <errno.h>
#include <stdlib.h>

#define COPY_MAX     1024 /* longer messages are sent from the caller's memory, unless injected */
#define CLAIM_MAX    8192
#define GATHER_BYTES (64u << 10)
#define IOV_COUNT    64 /* pieces per system call */
#define CALLS_MAX    4  /* at a time; then the next endpoint gets its turn */
#define SENDS_LEAST  8
/* Block space reserved for headers of read answers. Without it, two sides that both wait for room
 * to answer would stop reading, and deadlock. */
#define ANSWERS_BYTES (WIRE_READS_MAX * WIRE_FRAME_BYTES)

/* The queue ---------------------------------------------------------------------------------- */

static bool has_sends(const struct tcp_ep *ep)
{
	return ep->base.tx_head != ep->base.tx_tail;
}

static struct tcp_send *send_at(const struct tcp_ep *ep, uint32_t index)
{
	return &ep->sends[index & ep->sends_mask];
}

/* The oldest send was written, or failed. */
static void send_done(struct tcp_ep *ep, int err)
{
	const struct tcp_send *send = send_at(ep, ep->base.tx_head++);

	ep->answers -= send->mr != NULL;
	tcp_report(ep, send->context, send->flags, err);
}

/* Make room for one more. Return: 0; -FI_ENOMEM. */
static int grow(struct tcp_ep *ep)
{
	uint32_t count = ep->base.tx_tail - ep->base.tx_head;
	uint32_t capacity = ep->sends ? ep->sends_mask + 1 : 0;
	struct tcp_send *sends;

	if (plx_likely(count < capacity))
		return 0;
	capacity = capacity ? capacity * 2 : SENDS_LEAST;
	sends = calloc(capacity, sizeof(*sends));
	if (!sends)
		return -FI_ENOMEM;
	for (uint32_t i = 0; i < count; i++)
		sends[(ep->base.tx_head + i) & (capacity - 1)] = *send_at(ep, ep->base.tx_head + i);
	free(ep->sends);
	ep->sends = sends;
	ep->sends_mask = capacity - 1;
	return 0;
}

/* Reserve bytes at the end of the endpoint's block. Return: NULL: no room now. */
static inline uint8_t *stage(struct tcp_ep *ep, size_t bytes)
{
	struct block *out = ep->out;

	if (plx_unlikely(!out))
		out = ep->out = block_get(ep->base.domain);
	if (plx_unlikely(!out))
		return NULL;
	if (plx_unlikely(BLOCK_BYTES - out->end < bytes && out->begin)) {
		memmove(out->bytes, out->bytes + out->begin, out->end - out->begin);
		out->end -= out->begin;
		out->begin = 0;
	}
	return plx_likely(BLOCK_BYTES - out->end >= bytes) ? out->bytes + out->end : NULL;
}

static inline void staged(struct tcp_ep *ep, uint32_t bytes)
{
	ep->out->end += bytes;
	ep->tail_staged += bytes;
	ep->queued_bytes += bytes;
}

static void drop_block(struct tcp_ep *ep)
{
	block_put(ep->base.domain, ep->out);
	ep->out = NULL;
}

/* Writing ------------------------------------------------------------------------------------ */

/* Add bytes of the block, which may continue the last piece. Return: their end. */
static uint8_t *gather_staged(struct iovec *iov, size_t *count, uint8_t *block, uint32_t bytes)
{
	struct iovec *last = *count ? &iov[*count - 1] : NULL;

	if (!bytes)
		return block;
	if (last && (uint8_t *)last->iov_base + last->iov_len == block)
		last->iov_len += bytes;
	else
		iov[(*count)++] = (struct iovec){block, bytes};
	return block + bytes;
}

/* The first pieces of the queue. Return: how many; *bytes_out: their total. */
static size_t gather(const struct tcp_ep *ep, struct iovec *iov, size_t *bytes_out)
{
	uint8_t *block = ep->out ? ep->out->bytes + ep->out->begin : NULL;
	size_t count = 0, bytes = 0;

	for (uint32_t i = ep->base.tx_head; i != ep->base.tx_tail; i++) {
		const struct tcp_send *send = send_at(ep, i);

		if (count + 2 + PROV_IOV_MAX > IOV_COUNT)
			break;
		block = gather_staged(iov, &count, block, send->staged);
		bytes += send->staged;
		for (uint32_t j = send->piece; j < send->piece_count; j++) {
			bytes += send->pieces[j].iov_len;
			iov[count++] = send->pieces[j];
		}
		if (i + 1 == ep->base.tx_tail) {
			gather_staged(iov, &count, block, ep->tail_staged);
			bytes += ep->tail_staged;
		}
	}
	*bytes_out = bytes;
	return count;
}

static uint32_t take_staged(struct tcp_ep *ep, uint32_t *staged, size_t written)
{
	uint32_t taken = written < *staged ? (uint32_t)written : *staged;

	*staged -= taken;
	if (taken)
		ep->out->begin += taken;
	return taken;
}

/* Remove written bytes from its pieces. Return: bytes removed. */
static size_t take_pieces(struct tcp_send *send, size_t written)
{
	size_t taken = 0;

	while (send->piece < send->piece_count) {
		struct iovec *piece = &send->pieces[send->piece];
		size_t bytes = written - taken < piece->iov_len ? written - taken : piece->iov_len;

		if (bytes) /* an empty piece may be at NULL */
			piece->iov_base = (char *)piece->iov_base + bytes;
		piece->iov_len -= bytes;
		taken += bytes;
		if (piece->iov_len)
			break;
		send->piece++;
	}
	return taken;
}

/* Account for written bytes. */
static void advance(struct tcp_ep *ep, size_t written)
{
	ep->queued_bytes -= written;
	while (has_sends(ep)) {
		struct tcp_send *send = send_at(ep, ep->base.tx_head);

		written -= take_staged(ep, &send->staged, written);
		if (send->staged)
			return;
		written -= take_pieces(send, written);
		if (send->piece < send->piece_count)
			return;
		send_done(ep, 0);
	}
	take_staged(ep, &ep->tail_staged, written);
}

/* Not inlined: saving registers for it would cost every write 14 instructions. */
static PLX_NOINLINE ssize_t send_gathered(struct tcp_ep *ep, size_t *bytes_out)
{
	struct iovec iov[IOV_COUNT];
	struct msghdr msg = {.msg_iov = iov};

	msg.msg_iovlen = gather(ep, iov, bytes_out);
	return tcp_sys.sendmsg(ep->base.source.fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* Write the first pieces of the queue. *all_out: whether the socket took all of them. Return:
 * bytes; -1, with errno. */
static ssize_t write_some(struct tcp_ep *ep, bool *all_out)
{
	size_t bytes;
	ssize_t written;

	if (plx_likely(!has_sends(ep))) {
		bytes = ep->tail_staged;
		written = tcp_sys.send(ep->base.source.fd, ep->out->bytes + ep->out->begin, bytes,
				       MSG_DONTWAIT | MSG_NOSIGNAL);
	} else {
		written = send_gathered(ep, &bytes);
	}
	*all_out = written == (ssize_t)bytes;
	return written;
}

/* It waits neither for the next poll nor for its socket. */
static void unqueue(struct tcp_ep *ep)
{
	if (ep->is_queued)
		TAILQ_REMOVE(&domain_of(ep)->queued, ep, queued_link);
	domain_of(ep)->blocked_count -= ep->is_blocked;
	ep->is_queued = ep->is_blocked = false;
}

/* The next poll writes it. */
static void queue(struct tcp_ep *ep)
{
	if (ep->is_queued)
		return;
	TAILQ_INSERT_TAIL(&domain_of(ep)->queued, ep, queued_link);
	ep->is_queued = true;
}

/* Wait until the socket has room; if the set cannot report that, the next poll retries. */
static void block_ep(struct tcp_ep *ep)
{
	ep->is_blocked = true;
	domain_of(ep)->blocked_count++;
	if (!poll_blocked(ep))
		queue(ep);
}

/* A failed connection is treated as one whose socket never has room again. Received bytes are still
 * taken, and the read that finds the end reports it. */
static void failed(struct tcp_ep *ep)
{
	ep->send_failed = true;
	tcp_sys.shutdown(ep->base.source.fd, SHUT_RDWR); /* whatever failed, it is over */
	block_ep(ep);
	poll_heat(ep);
}

void tcp_send_queued(struct tcp_ep *ep)
{
	unqueue(ep);
	for (int i = 0; i < CALLS_MAX && ep->queued_bytes; i++) {
		bool all;
		ssize_t written = write_some(ep, &all);

		if (plx_unlikely(written < 0)) {
			if (errno == EINTR)
				continue;
			if (errno == EAGAIN)
				block_ep(ep);
			else if (errno == ENOBUFS || errno == ENOMEM)
				queue(ep); /* nothing reports when memory is available again */
			else
				failed(ep);
			return;
		}
		if (plx_likely(all && !has_sends(ep) && written == ep->tail_staged)) {
			ep->queued_bytes = ep->tail_staged = 0;
			break;
		}
		advance(ep, (size_t)written);
		if (!all) {
			block_ep(ep);
			return;
		}
	}
	if (ep->queued_bytes)
		queue(ep);
	else
		drop_block(ep);
}

/* Send staged bytes now, or with what follows. */
static inline void launch(struct tcp_ep *ep, bool more)
{
	struct tcp_domain *domain = domain_of(ep);

	if (plx_unlikely(ep->is_blocked))
		return;
	if (!more && !(domain->gathers && ep->first_poll == domain->polls)) {
		ep->first_poll = domain->polls;
		tcp_send_queued(ep);
	} else if (plx_unlikely(ep->queued_bytes >= GATHER_BYTES)) {
		tcp_send_queued(ep);
	} else {
		queue(ep);
	}
}

/* Operations --------------------------------------------------------------------------------- */

static inline bool is_full(const struct tcp_ep *ep)
{
	return ep->base.tx_tail - ep->base.tx_head - ep->answers >= ep->base.tx_size;
}

/* Return: whether its completion has a place in the queue, even if everything in flight fails. */
static inline bool may_complete(const struct tcp_ep *ep, uint64_t completion)
{
	return under_way(ep) < ep->base.tx_size &&
	       (plx_likely(cq_has_room(ep->base.tx_cq)) || completion & TCP_IF_FAILED);
}

/* Return: whether a copied message is complete only once the kernel has it. Completions are in the
 * order of their sends. */
static inline bool is_tracked(const struct tcp_ep *ep)
{
	return has_sends(ep) || !domain_of(ep)->gathers;
}

static inline bool is_too_much(const struct tcp_ep *ep)
{
	return ep->queued_bytes >= TCP_QUEUED_MAX;
}

/* Room for a header and for bytes after it. Without room, queued bytes may be sent first. */
static uint8_t *make_room(struct tcp_ep *ep, size_t bytes)
{
	uint8_t *at = stage(ep, bytes);

	if (plx_likely(at != NULL) || ep->is_blocked || !ep->out)
		return at;
	tcp_send_queued(ep);
	return stage(ep, bytes);
}

/* Queue a send: its staged bytes come first, then its pieces unless they were copied. */
static void keep(struct tcp_ep *ep, const struct tcp_message *message, bool copied)
{
	struct tcp_send *send = send_at(ep, ep->base.tx_tail++);

	*send = (struct tcp_send){
		.staged = ep->tail_staged,
		.context = message->context,
		.flags = message->completion,
	};
	ep->tail_staged = 0;
	if (copied)
		return;
	send->piece_count = (uint32_t)message->count;
	memcpy(send->pieces, message->iov, message->count * sizeof(*message->iov));
	send->mr = message->mr;
	ep->queued_bytes += message->length;
	ep->answers += message->mr != NULL;
}

/* Whether to copy it into the block. A read answer that finds no room there is sent from memory. */
static inline bool is_copied(struct tcp_ep *ep, const struct tcp_message *message)
{
	if (plx_unlikely(message->mr != NULL))
		return message->length <= COPY_MAX &&
		       make_room(ep, WIRE_FRAME_BYTES + message->length + ANSWERS_BYTES);
	return message->length <= COPY_MAX || message->flags & FI_INJECT;
}

ssize_t tcp_send_message(struct tcp_ep *ep, const struct tcp_message *message)
{
	bool copied = is_copied(ep, message);
	uint32_t header = wire_header_bytes(message->frame.kind, message->frame.flags);
	bool kept = false;
	uint8_t *at;

	if (plx_unlikely(ep->base.state != EP_CONNECTED))
		return ep_refuses(&ep->base);
	if (plx_unlikely(message->length > WIRE_LENGTH_MAX))
		return -FI_EMSGSIZE;
	if (plx_unlikely(!message->mr &&
			 (is_full(ep) || (message->length && is_too_much(ep)) ||
			  (message->completion && !may_complete(ep, message->completion)))))
		return -FI_EAGAIN;
	if (!copied || plx_unlikely(message->completion && is_tracked(ep)))
		kept = true;
	if (kept && plx_unlikely(grow(ep) != 0))
		return -FI_ENOMEM;
	at = make_room(ep,
		       header + (copied ? message->length : 0) + (message->mr ? 0 : ANSWERS_BYTES));
	if (plx_unlikely(!at))
		return -FI_EAGAIN;
	wire_write(at, &message->frame);
	if (copied)
		iov_copy(at + header, message->iov, message->count);
	staged(ep, header + (copied ? (uint32_t)message->length : 0));
	if (kept)
		keep(ep, message, copied);
	else if (message->completion)
		tcp_report(ep, message->context, message->completion, 0);
	else
		ep->has_injected = true;
	launch(ep, message->flags & FI_MORE);
	return 0;
}

/* The end ------------------------------------------------------------------------------------ */

void tcp_send_flush(struct tcp_ep *ep, int err)
{
	unqueue(ep);
	while (has_sends(ep))
		send_done(ep, err);
	ep->tail_staged = 0;
	ep->queued_bytes = 0;
	drop_block(ep);
}

/* libfabric's calls, and Pollux' own --------------------------------------------------------- */

static inline ssize_t send_it(struct prov_ep *ep, const struct prov_message *message)
{
	struct tcp_message sent = {
		.frame = {.length = (uint32_t)message->length,
			  .kind = WIRE_MESSAGE,
			  .flags = message->has_data ? WIRE_HAS_DATA : 0,
			  .data = message->data},
		.iov = message->iov,
		.count = message->count,
		.length = message->length,
		.context = message->context,
		.flags = message->flags,
	};

	if (!message->is_inject)
		sent.completion = FI_SEND | FI_MSG;
	if (plx_unlikely(!message->is_inject && !message->wants_completion))
		sent.completion |= TCP_IF_FAILED;
	return tcp_send_message((struct tcp_ep *)ep, &sent);
}

#define SEND_INJECT_MAX TCP_INJECT_MAX
#define SEND_OP_FLAGS   TCP_OP_FLAGS
#define SEND_OPS        tcp_msg_ops
#include "../prov/send_calls.h"

void *tcp_send_claim(struct fid_ep *fid, size_t length)
{
	struct tcp_ep *ep = (struct tcp_ep *)fid;
	uint8_t *at;

	if (plx_unlikely(ep->base.state != EP_CONNECTED || length > CLAIM_MAX || is_too_much(ep)))
		return NULL;
	at = make_room(ep, WIRE_FRAME_BYTES + length + ANSWERS_BYTES);
	return plx_likely(at != NULL) ? at + WIRE_FRAME_BYTES : NULL;
}

void tcp_send_commit(struct fid_ep *fid, size_t length)
{
	struct tcp_ep *ep = (struct tcp_ep *)fid;

	put64(ep->out->bytes + ep->out->end, wire_word(WIRE_MESSAGE, 0, length));
	staged(ep, (uint32_t)(WIRE_FRAME_BYTES + length));
	launch(ep, false);
}

/* What the socket does not take at once is copied. */
ssize_t tcp_send_copy(struct fid_ep *fid, const struct iovec *iov, size_t count, void *room,
		      void *context)
{
	struct tcp_ep *ep = (struct tcp_ep *)fid;
	uint32_t index = ep->base.tx_tail;
	struct prov_message message = {.iov = iov,
				       .count = count,
				       .length = iov_bytes(iov, count),
				       .context = context,
				       .wants_completion = true};
	ssize_t rc = send_it(&ep->base, &message);
	struct tcp_send *send;
	size_t bytes;

	if (rc || ep->base.tx_tail == index || (int32_t)(index - ep->base.tx_head) < 0)
		return rc;
	send = send_at(ep, index);
	if (send->piece == send->piece_count)
		return 0;
	bytes = iov_bytes(send->pieces + send->piece, send->piece_count - send->piece);
	iov_copy(room, send->pieces + send->piece, send->piece_count - send->piece);
	send->pieces[0] = (struct iovec){room, bytes};
	send->piece = 0;
	send->piece_count = 1;
	return 0;
}
