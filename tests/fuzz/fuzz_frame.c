/* SPDX-License-Identifier: BSD-3-Clause */
/* The frame decoder on any bytes: accepted frames survive writing and reading again, and refusals
 * name a reason. */
#include "frame.h"
#include "fuzz.h"

#include <assert.h>

static void check_hello(const uint8_t *data, size_t size)
{
	struct frame_hello hello = {0}, again = {0};
	uint8_t bytes[HELLO_BYTES_MAX + 2 + REFUSE_TEXT_MAX];
	bool whole = size % 2; /* else it may be the opening alone */
	uint32_t written;
	const char *wrong = hello_read(data, size, whole, &hello);

	if (wrong) {
		must(wrong[0] != '\0');
		return;
	}
	whole = hello_is_whole(&hello) || (whole && !hello.refused[0]);
	must(hello.version_min <= WIRE_VERSION && hello.version_max >= WIRE_VERSION);
	must(!whole || (hello.rx_buf_bytes >= 256 && hello.rx_buf_count >= 2));
	must(hello.data[0] <= HELLO_DATA_MAX && hello.refused[0] <= REFUSE_TEXT_MAX);
	must(hello.program[0] <= HELLO_PROGRAM_MAX && hello.secured <= 1);
	must(!hello.heartbeat_ms == !hello.dead_after_ms);
	must(!hello.heartbeat_ms || hello.heartbeat_ms >= HEARTBEAT_MS_MIN);
	must(hello.dead_after_ms >= DEAD_AFTER_HEARTBEATS_MIN * (uint64_t)hello.heartbeat_ms);
	must(hello.dead_after_ms <= DEAD_AFTER_MS_MAX);
	written = hello_write(bytes, &hello, 0, HELLO_TYPES);
	must(written <= size);
	must(hello_read(bytes, written, whole, &again) == NULL);
	again.newest = hello.newest; /* an unknown field, or a 0 */
	must(memcmp(&hello, &again, sizeof(hello)) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct frame_header header;
	uint8_t bytes[FRAME_HEADER_BYTES];
	const char *wrong;

	check_hello(data, size);
	wrong = frame_read(data, size, &header);

	if (wrong) {
		must(wrong[0] != '\0');
		return 0;
	}
	must(header.length == size - FRAME_HEADER_BYTES);
	must(header.type >= FRAME_HELLO && header.type <= FRAME_REVOKED);
	if (header.type == FRAME_HELLO)
		check_hello(data + FRAME_HEADER_BYTES, header.length);
	frame_write(bytes, &header);
	must(memcmp(bytes, data, 12) == 0); /* the rest is reserved */
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
