/* SPDX-License-Identifier: BSD-3-Clause */
/* Sending. A message up to shm_params.inline_max is copied into the peer's ring. A larger one
 * passes through the ring in parts, so both sides copy at the same time; or the peer reads it from
 * our memory, if it can: past copy_max, and in a stream (is_read). Both stay in flight until
 * continue_sends (progress.c) completes them, and later sends with them. Without room a send
 * returns -FI_EAGAIN: nothing is queued without bound. */
#include "shm.h"

#include <sys/socket.h>

/* Ring bytes of a part with its header, at most an eighth of a small ring. Half of it was slower
 * one way, twice of it on a round trip (doc/design/shm-large.md). */
#define PART_BYTES (UINT32_C(32) << 10)
#define PART_LEAST (UINT32_C(4) << 10) /* if less remains before the ring's end, it is skipped */
/* In a stream, messages of these lengths are read. Shorter ones, and with 2 MiB of L2 cache those
 * of 2 MiB, are as fast in parts (doc/design/shm-large.md). */
#define STREAM_READ_MIN (UINT64_C(20) << 10)
#define STREAM_READ_MAX (UINT64_C(3) << 19)

/* Calling the peer --------------------------------------------------------------------------- */

void ep_wake_peer(struct shm_ep *ep)
{
	char byte = 0;

	/* If the socket has no room, it already holds bytes that wake the peer. */
	if (send(ep->base.source.fd, &byte, 1, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		return;
}

static PLX_NOINLINE void call(struct shm_ep *ep, uint32_t how)
{
	uint32_t bit = ep->peer_bell_bit;

	if (how & CALL_BELL) {
		/* The word before the summary: see struct bell. */
		atomic_fetch_or_explicit(&ep->peer_bell->words[bit / 64], UINT64_C(1) << bit % 64,
					 memory_order_seq_cst);
		atomic_fetch_or_explicit(&ep->peer_bell->summary, UINT64_C(1) << bit / 64,
					 memory_order_seq_cst);
	}
	if (how & CALL_WAKE)
		ep_wake_peer(ep);
}

/* Call the peer if it asked. */
static inline void call_if_asked(struct shm_ep *ep)
{
	uint32_t how = ring_call(&ep->writer);

	ep->owes_call = false;
	if (plx_unlikely(how != CALL_NONE))
		call(ep, how);
}

static inline void commit(struct shm_ep *ep, enum record_kind kind, uint8_t flags, uint32_t length,
			  uint32_t bytes)
{
	ring_commit(&ep->writer, kind, flags, length, bytes);
	call_if_asked(ep);
	ring_own_ahead(&ep->writer, bytes);
}

/* Publish a record that more will follow, or a poll, so ring_call's fence waits only once for all.
 * A peer that asked earlier is called here after a fence, and then nothing is owed: checking later
 * would wake it again if it has gone back to sleep meanwhile. */
static inline void commit_early(struct shm_ep *ep, uint8_t flags, uint32_t length, uint32_t bytes)
{
	ring_commit(&ep->writer, RECORD_MESSAGE, flags, length, bytes);
	ep->owes_call = !ring_asks(&ep->writer);
	if (plx_unlikely(!ep->owes_call)) {
		call_if_asked(ep);
	} else if (!ep->calls_later) {
		ep->calls_later = true;
		ep->next_caller = domain_of(ep)->callers;
		domain_of(ep)->callers = ep;
	}
	ring_own_ahead(&ep->writer, bytes);
}

void send_call_peers(struct shm_domain *domain)
{
	struct shm_ep *ep = domain->callers;

	domain->callers = NULL;
	for (; ep; ep = ep->next_caller) {
		ep->calls_later = false;
		if (ep->owes_call)
			call_if_asked(ep);
	}
}

/* One message -------------------------------------------------------------------------------- */

static void push_done(struct shm_ep *ep, void *context, int err)
{
	cq_push_done(ep->base.tx_cq, context, FI_SEND | FI_MSG, err);
}

static ssize_t no_room(struct shm_ep *ep)
{
	if (plx_likely(!ep->writer.broken))
		return -FI_EAGAIN;
	progress_broken(ep);
	return -FI_ENOTCONN;
}

static bool is_full(const struct shm_ep *ep)
{
	return ep->base.tx_tail - ep->base.tx_head >= ep->base.tx_size;
}

/* Add it to the sends in flight. written: 0; its length: it only waits for the peer to read it. */
static struct shm_send *keep(struct shm_ep *ep, const struct prov_message *message,
			     uint64_t written)
{
	struct shm_send *kept = &ep->sends[ep->base.tx_tail++ & ep->tx_mask];

	*kept = (struct shm_send){.message = *message, .written = written, .end = ep->writer.tail};
	kept->message.iov = kept->pieces;
	memcpy(kept->pieces, message->iov, message->count * sizeof(struct iovec));
	progress_send_later(ep);
	return kept;
}

/* Completions are in the order of the sends: one may have to wait for a longer send before it. */
static inline bool is_after_others(const struct shm_ep *ep, const struct prov_message *message)
{
	return message->wants_completion && ep->base.tx_head != ep->base.tx_tail;
}

static inline ssize_t send_small(struct shm_ep *ep, const struct prov_message *message)
{
	bool waits = message->flags & FI_DELIVERY_COMPLETE;
	bool is_kept = waits || is_after_others(ep, message);
	uint8_t flags = (message->has_data ? RECORD_HAS_DATA : 0) | (waits ? RECORD_ACK : 0);
	uint32_t bytes = record_bytes(message->length, flags);
	uint8_t *record;

	if (plx_unlikely(is_kept && is_full(ep)))
		return -FI_EAGAIN;
	record = ring_claim(&ep->writer, bytes);
	if (plx_unlikely(!record))
		return no_room(ep);
	iov_copy(ring_payload(record, flags, message->data), message->iov, message->count);
	if (message->flags & FI_MORE)
		commit_early(ep, flags, (uint32_t)message->length, bytes);
	else
		commit(ep, RECORD_MESSAGE, flags, (uint32_t)message->length, bytes);
	if (plx_unlikely(is_kept))
		keep(ep, message, message->length)->end = waits ? ep->writer.tail : 0;
	else if (message->wants_completion)
		push_done(ep, message->context, 0);
	return 0;
}

/* Send the peer its address. Short pieces before the last, such as headers, are sent with that:
 * each piece that is read costs as much as some KiB. */
static ssize_t send_by_reading(struct shm_ep *ep, const struct prov_message *message)
{
	const struct iovec *iov = message->iov;
	struct record_piece pieces[PROV_IOV_MAX];
	uint8_t flags = RECORD_ACK | (message->has_data ? RECORD_HAS_DATA : 0);
	uint64_t start = 0;
	size_t first = 0, count;
	uint32_t length, bytes;
	uint8_t *record;

	while (first + 1 < message->count && iov[first].iov_len <= RECORD_START_MAX - start)
		start += iov[first++].iov_len;
	count = message->count - first;
	length = (uint32_t)(sizeof(start) + start + count * sizeof(*pieces));
	bytes = record_bytes(length, flags);
	record = ring_claim(&ep->writer, bytes);
	if (!record)
		return no_room(ep);
	for (size_t i = 0; i < count; i++)
		pieces[i] = (struct record_piece){(uintptr_t)iov[first + i].iov_base,
						  iov[first + i].iov_len};
	record = ring_payload(record, flags, message->data);
	memcpy(record, &start, sizeof(start));
	record += sizeof(start);
	iov_copy(record, iov, first);
	memcpy(record + start, pieces, count * sizeof(*pieces));
	commit(ep, RECORD_READ, flags, length, bytes);
	keep(ep, message, message->length);
	return 0;
}

/* Whether the peer still has earlier messages to take. It publishes its last eighth late. */
static bool peer_is_busy(struct shm_ep *ep)
{
	if (ep->base.tx_head != ep->base.tx_tail)
		return true;
	ring_refresh(&ep->writer);
	return ep->writer.tail - ep->writer.head >= ep->writer.segment.ring_bytes / 8;
}

/* Whether the peer reads it from our memory. One copy instead of two is faster in a stream, up to a
 * length that stays in a cache. Otherwise parts are faster: both sides copy at once. A
 * sender that sets FI_INJECT_COMPLETE wants its memory back soon, and gets parts. */
static bool is_read(struct shm_ep *ep, const struct prov_message *message)
{
	uint64_t length = message->length;

	/* Acquire: pairs with no other data; only this reads it. */
	if (!atomic_load_explicit(&ep->writer.segment.control->can_read, memory_order_acquire))
		return false;
	return length > shm_params.copy_max ||
	       (length >= STREAM_READ_MIN && length <= STREAM_READ_MAX &&
		!(message->flags & FI_INJECT_COMPLETE) && peer_is_busy(ep));
}

static ssize_t send_large(struct shm_ep *ep, const struct prov_message *message)
{
	uint32_t parts = SHM_POLL_PARTS;

	if (message->length > SHM_MESSAGE_MAX)
		return -FI_EMSGSIZE;
	if (is_full(ep))
		return -FI_EAGAIN;
	if (is_read(ep, message))
		return send_by_reading(ep, message);
	keep(ep, message, 0);
	send_go_on(ep, &parts);
	return 0;
}

/* Whether a message is being written in parts: nothing may come between them. */
static bool is_writing(const struct shm_ep *ep)
{
	const struct shm_send *last = &ep->sends[(ep->base.tx_tail - 1) & ep->tx_mask];

	return ep->base.tx_tail != ep->base.tx_head && last->written < last->message.length;
}

static inline ssize_t send_it(struct prov_ep *base, const struct prov_message *message)
{
	struct shm_ep *ep = (struct shm_ep *)base;

	if (plx_unlikely(base->state != EP_CONNECTED))
		return ep_refuses(base);
	if (plx_unlikely(is_writing(ep) ||
			 (message->wants_completion && !cq_has_room(ep->base.tx_cq))))
		return -FI_EAGAIN;
	if (plx_likely(message->length <= ep->inline_max))
		return send_small(ep, message);
	return send_large(ep, message);
}

/* Sends in flight ---------------------------------------------------------------------------- */

/* Bytes of the next part. It ends at the ring's end if that comes first, so that later parts start
 * at multiples of a part. A small remainder joins it. */
static uint32_t part_length(const struct ring_writer *writer, uint64_t rest)
{
	uint32_t ring_bytes = writer->segment.ring_bytes;
	uint32_t most = ring_bytes / 8 < PART_BYTES ? ring_bytes / 8 : PART_BYTES;
	uint32_t left = ring_bytes - ((uint32_t)writer->tail & (ring_bytes - 1));

	if (left >= PART_LEAST && left < most)
		most = left;
	else if (left >= most + most / 4 && rest <= most + most / 4 - RECORD_UNIT)
		return (uint32_t)rest;
	most -= RECORD_UNIT;
	return rest < most ? (uint32_t)rest : most;
}

/* Write one more part. Return: whether there was room. */
static bool write_part(struct shm_ep *ep, struct shm_send *kept)
{
	const struct prov_message *message = &kept->message;
	uint64_t rest = message->length - kept->written;
	bool first = kept->written == 0;
	uint32_t part = part_length(&ep->writer, rest);
	bool waits = message->flags & FI_DELIVERY_COMPLETE && part == rest;
	uint8_t flags = (first && message->has_data ? RECORD_HAS_DATA : 0) |
			(waits ? RECORD_ACK : 0);
	uint32_t length = ring_part_header(flags) + part;
	uint32_t bytes = record_bytes(length, flags);
	uint8_t *at = ring_claim(&ep->writer, bytes);
	struct iovec pieces[PROV_IOV_MAX];
	int count;

	if (!at)
		return false;
	at = ring_payload(at, flags, message->data);
	if (first)
		memcpy(at, &message->length, sizeof(message->length));
	count = iov_after(message->iov, (uint32_t)message->count, kept->written, pieces);
	count = iov_first(pieces, count, part);
	iov_copy(at + ring_part_header(flags), pieces, (size_t)count);
	kept->written += part;
	commit(ep, first ? RECORD_FIRST : RECORD_NEXT, flags, length, bytes);
	kept->end = waits ? ep->writer.tail : 0;
	return true;
}

/* Whether all parts of a message that takes at most half of the ring fit now. */
static bool has_room(struct shm_ep *ep, uint64_t length)
{
	struct ring_writer *writer = &ep->writer;
	/* Headers, and what is skipped before the ring's end. */
	uint64_t need = writer->tail + length + length / 8 + 2 * PART_LEAST;

	if (need > writer->head + writer->segment.ring_bytes)
		ring_refresh(writer);
	return need <= writer->head + writer->segment.ring_bytes;
}

/* Complete the oldest finished sends. */
static bool complete_oldest(struct shm_ep *ep)
{
	bool moved = false;

	ring_refresh(&ep->writer);
	while (ep->base.tx_head != ep->base.tx_tail) {
		struct shm_send *kept = &ep->sends[ep->base.tx_head & ep->tx_mask];

		if (kept->written < kept->message.length || ep->writer.head < kept->end)
			break;
		if (kept->message.wants_completion)
			push_done(ep, kept->message.context, 0);
		ep->base.tx_head++;
		moved = true;
	}
	return moved;
}

bool send_go_on(struct shm_ep *ep, uint32_t *parts)
{
	struct shm_send *last = &ep->sends[(ep->base.tx_tail - 1) & ep->tx_mask];
	bool moved = false;

	if (ep->base.tx_head == ep->base.tx_tail)
		return false;
	for (; *parts > 0 && last->written < last->message.length && write_part(ep, last); --*parts)
		moved = true;
	moved |= complete_oldest(ep);
	if (plx_unlikely(ep->writer.broken))
		progress_broken(ep);
	return moved;
}

void send_flush(struct shm_ep *ep, int err)
{
	/* From here on their memory is the application's, and what the peer still reads of it does
	 * not count. */
	atomic_store_explicit(&ep->probe, 0, memory_order_relaxed);
	atomic_thread_fence(memory_order_seq_cst);
	for (; ep->base.tx_head != ep->base.tx_tail; ep->base.tx_head++)
		push_done(ep, ep->sends[ep->base.tx_head & ep->tx_mask].message.context, err);
}

/* Write what fits into the ring from the caller's memory, and copy only the rest to `room`. While
 * another send is in flight, whose completion follows, a short message waits until all of it
 * fits. */
ssize_t send_copy(struct fid_ep *fid, const struct iovec *iov, size_t count, void *room,
		  void *context)
{
	struct shm_ep *ep = (struct shm_ep *)fid;
	struct prov_message message = {.iov = iov,
				       .count = count,
				       .length = iov_bytes(iov, count),
				       .context = context,
				       .wants_completion = true};
	struct iovec rest[PROV_IOV_MAX];
	struct shm_send *kept;
	uint32_t parts = UINT32_MAX;

	if (plx_unlikely(ep->base.state != EP_CONNECTED))
		return ep_refuses(&ep->base);
	if (is_writing(ep) || is_full(ep) || !cq_has_room(ep->base.tx_cq))
		return -FI_EAGAIN;
	if (message.length <= ep->inline_max)
		return send_small(ep, &message);
	if (ep->base.tx_head != ep->base.tx_tail &&
	    message.length <= ep->writer.segment.ring_bytes / 2 && !has_room(ep, message.length))
		return no_room(ep);
	kept = keep(ep, &message, 0);
	send_go_on(ep, &parts);
	if (kept->written == message.length)
		return 0;
	iov_copy((uint8_t *)room + kept->written, rest,
		 (size_t)iov_after(iov, (uint32_t)count, kept->written, rest));
	kept->pieces[0] = (struct iovec){room, message.length};
	kept->message.count = 1;
	return 0;
}

/* libfabric's calls, and Pollux' own --------------------------------------------------------- */

#define SEND_INJECT_MAX SHM_INJECT_MAX
#define SEND_OP_FLAGS   SHM_OP_FLAGS
#define SEND_OPS        shm_msg_ops
#include "../prov/send_calls.h"

void *send_claim(struct fid_ep *fid, size_t length)
{
	struct shm_ep *ep = (struct shm_ep *)fid;
	uint8_t *record;

	if (plx_unlikely(ep->base.state != EP_CONNECTED || is_writing(ep) ||
			 length > ep->inline_max))
		return NULL;
	record = ring_claim(&ep->writer, record_bytes(length, 0));
	return plx_likely(record != NULL) ? ring_payload(record, 0, 0) : NULL;
}

void send_commit(struct fid_ep *fid, size_t length)
{
	commit_early((struct shm_ep *)fid, 0, (uint32_t)length, record_bytes(length, 0));
}
