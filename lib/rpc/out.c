/* SPDX-License-Identifier: BSD-3-Clause */
/* Hot path. The batch is sent as a copy, so that its memory stays in the cache; only what a slow
 * peer leaves waiting has memory of its own. */
#include "out.h"

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

/* Each is its lcore's; of the main thread, where that runs nothing any more. */
static struct rpc_home *homes[PLX_LCORE_MAX];

/* The lcore ------------------------------------------------------------------------------------ */

static int flush_dirty(struct rpc_home *home)
{
	int work = 0;

	while (home->dirty) {
		struct rpc_out *out = home->dirty;

		home->dirty = out->next_dirty;
		out->is_dirty = false;
		rpc_out_flush(out);
		work++;
	}
	return work;
}

static void free_home(struct rpc_home *home)
{
	homes[home->lcore] = NULL;
	plx_poller_remove(home->poller);
	free(home);
}

static int poll(void *arg, uint64_t now_ns)
{
	struct rpc_home *home = arg;
	int work = 0;

	home->is_polled = true;
	for (struct rpc_turns *turns = home->turns; turns; turns = home->next) {
		home->next = turns->next; /* which fn may stop, too */
		work += turns->fn(turns, now_ns);
	}
	work += flush_dirty(home);
	home->is_polled = false;
	if (plx_unlikely(home->users == 0))
		free_home(home);
	return work;
}

static int arm(void *arg, struct plx_sleep *sleep)
{
	const struct rpc_home *home = arg;

	return home->dirty || home->turns ? -EAGAIN : 0;
}

struct rpc_home *rpc_home_use(const char *what)
{
	uint32_t lcore = plx_lcore_id();
	struct rpc_home *home;

	if (lcore == PLX_LCORE_NONE) {
		plx_fail_no_lcore(what);
		return NULL;
	}
	home = homes[lcore];
	if (!home) {
		home = calloc(1, sizeof(*home));
		if (!home) {
			plx_fail(ENOMEM, "out of memory");
			return NULL;
		}
		if (plx_poller_add("rpc", poll, home, 0, &home->poller) != 0) {
			free(home);
			return NULL;
		}
		plx_poller_set_arm(home->poller, arm, NULL);
		home->lcore = lcore;
		homes[lcore] = home;
	}
	home->users++;
	return home;
}

struct rpc_home *rpc_home_here(void)
{
	uint32_t lcore = plx_lcore_id();

	return lcore == PLX_LCORE_NONE ? NULL : homes[lcore];
}

void rpc_home_leave(struct rpc_home *home)
{
	if (--home->users == 0 && !home->is_polled)
		free_home(home);
}

void rpc_turns_ask(struct rpc_turns *turns)
{
	struct rpc_home *home = turns->home;

	if (turns->prev_next)
		return;
	turns->next = home->turns;
	turns->prev_next = &home->turns;
	if (turns->next)
		turns->next->prev_next = &turns->next;
	home->turns = turns;
}

void rpc_turns_stop(struct rpc_turns *turns)
{
	if (!turns->prev_next)
		return;
	if (turns->home->next == turns)
		turns->home->next = turns->next;
	*turns->prev_next = turns->next;
	if (turns->next)
		turns->next->prev_next = turns->prev_next;
	turns->prev_next = NULL;
}

/* One link ------------------------------------------------------------------------------------- */

int rpc_out_init(struct rpc_out *out, struct rpc_home *home, struct plx_link *link)
{
	uint64_t longest = plx_link_message_max(link) & ~(uint64_t)(RPC_ALIGN - 1);

	*out = (struct rpc_out){.link = link, .home = home};
	out->batch_max = longest < RPC_BATCH_BYTES ? (uint32_t)longest : RPC_BATCH_BYTES;
	out->waiting_end = &out->waiting;
	out->batch = aligned_alloc(PLX_CACHE_LINE, (RPC_BATCH_BYTES + PLX_CACHE_LINE - 1) &
							   ~(size_t)(PLX_CACHE_LINE - 1));
	return out->batch ? 0 : plx_fail(ENOMEM, "out of memory");
}

static void leave_dirty(struct rpc_out *out)
{
	for (struct rpc_out **at = &out->home->dirty; out->is_dirty; at = &(*at)->next_dirty) {
		if (*at == out) {
			*at = out->next_dirty;
			out->is_dirty = false;
			return;
		}
	}
}

void rpc_out_fini(struct rpc_out *out)
{
	leave_dirty(out);
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

static inline void make_dirty(struct rpc_out *out)
{
	if (out->is_dirty)
		return;
	out->is_dirty = true;
	out->next_dirty = out->home->dirty;
	out->home->dirty = out;
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

uint8_t *rpc_out_claim(struct rpc_out *out, const struct rpc_header *header)
{
	uint32_t bytes = (uint32_t)rpc_record_bytes(header->length);
	uint8_t *at;

	if (plx_unlikely(!out->link))
		return NULL;
	if (plx_unlikely(out->bytes + bytes > out->batch_max) && !send_batch(out) &&
	    set_batch_aside(out) != 0)
		return NULL;
	at = out->batch + out->bytes;
	out->bytes += bytes;
	memset(at + bytes - RPC_ALIGN, 0, RPC_ALIGN); /* padding, if there is any */
	make_dirty(out);
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
