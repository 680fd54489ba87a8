/* SPDX-License-Identifier: BSD-3-Clause */
/* A peer that is a plain socket and sends whatever a test needs. */
#ifndef TCP_TEST_RAW_H
#define TCP_TEST_RAW_H

#include "plx_test.h"
#include "tcp.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

/* Bytes to send. */
struct raw_bytes {
	size_t length;
	uint8_t bytes[1024];
};

static inline void raw_add(struct raw_bytes *out, const void *bytes, size_t length)
{
	assert_true(out->length + length <= sizeof(out->bytes));
	memcpy(out->bytes + out->length, bytes, length);
	out->length += length;
}

static inline void raw_add_hello(struct raw_bytes *out, enum wire_hello_kind kind, const void *data,
				 size_t length)
{
	uint8_t hello[WIRE_HELLO_MOST];

	raw_add(out, hello, wire_write_hello(hello, kind, data, length));
}

/* Append a header, and the given part of a payload. */
static inline void raw_add_frame(struct raw_bytes *out, const struct wire_frame *frame,
				 const void *payload, size_t length)
{
	uint8_t header[WIRE_FRAME_MOST];

	raw_add(out, header, wire_write(header, frame));
	if (length)
		raw_add(out, payload, length);
}

static inline void raw_add_message(struct raw_bytes *out, const char *text)
{
	struct wire_frame frame = {.kind = WIRE_MESSAGE, .length = (uint32_t)strlen(text)};

	raw_add_frame(out, &frame, text, strlen(text));
}

/* Connect. from: an address of this host; NULL: any. */
static inline int raw_connect_from(const char *from, const struct sockaddr_storage *to)
{
	struct sockaddr_in local = {.sin_family = AF_INET};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	if (from) {
		assert_int_equal(inet_pton(AF_INET, from, &local.sin_addr), 1);
		assert_int_equal(bind(fd, (struct sockaddr *)&local, sizeof(local)), 0);
	}
	assert_int_equal(connect(fd, (const struct sockaddr *)to, sizeof(struct sockaddr_in)), 0);
	return fd;
}

static inline int raw_connect(const struct sockaddr_storage *to)
{
	return raw_connect_from(NULL, to);
}

/* Return: whether the other side took it; it may have closed. */
static inline bool raw_send(int fd, const void *bytes, size_t length)
{
	ssize_t sent = send(fd, bytes, length, MSG_NOSIGNAL);

	assert_true(sent == (ssize_t)length ||
		    (sent < 0 && (errno == EPIPE || errno == ECONNRESET)));
	return sent >= 0;
}

/* Whether the other side closed it. */
static inline bool raw_has_ended(int fd)
{
	struct pollfd pollfd = {.fd = fd, .events = POLLRDHUP};

	return poll(&pollfd, 1, 0) == 1;
}

/* Received bytes, at most `most`; 0: none yet. */
static inline size_t raw_receive(int fd, void *out, size_t most)
{
	ssize_t got = recv(fd, out, most, MSG_DONTWAIT);

	return got > 0 ? (size_t)got : 0;
}

/* Close with a RST instead of the end of the stream. */
static inline void raw_reset(int fd)
{
	struct linger linger = {.l_onoff = 1};

	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)), 0);
	close(fd);
}

#endif
