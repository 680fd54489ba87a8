/* SPDX-License-Identifier: BSD-3-Clause */
/* Hot path. The batch is sent as a copy, so that its memory stays in the cache; only what a slow
 * peer leaves waiting has memory of its own. */
#include "rpc_priv.h"

#include <stdlib.h>

struct plx_log_component rpc_log = {.name = "rpc", .level = PLX_LOG_NOTICE};

__attribute__((constructor)) static void register_log(void)
{
	plx_log_register(&rpc_log);
}

/* A message that the link did not take. */
struct rpc_waiting {
	struct rpc_waiting *next;
	struct plx_buf *buf;
	uint32_t bytes;
};

static void flush(struct plx_task *task, void *arg)
{
	rpc_out_flush(arg);
}

int rpc_out_init(struct rpc_out *out, struct plx_link *link)
{
	uint64_t longest = plx_link_message_max(link) & ~(uint64_t)(RPC_ALIGN - 1);

	*out = (struct rpc_out){.link = link};
	plx_task_init(&out->flush, flush, out);
	out->batch_max = longest < RPC_BATCH_BYTES ? (uint32_t)longest : RPC_BATCH_BYTES;
	out->waiting_end = &out->waiting;
	out->batch = aligned_alloc(PLX_CACHE_LINE, (RPC_BATCH_BYTES + PLX_CACHE_LINE - 1) &
							   ~(size_t)(PLX_CACHE_LINE - 1));
	return out->batch ? 0 : plx_fail(ENOMEM, "out of memory");
}

void rpc_out_fini(struct rpc_out *out)
{
	plx_task_cancel(&out->flush);
	while (out->waiting) {
		struct rpc_waiting *first = out->waiting;

		out->waiting = first->next;
		plx_buf_unref(first->buf);
		free(first);
	}
	out->waiting_end = &out->waiting;
	free(out->batch);
	out->batch = NULL;
	out->bytes = 0;
	out->link = NULL;
}

/* Ownership: buf moves on success. Return: 0; -ENOMEM. */
static int let_wait(struct rpc_out *out, struct plx_buf *buf)
{
	struct rpc_waiting *last = malloc(sizeof(*last));

	if (!last)
		return -ENOMEM;
	*last = (struct rpc_waiting){.buf = buf, .bytes = buf->len};
	*out->waiting_end = last;
	out->waiting_end = &last->next;
	out->waiting_bytes += buf->len;
	return 0;
}

/* Send the batch. Return: whether it is empty now. */
static bool send_batch(struct rpc_out *out)
{
	int rc;

	if (out->bytes == 0)
		return true;
	if (out->blocked || out->waiting)
		return false;
	rc = plx_link_send(out->link, out->batch, out->bytes);
	if (rc == -EAGAIN) {
		out->blocked = true;
		return false;
	}
	if (plx_unlikely(rc && rc != -ENOTCONN)) /* nothing else would tell of what is lost */
		plx_link_abort(out->link);
	out->messages += rc == 0; /* or it has ended, which is told */
	out->bytes = 0;
	plx_task_cancel(&out->flush);
	return true;
}

void rpc_out_flush(struct rpc_out *out)
{
	if (plx_likely(out->link != NULL))
		send_batch(out);
	else
		out->bytes = 0;
}

void rpc_out_writable(struct rpc_out *out)
{
	out->blocked = false;
	while (out->waiting) {
		struct rpc_waiting *first = out->waiting;
		int rc = plx_link_send_buf(out->link, first->buf, NULL, NULL);

		if (rc == -EAGAIN) {
			out->blocked = true;
			return;
		}
		if (rc) /* it has ended, or does so here: what was owed is not any more */
			plx_buf_unref(first->buf);
		if (rc && rc != -ENOTCONN)
			plx_link_abort(out->link);
		out->messages += rc == 0;
		out->waiting_bytes -= first->bytes;
		out->waiting = first->next;
		if (!out->waiting)
			out->waiting_end = &out->waiting;
		free(first);
	}
	send_batch(out);
}

/* The batch has no room, and the link takes nothing: it waits by itself. Return: 0; -ENOMEM. */
static __attribute__((noinline)) int set_batch_aside(struct rpc_out *out)
{
	struct plx_buf *buf;

	if (!out->link) {
		out->bytes = 0;
		return 0;
	}
	buf = plx_buf_alloc(out->bytes);
	if (!buf)
		return -ENOMEM;
	memcpy(plx_buf_append(buf, out->bytes), out->batch, out->bytes);
	if (let_wait(out, buf) != 0) {
		plx_buf_unref(buf);
		return -ENOMEM;
	}
	out->bytes = 0;
	return 0;
}

/* The batch has no room. Return: whether there is another one. */
static __attribute__((noinline)) bool begin_another(struct rpc_out *out)
{
	if (!send_batch(out) && set_batch_aside(out) != 0)
		return false;
	plx_task_schedule(&out->flush);
	return true;
}

uint8_t *rpc_out_claim(struct rpc_out *out, const struct rpc_header *header)
{
	uint32_t bytes = (uint32_t)rpc_record_bytes(header->length);
	uint8_t *at;

	if (plx_unlikely(!out->link))
		return NULL;
	/* One that is not empty is to be flushed already, or waits for on_writable. */
	if (out->bytes == 0)
		plx_task_schedule(&out->flush);
	else if (plx_unlikely(out->bytes + bytes > out->batch_max) && !begin_another(out))
		return NULL;
	at = out->batch + out->bytes;
	out->bytes += bytes;
	memset(at + bytes - RPC_ALIGN, 0, RPC_ALIGN); /* padding, if there is any */
	return rpc_header_write(at, header);
}

void rpc_out_trim(struct rpc_out *out, uint8_t *payload, uint32_t length)
{
	uint8_t *at = payload - RPC_RECORD_BYTES;
	uint32_t bytes = (uint32_t)rpc_record_bytes(length);

	((struct rpc_header *)at)->length = htole32(length);
	out->bytes = (uint32_t)(at - out->batch) + bytes;
	memset(payload + length, 0, bytes - RPC_RECORD_BYTES - length);
}

void rpc_out_unclaim(struct rpc_out *out, const uint8_t *payload)
{
	out->bytes = (uint32_t)(payload - RPC_RECORD_BYTES - out->batch);
}

/* A message of its own, behind what was written before. */
static __attribute__((noinline)) int put_long(struct rpc_out *out, const struct rpc_header *header,
					      const struct iovec *iov, int count)
{
	uint32_t bytes = RPC_RECORD_BYTES + header->length;
	bool all_sent = send_batch(out);
	struct plx_buf *buf;
	int rc;

	if (!out->link)
		return 0;
	if (!all_sent && set_batch_aside(out) != 0)
		return -ENOMEM;
	buf = plx_buf_alloc(bytes);
	if (!buf)
		return -ENOMEM;
	rpc_copy_pieces(rpc_header_write(plx_buf_append(buf, bytes), header), iov, count);
	rc = out->blocked || out->waiting ? -EAGAIN : plx_link_send_buf(out->link, buf, NULL, NULL);
	if (rc == -EAGAIN) {
		out->blocked = true;
		rc = let_wait(out, buf);
	} else {
		out->messages += rc == 0;
	}
	if (rc)
		plx_buf_unref(buf);
	return rc == -ENOTCONN ? 0 : rc;
}

int rpc_out_put(struct rpc_out *out, const struct rpc_header *header, const struct iovec *iov,
		int count)
{
	uint8_t *payload;

	if (plx_unlikely(rpc_record_bytes(header->length) > out->batch_max))
		return put_long(out, header, iov, count);
	payload = rpc_out_claim(out, header);
	if (plx_unlikely(!payload))
		return -ENOMEM;
	rpc_copy_pieces(payload, iov, count);
	return 0;
}
