/* SPDX-License-Identifier: BSD-3-Clause */
/* The wire format: a HELLO each way, then frames. All numbers are little-endian; doc/design/tcp.md
 * describes the format. */
#ifndef TCP_WIRE_H
#define TCP_WIRE_H

#include "../prov/prov.h"

#include <bytes.h>

#define WIRE_VERSION     1
#define WIRE_FRAME_BYTES 8  /* of a header, at least */
#define WIRE_FRAME_MOST  32 /* of a header with all optional fields */
#define WIRE_HELLO_BYTES 16 /* before the private data */
#define WIRE_HELLO_MOST  (WIRE_HELLO_BYTES + PROV_CM_DATA_MAX)
#define WIRE_LENGTH_MAX  UINT64_C(0x7fffffff) /* payload of a frame */
#define WIRE_READS_MAX   64                   /* reads in flight per direction */

/* Frames ----------------------------------------------------------------------------------- */

enum wire_kind {
	WIRE_MESSAGE = 1, /* consumes a posted receive */
	WIRE_WRITE,       /* is stored in memory that this side registered */
	WIRE_READ,        /* requests `length` bytes of such memory; no payload */
	WIRE_READ_DATA,   /* answers the oldest unanswered WIRE_READ */
};

#define WIRE_HAS_DATA 1 /* flag: 8 bytes of data for the completion (FI_REMOTE_CQ_DATA) */

struct wire_frame {
	uint32_t length; /* of the payload; for WIRE_READ, of the request */
	uint8_t kind;    /* enum wire_kind */
	uint8_t flags;
	uint64_t data;         /* if WIRE_HAS_DATA */
	uint64_t address, key; /* WIRE_WRITE, WIRE_READ */
};

#define WIRE_MARK 0x7063u /* in each header, to detect a lost frame boundary */

/* The first 8 bytes of a header, as one number. */
static inline uint64_t wire_word(uint8_t kind, uint8_t flags, uint64_t length)
{
	return length | (uint64_t)kind << 32 | (uint64_t)flags << 40 | (uint64_t)WIRE_MARK << 48;
}

/* Whether the word starts a message without data of at most `most` bytes. */
static inline bool wire_is_plain(uint64_t word, uint64_t most)
{
	return word - wire_word(WIRE_MESSAGE, 0, 0) <= most;
}

static inline bool wire_has_address(uint8_t kind)
{
	return kind == WIRE_WRITE || kind == WIRE_READ;
}

static inline uint32_t wire_header_bytes(uint8_t kind, uint8_t flags)
{
	return WIRE_FRAME_BYTES + (flags & WIRE_HAS_DATA ? 8 : 0) +
	       (wire_has_address(kind) ? 16 : 0);
}

/* Write a header. out: WIRE_FRAME_MOST. Return: its size. */
uint32_t wire_write(uint8_t *out, const struct wire_frame *frame);
/* The size of the header that starts with this word. Return: 0: invalid. */
uint32_t wire_check(uint64_t word);
/* Read a header of the size that wire_check returned. */
void wire_read(const uint8_t *from, struct wire_frame *frame_out);

/* HELLO ------------------------------------------------------------------------------------ */

enum wire_hello_kind {
	WIRE_CONNECT = 1,
	WIRE_ACCEPT,
	WIRE_REJECT,
};

/* An incoming HELLO, in pieces. */
struct wire_hello {
	uint16_t have; /* bytes */
	uint8_t bytes[WIRE_HELLO_MOST];
};

enum wire_heard {
	HEARD_PART, /* incomplete so far */
	HEARD_WHOLE,
	HEARD_END,      /* the peer closed */
	HEARD_STRANGER, /* not a HELLO of this protocol */
	HEARD_VERSION,  /* a HELLO of another version */
};

/* out: WIRE_HELLO_MOST. Return: its size. */
size_t wire_write_hello(uint8_t *out, enum wire_hello_kind kind, const void *data, size_t length);
/* Send one on a new socket, which has room for all of it. Return: 0; -errno: it was not sent. */
int wire_say(int fd, enum wire_hello_kind kind, const void *data, size_t length);
/* Take the HELLO's available bytes, and none after it. */
enum wire_heard wire_hear(int fd, struct wire_hello *hello);

#define WIRE_TEXT_BYTES 128
/* What is wrong with HEARD_STRANGER or HEARD_VERSION: "it speaks HTTP". Return: out. */
const char *wire_describe(const struct wire_hello *hello, enum wire_heard heard, char *out);

static inline enum wire_hello_kind wire_hello_kind(const struct wire_hello *hello)
{
	return (enum wire_hello_kind)hello->bytes[9];
}

static inline const uint8_t *wire_hello_data(const struct wire_hello *hello)
{
	return hello->bytes + WIRE_HELLO_BYTES;
}

static inline uint32_t wire_hello_length(const struct wire_hello *hello)
{
	return get16(hello->bytes + 10);
}

#endif
