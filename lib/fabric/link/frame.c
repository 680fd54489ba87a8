/* SPDX-License-Identifier: BSD-3-Clause */
#include "frame.h"

#include <assert.h>
#include <stddef.h>

/* Valid payload lengths and flags of each type. */
static const struct {
	uint32_t min, max;
	uint8_t flags; /* known flags */
	const char *wrong;
} types[] = {
	[FRAME_HELLO] = {1, HELLO_BYTES_MAX, 0, "HELLO too short or too long"},
	[FRAME_DATA] = {0, UINT32_MAX, 0, NULL},
	[FRAME_DATA_FIRST] = {FRAME_TOTAL_BYTES + 1, UINT32_MAX, 0,
			      "first part of a message without data"},
	[FRAME_DATA_NEXT] = {1, UINT32_MAX, 0, "empty part of a message"},
	[FRAME_CREDIT] = {0, 0, 0, "control frame with data"},
	[FRAME_FIN] = {0, 0, FRAME_FLAG_ACK, "control frame with data"},
	[FRAME_FIN_ACK] = {0, 0, 0, "control frame with data"},
	[FRAME_HEARTBEAT] = {FRAME_HEARTBEAT_BYTES, FRAME_HEARTBEAT_BYTES, 0,
			     "HEARTBEAT of another length"},
	[FRAME_PUT] = {FRAME_PUT_BYTES, FRAME_PUT_BYTES, 0, "PUT of another length"},
	[FRAME_REVOKE] = {FRAME_REVOKE_BYTES, FRAME_REVOKE_BYTES, 0, "REVOKE of another length"},
	[FRAME_REVOKED] = {FRAME_REVOKE_BYTES, FRAME_REVOKE_BYTES, 0, "REVOKED of another length"},
	[FRAME_TRUST] = {1, 0, 0, "a TRUST frame on a link without trust"}, /* any length */
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

/* HELLO ---------------------------------------------------------------------------------------- */

#define AT(field)  offsetof(struct frame_hello, field)
#define NO_VERSION "it does not speak wire version 2"
static_assert(WIRE_VERSION == 2, "the text names it");

/* By type, in the order of doc/design/wire.md: where the field is kept, its lengths, and of a
 * number its values. */
static const struct {
	uint16_t at;
	uint8_t least, most;
	uint64_t min, max; /* 0: bytes */
	const char *wrong;
} fields[HELLO_TYPES] = {
	[1] = {AT(magic), 4, 4, HELLO_MAGIC, HELLO_MAGIC, "bad magic: it speaks another protocol"},
	{AT(version_min), 2, 2, 1, WIRE_VERSION, NO_VERSION},
	{AT(version_max), 2, 2, WIRE_VERSION, UINT16_MAX, NO_VERSION},
	{AT(secured), 1, 1, 0, 1, "one side alone requires a secured link"},
	{AT(heartbeat_ms), 4, 4, 0, HEARTBEAT_MS_MAX, "heartbeat period out of range"},
	{AT(dead_after_ms), 4, 4, 0, DEAD_AFTER_MS_MAX, "silence to bear out of range"},
	{AT(path), 4, 4, 0, UINT32_MAX, NULL},
	[HELLO_REFUSED] = {AT(refused), 1, REFUSE_TEXT_MAX, 0, 0, NULL},
	{AT(features), 4, 4, 0, UINT32_MAX, NULL},
	{AT(protocol), 1, 1, 0, UINT8_MAX, NULL},
	{AT(rx_buf_bytes), 4, 4, 256, UINT32_C(1) << 30, "receive buffer size out of range"},
	{AT(rx_buf_count), 4, 4, 2, 65536, "receive buffer count out of range"},
	{AT(message_max), 8, 8, 0, UINT64_MAX, NULL},
	{AT(incarnation), 8, 8, 0, UINT64_MAX, NULL},
	{AT(data), 1, HELLO_DATA_MAX, 0, 0, NULL},
	{AT(program), 1, HELLO_PROGRAM_MAX, 0, 0, NULL},
	{AT(pid), 4, 4, 0, HELLO_PID_MAX, "process id out of range"},
	{AT(shm), HELLO_SHM_BYTES, HELLO_SHM_BYTES, 0, 0, NULL},
};

static uint64_t number_at(const struct frame_hello *hello, unsigned type)
{
	uint64_t value;

	memcpy(&value, (const uint8_t *)hello + fields[type].at, sizeof(value));
	return value;
}

uint32_t hello_write(uint8_t *out, const struct frame_hello *hello, uint8_t first, uint8_t end)
{
	uint8_t *at = out, number[1 + 8];

	for (uint8_t type = first; type < end; type++) {
		const uint8_t *kept = (const uint8_t *)hello + fields[type].at;

		if (fields[type].max) {
			number[0] = number_at(hello, type) ? fields[type].most : 0;
			put64(number + 1, number_at(hello, type));
			kept = number;
		}
		if (!fields[type].most || !kept[0])
			continue;
		*at++ = type;
		memcpy(at, kept, 1u + kept[0]);
		at += 1u + kept[0];
	}
	return (uint32_t)(at - out);
}

/* Without heartbeats the silence to bear must be 0. If it is too short, a healthy peer becomes
 * suspect. Absent numbers are 0. */
static const char *hello_check(const struct frame_hello *hello, bool whole)
{
	uint64_t beat_ms = hello->heartbeat_ms, least_ms = DEAD_AFTER_HEARTBEATS_MIN * beat_ms;

	for (unsigned type = 0; type < (whole ? HELLO_TYPES : HELLO_REFUSED); type++) {
		uint64_t value = number_at(hello, type);

		if (fields[type].max && (value < fields[type].min || value > fields[type].max))
			return fields[type].wrong;
	}
	if ((beat_ms || hello->dead_after_ms) && beat_ms < HEARTBEAT_MS_MIN)
		return "heartbeat period out of range";
	return hello->dead_after_ms < least_ms ? "silence to bear out of range" : NULL;
}

static const char *read_field(const uint8_t *in, struct frame_hello *hello)
{
	uint8_t type = in[0], length = in[1], *kept = (uint8_t *)hello, number[8] = {0};

	if (type <= hello->newest)
		return "its fields are out of order";
	hello->newest = type;
	if (type >= HELLO_TYPES || !fields[type].most) /* of a later program */
		return NULL;
	if (length < fields[type].least || length > fields[type].most)
		return "a field has another length";
	kept += fields[type].at;
	if (fields[type].max) {
		memcpy(number, in + 2, length);
		memcpy(kept, &(uint64_t){get64(number)}, sizeof(uint64_t));
	} else {
		memcpy(kept, in + 1, 1u + length);
	}
	return NULL;
}

/* A 0 ends it: providers may pad private data. Types ascend, so at most 255 are read. */
const char *hello_read(const uint8_t *in, size_t length, bool whole, struct frame_hello *hello)
{
	const char *wrong = NULL;

	for (size_t at = 0, bytes; at < length && in[at] && !wrong; at += bytes) {
		bytes = length - at < 2 ? 2 : 2u + in[at + 1];
		wrong = bytes > length - at ? "a field is cut" : read_field(in + at, hello);
	}
	if (!wrong && !hello->newest)
		return "it speaks wire version 1, not 2";
	if (wrong && hello->magic == HELLO_MAGIC)
		return wrong;
	return hello_check(hello, hello_is_whole(hello) || (whole && !hello->refused[0]));
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
