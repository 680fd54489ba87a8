/* SPDX-License-Identifier: BSD-3-Clause */
/* Receiving: what records become completions of posted receives. Hot path: receive_poll with one
 * message in one record and one buffer. */
#include "shm.h"

#include <errno.h>
#include <sys/uio.h>
#include <unistd.h>

#define READ_MAX (UINT64_C(1) << 20) /* bytes read from the peer's memory in one poll */

/* Completing --------------------------------------------------------------------------------- */

static inline void complete(struct shm_ep *ep, const struct shm_receive *receive, uint64_t length,
			    bool has_data, uint64_t data)
{
	bool fits = length <= receive->total;
	struct prov_completion *completion;

	if (plx_unlikely(!receive->flags && fits))
		return;
	completion = cq_push(&ep->rx_cq->q);
	completion->context = receive->context;
	completion->flags = FI_RECV | FI_MSG | (has_data ? FI_REMOTE_CQ_DATA : 0);
	completion->err = fits ? 0 : FI_ETRUNC;
	completion->length = fits ? length : receive->total;
	completion->buf = receive->buf;
	completion->data = data;
	completion->overlong = fits ? 0 : length - receive->total;
}

/* Records ------------------------------------------------------------------------------------ */

/* What of a receive's pieces is behind `skip` bytes. Returns how many. */
static int pieces_from(const struct shm_ep *ep, const struct shm_receive *receive, uint64_t skip,
		       struct iovec *out)
{
	struct iovec whole = {.iov_base = receive->buf, .iov_len = receive->length};
	const struct iovec *from = receive->pieces == 1 ? &whole : receive_pieces(ep, ep->rx_head);
	int count = 0;

	for (uint32_t i = 0; i < receive->pieces; i++) {
		if (skip >= from[i].iov_len) {
			skip -= from[i].iov_len;
			continue;
		}
		out[count].iov_base = (char *)from[i].iov_base + skip;
		out[count++].iov_len = from[i].iov_len - skip;
		skip = 0;
	}
	return count;
}

static void copy_pieces(const struct shm_ep *ep, const struct shm_receive *receive, uint64_t skip,
			const uint8_t *from, uint64_t length)
{
	struct iovec to[PROV_IOV_MAX];
	int count = pieces_from(ep, receive, skip, to);

	for (int i = 0; i < count && length > 0; i++) {
		size_t bytes = length < to[i].iov_len ? length : to[i].iov_len;

		memcpy(to[i].iov_base, from, bytes);
		from += bytes;
		length -= bytes;
	}
}

static inline void advance(struct shm_ep *ep, const struct record *record)
{
	if (plx_unlikely(ring_advance(&ep->reader, record)))
		ep_wake_peer(ep);
}

static void receive_message(struct shm_ep *ep, const struct shm_receive *receive,
			    const struct record *record)
{
	if (plx_likely(record->length <= receive->length && record->length))
		memcpy(receive->buf, record->payload, record->length);
	else
		copy_pieces(ep, receive, 0, record->payload, record->length);
	advance(ep, record);
	complete(ep, receive, record->length, record->flags & RECORD_HAS_DATA, record->data);
	ep->rx_head++;
}

static void begin_part(struct shm_ep *ep, const struct record *record, uint64_t total)
{
	ep->part_kind = record->kind;
	ep->part_total = total;
	ep->part_done = 0;
	ep->part_has_data = record->flags & RECORD_HAS_DATA;
	ep->part_data = record->data;
}

static void end_part(struct shm_ep *ep, const struct shm_receive *receive)
{
	complete(ep, receive, ep->part_total, ep->part_has_data, ep->part_data);
	ep->part_kind = 0;
	ep->rx_head++;
}

/* Take what a part brings of its message. Return: whether that may be. */
static bool take_part(struct shm_ep *ep, const struct shm_receive *receive, struct record *record)
{
	uint32_t header = ring_part_header(record->flags);
	uint32_t length = record->length - header;

	if (record->length <= header || length > ep->part_total - ep->part_done)
		return false;
	copy_pieces(ep, receive, ep->part_done, record->payload + header, length);
	ep->part_done += length;
	record->flags |= RECORD_ACK; /* the sender writes the next one there while we copy on */
	advance(ep, record);
	if (ep->part_done == ep->part_total)
		end_part(ep, receive);
	return true;
}

/* RECORD_FIRST: the total, and the first bytes. */
static bool receive_first(struct shm_ep *ep, const struct shm_receive *receive,
			  struct record *record)
{
	uint64_t total;

	if (ep->part_kind || record->length < sizeof(total))
		return false;
	memcpy(&total, record->payload, sizeof(total));
	if (total > SHM_MESSAGE_MAX)
		return false;
	begin_part(ep, record, total);
	return take_part(ep, receive, record);
}

/* RECORD_NEXT: more of what a RECORD_FIRST began. */
static bool receive_next(struct shm_ep *ep, const struct shm_receive *receive,
			 struct record *record)
{
	return ep->part_kind == RECORD_FIRST && take_part(ep, receive, record);
}

/* Reading from the sender's memory ----------------------------------------------------------- */

/* Remember where the message is. */
static bool begin_read(struct shm_ep *ep, const struct record *record)
{
	uint32_t count = record->length / sizeof(struct record_piece);
	uint64_t total = 0;

	if (ep->part_kind || count < 1 || count > PROV_IOV_MAX ||
	    record->length % sizeof(struct record_piece) || !ep->may_read)
		return false;
	memcpy(ep->sources, record->payload, record->length);
	ep->source_count = count;
	for (uint32_t i = 0; i < count; i++) {
		if (ep->sources[i].length > SHM_MESSAGE_MAX)
			return false;
		total += ep->sources[i].length;
	}
	if (total == 0 || total > SHM_MESSAGE_MAX)
		return false;
	ep->peer_pidfd = peer_hold(ep->source.fd, &ep->peer_process);
	if (ep->peer_pidfd < 0)
		return false;
	begin_part(ep, record, total);
	return true;
}

static int sources_from(const struct shm_ep *ep, uint64_t skip, uint64_t most, struct iovec *out)
{
	int count = 0;

	for (uint32_t i = 0; i < ep->source_count && most > 0; i++) {
		uint64_t length = ep->sources[i].length;

		if (skip >= length) {
			skip -= length;
			continue;
		}
		length = length - skip < most ? length - skip : most;
		out[count].iov_base = (void *)(uintptr_t)(ep->sources[i].address + skip);
		out[count++].iov_len = length;
		most -= length;
		skip = 0;
	}
	return count;
}

/* Read on. Return: bytes; -errno the peer is gone, or gave what cannot be read. */
static ssize_t read_some(struct shm_ep *ep, const struct shm_receive *receive)
{
	struct iovec to[PROV_IOV_MAX], from[PROV_IOV_MAX];
	uint64_t fit = ep->part_total < receive->total ? ep->part_total : receive->total;
	uint64_t most = fit - ep->part_done;
	ssize_t got;

	if (most == 0)
		return 0;
	most = most < READ_MAX ? most : READ_MAX;
	got = process_vm_readv(ep->peer_process.pid, to,
			       (unsigned long)pieces_from(ep, receive, ep->part_done, to), from,
			       (unsigned long)sources_from(ep, ep->part_done, most, from), 0);
	if (got < 0)
		return -errno;
	/* The pid may be another's by now, also where a child of the peer still has the socket. */
	return peer_is_running(ep->peer_pidfd) && progress_peer_is_there(ep) ? got : -ESRCH;
}

/* Return: whether all went well. */
static bool continue_read(struct shm_ep *ep, const struct shm_receive *receive,
			  const struct record *record)
{
	ssize_t got = read_some(ep, receive);

	if (got < 0)
		return false;
	ep->part_done += (uint64_t)got;
	/* What does not fit is not read. */
	if (ep->part_done < ep->part_total && ep->part_done < receive->total)
		return got > 0;
	close(ep->peer_pidfd);
	ep->peer_pidfd = -1;
	advance(ep, record);
	end_part(ep, receive);
	return true;
}

/* Polling ------------------------------------------------------------------------------------ */

/* RECORD_READ: it stays where it is until all was read. */
static bool receive_read(struct shm_ep *ep, const struct shm_receive *receive,
			 const struct record *record)
{
	if (!ep->part_kind && !begin_read(ep, record))
		return false;
	return ep->part_kind == RECORD_READ && continue_read(ep, receive, record);
}

/* What is not a message that begins and ends here. Return: whether it may be where it is. */
static bool receive_other(struct shm_ep *ep, const struct shm_receive *receive,
			  struct record *record)
{
	switch (record->kind) {
	case RECORD_FIRST:
		return receive_first(ep, receive, record);
	case RECORD_NEXT:
		return receive_next(ep, receive, record);
	case RECORD_READ:
		return receive_read(ep, receive, record);
	default: /* RECORD_MESSAGE inside of another */
		return false;
	}
}

/* Take one record. Return: 1; 0 there is none, or it must wait; -1 the peer is gone, or scribbles.
 */
static inline int take(struct shm_ep *ep)
{
	struct shm_receive *receive;
	struct record record;
	int found = ring_peek(&ep->reader, &record);

	if (plx_likely(found <= 0))
		return found;
	if (plx_unlikely(ep->rx_head == ep->rx_tail)) {
		ep->starved = true;
		return 0;
	}
	if (plx_unlikely(!cq_has_room(&ep->rx_cq->q)))
		return 0;
	receive = &ep->receives[ep->rx_head & ep->rx_mask];
	if (plx_likely(record.kind == RECORD_MESSAGE && !ep->part_kind))
		receive_message(ep, receive, &record);
	else if (!receive_other(ep, receive, &record))
		return -1;
	if (plx_unlikely(ep->rx_cancelled && !ep->part_kind))
		receive_drop_cancelled(ep);
	return 1;
}

uint32_t receive_poll(struct shm_ep *ep, uint32_t max)
{
	uint32_t taken = 0;

	if (plx_unlikely(ep->broken))
		return 0;
	while (taken < max) {
		int found = take(ep);

		if (found < 0)
			progress_broken(ep);
		if (found <= 0)
			break;
		taken++;
		if (ep->part_kind == RECORD_READ)
			break;
	}
	return taken;
}
