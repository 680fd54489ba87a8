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

static void write_part(enum record_kind kind, uint64_t total, const char *bytes, uint32_t length)
{
	uint8_t payload[RECORD_UNIT + 2 * HALF] = {0};
	uint32_t header = ring_part_header(0);

	memcpy(payload, &total, sizeof(total));
	memcpy(payload + header, bytes, length);
	write_record(kind, payload, header + length);
}

static void write_first(uint64_t total)
{
	write_part(RECORD_FIRST, total, "12345678", HALF);
}

static void write_next(const char *bytes, uint32_t length)
{
	write_part(RECORD_NEXT, 0, bytes, length);
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

	expect_cancelled(server.cq, in);
	assert_int_equal(fi_cq_read(server.cq, &entry, 1), -FI_EAGAIN);
	cm_wait(server.eq, FI_SHUTDOWN, &event);
	cm_wait(client.eq, FI_SHUTDOWN, &event);
}

/* The sender writes the next part while the last one is copied. */
static void expect_told_of_all(void)
{
	const struct ring_writer *ring = &((struct shm_ep *)one)->writer;

	assert_int_equal(atomic_load(&ring->segment.control->head), ring->tail);
}

static int setup_again(void **state)
{
	setup_shm(state);
	meet_again();
	return 0;
}

#define TEST(name) PLX_TEST_WITH(name, setup_again, teardown)

TEST(two_parts_make_a_message)
{
	struct fi_cq_data_entry entry;

	write_first(2 * HALF);
	assert_int_equal(fi_cq_read(server.cq, &entry, 1), -FI_EAGAIN);
	expect_told_of_all();
	write_next("abcdefgh", HALF);
	assert_int_equal(fi_cq_read(server.cq, &entry, 1), 1);
	expect_told_of_all();
	assert_int_equal(entry.len, 2 * HALF);
	assert_memory_equal(in, "12345678abcdefgh", 2 * HALF);
}

TEST(a_message_inside_another_ends_the_connection)
{
	write_first(2 * HALF);
	write_record(RECORD_MESSAGE, "abcdefgh", HALF);
	expect_ended();
}

TEST(a_first_part_inside_another_message_ends_the_connection)
{
	write_first(4 * HALF);
	write_first(2 * HALF);
	expect_ended();
}

TEST(a_read_request_inside_another_message_ends_the_connection)
{
	struct record_piece piece = {(uintptr_t)"abcdefgh", HALF};

	write_first(2 * HALF);
	write_record(RECORD_READ, &piece, sizeof(piece));
	expect_ended();
}

/* It was not allowed to. */
TEST(a_read_request_without_permission_ends_the_connection)
{
	struct record_piece piece = {(uintptr_t)"abcdefgh", HALF};

	((struct shm_ep *)two)->may_read = false;
	write_record(RECORD_READ, &piece, sizeof(piece));
	expect_ended();
}

TEST(a_part_without_a_message_ends_the_connection)
{
	write_next("abcdefgh", HALF);
	expect_ended();
}

/* A large message is read in several polls, while its record stays in place. */
static void change_what_is_being_read(enum record_kind kind)
{
	static char from[2 << 20], to[2 << 20];
	struct record_piece piece = {(uintptr_t)from, sizeof(from)};
	struct ring_writer *ring;
	struct fi_cq_data_entry entry;
	uint64_t begin;

	meet();
	assert_int_equal(fi_recv(two, to, sizeof(to), NULL, 0, in), 0);
	ring = &((struct shm_ep *)one)->writer;
	begin = ring->tail;
	write_record(RECORD_READ, &piece, sizeof(piece));
	assert_int_equal(fi_cq_read(server.cq, &entry, 1), -FI_EAGAIN);
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

/* More than the total, or nothing. */
TEST(a_part_of_a_wrong_length_ends_the_connection)
{
	write_first(2 * HALF);
	write_next("abcdefghi", HALF + 1);
	expect_ended();
	meet_again();
	write_first(2 * HALF);
	write_next("", 0);
	expect_ended();
}

/* A part that ends inside its own header. */
TEST(a_part_without_its_header_ends_the_connection)
{
	uint64_t total = 2 * HALF;

	write_record(RECORD_FIRST, &total, sizeof(total) - 1);
	expect_ended();
	meet_again();
	write_record(RECORD_FIRST, &total, sizeof(total));
	expect_ended();
	meet_again();
	write_first(2 * HALF);
	write_record(RECORD_NEXT, "abcdefgh", HALF);
	expect_ended();
}

PLX_TEST_MAIN()
