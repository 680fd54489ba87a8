/* SPDX-License-Identifier: BSD-3-Clause */
/* The ways to receive, and who sends to them. */
#include "multi_recv.h"

#include "plx_mem.h"

#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#define CQ_BURST      64
#define RECEIVE_BYTES 4096
#define HEADER_BYTES  16 /* of a link's frame, before the payload */
#define SIGNAL_EVERY  32
#define SIGNALS_OUT   32
#define WARM_UP       20000
#define IN_VAIN_MAX   100000000 /* looks, one after another: some 10 s */

_Static_assert(RECEIVER_SIZE_MIN == HEADER_BYTES + sizeof(uint64_t), "a message has its number");

/* Sending ---------------------------------------------------------------------------------- */

/* As links do: injected, and now and then one whose completion is asked for; the last one too, as
 * nobody makes libfabric send what it still holds, once nobody waits for it. */
static int send_one(struct receiver *r, bool last)
{
	uint8_t message[RECEIVER_SIZE_MAX] = {0};
	struct iovec iov = {.iov_base = message, .iov_len = r->size};
	struct fi_msg msg = {.msg_iov = &iov, .iov_count = 1};
	int rc;

	memcpy(message + HEADER_BYTES, &r->sent, sizeof(r->sent));
	r->sent++;
	if (r->sent % SIGNAL_EVERY && !last) {
		rc = (int)fi_inject(r->ends[0].ep, message, r->size, 0);
	} else {
		r->signals_out++;
		rc = (int)fi_sendmsg(r->ends[0].ep, &msg, FI_INJECT | FI_COMPLETION);
	}
	return plx_likely(rc == 0) ? 0 : fabric_failed(rc, "cannot send");
}

static int wait_sent(struct receiver *r, unsigned signals_out)
{
	struct fi_cq_data_entry entries[CQ_BURST];
	uint64_t in_vain = 0;

	while (r->signals_out > signals_out) {
		ssize_t n = fi_cq_read(r->sides[0].fids.cq, entries, CQ_BURST);

		if (n > 0)
			r->signals_out -= (unsigned)n;
		else if (n != -FI_EAGAIN || ++in_vain == IN_VAIN_MAX)
			return fabric_failed(n, "a message was not sent");
	}
	return 0;
}

int flood_send(struct receiver *r, uint64_t count)
{
	int rc = 0;

	for (uint64_t i = 0; i < count && !rc; i++) {
		rc = send_one(r, i + 1 == count);
		if (!rc)
			rc = wait_sent(r, SIGNALS_OUT - 1);
	}
	return rc ? rc : wait_sent(r, 0);
}

/* Receiving -------------------------------------------------------------------------------- */

static int post_one(struct receiver *r, struct slot *slot)
{
	struct fid_ep *to = r->way->shared ? r->sides[1].srx : r->ends[1].ep;

	return (int)fi_recv(to, slot->buf->data - HEADER_BYTES, RECEIVE_BYTES, NULL, 0,
			    &slot->context);
}

static int post_chunk(struct receiver *r, struct slot *slot)
{
	struct iovec iov = {.iov_base = slot->chunk, .iov_len = r->way->chunk_bytes};
	struct fi_msg msg = {.msg_iov = &iov, .iov_count = 1, .context = &slot->context};

	return (int)fi_recvmsg(r->sides[1].srx, &msg, FI_MULTI_RECV | FI_COMPLETION);
}

static int wrong_message(uint64_t expected)
{
	return plx_fail(EPROTO, "what came is not message %llu", (unsigned long long)expected);
}

static inline int check(struct receiver *r, const uint8_t *payload)
{
	uint64_t number;

	memcpy(&number, payload, sizeof(number));
	return plx_likely(number == r->received) ? 0 : wrong_message(r->received);
}

/* Who the message is for: a function of the application's, which may keep the buffer. */
static __attribute__((noinline)) int deliver(struct receiver *r, struct plx_buf *message)
{
	return check(r, message->data);
}

static int kept(void)
{
	return plx_fail(EPROTO, "somebody kept a message");
}

/* As a link does. */
static int take_posted(struct receiver *r, const struct fi_cq_data_entry *entry)
{
	struct slot *slot = entry->op_context;
	struct plx_buf *buf = slot->buf;

	buf->len = (uint32_t)entry->len - HEADER_BYTES;

	int rc = deliver(r, buf);

	if (plx_unlikely(!plx_buf_unshared(buf)))
		rc = kept();
	plx_buf_reset(buf);
	return plx_likely(rc == 0) ? post_one(r, slot) : rc;
}

/* What it would do: a buffer's header that is used again for each message, as nobody keeps one.
 * For messages that are kept it would take further ones, and count them for the chunk. */
static int take_view(struct receiver *r, const struct fi_cq_data_entry *entry)
{
	struct plx_buf *view = r->view;

	view->base = entry->buf;
	view->room = (uint32_t)entry->len;
	view->data = view->base + HEADER_BYTES;
	view->len = view->room - HEADER_BYTES;

	int rc = deliver(r, view);

	if (plx_unlikely(!plx_buf_unshared(view)))
		rc = kept();
	if (plx_unlikely(rc))
		return rc;
	return plx_unlikely(entry->flags & FI_MULTI_RECV) ? post_chunk(r, entry->op_context) : 0;
}

/* For one who needs neither buffers nor to keep anything. */
static int take_bare(struct receiver *r, const struct fi_cq_data_entry *entry)
{
	int rc = check(r, (const uint8_t *)entry->buf + HEADER_BYTES);

	if (plx_unlikely(rc))
		return rc;
	return plx_unlikely(entry->flags & FI_MULTI_RECV) ? post_chunk(r, entry->op_context) : 0;
}

const struct receive_way receive_ways[] = {
	{.name = "posted", .posted = 256, .take = take_posted},
	{.name = "shared", .shared = true, .posted = 256, .take = take_posted},
	{.name = "multi-64K",
	 .shared = true,
	 .posted = 2,
	 .chunk_bytes = 64 << 10,
	 .take = take_view},
	{.name = "multi-1M",
	 .shared = true,
	 .posted = 2,
	 .chunk_bytes = 1 << 20,
	 .take = take_view},
	{.name = "multi-1M-bare",
	 .shared = true,
	 .posted = 2,
	 .chunk_bytes = 1 << 20,
	 .take = take_bare},
};

const size_t receive_way_count = sizeof(receive_ways) / sizeof(receive_ways[0]);

static int not_received(struct receiver *r, ssize_t n)
{
	struct fi_cq_err_entry error = {0};

	if (n == -FI_EAVAIL)
		fi_cq_readerr(r->sides[1].fids.cq, &error, 0);
	return fabric_failed(error.err ? -error.err : n, "a message failed");
}

__attribute__((noinline, used)) int flood_receive(struct receiver *r, uint64_t until)
{
	struct fi_cq_data_entry entries[CQ_BURST];
	uint64_t in_vain = 0;

	while (r->received < until) {
		ssize_t n = fi_cq_read(r->sides[1].fids.cq, entries, CQ_BURST);

		if (plx_unlikely(n < 0)) {
			r->empty++;
			if (n != -FI_EAGAIN || ++in_vain == IN_VAIN_MAX)
				return not_received(r, n);
			continue;
		}
		in_vain = 0;
		for (ssize_t i = 0; i < n; i++) {
			int rc = r->way->take(r, &entries[i]);

			if (plx_unlikely(rc))
				return rc;
			r->received++;
		}
	}
	return 0;
}

/* Opening ---------------------------------------------------------------------------------- */

static int post_all(struct receiver *r)
{
	int rc = 0;

	for (unsigned i = 0; i < r->way->posted && !rc; i++) {
		struct slot *slot = &r->slots[i];

		if (r->way->chunk_bytes) {
			slot->chunk = aligned_alloc(PLX_CACHE_LINE, r->way->chunk_bytes);
			memset(slot->chunk, 0, r->way->chunk_bytes);
			rc = post_chunk(r, slot);
		} else {
			slot->buf = plx_buf_alloc(RECEIVE_BYTES);
			memset(slot->buf->data, 0, RECEIVE_BYTES - HEADER_BYTES);
			rc = post_one(r, slot);
		}
	}
	r->view = plx_buf_alloc(0);
	return rc ? fabric_failed(rc, "cannot post a receive") : 0;
}

int flood_drain(struct receiver *r, uint64_t count, uint64_t burst, uint64_t *took_tsc)
{
	int rc = 0;

	for (uint64_t i = 0; i < count && !rc; i += burst) {
		rc = flood_send(r, burst);

		uint64_t began = plx_tsc();

		if (!rc)
			rc = flood_receive(r, r->sent);
		*took_tsc += plx_tsc() - began;
	}
	return rc;
}

int receiver_open(struct receiver *r, const struct receive_way *way,
		  const struct plx_fabric_driver *driver, const char *provider, size_t size)
{
	uint64_t ignored = 0;

	*r = (struct receiver){.way = way, .size = size};

	int rc = side_open(&r->sides[0], driver, provider, false, 0);

	if (!rc)
		rc = side_open(&r->sides[1], driver, provider, way->shared,
			       way->chunk_bytes ? FI_MULTI_RECV : 0);
	if (!rc)
		rc = side_connect(&r->sides[0], &r->ends[0], &r->sides[1], &r->ends[1]);
	if (!rc)
		rc = post_all(r);
	return rc ? rc : flood_drain(r, WARM_UP, CQ_BURST, &ignored);
}

void receiver_close(struct receiver *r)
{
	for (int i = 0; i < 2; i++)
		connection_close(&r->ends[i]);
	for (int i = 0; i < 2; i++)
		side_close(&r->sides[i]);
	for (int i = 0; i < RECEIVER_POSTED_MAX; i++) {
		plx_buf_unref(r->slots[i].buf);
		free(r->slots[i].chunk);
	}
	/* The header has been pointed elsewhere, and goes back to the heap by its own address. */
	plx_buf_unref(r->view);
}
