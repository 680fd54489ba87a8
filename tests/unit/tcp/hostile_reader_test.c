/* SPDX-License-Identifier: BSD-3-Clause */
/* Peers that request more than they read: the data queued for them is bounded, costs others
 * nothing, and does not prevent sleeping. */
#include "tcp_service.h"

#define READ_BYTES 1000 /* an answer that is copied */
#define READS      4000
#define SEND_BYTES 65536 /* of the service's sockets, so that they fill up quickly */

static bool may_sleep(void)
{
	struct fid *fid = &service.server.cq->fid;

	return fi_trywait(service.server.fabric, &fid, 1) == 0;
}

/* As many bytes as the socket takes. */
static size_t send_some(int fd, const uint8_t *bytes, size_t length)
{
	ssize_t sent = send(fd, bytes, length, MSG_DONTWAIT | MSG_NOSIGNAL);

	return sent > 0 ? (size_t)sent : 0;
}

/* Until all are sent, or the service has closed the connection. */
static void send_reads(int fd, unsigned count)
{
	struct wire_frame frame = {
		.kind = WIRE_READ, .length = READ_BYTES, .key = SERVICE_READABLE};
	size_t header = wire_header_bytes(WIRE_READ, 0), length = count * header, sent = 0;
	uint8_t *bytes = malloc(length + WIRE_FRAME_MOST);

	assert_non_null(bytes);
	for (size_t i = 0; i < count; i++)
		wire_write(bytes + i * header, &frame);
	while (sent < length) {
		ssize_t got = send(fd, bytes + sent, length - sent, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (got < 0 && errno != EAGAIN)
			break;
		sent += got > 0 ? (size_t)got : 0;
		service_turn();
	}
	free(bytes);
}

static int setup(void **state)
{
	tcp_params.send_bytes = SEND_BYTES;
	return service_setup(state);
}

static int teardown(void **state)
{
	tcp_params.send_bytes = 0;
	return service_teardown(state);
}

#define TEST(name) PLX_TEST_WITH(name, setup, teardown)

/* Whatever fits in the sockets and the block is answered; a limited number of reads waits in
 * addition. */
TEST(who_asks_for_more_than_may_wait_is_ended)
{
	int fd = service_visit();

	send_reads(fd, READS);
	service_expect_calm();
	service_expect_echo();
	close(fd);
}

TEST(who_takes_its_answers_late_gets_all)
{
	static uint8_t answer[BLOCK_BYTES];
	int fd = service_visit();
	size_t have = 0;

	send_reads(fd, WIRE_READS_MAX);
	service_until(may_sleep());
	service_until((have += raw_receive(fd, answer, sizeof(answer))) ==
		      WIRE_HELLO_BYTES + WIRE_READS_MAX * (WIRE_FRAME_BYTES + READ_BYTES));
	service_expect_echo();
	assert_int_equal(service.ended, 0);
	service_leave(fd);
}

TEST(who_takes_no_answers_can_reset_the_connection)
{
	int fd = service_visit();

	send_reads(fd, WIRE_READS_MAX);
	service_until(may_sleep());
	service_reset(fd);
	fd = service_visit();
	send_reads(fd, WIRE_READS_MAX);
	service_reset(fd);
}

/* Messages ------------------------------------------------------------------------------------- */

TEST(echoes_that_nobody_takes_are_bounded)
{
	char text[SERVICE_BUF_BYTES] = {0};
	struct raw_bytes bytes = {0};
	int fd = service_visit();
	size_t at = 0;

	memset(text, 'x', sizeof(text) - 1);
	while (bytes.length < 700)
		raw_add_message(&bytes, text);
	service_until(
		(at = (at + send_some(fd, bytes.bytes + at, bytes.length - at)) % bytes.length,
		 service_visitor()->is_blocked));
	for (int i = 0; i < 1000; i++) {
		at = (at + send_some(fd, bytes.bytes + at, bytes.length - at)) % bytes.length;
		service_turn();
		assert_true(service_visitor()->queued_bytes <= BLOCK_BYTES);
	}
	service_expect_echo();
	service_until(may_sleep());
	service_reset(fd);
}

TEST(sends_that_nobody_takes_are_refused_and_then_fail)
{
	static uint8_t payload[256 << 10];
	uint64_t failed = service.errors;
	uint32_t under_way;
	int fd = service_visit();
	struct fid_ep *ep = &service_visitor()->base.fid;

	while (fi_send(ep, payload, sizeof(payload), NULL, FI_ADDR_UNSPEC, NULL) == 0)
		service_turn();
	assert_int_equal(fi_send(ep, payload, sizeof(payload), NULL, FI_ADDR_UNSPEC, NULL),
			 -FI_EAGAIN);
	assert_int_equal(fi_inject(ep, payload, 8, FI_ADDR_UNSPEC), -FI_EAGAIN);
	assert_true(service_visitor()->queued_bytes < TCP_QUEUED_MAX + sizeof(payload) + 64);
	under_way = service_visitor()->base.tx_tail - service_visitor()->base.tx_head;
	assert_true(under_way > 0);
	service_expect_echo();
	service_reset(fd);
	assert_int_equal(service.errors - failed, under_way + SERVICE_RECEIVES);
}

TEST(messages_that_find_no_receive_wait_for_one)
{
	struct raw_bytes bytes = {0};
	size_t sent = 0, at = 0;
	int fd;

	service.posts_none = true;
	fd = service_visit();
	while (bytes.length < 900)
		raw_add_message(&bytes, "nobody has room for this");
	/* Until neither the service nor the kernel takes more. */
	for (int idle = 0; idle < 1000; idle++) {
		size_t step = send_some(fd, bytes.bytes + at, bytes.length - at);

		at = (at + step) % bytes.length;
		sent += step;
		if (step)
			idle = 0;
		service_turn();
	}
	assert_true(sent > BLOCK_BYTES);
	assert_int_equal(service.messages, service.sent);
	service_until(may_sleep());
	service_expect_echo();
	service_close_visitor();
	service_leave(fd);
}

PLX_TEST_MAIN()
