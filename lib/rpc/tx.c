/* SPDX-License-Identifier: BSD-3-Clause */
/* Hot path. The batch is sent as a copy, so its memory stays cached. Only messages that wait for a
 * slow peer are allocated. */
#include "rpc_priv.h"

PLX_LOG_COMPONENT(log_rpc, "rpc");
struct plx_log_component *const rpc_log = &log_rpc;

/* A message that the link did not take; stored in the headroom of its buffer. */
struct rpc_queued {
	STAILQ_ENTRY(rpc_queued) link;
	struct plx_buf *buf;
};

_Static_assert(sizeof(struct rpc_queued) + PLX_LINK_OVERHEAD <= PLX_BUF_HEADROOM, "both fit");

void rpc_describe_link(struct plx_link_attr *attr, const struct plx_link_events *events,
		       uint64_t payload_max, struct rpc_greeting greeting)
{
	greeting.version_min = RPC_VERSION_MIN;
	greeting.version_max = RPC_VERSION_MAX;
	attr->events = events;
	attr->protocol = PLX_PROTOCOL_RPC;
	attr->hello_length = RPC_GREETING_BYTES;
	rpc_greeting_write(attr->hello, &greeting);
	attr->message_max_bytes = payload_max + RPC_RECORD_BYTES;
	if (attr->message_max_bytes < RPC_BATCH_BYTES)
		attr->message_max_bytes = RPC_BATCH_BYTES;
	attr->rx_buf_count = attr->rx_buf_count ?: RPC_RX_BUFS;
}

const char *rpc_peer_greeting(const struct plx_link *link, enum rpc_role role,
			      struct rpc_greeting *out)
{
	uint32_t length;
	const uint8_t *hello = plx_link_hello(link, &length);

	return rpc_greeting_read(hello, length, role, out);
}

static void flush(struct plx_task *task, void *arg)
{
	rpc_tx_flush(arg);
}

void rpc_tx_init(struct rpc_tx *tx, struct plx_link *link)
{
	uint64_t longest = plx_link_message_max(link) & ~(uint64_t)(RPC_ALIGN - 1);

	*tx = (struct rpc_tx){.link = link, .messages = tx->messages};
	plx_task_init(&tx->flush, flush, tx);
	tx->batch_max = longest < RPC_BATCH_BYTES ? (uint32_t)longest : RPC_BATCH_BYTES;
	STAILQ_INIT(&tx->waiting);
}

/* Remove the oldest message. Return: its reference. */
static struct plx_buf *take_first(struct rpc_tx *tx)
{
	struct plx_buf *buf = STAILQ_FIRST(&tx->waiting)->buf;

	STAILQ_REMOVE_HEAD(&tx->waiting, link);
	tx->waiting_bytes -= buf->len;
	return buf;
}

void rpc_tx_fini(struct rpc_tx *tx)
{
	plx_task_cancel(&tx->flush);
	while (rpc_tx_is_full(tx))
		plx_buf_unref(take_first(tx));
	*tx = (struct rpc_tx){.messages = tx->messages};
}

bool rpc_tx_flush(struct rpc_tx *tx)
{
	int rc;

	if (tx->bytes == 0)
		return true;
	rc = rpc_tx_is_full(tx) ? -EAGAIN : plx_link_send(tx->link, tx->batch, tx->bytes);
	if (rc == -EAGAIN) /* on_writable follows */
		return false;
	if (plx_unlikely(rc && rc != -ENOTCONN)) /* otherwise the loss would go unnoticed */
		plx_link_abort(tx->link);
	tx->messages += rc == 0; /* otherwise the link reports its end */
	tx->bytes = 0;
	plx_task_cancel(&tx->flush);
	return true;
}

/* Ownership: buf moves, except with -EAGAIN. Return: 0, also if the link has ended; -EAGAIN;
 * another -errno. */
static int send_buf(struct rpc_tx *tx, struct plx_buf *buf)
{
	int rc = plx_link_send_buf(tx->link, buf, NULL, NULL);

	if (rc && rc != -EAGAIN)
		plx_buf_unref(buf);
	tx->messages += rc == 0;
	return rc == -ENOTCONN ? 0 : rc;
}

void rpc_tx_writable(struct rpc_tx *tx)
{
	while (rpc_tx_is_full(tx)) {
		struct plx_buf *first = take_first(tx);
		int rc = send_buf(tx, first);

		if (rc == -EAGAIN) {
			STAILQ_INSERT_HEAD(&tx->waiting, (struct rpc_queued *)first->base, link);
			tx->waiting_bytes += first->len;
			return;
		}
		if (rc)
			plx_link_abort(tx->link);
	}
	rpc_tx_flush(tx);
}

/* As send_buf, but it waits instead of -EAGAIN. */
static int send_or_queue(struct rpc_tx *tx, struct plx_buf *buf)
{
	struct rpc_queued *last = (struct rpc_queued *)buf->base;
	int rc = rpc_tx_is_full(tx) ? -EAGAIN : send_buf(tx, buf);

	if (rc != -EAGAIN)
		return rc;
	last->buf = buf;
	STAILQ_INSERT_TAIL(&tx->waiting, last, link);
	tx->waiting_bytes += buf->len;
	return 0;
}

/* The batch is full. Return: whether it is now empty. */
static bool empty_batch(struct rpc_tx *tx)
{
	struct plx_buf *buf;

	if (rpc_tx_flush(tx))
		return true;
	buf = plx_buf_alloc(tx->bytes);
	if (!buf)
		return false;
	memcpy(plx_buf_append(buf, tx->bytes), tx->batch, tx->bytes);
	tx->bytes = 0;
	return send_or_queue(tx, buf) == 0;
}

static PLX_NOINLINE bool next_batch(struct rpc_tx *tx)
{
	if (!empty_batch(tx))
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
	/* If it is not empty, a flush is already scheduled or on_writable follows. */
	if (tx->bytes == 0)
		plx_task_schedule(&tx->flush);
	else if (plx_unlikely(tx->bytes + bytes > tx->batch_max) && !next_batch(tx))
		return NULL;
	at = tx->batch + tx->bytes;
	tx->bytes += bytes;
	memset(at + bytes - RPC_ALIGN, 0, RPC_ALIGN); /* padding, if any */
	return rpc_header_write(at, header);
}

void rpc_tx_rewrite(struct rpc_tx *tx, uint8_t *payload, const struct rpc_header *header)
{
	uint8_t *at = payload - RPC_RECORD_BYTES;
	uint32_t bytes = (uint32_t)rpc_record_bytes(header->length);

	rpc_header_write(at, header);
	tx->bytes = (uint32_t)(at - tx->batch) + bytes;
	memset(payload + header->length, 0, bytes - RPC_RECORD_BYTES - header->length);
}

void rpc_tx_discard(struct rpc_tx *tx, const uint8_t *payload)
{
	tx->bytes = (uint32_t)(payload - RPC_RECORD_BYTES - tx->batch);
}

/* Put it into a separate message after what was written before. */
static PLX_NOINLINE int put_long(struct rpc_tx *tx, const struct rpc_header *header,
				 const void *payload)
{
	uint32_t bytes = RPC_RECORD_BYTES + header->length;
	struct plx_buf *buf;

	if (!empty_batch(tx))
		return -ENOMEM;
	if (!tx->link)
		return 0;
	buf = plx_buf_alloc(bytes);
	if (!buf)
		return -ENOMEM;
	memcpy(rpc_header_write(plx_buf_append(buf, bytes), header), payload, header->length);
	return send_or_queue(tx, buf);
}

int rpc_tx_put(struct rpc_tx *tx, const struct rpc_header *header, const void *payload)
{
	uint8_t *at;

	if (plx_unlikely(rpc_record_bytes(header->length) > tx->batch_max))
		return put_long(tx, header, payload);
	at = rpc_tx_reserve(tx, header);
	if (plx_unlikely(!at))
		return -ENOMEM;
	if (header->length)
		memcpy(at, payload, header->length);
	return 0;
}
