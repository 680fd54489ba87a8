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
#include <sys/queue.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define WRITES_MAX  16 /* per turn */
#define PATIENCE_MS 2000
#define PREFIX_MAX  (PLX_ADDRESS_MAX + 64)
#define FILE_BYTES  65536 /* per write to a file, which does not block */

/* A message not written yet. */
struct waiting {
	STAILQ_ENTRY(waiting) link;
	struct netio_msg msg;
	const char *publisher;    /* NULL: not shown */
	struct timespec received; /* CLOCK_REALTIME */
};

static STAILQ_HEAD(, waiting) queue = STAILQ_HEAD_INITIALIZER(queue);
static size_t waiting_count; /* of these */
static struct waiting *next; /* to copy; those before it are entirely in out.ready */

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

static void drop_first(void)
{
	struct waiting *first = STAILQ_FIRST(&queue);

	STAILQ_REMOVE_HEAD(&queue, link);
	netio_msg_release(&first->msg);
	free(first);
	waiting_count--;
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
	waiting = malloc(sizeof(*waiting));
	if (!waiting) {
		cat_fail("out of memory for messages");
		out.failed = true;
		cat_end();
		return;
	}
	netio_msg_keep(msg);
	*waiting = (struct waiting){.msg = *msg, .publisher = publisher};
	STAILQ_INSERT_TAIL(&queue, waiting, link);
	next = next ? next : waiting;
	waiting_count++;
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
	bool is_hex = cat_conf.encoding == CAT_HEX;
	const uint8_t *data = next->msg.data;
	char prefix[PREFIX_MAX];
	const void *parts[] = {prefix, data, "\n"};
	size_t before = format_prefix(next, prefix), begin = 0;
	size_t body_end = before + (is_hex ? 2 : 1) * next->msg.len;
	size_t ends[] = {before, body_end, body_end + (cat_conf.encoding != CAT_RAW)};

	if (out.at == 0 && ends[2] <= out.limit && ends[2] > out.limit - out.end)
		return false;
	for (int i = 0; i < 3; begin = ends[i++]) {
		size_t from = out.at - begin, room = out.limit - out.end, len;

		if (out.at >= ends[i])
			continue;
		len = ends[i] - out.at < room ? ends[i] - out.at : room;
		if (is_hex && parts[i] == data)
			copy_digits(out.ready + out.end, data, from, len);
		else
			memcpy(out.ready + out.end, (const uint8_t *)parts[i] + from, len);
		out.at += len;
		out.end += len;
	}
	return out.at == ends[2];
}

static void fill(void)
{
	if (out.begin == out.end) {
		out.begin = out.end = 0;
		while (STAILQ_FIRST(&queue) != next) /* these are written */
			drop_first();
	} else if (out.begin > 0) {
		return; /* the rest of a write: nothing more until it is written */
	}
	while (next && out.end < out.limit && copy_next()) {
		next = STAILQ_NEXT(next, link);
		out.at = 0;
	}
}

static bool is_empty(void)
{
	return waiting_count == 0 && out.begin == out.end;
}

/* Writing ------------------------------------------------------------------------------------- */

static void fail(int err)
{
	out.failed = true;
	if (!is_counted_out() || err != EPIPE)
		cat_fail("standard output: %s", plx_app_stream_error(err));
	while (waiting_count)
		drop_first();
	next = NULL;
	out.begin = out.end = 0;
	cat_end();
}

/* Wait until standard output takes PIPE_BUF bytes; signals do not interrupt it. */
static bool wait_writable(int timeout_ms)
{
	struct pollfd fd = {.fd = STDOUT_FILENO, .events = POLLOUT};
	uint64_t end_ns = plx_now_ns() + (uint64_t)timeout_ms * PLX_NS_PER_MS;
	int rc;

	while ((rc = poll(&fd, 1, timeout_ms)) < 0 && errno == EINTR)
		timeout_ms = (int)(plx_time_since(plx_now_ns(), end_ns) / PLX_NS_PER_MS);
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
	if (waiting_count)
		cat_fail("standard output %s: %zu messages are lost",
			 left_ms < PATIENCE_MS ? "did not take all within 5 s"
					       : "took nothing for 2 s",
			 waiting_count);
	while (waiting_count)
		drop_first();
}
