/* SPDX-License-Identifier: BSD-3-Clause */
/* A peer that writes valid records in invalid places: they are ignored, and its connection ends. */
#include "shm_meet.h"

#define HALF 8 /* bytes of a message that comes in two parts */

static char in[64];

/* Write a record, bypassing libfabric's calls. */
static void write_record(enum record_kind kind, const void *payload, uint32_t length)
{
	struct ring_writer *ring = &((struct shm_ep *)one)->writer;
	uint32_t bytes = record_bytes(length, 0);
	uint8_t *at = ring_claim(ring, bytes);

	assert_non_null(at);
	memcpy(ring_payload(at, 0, 0), payload, length);
	ring_commit(ring, kind, 0, length, bytes);
}

/* Of a message in parts: its length in the first part, then bytes. */
static void write_part(enum record_kind kind, uint64_t total, const char *bytes, uint32_t length)
{
	uint8_t payload[RECORD_UNIT + 2 * HALF] = {0};
	uint32_t header = ring_part_header(0);

	memcpy(payload, &total, sizeof(total));
	memcpy(payload + header, bytes, length);
	write_record(kind, payload, header + length);
}

/* And post a receive. */
static void meet_again(void)
{
	part();
	meet();
	memset(in, 0, sizeof(in));
	assert_int_equal(fi_recv(two, in, sizeof(in), NULL, 0, in), 0);
}

static void expect_ended(void)
{
	struct fi_cq_data_entry entry;

	expect_cancelled(server.rx_cq, in);
	assert_int_equal(fi_cq_read(server.rx_cq, &entry, 1), -FI_EAGAIN);
	cm_wait(server.eq, FI_SHUTDOWN, &event);
	cm_wait(client.eq, FI_SHUTDOWN, &event);
}

static int setup_again(void **state)
{
	setup_shm(state);
	meet_again();
	return 0;
}

#define TEST(name) PLX_TEST_WITH(name, setup_again, teardown)

/* A request to read memory. */
struct request {
	uint64_t start; /* bytes of the message that follow it here */
	struct record_piece pieces[5];
};

/* Such records end the connection. */
TEST(records_where_they_may_not_be_end_the_connection)
{
	static const char bytes[2 * HALF] = "12345678abcdefg";
	const struct request request = {0, {{(uintptr_t)bytes, HALF}}};
	static const struct {
		uint64_t total;        /* of a first part before it; 0: there is none */
		enum record_kind kind; /* RECORD_FIRST and RECORD_NEXT with a header */
		uint32_t length;
		bool is_bare;      /* without a header */
		uint64_t announce; /* the length in its header; 0: two halves */
	} rows[] = {
		/* Inside another message. */
		{2 * HALF, RECORD_MESSAGE, HALF, true, 0},
		{4 * HALF, RECORD_FIRST, HALF, false, 0},
		{2 * HALF, RECORD_READ, 8 + sizeof(struct record_piece), true, 0},
		/* Without a message. */
		{0, RECORD_NEXT, HALF, false, 0},
		/* More than the total, or nothing. */
		{2 * HALF, RECORD_NEXT, HALF + 1, false, 0},
		{2 * HALF, RECORD_NEXT, 0, false, 0},
		/* Parts that end inside their own headers. */
		{0, RECORD_FIRST, sizeof(uint64_t) - 1, true, 0},
		{0, RECORD_FIRST, sizeof(uint64_t), true, 0},
		{2 * HALF, RECORD_NEXT, HALF, true, 0},
		/* A message that is too long. */
		{0, RECORD_FIRST, HALF, false, SHM_MESSAGE_MAX + 1},
	};

	for (size_t i = 0; i < PLX_ARRAY_LEN(rows); i++) {
		const void *from = rows[i].kind == RECORD_READ ? (const void *)&request : bytes;

		if (rows[i].total)
			write_part(RECORD_FIRST, rows[i].total, bytes, HALF);
		if (rows[i].is_bare)
			write_record(rows[i].kind, from, rows[i].length);
		else
			write_part(rows[i].kind, rows[i].announce ? rows[i].announce : 2 * HALF,
				   bytes, rows[i].length);
		expect_ended();
		meet_again();
	}
}

/* It was not allowed to. */
TEST(a_read_request_without_permission_ends_the_connection)
{
	struct request request = {0, {{(uintptr_t)"abcdefgh", HALF}}};

	((struct shm_ep *)two)->may_read = false;
	write_record(RECORD_READ, &request, 8 + sizeof(struct record_piece));
	expect_ended();
}

TEST(a_malformed_read_request_ends_the_connection)
{
	static const char bytes[HALF] = "1234567";
	const struct {
		uint64_t start;
		uint32_t length;
	} rows[] = {
		{0, 0},
		{0, 7},
		{0, 8},          /* no piece */
		{0, 8 + 15},     /* less than one */
		{0, 8 + 17},     /* more than one */
		{0, 8 + 5 * 16}, /* too many */
		{16, 8 + 16},    /* only a start */
		{17, 8 + 16},    /* longer than the record */
		{RECORD_START_MAX + 1, 8 + RECORD_START_MAX + 1 + 16},
		{UINT64_MAX - 15, 8 + 16},
	};

	for (size_t i = 0; i < PLX_ARRAY_LEN(rows); i++) {
		uint8_t payload[8 + RECORD_START_MAX + 1 + 16];
		struct request request = {rows[i].start, {{0}}};

		for (int j = 0; j < 5; j++)
			request.pieces[j] = (struct record_piece){(uintptr_t)bytes, HALF};
		memset(payload, 0, sizeof(payload));
		memcpy(payload, &request, sizeof(request));
		write_record(RECORD_READ, payload, rows[i].length);
		expect_ended();
		meet_again();
	}
}

/* A large message is read in several polls, while its record stays in place. */
static void change_what_is_being_read(enum record_kind kind)
{
	static char from[2 << 20], to[2 << 20];
	struct request request = {0, {{(uintptr_t)from, sizeof(from)}}};
	struct ring_writer *ring;
	struct fi_cq_data_entry entry;
	uint64_t begin;

	meet();
	assert_int_equal(fi_recv(two, to, sizeof(to), NULL, 0, in), 0);
	ring = &((struct shm_ep *)one)->writer;
	begin = ring->tail;
	write_record(RECORD_READ, &request, 8 + sizeof(struct record_piece));
	assert_int_equal(fi_cq_read(server.rx_cq, &entry, 1), -FI_EAGAIN);
	atomic_store(ring_word(&ring->segment, begin), HALF | (uint64_t)kind << 32);
	expect_ended();
	part();
}

PLX_TEST_WITH(changing_a_record_while_it_is_read_has_no_effect, setup_shm, teardown)
{
	skip_if_emulated();
	change_what_is_being_read(RECORD_MESSAGE);
	change_what_is_being_read(RECORD_FIRST);
	change_what_is_being_read(RECORD_NEXT);
}

PLX_TEST_MAIN()
