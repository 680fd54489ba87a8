/* SPDX-License-Identifier: BSD-3-Clause */
#include "frame.h"

/* Valid payload lengths and flags of each type. */
static const struct {
	uint32_t min, max;
	uint8_t flags; /* known flags */
	const char *wrong;
} types[] = {
	[FRAME_HELLO] = {HELLO_BYTES, UINT32_MAX, 0, "HELLO too short"},
	[FRAME_DATA] = {0, UINT32_MAX, 0, NULL},
	[FRAME_DATA_FIRST] = {FRAME_TOTAL_BYTES + 1, UINT32_MAX, 0,
			      "first part of a message without data"},
	[FRAME_DATA_NEXT] = {1, UINT32_MAX, 0, "empty part of a message"},
	[FRAME_CREDIT] = {0, 0, 0, "control frame with data"},
	[FRAME_FIN] = {0, 0, FRAME_FLAG_ACK, "control frame with data"},
	[FRAME_FIN_ACK] = {0, 0, 0, "control frame with data"},
	[FRAME_HEARTBEAT] = {0, 0, 0, "control frame with data"},
	[FRAME_PUT] = {FRAME_PUT_BYTES, FRAME_PUT_BYTES, 0,
		       "the value of a put has another length"},
	[FRAME_REVOKE] = {FRAME_REVOKE_BYTES, FRAME_REVOKE_BYTES, 0,
			  "the number of a revocation has another length"},
	[FRAME_REVOKED] = {FRAME_REVOKE_BYTES, FRAME_REVOKE_BYTES, 0,
			   "the number of a revocation has another length"},
	[FRAME_REFUSE] = {1, REFUSE_TEXT_MAX, 0, "the reason of a refusal has another length"},
};

const char *frame_read(const uint8_t *in, size_t received, struct frame_header *header_out)
{
	struct frame_header header;

	if (received < FRAME_HEADER_BYTES)
		return "frame shorter than its header";
	header.type = in[0];
	header.flags = in[1];
	header.length = get32(in + 4);
	header.granted_frames = get32(in + 8);
	if (in[2] || in[3])
		return "reserved bits set";
	if (header.length != received - FRAME_HEADER_BYTES)
		return "frame length differs from what arrived";
	*header_out = header;
	if (header.type < FRAME_HELLO || header.type >= PLX_ARRAY_LEN(types))
		return "unknown frame type";
	if (header.length < types[header.type].min || header.length > types[header.type].max)
		return types[header.type].wrong;
	return header.flags & ~types[header.type].flags ? "unknown flags" : NULL;
}

uint32_t hello_write(uint8_t *out, const struct frame_hello *hello)
{
	put32(out, HELLO_MAGIC);
	put32(out + 4, hello->version_min | (uint32_t)hello->version_max << 16);
	put32(out + 8, hello->features);
	put32(out + 12, hello->rx_buf_bytes);
	put64(out + 16, hello->incarnation);
	put64(out + 24, hello->message_max);
	put32(out + 32, hello->rx_buf_count);
	put32(out + 36, hello->heartbeat_ms);
	put32(out + 40, hello->dead_after_ms);
	put32(out + 44, hello->path);
	if (!hello->data_length)
		return HELLO_BYTES;
	put32(out + HELLO_BYTES, hello->data_length);
	memcpy(out + HELLO_BYTES + 4, hello->data, hello->data_length);
	return HELLO_BYTES + 4 + hello->data_length;
}

/* The period and the time-out must both be set or both be 0. If the time-out is too short, a
 * healthy peer would become suspect. */
static const char *check_times(const struct frame_hello *hello)
{
	if (!hello->heartbeat_ms && !hello->dead_after_ms)
		return NULL;
	if (hello->heartbeat_ms < HEARTBEAT_MS_MIN || hello->heartbeat_ms > HEARTBEAT_MS_MAX)
		return "heartbeat period out of range";
	if (hello->dead_after_ms < DEAD_AFTER_HEARTBEATS_MIN * (uint64_t)hello->heartbeat_ms ||
	    hello->dead_after_ms > DEAD_AFTER_MS_MAX)
		return "silence to bear out of range";
	return NULL;
}

/* A HELLO that ends before the length of private data has none. */
static const char *read_data(const uint8_t *in, size_t left, struct frame_hello *hello)
{
	hello->data_length = 0;
	hello->data = NULL;
	if (left == 0)
		return NULL;
	if (left < 4)
		return "cut private data";
	hello->data_length = get32(in);
	hello->data = in + 4;
	if (hello->data_length > HELLO_DATA_MAX)
		return "too much private data";
	return hello->data_length > left - 4 ? "cut private data" : NULL;
}

const char *hello_read(const uint8_t *in, size_t length, struct frame_hello *hello_out)
{
	struct frame_hello hello;
	const char *wrong;

	if (length < HELLO_BYTES)
		return "HELLO too short";
	if (get32(in) != HELLO_MAGIC)
		return "bad magic: the peer does not speak this protocol";
	hello.version_min = (uint16_t)get32(in + 4);
	hello.version_max = get32(in + 4) >> 16;
	hello.features = get32(in + 8);
	hello.rx_buf_bytes = get32(in + 12);
	hello.incarnation = get64(in + 16);
	hello.message_max = get64(in + 24);
	hello.rx_buf_count = get32(in + 32);
	hello.heartbeat_ms = get32(in + 36);
	hello.dead_after_ms = get32(in + 40);
	hello.path = get32(in + 44);
	wrong = read_data(in + HELLO_BYTES, length - HELLO_BYTES, &hello);
	if (wrong)
		return wrong;
	*hello_out = hello;
	if (hello.version_min > hello.version_max || hello.version_min == 0)
		return "broken version range";
	if (hello.version_min > WIRE_VERSION_MAX || hello.version_max < WIRE_VERSION_MIN)
		return "no wire version in common";
	if (hello.rx_buf_bytes < 256 || hello.rx_buf_bytes > (UINT32_C(1) << 30))
		return "receive buffer size out of range";
	if (hello.rx_buf_count < 2 || hello.rx_buf_count > 65536)
		return "receive buffer count out of range";
	return check_times(&hello);
}

/* BUSY ----------------------------------------------------------------------------------------- */

void busy_write(uint64_t again_ns, uint8_t *out)
{
	uint64_t ms = plx_time_add(again_ns, PLX_NS_PER_MS - 1) / PLX_NS_PER_MS;

	put32(out, BUSY_MAGIC);
	put32(out + 4, ms < BUSY_MS_MAX ? (uint32_t)ms : BUSY_MS_MAX);
}

uint64_t busy_read(const uint8_t *in, size_t length)
{
	uint32_t ms;

	if (length < BUSY_BYTES || get32(in) != BUSY_MAGIC)
		return 0;
	ms = get32(in + 4);
	return (ms < 1 ? 1 : ms < BUSY_MS_MAX ? ms : BUSY_MS_MAX) * PLX_NS_PER_MS;
}
