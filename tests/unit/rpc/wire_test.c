/* SPDX-License-Identifier: BSD-3-Clause */
/* Greetings and headers: what is written and refused. fuzz_rpc reads and writes any bytes. */
#include "../plx_test.h"

#include "rpc_wire.h"

static const struct rpc_greeting good = {
	.version_min = 1,
	.version_max = 3,
	.role = RPC_SERVER,
	.open_max = 7,
	.payload_max = UINT64_C(0x123456789a),
	.identity = UINT64_C(0xfedcba9876543210),
};

PLX_TEST(an_encoded_greeting_decodes_to_itself)
{
	uint8_t bytes[RPC_GREETING_BYTES + 4];
	struct rpc_greeting again, other = good;

	rpc_greeting_write(bytes, &good);
	assert_null(rpc_greeting_read(bytes, RPC_GREETING_BYTES, RPC_SERVER, &again));
	assert_int_equal(again.version_min, good.version_min);
	assert_int_equal(again.version_max, good.version_max);
	assert_int_equal(again.role, good.role);
	assert_int_equal(again.open_max, good.open_max);
	assert_true(again.payload_max == good.payload_max && again.identity == good.identity);
	assert_null(rpc_greeting_read(bytes, RPC_GREETING_BYTES + 4, RPC_SERVER, &again));
	for (size_t length = 0; length < RPC_GREETING_BYTES; length++)
		assert_non_null(rpc_greeting_read(bytes, length, RPC_SERVER, &again));
	assert_non_null(rpc_greeting_read(bytes, RPC_GREETING_BYTES, RPC_CLIENT, &again));
	bytes[0]++;
	assert_non_null(rpc_greeting_read(bytes, RPC_GREETING_BYTES, RPC_SERVER, &again));

	other.version_min = 2;
	rpc_greeting_write(bytes, &other);
	assert_non_null(rpc_greeting_read(bytes, RPC_GREETING_BYTES, RPC_SERVER, &again));
	other.version_min = other.version_max = 0;
	rpc_greeting_write(bytes, &other);
	assert_non_null(rpc_greeting_read(bytes, RPC_GREETING_BYTES, RPC_SERVER, &again));
}

/* The bytes on the wire. */
PLX_TEST(a_header_is_little_endian)
{
	static const uint8_t expected[RPC_RECORD_BYTES] = {
		1,    9,    0x34, 0x12, 3, 0, 0, 0, 0xef, 0xcd, 0xab, 0x89,
		0x67, 0x45, 0x23, 0x01, 5, 0, 0, 0, 6,    0,    0,    0};
	uint64_t at[RPC_RECORD_BYTES / 8];
	struct rpc_header header = {
		.kind = RPC_REQUEST,
		.flags = 9,
		.version = 0x1234,
		.length = 3,
		.call = UINT64_C(0x0123456789abcdef),
		.method = 5,
		.remaining_us = 6,
	};

	assert_ptr_equal(rpc_header_write(at, &header), (uint8_t *)at + RPC_RECORD_BYTES);
	assert_memory_equal(at, expected, sizeof(expected));
}

PLX_TEST(a_wrong_length_is_refused)
{
	uint64_t batch[4] = {0};
	struct rpc_header header = {.kind = RPC_REQUEST, .length = 9};
	struct rpc_record record;
	const char *wrong;
	size_t offset = 0;

	rpc_header_write(batch, &header);
	assert_false(rpc_record_next((uint8_t *)batch, sizeof(batch), &offset, &record, &wrong));
	assert_non_null(wrong);
	header.length = UINT32_MAX;
	rpc_header_write(batch, &header);
	assert_false(rpc_record_next((uint8_t *)batch, sizeof(batch), &offset, &record, &wrong));
	assert_non_null(wrong);
}

PLX_TEST_MAIN()
