/* SPDX-License-Identifier: BSD-3-Clause */
#include "frame.h"

/* memcpy, as a frame may begin at any address; compilers make one move of it. */
static void put16(uint8_t *out, uint16_t value)
{
	value = htole16(value);
	memcpy(out, &value, sizeof(value));
}

static void put32(uint8_t *out, uint32_t value)
{
	value = htole32(value);
	memcpy(out, &value, sizeof(value));
}

static void put64(uint8_t *out, uint64_t value)
{
	value = htole64(value);
	memcpy(out, &value, sizeof(value));
}

static uint16_t get16(const uint8_t *in)
{
	uint16_t value;

	memcpy(&value, in, sizeof(value));
	return le16toh(value);
}

static uint32_t get32(const uint8_t *in)
{
	uint32_t value;

	memcpy(&value, in, sizeof(value));
	return le32toh(value);
}

static uint64_t get64(const uint8_t *in)
{
	uint64_t value;

	memcpy(&value, in, sizeof(value));
	return le64toh(value);
}

static const char *check_type(const struct frame_header *header)
{
	switch (header->type) {
	case FRAME_DATA:
		return header->flags ? "unknown flags" : NULL;
	case FRAME_DATA_FIRST:
		if (header->length <= FRAME_TOTAL_BYTES)
			return "first part of a message without data";
		return header->flags ? "unknown flags" : NULL;
	case FRAME_DATA_NEXT:
		if (header->length == 0)
			return "empty part of a message";
		return header->flags ? "unknown flags" : NULL;
	case FRAME_HELLO:
		if (header->length < HELLO_BYTES)
			return "HELLO too short";
		return header->flags ? "unknown flags" : NULL;
	case FRAME_REFUSE:
		if (header->length == 0 || header->length > REFUSE_TEXT_MAX)
			return "the reason of a refusal has another length";
		return header->flags ? "unknown flags" : NULL;
	case FRAME_FIN:
		if (header->flags & ~FRAME_FLAG_ACK)
			return "unknown flags";
		return header->length ? "control frame with data" : NULL;
	case FRAME_CREDIT:
	case FRAME_FIN_ACK:
	case FRAME_HEARTBEAT:
		if (header->flags)
			return "unknown flags";
		return header->length ? "control frame with data" : NULL;
	case FRAME_PUT:
		if (header->length != FRAME_PUT_BYTES)
			return "the value of a put has another length";
		return header->flags ? "unknown flags" : NULL;
	case FRAME_REVOKE:
	case FRAME_REVOKED:
		if (header->length != FRAME_REVOKE_BYTES)
			return "the number of a revocation has another length";
		return header->flags ? "unknown flags" : NULL;
	default:
		return "unknown frame type";
	}
}

const char *frame_read(const uint8_t *in, size_t received, struct frame_header *header_out)
{
	struct frame_header header;

	if (received < FRAME_HEADER_BYTES)
		return "frame shorter than its header";
	header.type = in[0];
	header.flags = in[1];
	header.length = get32(in + 4);
	header.granted_frames = get32(in + 8);
	if (get16(in + 2) != 0)
		return "reserved bits set";
	if (header.length != received - FRAME_HEADER_BYTES)
		return "frame length differs from what arrived";
	*header_out = header;
	return check_type(&header);
}

uint32_t hello_write(uint8_t *out, const struct frame_hello *hello)
{
	put32(out, HELLO_MAGIC);
	put16(out + 4, hello->version_min);
	put16(out + 6, hello->version_max);
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

/* A period without an end means nothing, nor the other way round; and where the end is too near, a
 * peer that is well would be suspect. */
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

/* A HELLO without a length of private data has none. */
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
	hello.version_min = get16(in + 4);
	hello.version_max = get16(in + 6);
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

uint64_t frame_total_read(const uint8_t *in)
{
	return get64(in);
}

void frame_total_write(uint8_t *out, uint64_t total)
{
	put64(out, total);
}

uint32_t frame_put_read(const uint8_t *in)
{
	return get32(in);
}

void frame_put_write(uint8_t *out, uint32_t value)
{
	put32(out, value);
}

uint64_t frame_revoke_read(const uint8_t *in)
{
	return get64(in);
}

void frame_revoke_write(uint8_t *out, uint64_t number)
{
	put64(out, number);
}
