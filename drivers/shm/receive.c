/* SPDX-License-Identifier: BSD-3-Clause */
/* Receiving: turns records into completions of posted receives. Hot path: receive_poll with one
 * message in one record and one buffer. */
#include "shm.h"

#include <sys/uio.h>

#define READ_MAX (UINT64_C(1) << 18) /* bytes read from a peer's memory per poll */
/* Ring bytes after which a poll ends, so that the first messages are delivered, and their credit is
 * granted again, before a sender with a small window runs out of it. */
#define POLL_BYTES       (UINT64_C(16) << 10)
#define TAKEN_BY_READING 2

static inline void advance(struct shm_ep *ep, const struct record *record)
{
	if (plx_unlikely(ring_advance(&ep->reader, record)))
		ep_wake_peer(ep);
}

static void receive_message(struct shm_ep *ep, const struct prov_receive *receive,
			    const struct record *record)
{
	if (plx_likely(record->length <= receive->length && record->length))
		memcpy(receive->buf, record->payload, record->length);
	else
		receives_copy(&ep->base.rx, 0, record->payload, record->length);
	advance(ep, record);
	receives_complete(&ep->base, record->length, record->flags & RECORD_HAS_DATA, record->data);
}

static void begin_part(struct shm_ep *ep, const struct record *record, uint64_t total)
{
	ep->part = *record;
	ep->base.rx.filling = true;
	ep->part_total = total;
	ep->part_done = 0;
	ep->base.part_begin = ep->base.part_bytes;
}

static void end_part(struct shm_ep *ep)
{
	receives_complete(&ep->base, ep->part_total, ep->part.flags & RECORD_HAS_DATA,
			  ep->part.data);
	ep->part.kind = 0;
	ep->base.rx.filling = false;
}

/* Account for a part of its message. Return: whether it is valid. */
static bool take_part(struct shm_ep *ep, struct record *record)
{
	uint32_t header = ring_part_header(record->flags);
	uint32_t length = record->length - header;

	if (record->length <= header || length > ep->part_total - ep->part_done)
		return false;
	receives_copy(&ep->base.rx, ep->part_done, record->payload + header, length);
	ep->part_done += length;
	ep->base.part_bytes += length;
	record->flags |= RECORD_ACK; /* the sender writes the next part there while we copy */
	advance(ep, record);
	if (ep->part_done == ep->part_total)
		end_part(ep);
	return true;
}

/* RECORD_FIRST: the total, then the first bytes. */
static bool receive_first(struct shm_ep *ep, struct record *record)
{
	uint64_t total;

	if (ep->part.kind || record->length < sizeof(total))
		return false;
	memcpy(&total, record->payload, sizeof(total));
	if (total > SHM_MESSAGE_MAX)
		return false;
	begin_part(ep, record, total);
	return take_part(ep, record);
}

/* Remember where the message lies, and take its start, which is in the record. */
static bool begin_read(struct shm_ep *ep, const struct record *record)
{
	struct record_piece pieces[PROV_IOV_MAX];
	uint64_t start = RECORD_START_MAX + 1, total, bytes;
	uint32_t count;

	if (record->length > sizeof(start))
		memcpy(&start, record->payload, sizeof(start));
	bytes = record->length - sizeof(start) - start;
	count = (uint32_t)(bytes / sizeof(*pieces));
	if (ep->part.kind || !ep->may_read || start > RECORD_START_MAX ||
	    record->length < sizeof(start) + start || count < 1 || bytes > sizeof(pieces) ||
	    bytes % sizeof(*pieces))
		return false;
	memcpy(pieces, record->payload + sizeof(start) + start, bytes);
	total = start;
	for (uint32_t i = 0; i < count; i++) {
		if (pieces[i].length > SHM_MESSAGE_MAX)
			return false;
		ep->sources[i].iov_base = (void *)(uintptr_t)pieces[i].address;
		ep->sources[i].iov_len = pieces[i].length;
		total += pieces[i].length;
	}
	ep->source_count = count;
	ep->source_start = start;
	if (total == start || total > SHM_MESSAGE_MAX)
		return false;
	begin_part(ep, record, total);
	receives_copy(&ep->base.rx, 0, record->payload + sizeof(start), start);
	ep->part_done = start;
	return true;
}

/* Continue the read. Return: bytes; -errno the peer left, or gave an unreadable address. */
static ssize_t read_some(struct shm_ep *ep, const struct prov_receive *receive)
{
	struct iovec to[PROV_IOV_MAX + 1], from[PROV_IOV_MAX + 1];
	uint64_t fit = ep->part_total < receive->total ? ep->part_total : receive->total;
	uint64_t most = fit > ep->part_done ? fit - ep->part_done : 0;
	int to_count, from_count;

	if (most == 0)
		return 0;
	most = most < READ_MAX ? most : READ_MAX;
	from_count = iov_first(
		from,
		iov_after(ep->sources, ep->source_count, ep->part_done - ep->source_start, from),
		most);
	to_count = iov_first(to, receives_pieces(&ep->base.rx, ep->part_done, to), most);
	return peer_read(&ep->peer_process, to, to_count, from, from_count);
}

/* Return: whether the read succeeded so far. */
static bool continue_read(struct shm_ep *ep, const struct prov_receive *receive,
			  const struct record *record)
{
	ssize_t got = read_some(ep, receive);

	if (got < 0)
		return false;
	ep->part_done += (uint64_t)got;
	ep->base.part_bytes += (uint64_t)got;
	/* Bytes that do not fit are not read. */
	if (ep->part_done < ep->part_total && ep->part_done < receive->total)
		return got > 0;
	advance(ep, record);
	end_part(ep);
	return true;
}

/* Any record that is not a whole message, or one that does not belong here. Return: 1;
 * TAKEN_BY_READING: or a part of it; -1 it is not valid here, or the peer left. */
static PLX_NOINLINE int take_other(struct shm_ep *ep, const struct prov_receive *receive,
				   struct record record)
{
	bool is_valid;

	switch (record.kind) {
	case RECORD_FIRST:
		is_valid = receive_first(ep, &record);
		break;
	case RECORD_NEXT:
		is_valid = ep->part.kind == RECORD_FIRST && take_part(ep, &record);
		break;
	case RECORD_READ: /* the record stays in the ring until everything was read */
		is_valid = (ep->part.kind || begin_read(ep, &record)) &&
			   ep->part.kind == RECORD_READ && continue_read(ep, receive, &record);
		break;
	default: /* RECORD_MESSAGE inside another message */
		is_valid = false;
	}
	return !is_valid ? -1 : record.kind == RECORD_READ ? TAKEN_BY_READING : 1;
}

/* Take one record. Return: 1; TAKEN_BY_READING; 0 none, or it must wait; -1 the peer left, or wrote
 * garbage. */
static inline int take(struct shm_ep *ep)
{
	struct prov_receive *receive;
	struct record record;
	int found = ring_peek(&ep->reader, &record);

	if (plx_likely(found <= 0))
		return found;
	if (plx_unlikely(receives_is_empty(&ep->base.rx))) {
		ep->base.starved = true;
		return 0;
	}
	if (plx_unlikely(!cq_has_room(ep->base.rx_cq)))
		return 0;
	receive = receives_first(&ep->base.rx);
	if (plx_likely(record.kind == RECORD_MESSAGE && !ep->part.kind))
		receive_message(ep, receive, &record);
	else
		found = take_other(ep, receive, record);
	if (plx_unlikely(ep->base.rx.cancelled && !ep->part.kind))
		receives_drop_cancelled(&ep->base.rx);
	return found;
}

bool receive_is_in_parts(const struct prov_ep *base, bool *is_held_out)
{
	const struct shm_ep *ep = (const struct shm_ep *)base;

	*is_held_out = ep->part.kind == RECORD_READ || !cq_has_room(base->rx_cq);
	return ep->part.kind;
}

uint32_t receive_poll(struct shm_ep *ep, uint32_t max)
{
	uint64_t end = ep->reader.head + POLL_BYTES;
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
		/* A message that was read is delivered at once, and its buffer posted again while
		 * it is in the cache. */
		if (ep->reader.head >= end || plx_unlikely(found == TAKEN_BY_READING))
			break;
	}
	return taken;
}
