/* SPDX-License-Identifier: BSD-3-Clause */
/* Receiving: posted receives, and what records become completions of them. Hot path: receive_poll
 * with one message in one record and one buffer. */
#include "shm.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/uio.h>

#define READ_MAX (UINT64_C(1) << 20) /* bytes read from the peer's memory in one poll */

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

static struct iovec *pieces_of(const struct shm_ep *ep, uint32_t index)
{
	return &ep->pieces[(size_t)(index & ep->rx_mask) * SHM_IOV_MAX];
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
		ep->pieces = calloc((size_t)ep->rx_mask + 1, SHM_IOV_MAX * sizeof(struct iovec));
	if (!ep->pieces)
		return -FI_ENOMEM;
	for (size_t i = 0; i < count; i++) {
		pieces_of(ep, ep->rx_tail)[i] = iov[i];
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

	if (msg->iov_count > SHM_IOV_MAX)
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

/* Completing --------------------------------------------------------------------------------- */

static void complete(struct shm_ep *ep, const struct shm_receive *receive, uint64_t length,
		     bool has_data, uint64_t data)
{
	struct shm_completion completion = {
		.context = receive->context,
		.flags = FI_RECV | FI_MSG | (has_data ? FI_REMOTE_CQ_DATA : 0),
		.length = length,
		.buf = receive->buf,
		.data = data,
	};

	if (plx_unlikely(length > receive->total)) {
		completion.err = FI_ETRUNC;
		completion.length = receive->total;
		completion.overlong = length - receive->total;
	} else if (plx_unlikely(!receive->flags)) {
		return;
	}
	cq_push(ep->rx_cq, &completion);
}

static void fail(struct shm_ep *ep, const struct shm_receive *receive, int err)
{
	struct shm_completion completion = {
		.context = receive->context,
		.flags = FI_RECV | FI_MSG,
		.buf = receive->buf,
		.err = err,
	};

	cq_push(ep->rx_cq, &completion);
}

/* Those that were cancelled have told so. */
static void drop_cancelled(struct shm_ep *ep)
{
	while (ep->rx_head != ep->rx_tail && ep->receives[ep->rx_head & ep->rx_mask].cancelled)
		ep->rx_head++;
}

void receive_flush(struct shm_ep *ep, int err)
{
	for (; ep->rx_head != ep->rx_tail; ep->rx_head++) {
		struct shm_receive *receive = &ep->receives[ep->rx_head & ep->rx_mask];

		if (!receive->cancelled)
			fail(ep, receive, err);
	}
	ep->part_kind = 0;
}

/* The oldest with that context; not one that a message is being put into. */
ssize_t receive_cancel(struct shm_ep *ep, void *context)
{
	for (uint32_t i = ep->rx_head + (ep->part_kind != 0); i != ep->rx_tail; i++) {
		struct shm_receive *receive = &ep->receives[i & ep->rx_mask];

		if (receive->context == context && !receive->cancelled) {
			receive->cancelled = true;
			fail(ep, receive, FI_ECANCELED);
			if (!ep->part_kind)
				drop_cancelled(ep);
			return 0;
		}
	}
	return -FI_ENOENT;
}

/* Records ------------------------------------------------------------------------------------ */

/* What of a receive's pieces is behind `skip` bytes. Returns how many. */
static int pieces_from(const struct shm_ep *ep, const struct shm_receive *receive, uint64_t skip,
		       struct iovec *out)
{
	struct iovec whole = {.iov_base = receive->buf, .iov_len = receive->length};
	const struct iovec *from = receive->pieces == 1 ? &whole : pieces_of(ep, ep->rx_head);
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
	struct iovec to[SHM_IOV_MAX];
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

/* RECORD_FIRST, RECORD_NEXT. Return: whether it may be one. */
static bool receive_part(struct shm_ep *ep, const struct shm_receive *receive,
			 const struct record *record)
{
	const uint8_t *payload = record->payload;
	uint64_t length = record->length, total;

	if (record->kind == RECORD_FIRST) {
		if (ep->part_kind || length < sizeof(total))
			return false;
		memcpy(&total, payload, sizeof(total));
		payload += sizeof(total);
		length -= sizeof(total);
		if (total > SHM_MESSAGE_MAX)
			return false;
		begin_part(ep, record, total);
	}
	if (ep->part_kind != RECORD_FIRST || length == 0 || length > ep->part_total - ep->part_done)
		return false;
	copy_pieces(ep, receive, ep->part_done, payload, length);
	ep->part_done += length;
	advance(ep, record);
	if (ep->part_done == ep->part_total)
		end_part(ep, receive);
	return true;
}

/* Reading from the sender's memory ----------------------------------------------------------- */

/* RECORD_READ: remember where the message is. */
static bool begin_read(struct shm_ep *ep, const struct record *record)
{
	uint32_t count = record->length / sizeof(struct record_piece);
	uint64_t total = 0;

	if (ep->part_kind || count < 1 || count > SHM_IOV_MAX ||
	    record->length % sizeof(struct record_piece) || !shm_params.cma)
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
	struct iovec to[SHM_IOV_MAX], from[SHM_IOV_MAX];
	uint64_t fit = ep->part_total < receive->total ? ep->part_total : receive->total;
	uint64_t most = fit - ep->part_done;
	ssize_t got;

	if (most == 0)
		return 0;
	most = most < READ_MAX ? most : READ_MAX;
	got = process_vm_readv(ep->peer_pid, to,
			       (unsigned long)pieces_from(ep, receive, ep->part_done, to), from,
			       (unsigned long)sources_from(ep, ep->part_done, most, from), 0);
	if (got < 0)
		return -errno;
	/* The pid may be another's by now; while the socket is there it is not. */
	return progress_peer_is_there(ep) ? got : -ESRCH;
}

/* Go on with a RECORD_READ. Return: whether all went well. */
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
	advance(ep, record);
	end_part(ep, receive);
	return true;
}

/* Polling ------------------------------------------------------------------------------------ */

static bool receive_other(struct shm_ep *ep, const struct shm_receive *receive,
			  const struct record *record)
{
	if (record->kind != RECORD_READ)
		return receive_part(ep, receive, record);
	if (!ep->part_kind && !begin_read(ep, record))
		return false;
	return ep->part_kind == RECORD_READ && continue_read(ep, receive, record);
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
	if (plx_unlikely(!cq_has_room(ep->rx_cq)))
		return 0;
	receive = &ep->receives[ep->rx_head & ep->rx_mask];
	if (plx_likely(record.kind == RECORD_MESSAGE && !ep->part_kind))
		receive_message(ep, receive, &record);
	else if (!receive_other(ep, receive, &record))
		return -1;
	if (plx_unlikely(!ep->part_kind && ep->rx_head != ep->rx_tail))
		drop_cancelled(ep);
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
