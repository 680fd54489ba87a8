/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory shared with a peer: what is created for it, and what is accepted from it. */
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

PLX_TEST(all_pages_are_allocated_if_memory_is_not_overcommitted)
{
	assert_true(pages_taken() < BYTES);
	segment_takes_all = true;
	assert_true(pages_taken() >= BYTES);
	segment_takes_all = false;
}

PLX_TEST(a_segment_without_size_seals_or_of_another_size_is_refused)
{
	static const struct {
		size_t bytes;
		int seals;
	} rows[] = {
		{BYTES, 0},
		{BYTES, SEALS & ~F_SEAL_SHRINK},
		{BYTES, SEALS & ~F_SEAL_GROW},
		{BYTES, SEALS & ~F_SEAL_SEAL},
		{0, SEALS},
		{BYTES - 1, SEALS},
		{BYTES + 1, SEALS},
		{BYTES + RING, SEALS},
	};

	for (size_t i = 0; i < PLX_ARRAY_LEN(rows); i++)
		expect_refused(make_memfd(rows[i].bytes, rows[i].seals), RING);
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

PLX_TEST_MAIN()
