/* SPDX-License-Identifier: BSD-3-Clause */
/* From standard input to a socket. Reads when epoll reports input; files, which epoll rejects, are
 * read one block per turn. Reads no more than the socket has room for. */
#include "cat.h"

#include <inttypes.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define BURST    256                 /* messages per turn */
#define FLUSH_NS (1 * PLX_NS_PER_MS) /* how long a slow message may stay in a page */
#define LATE_NS  (1 * PLX_NS_PER_MS) /* delay that --rate catches up */

static struct {
	const struct cat_sender *sender;
	struct plx_poller *poller;
	struct plx_fd *watch;
	bool is_file;
	bool is_awaited; /* epoll will report input */
	bool may_send, is_blocked, is_over;
	bool has_message; /* a message to send */
	bool again;       /* it was refused before */
	const uint8_t *data;
	size_t len;
	uint64_t sent, unheard;
	uint64_t period_ns, due_ns; /* of --rate */
	bool unflushed;
	uint64_t flushed_ns;
} in;

static void finish(void)
{
	in.is_over = true;
	in.sender->finish();
}

/* Reading ------------------------------------------------------------------------------------- */

/* Return: bytes, or 1 for the end. */
static int read_some(void)
{
	size_t room;
	void *to = cat_split_room(&room);
	ssize_t got;

	if (!to) {
		cat_fail("%s", plx_error());
		finish();
		return 0;
	}
	got = read(STDIN_FILENO, to, room);
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (got < 0) {
		cat_fail("standard input: %s", plx_app_stream_error(errno));
		finish();
		return 0;
	}
	cat_split_took((size_t)got);
	return got ? (int)got : 1;
}

static void on_readable(int fd, uint32_t events, void *arg)
{
	in.is_awaited = false;
	if (!in.is_over)
		read_some();
}

/* Once, because a pipe without a writer would report that forever. Return: 0; an error. */
static int await(void)
{
	int rc;

	if (in.is_awaited)
		return 0;
	if (in.watch)
		rc = plx_fd_modify(in.watch, EPOLLIN | EPOLLONESHOT);
	else
		rc = plx_fd_add(STDIN_FILENO, EPOLLIN | EPOLLONESHOT, on_readable, NULL, &in.watch);
	in.is_awaited = rc == 0;
	in.is_file = rc == -EPERM;
	return in.is_file ? 0 : rc;
}

static int read_more(void)
{
	if (!in.is_file && await() != 0) {
		cat_fail("standard input: %s", plx_error());
		finish();
	}
	return in.is_file ? read_some() : 0;
}

/* Sending ------------------------------------------------------------------------------------- */

static void took(uint64_t now_ns)
{
	in.has_message = in.again = false;
	in.unflushed = true;
	in.sent++;
	in.due_ns += in.period_ns;
	if (in.due_ns + LATE_NS < now_ns)
		in.due_ns = now_ns + in.period_ns;
}

/* Return: whether the message was sent. */
static bool send_message(uint64_t now_ns)
{
	int rc = in.sender->send(in.data, in.len, in.again);

	switch (rc) {
	case NETIO_STATUS_NO_SUBSCRIBERS:
		in.unheard++;
		took(now_ns);
		return true;
	case NETIO_STATUS_OK:
		took(now_ns);
		return true;
	case NETIO_STATUS_AGAIN:
	case NETIO_STATUS_PARTIAL:
		in.again = in.is_blocked = true;
		return false;
	case NETIO_STATUS_NOT_CONNECTED: /* the socket reports this shortly */
		in.may_send = false;
		return false;
	default:
		cat_fail("message %" PRIu64 ": %s%s", in.sent + 1, plx_error(),
			 rc == NETIO_STATUS_TOO_BIG && !cat_conf.unbuffered &&
					 cat_conf.mode != CAT_PUSH
				 ? " (--unbuffered needs no pages)"
				 : "");
		finish();
		return false;
	}
}

/* Whether there is a message to send. */
static bool next_message(void)
{
	if (in.has_message || in.is_over)
		return in.has_message;
	switch (cat_split_next(&in.data, &in.len)) {
	case CAT_SPLIT_MESSAGE:
		in.has_message = true;
		break;
	case CAT_SPLIT_BAD:
		cat_fail("%s", plx_error());
		finish();
		break;
	case CAT_SPLIT_END:
		finish();
		break;
	case CAT_SPLIT_MORE:
		break;
	}
	return in.has_message;
}

/* Pages do not wait while the input pauses, which a file never does, nor for a slow input. */
static void flush(uint64_t now_ns)
{
	if (!in.unflushed)
		return;
	if ((in.has_message || in.is_file) && !in.is_blocked && now_ns < in.flushed_ns + FLUSH_NS &&
	    in.due_ns < in.flushed_ns + FLUSH_NS)
		return;
	if (in.sender->flush)
		in.sender->flush();
	in.unflushed = false;
	in.flushed_ns = now_ns;
}

static bool may_go_on(void)
{
	return in.may_send && !in.is_blocked && !in.is_over;
}

static int turn(void *arg, uint64_t now_ns)
{
	int done = 0;

	while (may_go_on() && done < BURST && next_message() && now_ns >= in.due_ns &&
	       send_message(now_ns)) {
		done++;
		if (in.sent == cat_conf.count)
			finish();
	}
	flush(now_ns);
	if (may_go_on() && !in.has_message && done < BURST)
		done += read_more();
	return done;
}

/* The link reports room and connections, and the descriptor input: both wake the lcore. */
static int arm(void *arg, struct plx_sleep *sleep)
{
	if (!may_go_on())
		return 0;
	if (in.has_message && in.due_ns > plx_loop_now_ns())
		plx_sleep_until(sleep, in.due_ns);
	else if (in.has_message || in.is_file || !in.is_awaited)
		return -EAGAIN;
	return 0;
}

/* Start and end ------------------------------------------------------------------------------- */

int cat_input_start(const struct cat_sender *sender)
{
	int rc = plx_poller_add("input", turn, NULL, &in.poller);

	in.sender = sender;
	if (cat_conf.rate)
		in.period_ns = (PLX_NS_PER_S + cat_conf.rate - 1) / cat_conf.rate;
	if (rc == 0)
		plx_poller_set_arm(in.poller, arm);
	return rc;
}

void cat_input_go(void)
{
	in.may_send = true;
	in.is_blocked = false;
}

void cat_input_stop(void)
{
	plx_fd_remove(in.watch);
	plx_poller_remove(in.poller);
	cat_split_fini();
	if (in.unheard)
		cat_tell("%" PRIu64 " message%s had no subscribers", in.unheard,
			 in.unheard == 1 ? "" : "s");
}
