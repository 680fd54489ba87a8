/* SPDX-License-Identifier: BSD-3-Clause */
/* Round trips over plain TCP sockets, both sides spinning on recv: the least that kernel TCP costs,
 * and thus the floor of every provider on top of it. With --idle event both sides sleep in
 * epoll_wait before each recv. */
#include "raw_common.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define RETRY_US 20000

struct side {
	int fd;
	int epoll; /* -1: spins */
};

static int tune(const struct raw_options *options, struct side *side)
{
	int on = 1;

	if (setsockopt(side->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) ||
	    fcntl(side->fd, F_SETFL, O_NONBLOCK))
		return plx_fail(errno, "cannot set up the socket: %s", strerror(errno));
	return options->sleeps ? raw_open_epoll(side->fd, EPOLLIN, "the socket", &side->epoll) : 0;
}

static void close_side(struct side *side)
{
	if (side->epoll >= 0)
		close(side->epoll);
	if (side->fd >= 0)
		close(side->fd);
}

static inline int wait_once(const struct side *side, struct raw_wait *wait)
{
	struct epoll_event event;

	return side->epoll >= 0 ? raw_sleep(side->epoll, &event)
				: raw_wait_over(wait, RAW_PEER_NS, "a message from the peer");
}

/* Returns the number of bytes, all of them; 0 if the peer closed; -errno. */
static ssize_t receive_all(const struct side *side, uint8_t *buffer, size_t size)
{
	struct raw_wait wait = {0};
	int rc = side->epoll >= 0 ? wait_once(side, &wait) : 0;
	size_t got = 0;

	while (!rc && got < size) {
		ssize_t n = recv(side->fd, buffer + got, size - got, 0);

		if (plx_likely(n > 0)) {
			got += (size_t)n;
			continue;
		}
		if (n == 0)
			return 0;
		if (errno != EAGAIN && errno != EINTR)
			return plx_fail(errno, "the peer is gone: %s", strerror(errno));
		rc = wait_once(side, &wait);
	}
	return rc ? rc : (ssize_t)got;
}

static int send_all(const struct side *side, const uint8_t *buffer, size_t size)
{
	struct raw_wait wait = {0};
	size_t put = 0;

	while (put < size) {
		ssize_t n = send(side->fd, buffer + put, size - put, MSG_NOSIGNAL);

		if (plx_likely(n >= 0)) {
			put += (size_t)n;
			continue;
		}
		if (errno != EAGAIN && errno != EINTR)
			return plx_fail(errno, "cannot send, the peer is gone: %s",
					strerror(errno));
		int rc = raw_wait_over(&wait, RAW_PEER_NS, "room to send");
		if (rc)
			return rc;
	}
	return 0;
}

static int try_to_open(const struct raw_options *options, const struct addrinfo *at, int *fd_out)
{
	int fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1, rc = 0;

	if (fd < 0)
		return -errno;
	if (options->listen)
		rc = setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) ||
		     bind(fd, at->ai_addr, at->ai_addrlen) || listen(fd, 1);
	else
		rc = connect(fd, at->ai_addr, at->ai_addrlen);
	rc = rc ? -errno : 0;
	if (rc)
		close(fd);
	else
		*fd_out = fd;
	return rc;
}

/* Listen, or connect, waiting for the server to come up. */
static int open_socket(const struct raw_options *options, int *fd_out)
{
	uint64_t deadline_ns = plx_now_ns() + RAW_CONNECT_NS;
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
	struct addrinfo *list;
	int rc = getaddrinfo(options->host, options->port, &hints, &list);

	if (rc)
		return plx_fail(EINVAL, "%s: %s", options->address, gai_strerror(rc));
	while ((rc = try_to_open(options, list, fd_out)) == -ECONNREFUSED &&
	       plx_now_ns() < deadline_ns)
		usleep(RETRY_US);
	freeaddrinfo(list);
	raw_catch_signals();
	return rc ? plx_fail(-rc, "cannot %s %s: %s", options->listen ? "listen on" : "connect to",
			     options->address, strerror(-rc))
		  : 0;
}

static void say_where(int fd)
{
	struct sockaddr_storage address;
	socklen_t length = sizeof(address);
	char host[NI_MAXHOST], port[NI_MAXSERV];

	if (!getsockname(fd, (struct sockaddr *)&address, &length) &&
	    !getnameinfo((struct sockaddr *)&address, length, host, sizeof(host), port,
			 sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV))
		plx_app_say(strchr(host, ':') ? "listening on [%s]:%s" : "listening on %s:%s", host,
			    port);
}

static int echo(const struct side *side)
{
	uint64_t size;
	ssize_t n = receive_all(side, (uint8_t *)&size, sizeof(size));

	if (n <= 0)
		return n < 0 ? (int)n : plx_fail(EPIPE, "the client left before it began");
	if (!size || size > RAW_SIZE_MAX)
		return plx_fail(EPROTO, "the client asks for messages of %llu B",
				(unsigned long long)size);

	uint8_t *buffer = raw_buffer(size);
	if (!buffer)
		return -ENOMEM;
	int rc = 0;
	while (!rc && (n = receive_all(side, buffer, size)) > 0)
		rc = send_all(side, buffer, size);
	free(buffer);
	return rc ? rc : (int)n;
}

static int serve(const struct raw_options *options)
{
	struct side side = {.fd = -1, .epoll = -1};
	int listener = -1;
	int rc = open_socket(options, &listener);

	if (rc)
		return rc;
	say_where(listener);
	side.fd = raw_accept(options, listener);
	rc = side.fd < 0 ? side.fd : tune(options, &side);
	rc = rc ? rc : echo(&side);
	close_side(&side);
	close(listener);
	return rc;
}

static int trips(const struct side *side, const uint8_t *message, uint8_t *answer, size_t size,
		 struct raw_run *run)
{
	bool more;

	do {
		uint64_t sent = plx_tsc();
		int rc = send_all(side, message, size);
		if (plx_unlikely(rc))
			return rc;
		ssize_t n = receive_all(side, answer, size);
		uint64_t seen = plx_tsc_after_loads();
		if (plx_unlikely(n <= 0))
			return n < 0 ? (int)n : plx_fail(EPIPE, "the server closed");
		more = raw_run_add(run, sent, seen);
	} while (more);
	return raw_check_message(message, answer, size, "the last answer");
}

static int ping(const struct raw_options *options, uint8_t *message, struct raw_run *run)
{
	uint8_t *answer = raw_buffer(options->size);
	struct side side = {.fd = -1, .epoll = -1};
	int rc = answer ? open_socket(options, &side.fd) : -ENOMEM;

	rc = rc ? rc : tune(options, &side);
	rc = rc ? rc : send_all(&side, (const uint8_t *)&options->size, sizeof(options->size));
	rc = rc ? rc : trips(&side, message, answer, options->size, run);
	close_side(&side);
	free(answer);
	return rc;
}

const struct raw_program raw_program = {
	.provider = "kernel", .choices = "idle", .serve = serve, .ping = ping};
