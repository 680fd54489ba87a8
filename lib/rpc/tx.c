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
struct rpc_queued {
	struct rpc_queued *next;
	struct plx_buf *buf;
	uint32_t bytes;
};

static void flush(struct plx_task *task, void *arg)
{
	rpc_tx_flush(arg);
}

int rpc_tx_init(struct rpc_tx *tx, struct plx_link *link)
{
	uint64_t longest = plx_link_message_max(link) & ~(uint64_t)(RPC_ALIGN - 1);

	*tx = (struct rpc_tx){.link = link};
	plx_task_init(&tx->flush, flush, tx);
	tx->batch_max = longest < RPC_BATCH_BYTES ? (uint32_t)longest : RPC_BATCH_BYTES;
	tx->waiting_end = &tx->waiting;
	tx->batch = aligned_alloc(PLX_CACHE_LINE, (RPC_BATCH_BYTES + PLX_CACHE_LINE - 1) &
							  ~(size_t)(PLX_CACHE_LINE - 1));
	return tx->batch ? 0 : plx_fail(ENOMEM, "out of memory");
}

void rpc_tx_fini(struct rpc_tx *tx)
{
	plx_task_cancel(&tx->flush);
	while (tx->waiting) {
		struct rpc_queued *first = tx->waiting;

		tx->waiting = first->next;
		plx_buf_unref(first->buf);
		free(first);
	}
	tx->waiting_end = &tx->waiting;
	free(tx->batch);
	tx->batch = NULL;
	tx->bytes = 0;
	tx->link = NULL;
}

/* Ownership: buf moves on success. Return: 0; -ENOMEM. */
static int queue_blocked(struct rpc_tx *tx, struct plx_buf *buf)
{
	struct rpc_queued *last = malloc(sizeof(*last));

	if (!last)
		return -ENOMEM;
	*last = (struct rpc_queued){.buf = buf, .bytes = buf->len};
	*tx->waiting_end = last;
	tx->waiting_end = &last->next;
	tx->waiting_bytes += buf->len;
	return 0;
}

/* Send the batch. Return: whether it is empty now. */
static bool send_batch(struct rpc_tx *tx)
{
	int rc;

	if (tx->bytes == 0)
		return true;
	if (tx->blocked || tx->waiting)
		return false;
	rc = plx_link_send(tx->link, tx->batch, tx->bytes);
	if (rc == -EAGAIN) {
		tx->blocked = true;
		return false;
	}
	if (plx_unlikely(rc && rc != -ENOTCONN)) /* nothing else would tell of what is lost */
		plx_link_abort(tx->link);
	tx->messages += rc == 0; /* or it has ended, which is told */
	tx->bytes = 0;
	plx_task_cancel(&tx->flush);
	return true;
}

void rpc_tx_flush(struct rpc_tx *tx)
{
	if (plx_likely(tx->link != NULL))
		send_batch(tx);
	else
		tx->bytes = 0;
}

void rpc_tx_writable(struct rpc_tx *tx)
{
	tx->blocked = false;
	while (tx->waiting) {
		struct rpc_queued *first = tx->waiting;
		int rc = plx_link_send_buf(tx->link, first->buf, NULL, NULL);

		if (rc == -EAGAIN) {
			tx->blocked = true;
			return;
		}
		if (rc) /* it has ended, or does so here: what was owed is not any more */
			plx_buf_unref(first->buf);
		if (rc && rc != -ENOTCONN)
			plx_link_abort(tx->link);
		tx->messages += rc == 0;
		tx->waiting_bytes -= first->bytes;
		tx->waiting = first->next;
		if (!tx->waiting)
			tx->waiting_end = &tx->waiting;
		free(first);
	}
	send_batch(tx);
}

/* The batch has no room, and the link takes nothing: it waits by itself. Return: 0; -ENOMEM. */
static __attribute__((noinline)) int queue_batch(struct rpc_tx *tx)
{
	struct plx_buf *buf;

	if (!tx->link) {
		tx->bytes = 0;
		return 0;
	}
	buf = plx_buf_alloc(tx->bytes);
	if (!buf)
		return -ENOMEM;
	memcpy(plx_buf_append(buf, tx->bytes), tx->batch, tx->bytes);
	if (queue_blocked(tx, buf) != 0) {
		plx_buf_unref(buf);
		return -ENOMEM;
	}
	tx->bytes = 0;
	return 0;
}

/* The batch has no room. Return: whether there is another one. */
static __attribute__((noinline)) bool next_batch(struct rpc_tx *tx)
{
	if (!send_batch(tx) && queue_batch(tx) != 0)
		return false;
	plx_task_schedule(&tx->flush);
	return true;
}

uint8_t *rpc_tx_reserve(struct rpc_tx *tx, const struct rpc_header *header)
{
	uint32_t bytes = (uint32_t)rpc_record_bytes(header->length);
	uint8_t *at;

	if (plx_unlikely(!tx->link))
		return NULL;
	/* One that is not empty is to be flushed already, or waits for on_writable. */
	if (tx->bytes == 0)
		plx_task_schedule(&tx->flush);
	else if (plx_unlikely(tx->bytes + bytes > tx->batch_max) && !next_batch(tx))
		return NULL;
	at = tx->batch + tx->bytes;
	tx->bytes += bytes;
	memset(at + bytes - RPC_ALIGN, 0, RPC_ALIGN); /* padding, if there is any */
	return rpc_header_write(at, header);
}

void rpc_tx_trim(struct rpc_tx *tx, uint8_t *payload, uint32_t length)
{
	uint8_t *at = payload - RPC_RECORD_BYTES;
	uint32_t bytes = (uint32_t)rpc_record_bytes(length);

	((struct rpc_header *)at)->length = htole32(length);
	tx->bytes = (uint32_t)(at - tx->batch) + bytes;
	memset(payload + length, 0, bytes - RPC_RECORD_BYTES - length);
}

void rpc_tx_discard(struct rpc_tx *tx, const uint8_t *payload)
{
	tx->bytes = (uint32_t)(payload - RPC_RECORD_BYTES - tx->batch);
}

/* A message of its own, behind what was written before. */
static __attribute__((noinline)) int put_long(struct rpc_tx *tx, const struct rpc_header *header,
					      const struct iovec *iov, int count)
{
	uint32_t bytes = RPC_RECORD_BYTES + header->length;
	bool all_sent = send_batch(tx);
	struct plx_buf *buf;
	int rc;

	if (!tx->link)
		return 0;
	if (!all_sent && queue_batch(tx) != 0)
		return -ENOMEM;
	buf = plx_buf_alloc(bytes);
	if (!buf)
		return -ENOMEM;
	rpc_copy_pieces(rpc_header_write(plx_buf_append(buf, bytes), header), iov, count);
	rc = tx->blocked || tx->waiting ? -EAGAIN : plx_link_send_buf(tx->link, buf, NULL, NULL);
	if (rc == -EAGAIN) {
		tx->blocked = true;
		rc = queue_blocked(tx, buf);
	} else {
		tx->messages += rc == 0;
	}
	if (rc)
		plx_buf_unref(buf);
	return rc == -ENOTCONN ? 0 : rc;
}

int rpc_tx_put(struct rpc_tx *tx, const struct rpc_header *header, const struct iovec *iov,
	       int count)
{
	uint8_t *payload;

	if (plx_unlikely(rpc_record_bytes(header->length) > tx->batch_max))
		return put_long(tx, header, iov, count);
	payload = rpc_tx_reserve(tx, header);
	if (plx_unlikely(!payload))
		return -ENOMEM;
	rpc_copy_pieces(payload, iov, count);
	return 0;
}
