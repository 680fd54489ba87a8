/* SPDX-License-Identifier: BSD-3-Clause */
/* The frame decoder on any bytes: accepted frames survive writing and reading again, and refusals
 * name a reason. */
#include "frame.h"
#include "fuzz.h"

#include <assert.h>

static void check_hello(const uint8_t *payload, size_t length)
{
	struct frame_hello hello, again;
	uint8_t bytes[HELLO_BYTES_MAX];
	uint32_t written;
	const char *wrong = hello_read(payload, length, &hello);

	if (wrong) {
		must(wrong[0] != '\0');
		return;
	}
	must(hello.version_min <= WIRE_VERSION_MAX && hello.version_max >= WIRE_VERSION_MIN);
	must(hello.rx_buf_bytes >= 256 && hello.rx_buf_count >= 2);
	must(hello.data_length <= HELLO_DATA_MAX);
	written = hello_write(bytes, &hello);
	must(written <= length);
	must(memcmp(bytes, payload, written) == 0);
	must(hello_read(bytes, written, &again) == NULL);
	must(again.data_length == hello.data_length);
	must(!hello.heartbeat_ms == !hello.dead_after_ms);
	must(!hello.heartbeat_ms || hello.heartbeat_ms >= HEARTBEAT_MS_MIN);
	must(hello.dead_after_ms >= DEAD_AFTER_HEARTBEATS_MIN * (uint64_t)hello.heartbeat_ms);
	must(hello.dead_after_ms <= DEAD_AFTER_MS_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct frame_header header;
	uint8_t bytes[FRAME_HEADER_BYTES];
	const char *wrong = frame_read(data, size, &header);

	if (wrong) {
		must(wrong[0] != '\0');
		return 0;
	}
	must(header.length == size - FRAME_HEADER_BYTES);
	must(header.type >= FRAME_HELLO && header.type <= FRAME_REFUSE);
	frame_write(bytes, &header);
	must(memcmp(bytes, data, FRAME_RESERVED_AT) == 0);
	if (header.type == FRAME_HELLO)
		check_hello(data + FRAME_HEADER_BYTES, header.length);
	if (header.type == FRAME_PUT) {
		uint8_t value[FRAME_PUT_BYTES];

		put32(value, get32(data + FRAME_HEADER_BYTES));
		must(memcmp(value, data + FRAME_HEADER_BYTES, sizeof(value)) == 0);
	}
	if (header.type == FRAME_DATA_FIRST)
		must(header.length > FRAME_TOTAL_BYTES);
	if (header.type == FRAME_REVOKE || header.type == FRAME_REVOKED ||
	    header.type == FRAME_DATA_FIRST) {
		uint8_t number[FRAME_REVOKE_BYTES];

		static_assert(FRAME_TOTAL_BYTES == FRAME_REVOKE_BYTES, "both are 64 bits");
		put64(number, get64(data + FRAME_HEADER_BYTES));
		must(memcmp(number, data + FRAME_HEADER_BYTES, sizeof(number)) == 0);
	}
	return 0;
}
