/* SPDX-License-Identifier: BSD-3-Clause */
#include "tcp_service.h"

#define MEMORY_SLACK (256u << 10) /* memory that malloc(3) keeps per thread counts as in use */

struct service service;

static int descriptors;
static size_t memory_bytes;

/* The server ----------------------------------------------------------------------------------- */

static void post_receive(struct service_receive *receive)
{
	struct visitor *visitor = receive->visitor;

	/* It may have ended; its event has not been read yet. */
	(void)fi_recv(visitor->ep, receive->buf, sizeof(receive->buf), NULL, FI_ADDR_UNSPEC,
		      receive);
}

/* A failed accept means that the peer has hung up. */
static void accept_request(struct fi_info *info)
{
	struct visitor *visitor = service.visitors;

	while (visitor->ep)
		visitor++;
	assert_true(visitor < service.visitors + SERVICE_ENDPOINTS);
	visitor->ep = service_ep(&service.server, info, visitor);
	for (int i = 0; i < SERVICE_RECEIVES; i++) {
		visitor->receives[i].visitor = visitor;
		if (!service.posts_none)
			post_receive(&visitor->receives[i]);
	}
	service.accepted++;
	service.visitor_count++;
	if (fi_accept(visitor->ep, NULL, 0)) {
		assert_int_equal(fi_close(&visitor->ep->fid), 0);
		visitor->ep = NULL;
		service.visitor_count--;
	}
}

static void skip_error(struct fid_cq *cq)
{
	struct fi_cq_err_entry error = {0};

	assert_int_equal(fi_cq_readerr(cq, &error, 0), 1);
	service.errors++;
}

static void read_server_cq(void)
{
	struct fi_cq_data_entry entry;
	ssize_t got;

	while ((got = fi_cq_read(service.server.rx_cq, &entry, 1)) != -FI_EAGAIN) {
		struct service_receive *receive = entry.op_context;

		if (got == -FI_EAVAIL) {
			skip_error(service.server.rx_cq);
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

static void close_visitor(struct visitor *visitor)
{
	read_server_cq(); /* its completions refer to it */
	assert_int_equal(fi_close(&visitor->ep->fid), 0);
	visitor->ep = NULL;
	service.visitor_count--;
	read_server_cq();
}

static void read_server_eq(void)
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
		close_visitor(event.cm.fid->context);
		service.ended++;
	}
}

/* The honest client ---------------------------------------------------------------------------- */

static void read_client(void)
{
	struct fi_cq_data_entry entry;

	if (fi_cq_read(service.client.rx_cq, &entry, 1) != 1)
		return;
	assert_true(entry.flags & FI_RECV);
	assert_int_equal(entry.len, sizeof(service.echo_buf));
	assert_int_equal(service.echo_buf, service.sent);
	service.echoed++;
}

void service_expect_echo(void)
{
	uint64_t number = ++service.sent;

	assert_fi_works(fi_recv(service.honest, &service.echo_buf, sizeof(service.echo_buf), NULL,
				FI_ADDR_UNSPEC, NULL));
	assert_int_equal(fi_inject(service.honest, &number, sizeof(number), FI_ADDR_UNSPEC), 0);
	service_until(service.echoed == service.sent);
}

static void connect_honest(void)
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

void service_turn(void)
{
	read_server_cq();
	read_server_eq();
	read_client();
}

struct tcp_ep *service_visitor(void)
{
	assert_int_equal(service.visitor_count, 2);
	for (struct visitor *visitor = service.visitors + 1;; visitor++) {
		if (visitor->ep)
			return (struct tcp_ep *)visitor->ep;
	}
}

void service_close_visitor(void)
{
	close_visitor(service_visitor()->base.fid.fid.context);
}

uint64_t service_refused(void)
{
	uint64_t count = 0;

	for (int i = 0; i < PLX_ADMIT_ENDS; i++)
		count += service.pep->base.ended[i];
	return count;
}

uint64_t side_breaches(const struct side *side, enum tcp_breach breach)
{
	return ((struct tcp_domain *)side->domain)->breaches[breach];
}

uint64_t service_breaches(enum tcp_breach breach)
{
	return side_breaches(&service.server, breach);
}

void service_expect_breach(enum tcp_breach breach, uint64_t count)
{
	service_until(service.ended == count);
	assert_int_equal(service_breaches(breach), count);
}

void service_expect_calm(void)
{
	service_until(service.visitor_count == 1 && service.pep->base.silent_count == 0);
	service_expect_echo();
	assert_int_equal(service.pep->base.told_count, 0);
}

int service_visit(void)
{
	struct raw_bytes hello = {0};
	int fd = raw_connect(&service.address);

	raw_add_hello(&hello, WIRE_CONNECT, NULL, 0);
	raw_send(fd, hello.bytes, hello.length);
	service_until(service.visitor_count == 2);
	return fd;
}

void service_leave(int fd)
{
	close(fd);
	service_expect_calm();
}

void service_reset(int fd)
{
	raw_reset(fd);
	service_expect_calm();
}

bool service_ends(const void *bytes, size_t length)
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
		service_until(raw_has_ended(fd));
	service_leave(fd);
	return is_ended;
}

static struct fid_mr *grant(uint8_t *bytes, uint64_t access, uint64_t key)
{
	struct fid_mr *mr;

	assert_fi_works(fi_mr_reg(service.server.domain, bytes, SERVICE_MR_BYTES, access, 0, key, 0,
				  &mr, NULL));
	return mr;
}

static void open_service(void)
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

static void close_service(void)
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

int service_setup(void **state)
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

int service_teardown(void **state)
{
	close_service();
	assert_int_equal(count_descriptors(), descriptors);
	assert_true(count_heap_bytes() <= memory_bytes + MEMORY_SLACK);
	return 0;
}
