/* SPDX-License-Identifier: BSD-3-Clause */
/* A service for tests with hostile peers: it accepts every request and echoes each message. An
 * honest client stays connected throughout. */
#ifndef TCP_TEST_SERVICE_H
#define TCP_TEST_SERVICE_H

#define TESTED tcp_kind

#include "count.h"
#include "prov/pair.h"
#include "tcp.h"

#include <arpa/inet.h>
#include <errno.h>

/* A peer that is a plain socket and sends whatever a test needs -------------------------------- */

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

/* The service ---------------------------------------------------------------------------------- */

#define SERVICE_ENDPOINTS 16
#define SERVICE_RECEIVES  4   /* of an endpoint */
#define SERVICE_BUF_BYTES 256 /* of a receive */
#define SERVICE_MR_BYTES  4096
#define SERVICE_LOOKS_MAX 3000000
#define SERVICE_READABLE  0x1001 /* keys of memory */
#define SERVICE_WRITABLE  0x1002

struct visitor;

struct service_receive {
	struct visitor *visitor;
	uint8_t buf[SERVICE_BUF_BYTES];
};

/* An endpoint of the service. */
struct visitor {
	struct fid_ep *ep; /* NULL: the slot is free */
	struct service_receive receives[SERVICE_RECEIVES];
};

struct service {
	struct side server, client;
	struct fid_pep *fid;
	struct tcp_pep *pep; /* the same */
	struct sockaddr_storage address;
	struct fid_mr *readable_mr, *writable_mr;
	uint8_t readable[SERVICE_MR_BYTES], writable[SERVICE_MR_BYTES];
	struct visitor visitors[SERVICE_ENDPOINTS];
	uint32_t visitor_count;
	/* Since the start. */
	uint64_t accepted, ended, messages, errors;
	bool posts_none; /* no receives for later connections */
	struct fid_ep *honest;
	uint64_t sent, echoed;
	uint64_t echo_buf;
};
extern struct service service;

/* For each test: the second fails if descriptors or memory are leaked. */
int service_setup(void **state);
int service_teardown(void **state);

/* Do the work of one loop turn. */
void service_turn(void);
/* The honest client sends a message, and must get it back. */
void service_expect_echo(void);
/* The only visitor; the honest client does not count. */
struct tcp_ep *service_visitor(void);
void service_close_visitor(void);

uint64_t service_refused(void); /* of all causes */
/* Connections that the service, or another party, closed for that breach. */
uint64_t service_breaches(enum tcp_breach breach);
uint64_t side_breaches(const struct side *side, enum tcp_breach breach);
/* Wait until that many connections have ended, all for that breach. */
void service_expect_breach(enum tcp_breach breach, uint64_t count);

#define service_until(condition)                                      \
	do {                                                          \
		for (int looks_ = 0; !(condition); looks_++) {        \
			if (looks_ == SERVICE_LOOKS_MAX)              \
				fail_msg("never so: %s", #condition); \
			service_turn();                               \
		}                                                     \
	} while (0)

/* Wait until only the honest client is connected; it must still get its echo. */
void service_expect_calm(void);

/* A plain socket's connection, already accepted. */
int service_visit(void);
/* Close or reset one, and expect calm. */
void service_leave(int fd);
void service_reset(int fd);
/* Whether the service closes a connection that sends those bytes after its HELLO. */
bool service_ends(const void *bytes, size_t length);

static inline struct fi_info *service_info(const char *port, uint64_t flags)
{
	return pair_info("127.0.0.1", port, flags, &(struct pair_attr){0});
}

/* An enabled endpoint. */
static inline struct fid_ep *service_ep(struct side *side, struct fi_info *info, void *context)
{
	struct fid_ep *ep = side_ep(side, info);

	ep->fid.context = context;
	assert_int_equal(fi_enable(ep), 0);
	return ep;
}

#define SERVICE_TEST(name) PLX_TEST_WITH(name, service_setup, service_teardown)

#endif
