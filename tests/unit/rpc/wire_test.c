/* SPDX-License-Identifier: BSD-3-Clause */
/* The layout of greetings and headers. fuzz_rpc reads and writes any bytes. */
#include "../plx_test.h"

#include "rpc_wire.h"

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

PLX_TEST(a_greeting_is_little_endian)
{
	static const uint8_t expected[RPC_GREETING_BYTES] = {
		'P', 'R', 'P',  'C',  1,    3,    RPC_SERVER, 0,    7,    0,    0,
		0,   8,   0,    0,    0,    0x9a, 0x78,       0x56, 0x34, 0x12, 0,
		0,   0,   0x10, 0x32, 0x54, 0x76, 0x98,       0xba, 0xdc, 0xfe};
	const struct rpc_greeting greeting = {
		.version_min = 1,
		.version_max = 3,
		.role = RPC_SERVER,
		.open_max = 7,
		.key_ms = 8,
		.payload_max = UINT64_C(0x123456789a),
		.identity = UINT64_C(0xfedcba9876543210),
	};
	uint8_t bytes[RPC_GREETING_BYTES];

	rpc_greeting_write(bytes, &greeting);
	assert_memory_equal(bytes, expected, sizeof(expected));
}

PLX_TEST_MAIN()
