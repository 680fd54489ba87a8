/* SPDX-License-Identifier: BSD-3-Clause */
/* Records between two ends of a ring, in one process and private memory. The mutants of
 * tests/mutate/shm_orders.sh build this file with ring.c alone. */
#include "plx_test.h"
#include "ring.h"

#define RING SEGMENT_RING_BYTES_MIN

static struct segment segment;
static struct ring_writer writer;
static struct ring_reader reader;

static int set_up(void **state)
{
	segment.ring_bytes = RING;
	segment.control = aligned_alloc(4096, SEGMENT_CONTROL_BYTES + RING);
	assert_non_null(segment.control);
	memset(segment.control, 0, SEGMENT_CONTROL_BYTES + RING);
	segment.ring = (uint8_t *)segment.control + SEGMENT_CONTROL_BYTES;
	writer = (struct ring_writer){.segment = segment};
	reader = (struct ring_reader){.segment = segment};
	return 0;
}

static int tear_down(void **state)
{
	free(segment.control);
	return 0;
}

static bool write_record(uint32_t length, uint8_t flags, uint8_t fill)
{
	uint32_t bytes = record_bytes(length, flags);
	uint8_t *at = ring_claim(&writer, bytes);

	if (!at)
		return false;
	memset(ring_payload(at, flags, UINT64_C(0x1122334455667788)), fill, length);
	ring_commit(&writer, RECORD_MESSAGE, flags, length, bytes);
	if (fill % 2)
		ring_own_ahead(&writer, bytes);
	return true;
}

static void expect_record(uint32_t length, uint8_t flags, uint8_t fill)
{
	struct record record;

	assert_int_equal(ring_peek(&reader, &record), 1);
	assert_int_equal(record.kind, RECORD_MESSAGE);
	assert_int_equal(record.flags, flags);
	assert_int_equal(record.length, length);
	assert_int_equal(record.data, flags & RECORD_HAS_DATA ? UINT64_C(0x1122334455667788) : 0);
	for (uint32_t i = 0; i < length; i++)
		assert_int_equal(record.payload[i], fill);
	ring_advance(&reader, &record);
}

#define RING_TEST(name) PLX_TEST_WITH(name, set_up, tear_down)

RING_TEST(a_record_is_read_as_it_was_written)
{
	static const uint32_t lengths[] = {0, 1, 48, 56, 57, 64, 1000, 4096};
	struct record record;

	for (unsigned i = 0; i < PLX_ARRAY_LEN(lengths); i++) {
		assert_true(write_record(lengths[i], 0, (uint8_t)i));
		assert_true(write_record(lengths[i], RECORD_HAS_DATA, (uint8_t)~i));
		assert_true(ring_look(&reader));
		expect_record(lengths[i], 0, (uint8_t)i);
		expect_record(lengths[i], RECORD_HAS_DATA, (uint8_t)~i);
		assert_false(ring_look(&reader));
		assert_int_equal(ring_peek(&reader, &record), 0);
	}
}

/* Filled with words that look like records: none may be taken for one. */
RING_TEST(old_payload_is_never_taken_for_a_record)
{
	uint64_t word = 8 | (uint64_t)RECORD_MESSAGE << 32;
	struct record record;

	for (uint32_t lap = 0; lap < 3 * RING / 64; lap++) {
		uint32_t length = 8 * (1 + lap * 7 % 200);
		uint32_t bytes = record_bytes(length, 0);
		uint8_t *at = ring_claim(&writer, bytes);

		assert_non_null(at);
		at = ring_payload(at, 0, 0);
		for (uint32_t i = 0; i < length; i += 8)
			memcpy(at + i, &word, 8);
		ring_commit(&writer, RECORD_MESSAGE, 0, length, bytes);
		if (lap % 3 == 0)
			ring_own_ahead(&writer, bytes);
		assert_int_equal(ring_peek(&reader, &record), 1);
		assert_int_equal(record.length, length);
		ring_advance(&reader, &record);
		assert_int_equal(ring_peek(&reader, &record), 0);
	}
}

RING_TEST(a_full_ring_refuses_records_until_it_is_read)
{
	uint32_t lengths[] = {40, 1000, ring_payload_max(&segment)};

	for (unsigned i = 0; i < PLX_ARRAY_LEN(lengths); i++) {
		uint32_t count = 0;

		while (write_record(lengths[i], 0, (uint8_t)count))
			count++;
		assert_true(count >= RING / record_bytes(lengths[i], 0) - 2);
		assert_false(write_record(lengths[i], 0, 0));
		for (uint32_t j = 0; j < count; j++)
			expect_record(lengths[i], 0, (uint8_t)j);
		assert_false(ring_look(&reader));
		assert_true(write_record(lengths[i], 0, 77));
		expect_record(lengths[i], 0, 77);
	}
}

/* At any position, also with an unpublished eighth. */
RING_TEST(the_largest_record_always_fits_into_an_empty_ring)
{
	uint32_t most = ring_payload_max(&segment);

	for (uint32_t i = 0; i < 4 * RING / RECORD_UNIT; i++) {
		assert_true(write_record(most, RECORD_HAS_DATA, (uint8_t)i));
		expect_record(most, RECORD_HAS_DATA, (uint8_t)i);
		assert_true(write_record(1, 0, 1));
		expect_record(1, 0, 1);
	}
	assert_false(writer.broken);
}

RING_TEST(the_head_is_published_periodically_and_on_request)
{
	_Atomic uint64_t *head = &segment.control->head;

	write_record(56, 0, 1);
	expect_record(56, 0, 1);
	assert_int_equal(atomic_load(head), 0);
	write_record(56, RECORD_ACK, 1);
	expect_record(56, RECORD_ACK, 1);
	assert_int_equal(atomic_load(head), 128);
	for (uint32_t i = 0; i < RING / 8 / 64; i++) {
		write_record(56, 0, 1);
		expect_record(56, 0, 1);
	}
	assert_int_equal(atomic_load(head), 128 + RING / 8);
	write_record(56, 0, 1);
	expect_record(56, 0, 1);
	assert_int_equal(atomic_load(head), 128 + RING / 8);
}

RING_TEST(a_side_that_requests_a_call_is_called_once)
{
	struct record record;

	write_record(8, 0, 1);
	assert_int_equal(ring_call(&writer), CALL_NONE);
	atomic_store(&segment.control->call, CALL_WAKE);
	assert_int_equal(ring_call(&writer), CALL_WAKE);
	assert_int_equal(ring_call(&writer), CALL_NONE);

	atomic_store(&segment.control->space_call, CALL_WAKE);
	assert_int_equal(ring_peek(&reader, &record), 1);
	assert_false(ring_advance(&reader, &record));
	assert_true(ring_tell(&reader));
	assert_false(ring_tell(&reader));
}

/* A hostile sender: any word. */
RING_TEST(an_impossible_word_is_detected)
{
	uint32_t most = ring_payload_max(&segment);
	uint64_t message = (uint64_t)RECORD_MESSAGE << 32;
	const uint64_t words[] = {
		1,                           /* no kind */
		(uint64_t)6 << 32,           /* nor that */
		(uint64_t)0xff << 32,        /* */
		message | (most + 1),        /* too long */
		message | UINT32_MAX,        /* */
		message | UINT64_C(4) << 40, /* an unknown flag */
		message | UINT64_C(1) << 48, /* must be 0 */
		(uint64_t)RECORD_SKIP << 32, /* at the beginning */
		UINT64_MAX,
	};
	struct record record;

	for (unsigned i = 0; i < PLX_ARRAY_LEN(words); i++) {
		atomic_store(ring_word(&segment, 0), words[i]);
		assert_int_equal(ring_peek(&reader, &record), -1);
		assert_int_equal(reader.head, 0);
	}
}

RING_TEST(a_record_past_the_end_is_detected)
{
	struct record record;

	reader.head = RING - 64;
	atomic_store(ring_word(&segment, reader.head), 57 | (uint64_t)RECORD_MESSAGE << 32);
	assert_int_equal(ring_peek(&reader, &record), -1);
	atomic_store(ring_word(&segment, reader.head), 56 | (uint64_t)RECORD_MESSAGE << 32);
	assert_int_equal(ring_peek(&reader, &record), 1);
	/* Skips all the way round must not make it loop forever. */
	atomic_store(ring_word(&segment, reader.head), (uint64_t)RECORD_SKIP << 32);
	atomic_store(ring_word(&segment, 0), (uint64_t)RECORD_SKIP << 32);
	assert_int_equal(ring_peek(&reader, &record), -1);
}

RING_TEST(an_impossible_head_is_detected)
{
	const uint64_t heads[] = {64 * 1000, 65, UINT64_MAX, (uint64_t)-64};

	for (unsigned i = 0; i < PLX_ARRAY_LEN(heads); i++) {
		writer.broken = false;
		write_record(56, 0, 1);
		atomic_store(&segment.control->head, heads[i]);
		ring_refresh(&writer);
		assert_true(writer.broken);
		assert_int_equal(writer.head, 0);
	}
	writer.broken = false;
	atomic_store(&segment.control->head, 64);
	ring_refresh(&writer);
	assert_int_equal(writer.head, 64);
	atomic_store(&segment.control->head, 0); /* back again */
	ring_refresh(&writer);
	assert_true(writer.broken);
}

PLX_TEST_MAIN()
