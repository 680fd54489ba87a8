/* SPDX-License-Identifier: BSD-3-Clause */
/* The system calls, and the wire format. */
#include "base_internal.h"
#include "tcp_wire.h"

#include "sys.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

struct tcp_sys tcp_sys = {
	.socket = socket,
	.accept4 = accept4,
	.connect = connect,
	.recv = recv,
	.recvmsg = recvmsg,
	.send = send,
	.sendmsg = sendmsg,
	.shutdown = shutdown,
	.close = close,
	.epoll_ctl = epoll_ctl,
	.epoll_wait = epoll_wait,
};

/* Frames ----------------------------------------------------------------------------------- */

uint32_t wire_write(uint8_t *out, const struct wire_frame *frame)
{
	uint8_t *at = out + WIRE_FRAME_BYTES;

	put64(out, wire_word(frame->kind, frame->flags, frame->length));
	if (wire_has_address(frame->kind)) {
		put64(at, frame->address);
		put64(at + 8, frame->key);
		at += 16;
	}
	if (frame->flags & WIRE_HAS_DATA) {
		put64(at, frame->data);
		at += 8;
	}
	return (uint32_t)(at - out);
}

uint32_t wire_check(uint64_t word)
{
	uint8_t kind = (uint8_t)(word >> 32), flags = (uint8_t)(word >> 40);
	bool may_have_data = kind == WIRE_MESSAGE || kind == WIRE_WRITE;

	if (word >> 48 != WIRE_MARK || kind < WIRE_MESSAGE || kind > WIRE_READ_DATA ||
	    (uint32_t)word > WIRE_LENGTH_MAX || flags & ~(may_have_data ? WIRE_HAS_DATA : 0))
		return 0;
	return wire_header_bytes(kind, flags);
}

void wire_read(const uint8_t *from, struct wire_frame *frame_out)
{
	uint64_t word = get64(from);
	struct wire_frame frame = {
		.length = (uint32_t)word,
		.kind = (uint8_t)(word >> 32),
		.flags = (uint8_t)(word >> 40),
	};

	from += WIRE_FRAME_BYTES;
	if (wire_has_address(frame.kind)) {
		frame.address = get64(from);
		frame.key = get64(from + 8);
		from += 16;
	}
	if (frame.flags & WIRE_HAS_DATA)
		frame.data = get64(from);
	*frame_out = frame;
}

/* HELLO ------------------------------------------------------------------------------------ */

/* The first byte is neither text nor a known type of another protocol. The newline detects line-end
 * translation. */
static const uint8_t magic[8] = {0x93, 'P', 'L', 'X', 'T', 'C', 'P', '\n'};

/* magic, version, kind, private data length (16 bits), features (32 bits: none yet). */
size_t wire_write_hello(uint8_t *out, enum wire_hello_kind kind, const void *data, size_t length)
{
	memset(out, 0, WIRE_HELLO_BYTES);
	memcpy(out, magic, sizeof(magic));
	out[8] = WIRE_VERSION;
	out[9] = (uint8_t)kind;
	put16(out + 10, (uint16_t)length);
	if (length)
		memcpy(out + WIRE_HELLO_BYTES, data, length);
	return WIRE_HELLO_BYTES + length;
}

int wire_say(int fd, enum wire_hello_kind kind, const void *data, size_t length)
{
	uint8_t hello[WIRE_HELLO_MOST];
	size_t bytes = wire_write_hello(hello, kind, data, length);
	ssize_t sent = tcp_sys.send(fd, hello, bytes, MSG_DONTWAIT | MSG_NOSIGNAL);

	if (sent < 0)
		return -errno;
	return sent == (ssize_t)bytes ? 0 : -FI_ECONNABORTED;
}

/* Check the bytes so far. A later version may add fields after the magic and the version. */
static enum wire_heard check(const struct wire_hello *hello)
{
	size_t begun = hello->have < sizeof(magic) ? hello->have : sizeof(magic);

	if (memcmp(hello->bytes, magic, begun) != 0)
		return HEARD_STRANGER;
	if (hello->have > 8 && hello->bytes[8] != WIRE_VERSION)
		return HEARD_VERSION;
	if (hello->have < WIRE_HELLO_BYTES)
		return HEARD_PART;
	if (hello->bytes[9] < WIRE_CONNECT || hello->bytes[9] > WIRE_REJECT ||
	    wire_hello_length(hello) > PROV_CM_DATA_MAX)
		return HEARD_STRANGER;
	return hello->have == WIRE_HELLO_BYTES + wire_hello_length(hello) ? HEARD_WHOLE
									  : HEARD_PART;
}

static size_t whole_bytes(const struct wire_hello *hello)
{
	return WIRE_HELLO_BYTES + (hello->have < WIRE_HELLO_BYTES ? 0 : wire_hello_length(hello));
}

enum wire_heard wire_hear(int fd, struct wire_hello *hello)
{
	enum wire_heard heard;

	do {
		ssize_t got = tcp_sys.recv(fd, hello->bytes + hello->have,
					   whole_bytes(hello) - hello->have, MSG_DONTWAIT);

		if (got < 0 && (errno == EAGAIN || errno == EINTR))
			return HEARD_PART;
		if (got <= 0)
			return HEARD_END;
		hello->have += (uint16_t)got;
		heard = check(hello);
	} while (heard == HEARD_PART);
	return heard;
}

/* The request of libfabric's TCP providers: version 3, then zeros. */
static bool is_libfabric(const struct wire_hello *hello)
{
	static const uint8_t request[WIRE_HELLO_BYTES] = {3};

	return hello->have == sizeof(request) &&
	       memcmp(hello->bytes, request, sizeof(request)) == 0;
}

const char *wire_describe(const struct wire_hello *hello, enum wire_heard heard, char *out)
{
	const char *sound = plx_sounds_like(hello->bytes, hello->have);

	if (is_libfabric(hello))
		sound = "the protocol of libfabric's own TCP provider";
	if (heard == HEARD_VERSION)
		snprintf(out, WIRE_TEXT_BYTES,
			 "it speaks version %u of plx_tcp's protocol, and this side version %d",
			 hello->bytes[8], WIRE_VERSION);
	else if (sound)
		snprintf(out, WIRE_TEXT_BYTES, "it speaks %s, not plx_tcp's protocol", sound);
	else
		snprintf(out, WIRE_TEXT_BYTES, "it does not speak plx_tcp's protocol");
	return out;
}
