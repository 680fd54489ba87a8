/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory shared with a peer: what is created for it, and what is accepted from it. And records
 * between two ends of a ring, in one process and private memory. */
#include "count.h"
#include "shm.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define RING  SEGMENT_RING_BYTES_MIN
#define BYTES (SEGMENT_CONTROL_BYTES + RING)
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

static int make_memfd(size_t bytes, int seals)
{
	int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

/* Closes fd. */
static void expect_refused(int fd, uint32_t ring_bytes)
{
	int before = count_mappings();
	struct segment segment = {0};

	assert_int_equal(segment_map(fd, ring_bytes, &segment), -FI_EINVAL);
	assert_null(segment.control);
	assert_int_equal(count_mappings(), before);
	close(fd);
}

PLX_TEST(both_sides_share_one_ring)
{
	struct segment ours, theirs;
	int fd;

	assert_int_equal(segment_create(RING, &ours, &fd), 0);
	assert_int_equal(segment_map(fd, RING, &theirs), 0);
	close(fd);
	assert_ptr_not_equal(ours.control, theirs.control);
	assert_int_equal(theirs.ring_bytes, RING);
	ours.ring[RING - 1] = 7;
	assert_int_equal(theirs.ring[RING - 1], 7);
	atomic_store(&theirs.control->head, 64);
	assert_int_equal(atomic_load(&ours.control->head), 64);
	segment_unmap(&ours);
	segment_unmap(&theirs);
}

PLX_TEST(both_sides_share_one_bell)
{
	struct bell *ours, *theirs, *again;
	int fd;

	assert_int_equal(bell_create(&ours, &fd), 0);
	assert_int_equal(peer_bell_map(fd, &theirs), 0);
	assert_int_equal(peer_bell_map(fd, &again), 0);
	assert_ptr_equal(theirs, again); /* mapped once, for all connections */
	peer_bell_release(again);
	close(fd);
	atomic_store(&ours->words[63], 1);
	assert_int_equal(atomic_load(&theirs->words[63]), 1);
	bell_unmap(ours);
	peer_bell_release(theirs);
}

PLX_TEST(a_peer_cannot_resize_a_segment)
{
	struct segment segment;
	struct stat st;
	int fd;

	assert_int_equal(segment_create(RING, &segment, &fd), 0);
	assert_int_equal(ftruncate(fd, 0), -1);
	assert_int_equal(ftruncate(fd, 2 * BYTES), -1);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), -1);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_size, BYTES);
	close(fd);
	segment_unmap(&segment);
}

static uint64_t pages_taken(void)
{
	struct segment segment;
	struct stat st;
	int fd;

	assert_int_equal(segment_create(RING, &segment, &fd), 0);
	assert_int_equal(fstat(fd, &st), 0);
	segment_unmap(&segment);
	close(fd);
	return (uint64_t)st.st_blocks * 512;
}

/* The memfd's policy places the rest, whichever side touches them first. */
PLX_TEST(few_pages_are_populated_at_first)
{
	skip_if_emulated();
	assert_int_equal(pages_taken(), SEGMENT_CONTROL_BYTES + 4 * 4096);
}

PLX_TEST(all_pages_are_allocated_if_memory_is_not_overcommitted)
{
	assert_true(pages_taken() < BYTES);
	segment_takes_all = true;
	assert_true(pages_taken() >= BYTES);
	segment_takes_all = false;
}

PLX_TEST(a_segment_without_size_seals_is_refused)
{
	expect_refused(make_memfd(BYTES, 0), RING);
	expect_refused(make_memfd(BYTES, SEALS & ~F_SEAL_SHRINK), RING);
	expect_refused(make_memfd(BYTES, SEALS & ~F_SEAL_GROW), RING);
	expect_refused(make_memfd(BYTES, SEALS & ~F_SEAL_SEAL), RING);
}

PLX_TEST(a_segment_of_another_size_than_announced_is_refused)
{
	expect_refused(make_memfd(0, SEALS), RING);
	expect_refused(make_memfd(BYTES - 1, SEALS), RING);
	expect_refused(make_memfd(BYTES + 1, SEALS), RING);
	expect_refused(make_memfd(BYTES + RING, SEALS), RING);
}

PLX_TEST(a_ring_of_an_invalid_size_is_refused)
{
	static const uint32_t sizes[] = {
		0, 1, 4096, RING - 1, RING + 64, 3 * RING, UINT32_MAX, 2 * SEGMENT_RING_BYTES_MAX};

	for (size_t i = 0; i < PLX_ARRAY_LEN(sizes); i++)
		expect_refused(make_memfd(SEGMENT_CONTROL_BYTES + (size_t)sizes[i], SEALS),
			       sizes[i]);
}

PLX_TEST(a_segment_that_cannot_be_written_is_refused)
{
	int fd = make_memfd(BYTES, SEALS);
	char path[64];

	expect_refused(make_memfd(BYTES, SEALS | F_SEAL_WRITE), RING);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	expect_refused(open(path, O_RDONLY | O_CLOEXEC), RING);
	close(fd);
}

PLX_TEST(a_descriptor_that_is_no_memfd_is_refused)
{
	int pair[2], fd;

	assert_int_equal(pipe2(pair, O_CLOEXEC), 0);
	expect_refused(pair[0], RING);
	expect_refused(pair[1], RING);
	expect_refused(open("/dev/zero", O_RDWR | O_CLOEXEC), RING);
	fd = open("/dev/shm", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
	assert_int_equal(ftruncate(fd, BYTES), 0);
	expect_refused(fd, RING);
}

PLX_TEST(a_bell_is_checked_like_a_ring)
{
	int fd = make_memfd(BELL_BYTES - 1, SEALS);
	struct bell *bell = NULL;

	assert_int_equal(peer_bell_map(fd, &bell), -FI_EINVAL);
	assert_null(bell);
	close(fd);
}

PLX_TEST(released_segments_are_unmapped)
{
	int before = count_mappings();
	struct segment segment;
	struct bell *bell;
	int fd;

	assert_int_equal(segment_create(RING, &segment, &fd), 0);
	close(fd);
	assert_int_equal(bell_create(&bell, &fd), 0);
	close(fd);
	assert_true(count_mappings() > before);
	segment_unmap(&segment);
	segment_unmap(&segment);
	bell_unmap(bell);
	bell_unmap(NULL);
	assert_int_equal(count_mappings(), before);
}

/* Records -------------------------------------------------------------------------------------- */

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
		ring_clear_ahead(&writer);
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
			ring_clear_ahead(&writer);
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
