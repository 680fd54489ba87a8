/* SPDX-License-Identifier: BSD-3-Clause */
#include "../plx_test.h"

#include "frame.h"

PLX_TEST(a_header_is_little_endian_as_documented_and_decodes_to_itself)
{
	static const uint8_t golden[FRAME_HEADER_BYTES] = {6,    1,    0,    0,    0, 0, 0, 0,
							   0x04, 0x03, 0x02, 0x01, 0, 0, 0, 0};
	struct frame_header fin = {FRAME_FIN, FRAME_FLAG_ACK, 0, 0x01020304}, out;
	struct frame_header data = {FRAME_DATA, 0, 5, 0xfffffff0};
	uint8_t bytes[FRAME_HEADER_BYTES + 5] = {0};

	frame_write(bytes, &fin);
	assert_memory_equal(bytes, golden, sizeof(golden));
	bytes[3] = 1;
	assert_string_equal(frame_read(bytes, FRAME_HEADER_BYTES, &out), "reserved bits set");
	frame_write(bytes, &data);
	assert_null(frame_read(bytes, sizeof(bytes), &out));
	assert_int_equal(out.type, FRAME_DATA);
	assert_int_equal(out.length, 5);
	assert_int_equal(out.granted_frames, 0xfffffff0);
}

static void expect_wrong(size_t row, const char *wrong, const char *expected)
{
	if (!wrong || !strstr(wrong, expected))
		fail_msg("row %zu: '%s', not '%s'", row, wrong ? wrong : "(fine)", expected);
}

PLX_TEST(a_broken_header_is_refused_with_the_reason)
{
	static const struct {
		struct frame_header header;
		size_t received;
		const char *wrong;
	} rows[] = {
		{{FRAME_DATA, 0, 0, 0}, 15, "shorter than its header"},
		{{FRAME_DATA, 0, 9, 0}, 24, "length differs"},
		{{FRAME_DATA, 2, 8, 0}, 24, "unknown flags"},
		{{0, 0, 8, 0}, 24, "unknown frame type"},
		{{13, 0, 8, 0}, 24, "unknown frame type"},
		{{FRAME_TRUST, 0, 0, 0}, 16, "a TRUST frame on a link without trust"},
		{{FRAME_PUT, 0, 8, 0}, 24, "another length"},
		{{FRAME_REVOKE, 0, 4, 0}, 20, "another length"},
		{{FRAME_CREDIT, 0, 8, 0}, 24, "control frame with data"},
		{{FRAME_FIN, 2, 0, 0}, 16, "unknown flags"},
		{{FRAME_HEARTBEAT, 0, 17, 0}, 33, "another length"},
		{{FRAME_DATA_FIRST, 0, 8, 0}, 24, "without data"},
		{{FRAME_DATA_NEXT, 0, 0, 0}, 16, "empty part"},
		{{FRAME_HELLO, 0, 0, 0}, 16, "HELLO too short"},
		{{FRAME_HELLO, 0, 257, 0}, 273, "or too long"},
	};

	for (size_t i = 0; i < PLX_ARRAY_LEN(rows); i++) {
		uint8_t bytes[512] = {0};
		struct frame_header out;

		frame_write(bytes, &rows[i].header);
		expect_wrong(i, frame_read(bytes, rows[i].received, &out), rows[i].wrong);
	}
}

PLX_TEST(a_busy_peer_is_read_as_written_and_bounded)
{
	uint8_t busy[BUSY_BYTES];

	busy_write(250 * PLX_NS_PER_MS + 1, busy);
	assert_int_equal(busy_read(busy, sizeof(busy)), 251 * PLX_NS_PER_MS);
	assert_int_equal(busy_read(busy, sizeof(busy) - 1), 0);
	assert_int_equal(busy_read(NULL, 0), 0);
	busy_write(PLX_NEVER, busy);
	assert_int_equal(busy_read(busy, sizeof(busy)), 10 * PLX_NS_PER_S);
	put32(busy + 4, UINT32_MAX);
	assert_int_equal(busy_read(busy, sizeof(busy)), 10 * PLX_NS_PER_S);
	put32(busy + 4, 0);
	assert_int_equal(busy_read(busy, sizeof(busy)), PLX_NS_PER_MS);
	busy[0] ^= 1;
	assert_int_equal(busy_read(busy, sizeof(busy)), 0);
}

static const struct frame_hello good_hello = {
	.magic = HELLO_MAGIC,
	.version_min = WIRE_VERSION,
	.version_max = WIRE_VERSION + 1,
	.secured = 1,
	.features = 5,
	.protocol = 3,
	.incarnation = 0x1122334455667788,
	.rx_buf_bytes = 4096,
	.rx_buf_count = 8,
	.message_max = 1 << 20,
	.heartbeat_ms = 100,
	.dead_after_ms = 500,
	.path = 0xcafe,
	.pid = 4711,
	.data = "\3abc",
	.program = "\4ping",
};

static uint32_t write_all(const struct frame_hello *hello, uint8_t *out)
{
	return hello_write(out, hello, 0, HELLO_TYPES);
}

/* Except what was read last. */
static void expect_same(const struct frame_hello *a, const struct frame_hello *b)
{
	assert_memory_equal(a, b, offsetof(struct frame_hello, newest));
}

PLX_TEST(an_encoded_hello_decodes_to_itself_whole_or_in_two_parts)
{
	struct frame_hello out = {0}, parts = {0};
	uint8_t bytes[HELLO_BYTES_MAX];
	uint32_t length = write_all(&good_hello, bytes), opening;

	assert_null(hello_read(bytes, length, true, &out));
	expect_same(&out, &good_hello);
	opening = hello_write(bytes, &good_hello, 0, HELLO_REFUSED);
	assert_null(hello_read(bytes, opening, false, &parts));
	assert_false(hello_is_whole(&parts));
	assert_int_equal(parts.rx_buf_bytes, 0);
	length = hello_write(bytes, &good_hello, HELLO_REFUSED, HELLO_TYPES);
	assert_null(hello_read(bytes, length, true, &parts));
	assert_true(hello_is_whole(&parts));
	expect_same(&parts, &good_hello);
}

PLX_TEST(the_largest_hello_fits_into_private_data)
{
	struct frame_hello most = good_hello, out = {0};
	uint8_t bytes[HELLO_BYTES_MAX];
	uint32_t opening, length;

	most.protocol = UINT8_MAX;
	most.features = most.path = UINT32_MAX;
	most.rx_buf_bytes = 1 << 30;
	most.rx_buf_count = 65536;
	most.pid = INT32_MAX;
	most.incarnation = most.message_max = UINT64_MAX;
	most.heartbeat_ms = HEARTBEAT_MS_MAX;
	most.dead_after_ms = DEAD_AFTER_MS_MAX;
	most.data[0] = HELLO_DATA_MAX;
	most.program[0] = HELLO_PROGRAM_MAX;
	most.shm[0] = HELLO_SHM_BYTES;
	opening = hello_write(bytes, &most, 0, HELLO_REFUSED);
	assert_int_equal(opening, 35);
	assert_true(opening <= HELLO_OPENING_MAX);
	length = write_all(&most, bytes);
	assert_int_equal(length - opening, 164);
	assert_true(length - opening <= HELLO_REST_MAX);
	assert_null(hello_read(bytes, length, true, &out));
	expect_same(&out, &most);
}

PLX_TEST(unknown_fields_and_zeros_after_the_last_field_are_ignored)
{
	uint8_t bytes[HELLO_BYTES_MAX] = {0};
	struct frame_hello out = {0};
	uint32_t length = hello_write(bytes, &good_hello, 0, HELLO_REFUSED);

	memcpy(bytes + length, "\x0f\3new", 5); /* of the opening */
	length += 5;
	length += hello_write(bytes + length, &good_hello, HELLO_REFUSED, HELLO_TYPES);
	memcpy(bytes + length, "\xff\0", 2);
	assert_null(hello_read(bytes, length + 2, true, &out));
	expect_same(&out, &good_hello);
	memset(bytes + length, 0, 2);
	out = (struct frame_hello){0};
	assert_null(hello_read(bytes, sizeof(bytes), true, &out));
	expect_same(&out, &good_hello);
}

static const char *read_bytes(const void *in, size_t length, bool whole)
{
	struct frame_hello out = {0};

	return hello_read(in, length, whole, &out);
}

/* What a peer of version 1 has as private data: nothing, or the provider's padding. */
PLX_TEST(no_private_data_is_wire_version_1)
{
	assert_string_equal(read_bytes("", 0, false), "it speaks wire version 1, not 2");
	assert_string_equal(read_bytes("\0\0\0", 4, true), "it speaks wire version 1, not 2");
}

/* Each length, in a block of exactly that many bytes. */
PLX_TEST(a_hello_is_not_read_past_its_end)
{
	uint8_t bytes[HELLO_BYTES_MAX];
	uint32_t length = write_all(&good_hello, bytes);

	for (uint32_t cut = 1; cut < length; cut++) {
		uint8_t *block = malloc(cut);

		memcpy(block, bytes, cut);
		read_bytes(block, cut, true);
		free(block);
	}
	assert_string_equal(read_bytes(bytes, length - 1, true), "a field is cut");
	bytes[length - 5] = 200; /* the program's name */
	assert_string_equal(read_bytes(bytes, length, true), "a field is cut");
}

#define PROGRAM_FIELD 24

PLX_TEST(a_field_has_its_length_and_place)
{
	static const struct {
		uint8_t after; /* the fields of good_hello before this one; 0: all */
		const char *bytes;
		uint32_t length;
		const char *wrong; /* NULL: nothing */
	} rows[] = {
		{PROGRAM_FIELD, "", 0, NULL}, /* an older peer does not name its program */
		{0, "\x17\4abcd", 6, "its fields are out of order"}, /* the data again */
		{PROGRAM_FIELD, "\x18\x10sixteen bytes ..", 18, "a field has another length"},
		{PROGRAM_FIELD, "\x18\0", 2, "a field has another length"},
		{0, "\x1a\1a", 3,
		 "a field has another length"}, /* a short offer of shared memory */
	};

	for (size_t i = 0; i < PLX_ARRAY_LEN(rows); i++) {
		uint8_t bytes[HELLO_BYTES_MAX + 24];
		uint32_t length = hello_write(bytes, &good_hello, 0, rows[i].after ?: HELLO_TYPES);
		const char *wrong;

		memcpy(bytes + length, rows[i].bytes, rows[i].length);
		wrong = read_bytes(bytes, length + rows[i].length, true);
		if (rows[i].wrong)
			expect_wrong(i, wrong, rows[i].wrong);
		else
			assert_null(wrong);
	}
}

#define FIELD(name) offsetof(struct frame_hello, name)

PLX_TEST(a_broken_hello_is_refused_with_the_reason)
{
	static const struct {
		size_t offset;
		uint64_t value;
		const char *wrong;
	} rows[] = {
		{FIELD(magic), HELLO_MAGIC - 1, "bad magic"},
		{FIELD(version_min), WIRE_VERSION + 1, "it does not speak wire version 2"},
		{FIELD(version_max), 1, "it does not speak wire version 2"},
		{FIELD(secured), 2, "requires a secured link"},
		{FIELD(rx_buf_bytes), 255, "buffer size"},
		{FIELD(rx_buf_count), 1, "buffer count"},
		{FIELD(rx_buf_count), 65537, "buffer count"},
		{FIELD(pid), (uint64_t)INT32_MAX + 1, "process id out of range"},
		{FIELD(heartbeat_ms), 9, "heartbeat period"},
		{FIELD(heartbeat_ms), HEARTBEAT_MS_MAX + 1, "heartbeat period"},
		{FIELD(dead_after_ms), 399, "silence to bear"},
		{FIELD(dead_after_ms), DEAD_AFTER_MS_MAX + 1, "silence to bear"},
	};

	for (size_t i = 0; i < PLX_ARRAY_LEN(rows); i++) {
		struct frame_hello hello = good_hello;
		uint8_t bytes[HELLO_BYTES_MAX];
		uint32_t length;

		memcpy((char *)&hello + rows[i].offset, &rows[i].value, sizeof(rows[i].value));
		length = write_all(&hello, bytes);
		expect_wrong(i, read_bytes(bytes, length, true), rows[i].wrong);
	}
	assert_string_equal(read_bytes("GET / HTTP/1.1\r\n\r\n", 18, false),
			    "bad magic: it speaks another protocol");
}

PLX_TEST_MAIN()
