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

static inline int raw_connect(const struct sockaddr_storage *to)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (const struct sockaddr *)to, sizeof(struct sockaddr_in)), 0);
	return fd;
}

/* Return: whether the other side took it; it may have closed. */
static inline bool raw_send(int fd, const void *bytes, size_t length)
{
	ssize_t sent = send(fd, bytes, length, MSG_NOSIGNAL);

	assert_true(sent == (ssize_t)length ||
		    (sent < 0 && (errno == EPIPE || errno == ECONNRESET)));
	return sent >= 0;
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
	uint64_t ended, messages;
	struct fid_ep *honest;
	uint64_t sent, echoed;
	uint64_t echo_buf;
};
static struct service service;

static inline void service_turn(void);

#define service_until(condition) wait_doing(condition, service_turn())

#define MEMORY_SLACK             (256u << 10) /* memory that malloc(3) keeps per thread counts as in use */

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

static int descriptors;
static size_t memory_bytes;

/* The server ----------------------------------------------------------------------------------- */

static inline void post_receive(struct service_receive *receive)
{
	struct visitor *visitor = receive->visitor;

	/* It may have ended; its event has not been read yet. */
	(void)fi_recv(visitor->ep, receive->buf, sizeof(receive->buf), NULL, FI_ADDR_UNSPEC,
		      receive);
}

/* A failed accept means that the peer has hung up. */
static inline void accept_request(struct fi_info *info)
{
	struct visitor *visitor = service.visitors;

	while (visitor->ep)
		visitor++;
	assert_true(visitor < service.visitors + SERVICE_ENDPOINTS);
	visitor->ep = service_ep(&service.server, info, visitor);
	for (int i = 0; i < SERVICE_RECEIVES; i++) {
		visitor->receives[i].visitor = visitor;
		post_receive(&visitor->receives[i]);
	}
	service.visitor_count++;
	if (fi_accept(visitor->ep, NULL, 0)) {
		assert_int_equal(fi_close(&visitor->ep->fid), 0);
		visitor->ep = NULL;
		service.visitor_count--;
	}
}

static inline void read_server_cq(void)
{
	struct fi_cq_err_entry error = {0};
	struct fi_cq_data_entry entry;
	ssize_t got;

	while ((got = fi_cq_read(service.server.rx_cq, &entry, 1)) != -FI_EAGAIN) {
		struct service_receive *receive = entry.op_context;

		if (got == -FI_EAVAIL) {
			assert_int_equal(fi_cq_readerr(service.server.rx_cq, &error, 0), 1);
			continue;
		}
		assert_int_equal(got, 1);
		if (!(entry.flags & FI_RECV) || !receive->visitor->ep)
			continue;
		service.messages++;
		(void)fi_inject(receive->visitor->ep, receive->buf, entry.len, FI_ADDR_UNSPEC);
		post_receive(receive);
	}
}

static inline void service_close(struct visitor *visitor)
{
	read_server_cq(); /* its completions refer to it */
	assert_int_equal(fi_close(&visitor->ep->fid), 0);
	visitor->ep = NULL;
	service.visitor_count--;
	read_server_cq();
}

static inline void read_server_eq(void)
{
	union cm_event event;
	uint32_t number;
	ssize_t got = fi_eq_read(service.server.eq, &number, &event, sizeof(event), 0);

	if (got == -FI_EAGAIN)
		return;
	assert_true(got >= (ssize_t)sizeof(event.cm));
	if (number == FI_CONNREQ) {
		accept_request(event.cm.info);
		fi_freeinfo(event.cm.info);
	} else if (number == FI_SHUTDOWN) {
		service_close(event.cm.fid->context);
		service.ended++;
	}
}

/* The honest client ---------------------------------------------------------------------------- */

static inline void read_client(void)
{
	struct fi_cq_data_entry entry;

	if (fi_cq_read(service.client.rx_cq, &entry, 1) != 1)
		return;
	assert_true(entry.flags & FI_RECV);
	assert_int_equal(entry.len, sizeof(service.echo_buf));
	assert_int_equal(service.echo_buf, service.sent);
	service.echoed++;
}

/* The honest client sends a message, and must get it back. */
static inline void service_expect_echo(void)
{
	uint64_t number = ++service.sent;

	assert_fi_works(fi_recv(service.honest, &service.echo_buf, sizeof(service.echo_buf), NULL,
				FI_ADDR_UNSPEC, NULL));
	assert_int_equal(fi_inject(service.honest, &number, sizeof(number), FI_ADDR_UNSPEC), 0);
	service_until(service.echoed == service.sent);
}

static inline void connect_honest(void)
{
	struct fi_eq_cm_entry entry;
	uint32_t number;

	service.honest = service_ep(&service.client, service.client.info, NULL);
	assert_int_equal(fi_connect(service.honest, &service.address, NULL, 0), 0);
	service_until(fi_eq_read(service.client.eq, &number, &entry, sizeof(entry), 0) ==
		      sizeof(entry));
	assert_int_equal(number, FI_CONNECTED);
}

/* The whole service ---------------------------------------------------------------------------- */

/* Do the work of one loop turn. */
static inline void service_turn(void)
{
	read_server_cq();
	read_server_eq();
	read_client();
}

/* The only visitor; the honest client does not count. */
static inline struct tcp_ep *service_visitor(void)
{
	assert_int_equal(service.visitor_count, 2);
	for (struct visitor *visitor = service.visitors + 1;; visitor++) {
		if (visitor->ep)
			return (struct tcp_ep *)visitor->ep;
	}
}

/* Of all causes. */
static inline uint64_t service_refused(void)
{
	uint64_t count = 0;

	for (int i = 0; i < PLX_ADMIT_ENDS; i++)
		count += service.pep->base.ended[i];
	return count;
}

/* Connections that the service closed for that breach. */
static inline uint64_t service_breaches(enum tcp_breach breach)
{
	return ((struct tcp_domain *)service.server.domain)->breaches[breach];
}

/* Wait until only the honest client is connected; it must still get its echo. */
static inline void service_expect_calm(void)
{
	service_until(service.visitor_count == 1 && service.pep->base.silent_count == 0);
	service_expect_echo();
	assert_int_equal(service.pep->base.told_count, 0);
}

/* A plain socket's connection, already accepted. */
static inline int service_visit(void)
{
	struct raw_bytes hello = {0};
	int fd = raw_connect(&service.address);

	raw_add_hello(&hello, WIRE_CONNECT, NULL, 0);
	raw_send(fd, hello.bytes, hello.length);
	service_until(service.visitor_count == 2);
	return fd;
}

static inline void service_leave(int fd)
{
	close(fd);
	service_expect_calm();
}

/* Whether the service closes a connection that sends those bytes after its HELLO. */
static inline bool service_ends(const void *bytes, size_t length)
{
	uint64_t messages = service.messages, ended = service.ended;
	struct raw_bytes message = {0};
	int fd = service_visit();
	bool is_ended;

	raw_send(fd, bytes, length);
	/* Shows that the connection still works, if it does. */
	raw_add_message(&message, "still here");
	raw_send(fd, message.bytes, message.length);
	service_until(service.messages > messages || service.ended > ended);
	is_ended = service.ended > ended;
	if (is_ended)
		service_until(socket_has_ended(fd));
	service_leave(fd);
	return is_ended;
}

static inline struct fid_mr *grant(uint8_t *bytes, uint64_t access, uint64_t key)
{
	struct fid_mr *mr;

	assert_fi_works(fi_mr_reg(service.server.domain, bytes, SERVICE_MR_BYTES, access, 0, key, 0,
				  &mr, NULL));
	return mr;
}

static inline void open_service(void)
{
	side_open(&service.server, service_info(NULL, FI_SOURCE));
	side_open(&service.client, service_info("1", 0));
	service.fid = side_pep(&service.server);
	service.pep = (struct tcp_pep *)service.fid;
	assert_int_equal(fi_listen(service.fid), 0);
	service.address = name_of(&service.fid->fid);
	service.readable_mr = grant(service.readable, FI_REMOTE_READ, SERVICE_READABLE);
	service.writable_mr = grant(service.writable, FI_REMOTE_WRITE, SERVICE_WRITABLE);
	connect_honest();
	service_expect_echo();
}

static inline void close_service(void)
{
	assert_int_equal(fi_close(&service.honest->fid), 0);
	service_until(service.visitor_count == 0);
	assert_int_equal(fi_close(&service.fid->fid), 0);
	if (service.readable_mr)
		assert_int_equal(fi_close(&service.readable_mr->fid), 0);
	if (service.writable_mr)
		assert_int_equal(fi_close(&service.writable_mr->fid), 0);
	side_close(&service.client);
	side_close(&service.server);
}

static inline int service_setup(void **state)
{
	memset(&service, 0, sizeof(service));
	fi_freeinfo(service_info("1", 0)); /* libfabric's start */
	memory_bytes = count_heap_bytes();
	descriptors = count_descriptors();
	open_service();
	for (int i = 0; i < SERVICE_MR_BYTES; i++)
		service.readable[i] = (uint8_t)(i * 7);
	return 0;
}

/* Fails if descriptors or memory are leaked. */
static inline int service_teardown(void **state)
{
	close_service();
	assert_int_equal(count_descriptors(), descriptors);
	assert_true(count_heap_bytes() <= memory_bytes + MEMORY_SLACK);
	return 0;
}

#define SERVICE_TEST(name) PLX_TEST_WITH(name, service_setup, service_teardown)

#endif
