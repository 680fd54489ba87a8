/* SPDX-License-Identifier: BSD-3-Clause */
/* Peers that access memory they may not: with forged keys, addresses and lengths, without the
 * right, after the registration is closed, or by unrequested answers. And those that request more
 * than they read: what is queued for them is bounded, costs others nothing, and does not prevent
 * sleeping. */
#include "tcp_service.h"

#include <rdma/fi_rma.h>

#define LARGE_BYTES (1u << 20)
#define LARGE_KEY   0x2001

static bool is_access_ended(uint8_t kind, uint64_t key, uint64_t address, uint32_t length)
{
	struct wire_frame frame = {.kind = kind, .length = length, .address = address, .key = key};
	uint8_t bytes[WIRE_FRAME_MOST + SERVICE_MR_BYTES] = {0};
	uint32_t header = wire_write(bytes, &frame);
	uint32_t payload = kind == WIRE_WRITE ? length : 0;
	enum tcp_breach breach = kind == WIRE_WRITE ? TCP_BREACH_WRITE : TCP_BREACH_READ;
	uint64_t before = service_breaches(breach);
	bool is_ended;

	/* The header decides. */
	payload = payload < SERVICE_MR_BYTES ? payload : SERVICE_MR_BYTES;
	memset(bytes + header, 0xee, payload);
	is_ended = service_ends(bytes, header + payload);
	assert_int_equal(service_breaches(breach), before + is_ended);
	return is_ended;
}

static void assert_untouched(void)
{
	for (int i = 0; i < SERVICE_MR_BYTES; i++) {
		assert_int_equal(service.writable[i], 0);
		assert_int_equal(service.readable[i], (uint8_t)(i * 7));
	}
}

/* kind: a read or a write. key: of memory that it may access. */
static void expect_bounds(uint8_t kind, uint64_t key)
{
	static const struct {
		uint64_t address;
		uint32_t length;
	} outside[] = {
		{0, SERVICE_MR_BYTES + 1}, {1, SERVICE_MR_BYTES},
		{SERVICE_MR_BYTES, 1},     {SERVICE_MR_BYTES - 1, 2},
		{SERVICE_MR_BYTES + 1, 0}, {0, WIRE_LENGTH_MAX},
		{UINT64_MAX, 0},           {UINT64_MAX, 1},
		{UINT64_MAX, 2},           {UINT64_MAX - SERVICE_MR_BYTES, SERVICE_MR_BYTES},
		{UINT64_C(1) << 63, 1},    {UINT64_C(1) << 32, 1},
	};

	for (size_t i = 0; i < PLX_ARRAY_LEN(outside); i++)
		assert_true(is_access_ended(kind, key, outside[i].address, outside[i].length));
	assert_untouched();
	assert_false(is_access_ended(kind, key, SERVICE_MR_BYTES, 0));
	assert_false(is_access_ended(kind, key, SERVICE_MR_BYTES - 1, 1));
	assert_false(is_access_ended(kind, key, 0, SERVICE_MR_BYTES));
}

SERVICE_TEST(accesses_stay_within_their_registration)
{
	expect_bounds(WIRE_READ, SERVICE_READABLE);
	assert_untouched();
	expect_bounds(WIRE_WRITE, SERVICE_WRITABLE);
	for (int i = 0; i < SERVICE_MR_BYTES; i++)
		assert_int_equal(service.writable[i], 0xee);
}

SERVICE_TEST(keys_reach_only_their_memory_and_only_as_registered)
{
	static const uint64_t others[] = {1, 1 << 12, UINT64_C(1) << 63, UINT64_MAX};

	for (size_t i = 0; i < PLX_ARRAY_LEN(others); i++) {
		assert_true(is_access_ended(WIRE_WRITE, SERVICE_WRITABLE ^ others[i], 0, 8));
		assert_true(is_access_ended(WIRE_READ, SERVICE_READABLE ^ others[i], 0, 8));
	}
	for (uint32_t length = 0; length <= 8; length += 8) {
		assert_true(is_access_ended(WIRE_WRITE, SERVICE_READABLE, 0, length));
		assert_true(is_access_ended(WIRE_READ, SERVICE_WRITABLE, 0, length));
	}
	assert_untouched();
}

static void close_registration(struct fid_mr **mr)
{
	assert_int_equal(fi_close(&(*mr)->fid), 0);
	*mr = NULL;
}

SERVICE_TEST(closing_a_registration_ends_a_write_in_progress)
{
	struct wire_frame frame = {
		.kind = WIRE_WRITE, .length = SERVICE_MR_BYTES, .key = SERVICE_WRITABLE};
	struct raw_bytes bytes = {0};
	int fd = service_visit();

	raw_add_frame(&bytes, &frame, "\xee", 1);
	raw_send(fd, bytes.bytes, bytes.length);
	service_until(service.writable[0] == 0xee);
	close_registration(&service.writable_mr);
	service.writable[0] = 0;
	for (int i = 0; i < 100 && raw_send(fd, "\xee", 1); i++)
		service_turn();
	service_leave(fd);
	assert_untouched();
	assert_int_equal(service_breaches(TCP_BREACH_WITHDRAWN), 1);
}

/* Reads ---------------------------------------------------------------------------------------- */

static uint8_t *large;
static struct fid_mr *large_mr;

static void register_large(void)
{
	large = calloc(1, LARGE_BYTES);
	assert_non_null(large);
	assert_fi_works(fi_mr_reg(service.server.domain, large, LARGE_BYTES, FI_REMOTE_READ, 0,
				  LARGE_KEY, 0, &large_mr, NULL));
}

static void drop_large(void)
{
	if (large_mr)
		assert_int_equal(fi_close(&large_mr->fid), 0);
	large_mr = NULL;
	free(large);
}

static void ask(int fd, uint32_t length, int count)
{
	struct wire_frame frame = {.kind = WIRE_READ, .length = length, .key = LARGE_KEY};
	struct raw_bytes bytes = {0};

	raw_add_frame(&bytes, &frame, NULL, 0);
	for (int i = 0; i < count && raw_send(fd, bytes.bytes, bytes.length); i++)
		continue;
}

/* The first reads fill the socket, and are no longer counted. */
SERVICE_TEST(reads_beyond_the_limit_end_the_connection)
{
	int fd = service_visit();

	register_large();
	ask(fd, LARGE_BYTES, 4 * WIRE_READS_MAX);
	service_until(service_breaches(TCP_BREACH_READS) == 1);
	service_leave(fd);
	drop_large();
}

SERVICE_TEST(closing_a_registration_ends_its_answers)
{
	int fd = service_visit();

	register_large();
	ask(fd, LARGE_BYTES, WIRE_READS_MAX);
	service_until(service_visitor()->is_blocked);
	close_registration(&large_mr);
	service_until(service_breaches(TCP_BREACH_WITHDRAWN) == 1);
	drop_large(); /* a memory checker detects a later send */
	service_expect_echo();
	service_leave(fd);
}

/* Answers -------------------------------------------------------------------------------------- */

static void answer(int fd, uint32_t length)
{
	struct wire_frame frame = {.kind = WIRE_READ_DATA, .length = length};
	uint8_t payload[64] = {0};
	struct raw_bytes bytes = {0};

	memset(payload, 0xee, sizeof(payload));
	raw_add_frame(&bytes, &frame, payload, length < 64 ? length : 64);
	raw_send(fd, bytes.bytes, bytes.length);
}

/* The service reads 16 bytes of its peer's memory. */
static int ask_visitor(uint8_t *out)
{
	int fd = service_visit();

	memset(out, 0, 32);
	assert_fi_works(
		fi_read(&service_visitor()->base.fid, out, 16, NULL, FI_ADDR_UNSPEC, 0, 1, NULL));
	service_turn();
	return fd;
}

SERVICE_TEST(an_answer_to_no_read_or_of_a_wrong_length_ends_the_connection)
{
	static const uint32_t lengths[] = {0, 15, 17, 64, WIRE_LENGTH_MAX};
	static const uint8_t none[32];
	uint8_t out[32];
	int fd;

	fd = service_visit();
	answer(fd, 16); /* to no read */
	service_until(service_breaches(TCP_BREACH_UNASKED) == 1);
	service_leave(fd);
	for (size_t i = 0; i < PLX_ARRAY_LEN(lengths); i++) {
		fd = ask_visitor(out);

		answer(fd, lengths[i]);
		service_until(service_breaches(TCP_BREACH_ANSWER) == i + 1);
		assert_memory_equal(out, none, sizeof(none));
		service_leave(fd);
	}
}

/* More than is read ---------------------------------------------------------------------------- */

#define READ_BYTES 1000  /* an answer that is copied */
#define SEND_BYTES 65536 /* of the service's sockets, so that they fill up quickly */

static bool may_sleep(void)
{
	struct fid *fid = &service.server.rx_cq->fid;

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

static int setup_small(void **state)
{
	tcp_params.send_bytes = SEND_BYTES;
	return service_setup(state);
}

static int teardown_small(void **state)
{
	tcp_params.send_bytes = 0;
	return service_teardown(state);
}

#define SMALL(name) PLX_TEST_WITH(name, setup_small, teardown_small)

SMALL(answers_to_a_slow_reader_all_arrive)
{
	static uint8_t answers[BLOCK_BYTES];
	int fd = service_visit();
	size_t have = 0;

	send_reads(fd, WIRE_READS_MAX);
	service_until(may_sleep());
	service_until((have += raw_receive(fd, answers, sizeof(answers))) ==
		      WIRE_HELLO_BYTES + WIRE_READS_MAX * (WIRE_FRAME_BYTES + READ_BYTES));
	service_expect_echo();
	assert_int_equal(service.ended, 0);
	service_leave(fd);
}

/* Messages ------------------------------------------------------------------------------------- */

SMALL(unread_echoes_are_bounded)
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
	raw_reset(fd);
	service_expect_calm();
}

PLX_TEST_MAIN()
