/* SPDX-License-Identifier: BSD-3-Clause */
/* From a socket to standard output, written when poll(2) reports that it takes PIPE_BUF bytes.
 * Messages are kept until written, which blocks their senders and lets pushers know that they are
 * done. Several processes may write to one pipe or append to one file: a message that fits into one
 * write is never split. */
#include "cat.h"

#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define WRITES_MAX  16 /* per turn */
#define PATIENCE_MS 2000
#define PREFIX_MAX  (PLX_ADDRESS_MAX + 64)
#define FILE_BYTES  65536 /* per write to a file, which does not block */

/* A message not written yet. */
struct waiting {
	struct netio_msg msg;
	const char *publisher;    /* NULL: not shown */
	struct timespec received; /* CLOCK_REALTIME */
};

/* A ring of these. */
static struct {
	struct waiting *at;
	size_t room, first, count;
	size_t copied; /* of these, from the first on: those entirely in out.ready */
} queue;

static struct {
	struct plx_poller *poller;
	struct plx_fd *watch;
	bool is_blocked; /* epoll will report room */
	bool failed;
	uint64_t received;
	size_t at; /* bytes of the next message's text that are written or in ready */
	uint8_t ready[FILE_BYTES];
	size_t limit;      /* of one write */
	size_t begin, end; /* of the bytes in ready */
} out;

/* The queue ----------------------------------------------------------------------------------- */

static int make_room(void)
{
	size_t room = queue.room ? 2 * queue.room : 64;
	struct waiting *at = malloc(room * sizeof(*at));

	if (!at)
		return -ENOMEM;
	for (size_t i = 0; i < queue.count; i++)
		at[i] = queue.at[(queue.first + i) % queue.room];
	free(queue.at);
	queue.at = at;
	queue.room = room;
	queue.first = 0;
	return 0;
}

static void drop_first(void)
{
	netio_msg_release(&queue.at[queue.first].msg);
	queue.first = (queue.first + 1) % queue.room;
	queue.count--;
}

/* Everything in out.ready is written. */
static void drop_copied(void)
{
	for (; queue.copied > 0; queue.copied--)
		drop_first();
}

static bool is_counted_out(void)
{
	return cat_conf.count && out.received == cat_conf.count;
}

void cat_output_message(const struct netio_msg *msg, const char *publisher)
{
	struct waiting *waiting;

	if (out.failed || is_counted_out())
		return;
	if (queue.count == queue.room && make_room() != 0) {
		cat_fail("out of memory for messages");
		out.failed = true;
		cat_end();
		return;
	}
	netio_msg_keep(msg);
	waiting = &queue.at[(queue.first + queue.count++) % queue.room];
	*waiting = (struct waiting){.msg = *msg, .publisher = publisher};
	if (cat_conf.show_time)
		clock_gettime(CLOCK_REALTIME, &waiting->received);
	out.received++;
	cat_stats_message(msg->len);
}

/* A message as text --------------------------------------------------------------------------- */

/* Copy the hex digits of data, starting at digit `from`. */
static void copy_digits(uint8_t *to, const uint8_t *data, size_t from, size_t count)
{
	for (size_t i = from; i < from + count; i++)
		*to++ = (uint8_t)"0123456789abcdef"[i % 2 ? data[i / 2] & 15 : data[i / 2] >> 4];
}

/* What stands before a message, each followed by a space. Return: its length. */
static size_t format_prefix(const struct waiting *waiting, char prefix[PREFIX_MAX])
{
	int len = 0;

	if (cat_conf.show_time)
		len = snprintf(prefix, PREFIX_MAX, "%lld.%09ld ",
			       (long long)waiting->received.tv_sec, waiting->received.tv_nsec);
	if (waiting->publisher)
		len += snprintf(prefix + len, PREFIX_MAX - (size_t)len, "%s ", waiting->publisher);
	if (cat_conf.show_tag)
		len += snprintf(prefix + len, PREFIX_MAX - (size_t)len, "0x%" PRIx64 " ",
				waiting->msg.tag);
	return (size_t)len;
}

/* Copy as much of the next message as fits, starting at out.at: prefix, its bytes, a newline. If
 * it fits into one write, but not into the rest of this one, it waits for the next.
 * Return: whether the message is complete. */
static bool copy_next(void)
{
	const struct waiting *waiting = &queue.at[(queue.first + queue.copied) % queue.room];
	const struct netio_msg *msg = &waiting->msg;
	bool is_hex = cat_conf.encoding == CAT_HEX, is_raw = cat_conf.encoding == CAT_RAW;
	char prefix[PREFIX_MAX];
	size_t body = is_hex ? 2 * msg->len : msg->len;
	size_t before = format_prefix(waiting, prefix), whole;

	whole = before + body + !is_raw;
	if (out.at == 0 && whole <= out.limit && whole > out.limit - out.end)
		return false;
	while (out.end < out.limit) {
		uint8_t *to = out.ready + out.end;
		size_t room = out.limit - out.end, part = 1;

		if (out.at < before) {
			*to = (uint8_t)prefix[out.at];
		} else if (out.at < before + body) {
			size_t from = out.at - before;

			part = body - from < room ? body - from : room;
			if (is_hex)
				copy_digits(to, msg->data, from, part);
			else
				memcpy(to, (const uint8_t *)msg->data + from, part);
		} else if (!is_raw && out.at == before + body) {
			*to = '\n';
		} else {
			return true;
		}
		out.at += part;
		out.end += part;
	}
	return out.at == whole;
}

static void fill(void)
{
	if (out.begin == out.end) {
		out.begin = out.end = 0;
		drop_copied();
	} else if (out.begin > 0) {
		return; /* the rest of a write: nothing more until it is written */
	}
	while (queue.count > queue.copied && out.end < out.limit && copy_next()) {
		queue.copied++;
		out.at = 0;
	}
}

static bool is_empty(void)
{
	return queue.count == 0 && out.begin == out.end;
}

/* Writing ------------------------------------------------------------------------------------- */

static void fail(int err)
{
	out.failed = true;
	if (!is_counted_out() || err != EPIPE)
		cat_fail("standard output: %s", plx_app_stream_error(err));
	while (queue.count)
		drop_first();
	out.begin = out.end = 0;
	queue.copied = 0;
	cat_end();
}

/* Wait until standard output takes PIPE_BUF bytes; signals do not interrupt it. */
static bool wait_writable(int timeout_ms)
{
	struct pollfd fd = {.fd = STDOUT_FILENO, .events = POLLOUT};
	uint64_t end_ns = plx_now_ns() + (uint64_t)timeout_ms * PLX_NS_PER_MS;
	int rc;

	while ((rc = poll(&fd, 1, timeout_ms)) < 0 && errno == EINTR) {
		uint64_t now_ns = plx_now_ns();

		timeout_ms = now_ns < end_ns ? (int)((end_ns - now_ns) / PLX_NS_PER_MS) : 0;
	}
	return rc > 0;
}

/* Return: bytes; 0: it took none in that time, or failed. */
static size_t write_ready(int timeout_ms)
{
	ssize_t done = -EINTR;

	/* -EAGAIN: another process was faster, which can happen with a non-blocking pipe. */
	while ((done == -EINTR || (done == -EAGAIN && timeout_ms > 0)) && wait_writable(timeout_ms))
		done = plx_write(STDOUT_FILENO, out.ready + out.begin, out.end - out.begin);
	if (done == -EINTR || done == -EAGAIN)
		return 0;
	if (done < 0) {
		fail((int)-done);
		return 0;
	}
	out.begin += (size_t)done;
	return (size_t)done;
}

/* Notices a reader that leaves, even while no messages arrive. */
static void on_event(int fd, uint32_t events, void *arg)
{
	out.is_blocked = false;
	if (!(events & (EPOLLERR | EPOLLHUP))) {
		plx_fd_modify(out.watch, 0); /* only hang-ups from now on */
		return;
	}
	plx_fd_remove(out.watch); /* it would be reported forever */
	out.watch = NULL;
	if (!out.failed)
		fail(EPIPE);
}

/* Descriptors that epoll rejects are files, and always writable. */
static void await(void)
{
	int rc = out.watch ? plx_fd_modify(out.watch, EPOLLOUT | EPOLLONESHOT) : -EPERM;

	out.is_blocked = rc == 0;
	if (rc && rc != -EPERM)
		fail(-rc);
}

static int turn(void *arg, uint64_t now_ns)
{
	int writes = 0;

	if (out.is_blocked || out.failed)
		return 0;
	for (fill(); out.begin < out.end && writes < WRITES_MAX; fill()) {
		if (write_ready(0) == 0) {
			if (!out.failed)
				await();
			break;
		}
		writes++;
	}
	if (is_counted_out() && is_empty() && !out.failed)
		cat_end();
	return writes;
}

static int arm(void *arg, struct plx_sleep *sleep)
{
	return out.is_blocked || is_empty() ? 0 : -EAGAIN;
}

/* Start and end ------------------------------------------------------------------------------- */

int cat_output_start(void)
{
	struct stat what;
	int rc = plx_fd_add(STDOUT_FILENO, 0, on_event, NULL, &out.watch);

	if (rc && rc != -EPERM)
		return rc;
	out.limit = fstat(STDOUT_FILENO, &what) == 0 && S_ISREG(what.st_mode) ? FILE_BYTES
									      : PIPE_BUF;
	rc = plx_poller_add("output", turn, NULL, &out.poller);
	if (rc == 0)
		plx_poller_set_arm(out.poller, arm);
	return rc;
}

void cat_output_finish(void)
{
	uint64_t end_ns = plx_now_ns() + PLX_CLOSE_NS;
	uint64_t left_ms = PLX_CLOSE_NS / PLX_NS_PER_MS;

	plx_fd_remove(out.watch);
	plx_poller_remove(out.poller);
	for (fill(); out.begin < out.end && left_ms > 0; fill()) {
		if (write_ready(left_ms < PATIENCE_MS ? (int)left_ms : PATIENCE_MS) <= 0)
			break;
		left_ms = plx_time_since(plx_now_ns(), end_ns) / PLX_NS_PER_MS;
	}
	if (queue.count)
		cat_fail("standard output %s: %zu messages are lost",
			 left_ms < PATIENCE_MS ? "did not take all within 5 s"
					       : "took nothing for 2 s",
			 queue.count);
	while (queue.count)
		drop_first();
	free(queue.at);
}
