/* SPDX-License-Identifier: BSD-3-Clause */
/* The wire format, written down in doc/design/wire.md: what a frame is, and the only code that
 * reads or writes one. Needs nothing but bytes, so that a fuzzer can drive it. */
#ifndef PLX_FRAME_H
#define PLX_FRAME_H

#include "plx_base.h"

#include <endian.h>
#include <string.h>

#define FRAME_HEADER_BYTES 16
#define FRAME_TOTAL_BYTES  8  /* a DATA_FIRST frame's payload begins with the message's length */
#define FRAME_PUT_BYTES    4  /* a PUT frame: the value that its sender gave */
#define FRAME_REVOKE_BYTES 8  /* a REVOKE, and its answer: a random number */
#define HELLO_BYTES        48 /* without private data */
#define HELLO_DATA_MAX     64 /* bytes of that, after 4 bytes for its length */
#define HELLO_BYTES_MAX    (HELLO_BYTES + 4 + HELLO_DATA_MAX)
#define REFUSE_TEXT_MAX    120
#define HELLO_MAGIC        UINT32_C(0x504c5831) /* "PLX1" */
/* Where there are heartbeats. */
#define HEARTBEAT_MS_MIN          UINT64_C(10)
#define HEARTBEAT_MS_MAX          UINT64_C(3600000) /* an hour */
#define DEAD_AFTER_HEARTBEATS_MIN 4
#define DEAD_AFTER_MS_MAX         UINT64_C(86400000) /* a day */
#define WIRE_VERSION_MIN          1
#define WIRE_VERSION_MAX          1

enum frame_type {
	FRAME_HELLO = 1,
	FRAME_DATA = 2,       /* a whole message */
	FRAME_DATA_FIRST = 3, /* the first part of one that needs several */
	FRAME_DATA_NEXT = 4,  /* a further part; the message's length tells which is the last */
	FRAME_CREDIT = 5,     /* only the grants of its header */
	FRAME_FIN = 6,        /* the sender has sent its last message */
	FRAME_FIN_ACK = 7,    /* and the other side has received it */
	FRAME_HEARTBEAT = 8,  /* the sender is alive, and had nothing else to say */
	/* Of direct data placement, where both have it: */
	FRAME_PUT = 9,      /* the sender has written into the receiver's memory */
	FRAME_REVOKE = 10,  /* the sender has taken a grant back, and asks for an answer */
	FRAME_REVOKED = 11, /* the answer to that */
	FRAME_REFUSE = 12,  /* the sender refuses the link; the payload is the reason as text */
};

/* Feature bits of a HELLO. */
#define FEATURE_DIRECT UINT32_C(0x1) /* memory may be granted to the peer, and the peer's used */

/* Of who accepts a link: its process has a self-test service. Of who connects: the link is for
 * that, and not for who listens there. */
#define FEATURE_SELF_TEST UINT32_C(0x2)

/* Bits 8 to 15 are a number: what is spoken above, 0 where that is not said. */
#define FEATURE_PROTOCOL_SHIFT 8
#define FEATURE_PROTOCOL_MASK  UINT32_C(0xff00)

#define FRAME_FLAG_ACK         0x01 /* of a FIN: it acknowledges the peer's FIN as well */

#define FRAME_RESERVED_AT      12 /* the last bytes of a header are written as 0, and not looked at */

struct frame_header {
	uint8_t type;
	uint8_t flags;
	uint32_t length;         /* payload bytes behind the header */
	uint32_t granted_frames; /* message frames the receiver of this may ever send, mod 2^32 */
};

struct frame_hello {
	uint16_t version_min, version_max;
	uint32_t features;
	uint64_t incarnation;
	uint32_t rx_buf_bytes;  /* longest frame this side receives, header included */
	uint32_t rx_buf_count;  /* message frames it can hold */
	uint64_t message_max;   /* longest message it accepts */
	uint32_t heartbeat_ms;  /* how often it would like to hear something; 0: no heartbeats */
	uint32_t dead_after_ms; /* silence after which it gives the peer up; 0: never */
	uint32_t path;          /* of a connector: links of one number go by one path */
	uint32_t data_length;   /* private data of the protocol above, at most HELLO_DATA_MAX */
	const uint8_t *data;    /* read: in the payload */
};

/** Write a header: FRAME_HEADER_BYTES at out. */
static inline void frame_write(uint8_t *out, const struct frame_header *header)
{
	uint64_t words[2] = {
		htole64(header->type | (uint64_t)header->flags << 8 |
			(uint64_t)header->length << 32),
		htole64(header->granted_frames),
	};

	memcpy(out, words, sizeof(words));
}

/** Whether they are a whole message without flags, as most frames are; only then *header_out is
 * set.
 */
static inline bool frame_read_whole(const uint8_t *in, size_t received,
				    struct frame_header *header_out)
{
	uint32_t length = (uint32_t)(received - FRAME_HEADER_BYTES);
	uint64_t words[2];

	if (plx_unlikely(received < FRAME_HEADER_BYTES))
		return false;
	memcpy(words, in, sizeof(words));
	if (plx_unlikely(le64toh(words[0]) != (FRAME_DATA | (uint64_t)length << 32)))
		return false;
	*header_out = (struct frame_header){
		.type = FRAME_DATA,
		.length = length,
		.granted_frames = (uint32_t)le64toh(words[1]),
	};
	return true;
}

/** Read and check what `received` bytes at `in` say they are. Return: NULL, or what is wrong. */
const char *frame_read(const uint8_t *in, size_t received, struct frame_header *header_out);

/** Write a HELLO's payload at out, which has room for HELLO_BYTES_MAX. Return: its length. */
uint32_t hello_write(uint8_t *out, const struct frame_hello *hello);

/** Read and check a HELLO's payload. Return: NULL, or what is wrong. */
const char *hello_read(const uint8_t *in, size_t length, struct frame_hello *hello_out);

/* Numbers: the length that a DATA_FIRST begins with, and the number of a REVOKE, have 64 bits, the
 * value of a PUT 32. memcpy, as a frame may begin at any address; compilers make one move of it. */
static inline void frame_put32(uint8_t *out, uint32_t value)
{
	value = htole32(value);
	memcpy(out, &value, sizeof(value));
}

static inline void frame_put64(uint8_t *out, uint64_t value)
{
	value = htole64(value);
	memcpy(out, &value, sizeof(value));
}

static inline uint32_t frame_get32(const uint8_t *in)
{
	uint32_t value;

	memcpy(&value, in, sizeof(value));
	return le32toh(value);
}

static inline uint64_t frame_get64(const uint8_t *in)
{
	uint64_t value;

	memcpy(&value, in, sizeof(value));
	return le64toh(value);
}

#endif
