/* SPDX-License-Identifier: BSD-3-Clause */
#include "../plx_test.h"

#include "frame.h"

PLX_TEST(an_encoded_header_decodes_to_itself)
{
	struct frame_header in = {FRAME_DATA, 0, 5, 0xfffffff0}, out;
	uint8_t bytes[FRAME_HEADER_BYTES + 5] = {0};

	frame_write(bytes, &in);
	assert_null(frame_read(bytes, sizeof(bytes), &out));
	assert_int_equal(out.type, in.type);
	assert_int_equal(out.length, 5);
	assert_int_equal(out.granted_frames, in.granted_frames);
}

PLX_TEST(the_header_is_little_endian_as_documented)
{
	static const uint8_t golden[FRAME_HEADER_BYTES] = {6,    1,    0,    0,    0, 0, 0, 0,
							   0x04, 0x03, 0x02, 0x01, 0, 0, 0, 0};
	struct frame_header fin = {FRAME_FIN, FRAME_FLAG_ACK, 0, 0x01020304};
	uint8_t bytes[FRAME_HEADER_BYTES];

	frame_write(bytes, &fin);
	assert_memory_equal(bytes, golden, sizeof(golden));
}

PLX_TEST(frames_of_direct_data_placement_are_as_documented)
{
	static const uint8_t value[FRAME_PUT_BYTES] = {4, 3, 2, 1};
	static const uint8_t number[FRAME_REVOKE_BYTES] = {8, 7, 6, 5, 4, 3, 2, 1};
	uint8_t bytes[8];

	put32(bytes, 0x01020304);
	assert_memory_equal(bytes, value, sizeof(value));
	assert_int_equal(get32(value), 0x01020304);
	put64(bytes, 0x0102030405060708);
	assert_memory_equal(bytes, number, sizeof(number));
	assert_int_equal(get64(number), 0x0102030405060708);
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
		{{FRAME_DATA, 0, 0, 0}, 0, "shorter than its header"},
		{{FRAME_DATA, 0, 9, 0}, 24, "length differs"},
		{{FRAME_DATA, 0, UINT32_MAX, 0}, 24, "length differs"},
		{{FRAME_DATA, 2, 8, 0}, 24, "unknown flags"},
		{{0, 0, 8, 0}, 24, "unknown frame type"},
		{{13, 0, 8, 0}, 24, "unknown frame type"},
		{{FRAME_REFUSE, 0, 0, 0}, 16, "another length"},
		{{FRAME_REFUSE, 0, REFUSE_TEXT_MAX + 1, 0}, 137, "another length"},
		{{FRAME_REFUSE, 1, 8, 0}, 24, "unknown flags"},
		{{FRAME_PUT, 0, 8, 0}, 24, "another length"},
		{{FRAME_PUT, 1, 4, 0}, 20, "unknown flags"},
		{{FRAME_REVOKE, 0, 4, 0}, 20, "another length"},
		{{FRAME_REVOKE, 1, 8, 0}, 24, "unknown flags"},
		{{FRAME_REVOKED, 0, 0, 0}, 16, "another length"},
		{{FRAME_CREDIT, 0, 8, 0}, 24, "control frame with data"},
		{{FRAME_CREDIT, 1, 0, 0}, 16, "unknown flags"},
		{{FRAME_FIN, 2, 0, 0}, 16, "unknown flags"},
		{{FRAME_FIN, 0, 8, 0}, 24, "control frame with data"},
		{{FRAME_FIN_ACK, 0, 8, 0}, 24, "control frame with data"},
		{{FRAME_HEARTBEAT, 0, 8, 0}, 24, "control frame with data"},
		{{FRAME_HEARTBEAT, 1, 0, 0}, 16, "unknown flags"},
		{{FRAME_DATA_FIRST, 0, 8, 0}, 24, "without data"},
		{{FRAME_DATA_NEXT, 0, 0, 0}, 16, "empty part"},
		{{FRAME_HELLO, 0, 8, 0}, 24, "HELLO too short"},
	};

	for (size_t i = 0; i < PLX_ARRAY_LEN(rows); i++) {
		uint8_t bytes[256] = {0};
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

PLX_TEST(reserved_bits_must_be_zero)
{
	struct frame_header in = {.type = FRAME_FIN_ACK}, out;
	uint8_t bytes[FRAME_HEADER_BYTES];

	frame_write(bytes, &in);
	bytes[3] = 1;
	assert_string_equal(frame_read(bytes, sizeof(bytes), &out), "reserved bits set");
}

static const struct frame_hello good_hello = {
	.version_min = 1,
	.version_max = 3,
	.features = 5,
	.incarnation = 0x1122334455667788,
	.rx_buf_bytes = 4096,
	.rx_buf_count = 8,
	.message_max = 1 << 20,
	.heartbeat_ms = 100,
	.dead_after_ms = 500,
	.path = 0xcafe,
};

PLX_TEST(an_encoded_hello_decodes_to_itself)
{
	struct frame_hello out;
	uint8_t bytes[HELLO_BYTES + 8] = {0};

	hello_write(bytes, &good_hello);
	assert_null(hello_read(bytes, HELLO_BYTES, &out));
	assert_int_equal(out.incarnation, good_hello.incarnation);
	assert_int_equal(out.version_max, 3);
	assert_int_equal(out.features, 5);
	assert_int_equal(out.rx_buf_bytes, 4096);
	assert_int_equal(out.rx_buf_count, 8);
	assert_int_equal(out.message_max, 1 << 20);
	assert_int_equal(out.heartbeat_ms, 100);
	assert_int_equal(out.dead_after_ms, 500);
	assert_int_equal(out.path, 0xcafe);
	assert_null(hello_read(bytes, HELLO_BYTES + 8, &out)); /* a later version may append */
}

PLX_TEST(private_data_of_an_encoded_hello_decodes_to_itself)
{
	struct frame_hello hello = good_hello, out;
	uint8_t data[HELLO_DATA_MAX], bytes[HELLO_BYTES_MAX + 8] = {0};

	memset(data, 0xa5, sizeof(data));
	hello.data = data;
	for (uint32_t length = 0; length <= HELLO_DATA_MAX; length += HELLO_DATA_MAX / 2) {
		hello.data_length = length;
		uint32_t written = hello_write(bytes, &hello);

		assert_int_equal(written, HELLO_BYTES + (length ? 4 + length : 0));
		assert_null(hello_read(bytes, written, &out));
		assert_int_equal(out.data_length, length);
		if (length)
			assert_memory_equal(out.data, data, length);
	}
	assert_null(hello_read(bytes, sizeof(bytes), &out)); /* a later version may append */
	assert_int_equal(out.data_length, HELLO_DATA_MAX);
}

PLX_TEST(private_data_is_not_read_past_the_end_of_a_hello)
{
	static const uint8_t data[HELLO_DATA_MAX];
	struct frame_hello hello = good_hello, out;
	uint8_t bytes[HELLO_BYTES_MAX];

	hello.data = data;
	hello.data_length = 8;
	hello_write(bytes, &hello);
	for (uint32_t length = HELLO_BYTES + 1; length < HELLO_BYTES + 4 + 8; length++)
		assert_string_equal(hello_read(bytes, length, &out), "cut private data");
	bytes[HELLO_BYTES] = HELLO_DATA_MAX + 1;
	assert_string_equal(hello_read(bytes, sizeof(bytes), &out), "too much private data");
	memset(bytes + HELLO_BYTES, 0xff, 4);
	assert_string_equal(hello_read(bytes, sizeof(bytes), &out), "too much private data");
}

#define FIELD(name) offsetof(struct frame_hello, name), sizeof(good_hello.name)

PLX_TEST(a_broken_hello_is_refused_with_the_reason)
{
	static const struct {
		size_t offset, size;
		uint32_t value;
		const char *wrong;
	} rows[] = {
		{FIELD(version_min), 2, "no wire version in common"},
		{FIELD(version_min), 0, "broken version range"},
		{FIELD(version_max), 0, "broken version range"},
		{FIELD(rx_buf_bytes), 255, "buffer size"},
		{FIELD(rx_buf_bytes), UINT32_MAX, "buffer size"},
		{FIELD(rx_buf_count), 1, "buffer count"},
		{FIELD(heartbeat_ms), 9, "heartbeat period"},
		{FIELD(heartbeat_ms), HEARTBEAT_MS_MAX + 1, "heartbeat period"},
		{FIELD(heartbeat_ms), 0, "heartbeat period"},
		{FIELD(dead_after_ms), 399, "silence to bear"},
		{FIELD(dead_after_ms), DEAD_AFTER_MS_MAX + 1, "silence to bear"},
		{FIELD(dead_after_ms), 0, "silence to bear"},
	};
	uint8_t bytes[HELLO_BYTES];
	struct frame_hello out;

	for (size_t i = 0; i < PLX_ARRAY_LEN(rows); i++) {
		struct frame_hello hello = good_hello;

		memcpy((char *)&hello + rows[i].offset, &rows[i].value, rows[i].size);
		hello_write(bytes, &hello);
		expect_wrong(i, hello_read(bytes, sizeof(bytes), &out), rows[i].wrong);
	}
	hello_write(bytes, &good_hello);
	bytes[0] ^= 1;
	assert_non_null(strstr(hello_read(bytes, sizeof(bytes), &out), "bad magic"));
	assert_non_null(strstr(hello_read(bytes, HELLO_BYTES - 1, &out), "too short"));
}

PLX_TEST_MAIN()
