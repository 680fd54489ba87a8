/* SPDX-License-Identifier: BSD-3-Clause */
/* Waits and buffers of the raw baselines. */
#include "raw_common.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#define PAGE_BYTES 4096

atomic_bool raw_stop;

static void on_signal(int signal)
{
	/* Relaxed: publishes nothing else. */
	atomic_store_explicit(&raw_stop, true, memory_order_relaxed);
}

void raw_catch_signals(void)
{
	struct sigaction action = {.sa_handler = on_signal};

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
}

int raw_wait_check(struct raw_wait *wait, uint64_t limit_ns, const char *what)
{
	uint64_t now_ns = plx_now_ns();

	if (!wait->deadline_ns)
		wait->deadline_ns = now_ns + limit_ns;
	/* Relaxed: see raw_run_add. */
	if (atomic_load_explicit(&raw_stop, memory_order_relaxed))
		return plx_fail(EINTR, "stopped while waiting for %s", what);
	if (now_ns > wait->deadline_ns)
		return plx_fail(ETIMEDOUT, "waited %.0f s in vain for %s",
				(double)limit_ns / (double)PLX_NS_PER_S, what);
	return 0;
}

int raw_open_epoll(int fd, uint32_t events, const char *what, int *epoll_out)
{
	struct epoll_event event = {.events = events};

	*epoll_out = epoll_create1(EPOLL_CLOEXEC);
	if (*epoll_out < 0 || epoll_ctl(*epoll_out, EPOLL_CTL_ADD, fd, &event))
		return plx_fail(errno, "cannot sleep on %s: %s", what, strerror(errno));
	return 0;
}

int raw_sleep(int epoll, struct epoll_event *event)
{
	int n = epoll_wait(epoll, event, 1, RAW_PEER_NS / PLX_NS_PER_MS);

	if (plx_likely(n == 1))
		return 0;
	if (n == 0)
		return plx_fail(ETIMEDOUT, "waited in vain for a message from the peer");
	return errno == EINTR
		     ? raw_wait_check(&(struct raw_wait){0}, RAW_PEER_NS, "a message from the peer")
		     : plx_fail(errno, "epoll_wait: %s", strerror(errno));
}

int raw_accept(const struct raw_options *options, int listener)
{
	struct pollfd ready = {.fd = listener, .events = POLLIN};
	int n = poll(&ready, 1, (int)(options->wait_ns / PLX_NS_PER_MS)), fd;

	if (n == 0)
		return plx_fail(ETIMEDOUT, "no client came to %s within %.0f s", options->address,
				(double)options->wait_ns / (double)PLX_NS_PER_S);
	fd = n < 0 ? -1 : accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	return fd < 0 ? plx_fail(errno, "cannot accept: %s", strerror(errno)) : fd;
}

uint8_t *raw_buffer(size_t size)
{
	size_t whole = (size + PAGE_BYTES) / PAGE_BYTES * PAGE_BYTES;
	uint8_t *buffer = aligned_alloc(PAGE_BYTES, whole);

	if (buffer)
		memset(buffer, 0, whole);
	else
		plx_fail(ENOMEM, "no memory for a buffer of %zu B", size);
	return buffer;
}

/* Never 0, so that an untouched receive buffer cannot match. */
uint8_t *raw_message(size_t size)
{
	uint8_t *message = raw_buffer(size);

	for (size_t i = 0; message && i < size; i++)
		message[i] = (uint8_t)((i * 31 + i / 251) % UINT8_MAX + 1);
	return message;
}

int raw_check_message(const uint8_t *sent, const uint8_t *received, size_t size, const char *what)
{
	for (size_t i = 0; i < size; i++)
		if (received[i] != sent[i])
			return plx_fail(EBADMSG, "byte %zu of %s is 0x%02x, not 0x%02x", i, what,
					received[i], sent[i]);
	return 0;
}
