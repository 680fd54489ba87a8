/* SPDX-License-Identifier: BSD-3-Clause */
/* The wire format of doc/design/wire.md: the only code that encodes or decodes frames. It works on
 * bytes alone, so that a fuzzer can drive it. */
#ifndef PLX_FRAME_H
#define PLX_FRAME_H

#include "bytes.h"
#include "plx_base.h"

#define FRAME_HEADER_BYTES    16
#define FRAME_TOTAL_BYTES     8   /* message length, at the start of a DATA_FIRST payload */
#define FRAME_PUT_BYTES       4   /* PUT: its sender's value */
#define FRAME_REVOKE_BYTES    8   /* REVOKE and REVOKED: a random number */
#define FRAME_HEARTBEAT_BYTES 16  /* two times; 0 for now */
#define HELLO_OPENING_MAX     40  /* its first part, and */
#define HELLO_REST_MAX        216 /* its second: together the private data of our providers */
#define HELLO_BYTES_MAX       (HELLO_OPENING_MAX + HELLO_REST_MAX)
#define HELLO_DATA_MAX        64 /* of the protocol above */
#define HELLO_PROGRAM_MAX     15 /* as the kernel's comm */
#define HELLO_PID_MAX         INT32_MAX
#define HELLO_SHM_BYTES       32 /* a folder's id and a nonce, 16 bytes each */
#define REFUSE_TEXT_MAX       120
#define REFUSE_SHORT_MAX      39 /* with the opening's first three fields 55 bytes */
#define HELLO_MAGIC           UINT32_C(0x504c5832) /* "PLX2" */
/* Limits, if there are heartbeats. */
#define HEARTBEAT_MS_MIN          UINT64_C(10)
#define HEARTBEAT_MS_MAX          UINT64_C(3600000) /* 1 hour */
#define DEAD_AFTER_HEARTBEATS_MIN 4
#define DEAD_AFTER_MS_MAX         UINT64_C(86400000) /* 1 day */
#define WIRE_VERSION              2                  /* the only one */

/* Private data of a rejection by a listener that has no room. */
#define BUSY_BYTES  8
#define BUSY_MAGIC  UINT32_C(0x79737562) /* "busy" */
#define BUSY_MS_MAX 10000                /* a peer cannot keep this side waiting for longer */

enum frame_type {
	FRAME_HELLO = 1,
	FRAME_DATA = 2,       /* a whole message */
	FRAME_DATA_FIRST = 3, /* first part of a longer message */
	FRAME_DATA_NEXT = 4,  /* a further part; the message's length shows which is the last */
	FRAME_CREDIT = 5,     /* only the grant in its header */
	FRAME_FIN = 6,        /* the sender has sent its last message */
	FRAME_FIN_ACK = 7,    /* the other side has received it */
	FRAME_HEARTBEAT = 8,  /* the sender is alive and had nothing else to send */
	/* Direct data placement, if both sides have it: */
	FRAME_PUT = 9,      /* the sender has written to the receiver's memory */
	FRAME_REVOKE = 10,  /* the sender has revoked a grant and waits for REVOKED */
	FRAME_REVOKED = 11, /* acknowledges REVOKE */
	FRAME_TRUST = 12,   /* reserved; refused */
};

/* Feature bits of a HELLO. */
#define FEATURE_DIRECT UINT32_C(0x1) /* remote memory can be granted and used */

/* From the acceptor: its process has a self-test service. From the connector: the link is for that
 * service, not for the listener. */
#define FEATURE_SELF_TEST UINT32_C(0x2)

#define FRAME_FLAG_ACK    0x01 /* FIN: also acknowledges the peer's FIN */

struct frame_header {
	uint8_t type;
	uint8_t flags;
	uint32_t length;         /* payload bytes after the header */
	uint32_t granted_frames; /* total message frames its receiver may send, mod 2^32 */
};

/* Fields of a HELLO: numbers, and bytes after their length. 0 and empty fields are not sent. The
 * types, lengths and values are in frame.c. */
struct frame_hello {
	/* The opening. secured is reserved: 0 off, 1 offered, 2 required. */
	uint64_t magic, version_min, version_max, secured;
	uint64_t heartbeat_ms;  /* requested heartbeat period; 0: no heartbeats */
	uint64_t dead_after_ms; /* silence after which it gives up the peer; 0: never */
	uint64_t path;          /* connector's: equal for links on the same path */
	/* The rest. shm is reserved. */
	uint64_t features, protocol;
	uint64_t rx_buf_bytes; /* longest frame this side receives, header included */
	uint64_t rx_buf_count; /* message frames it can hold: the first grant */
	uint64_t message_max;  /* longest message it accepts */
	uint64_t incarnation;
	uint8_t data[1 + HELLO_DATA_MAX];       /* private data of the protocol above */
	uint8_t program[1 + HELLO_PROGRAM_MAX]; /* any bytes */
	uint64_t pid;
	uint8_t shm[1 + HELLO_SHM_BYTES];
	uint8_t refused[1 + REFUSE_TEXT_MAX]; /* instead of the rest: why */
	uint8_t newest;                       /* type of the last field read */
};

#define HELLO_REFUSED 16 /* types before it: the opening; from it on: the rest */
#define HELLO_TYPES   27

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

/** Whether the bytes are a whole message without flags, as most frames are. Sets *header_out only
 * if so. */
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

/** Decode and check the frame of `received` bytes at `in`. Return: NULL, or the reason it is
 * invalid. */
const char *frame_read(const uint8_t *in, size_t received, struct frame_header *header_out);

/** Write fields of types from first to before end. out has room for HELLO_BYTES_MAX. Return: their
 * length. */
uint32_t hello_write(uint8_t *out, const struct frame_hello *hello, uint8_t first, uint8_t end);

/** Decode and check fields that follow those in *hello. Unknown ones are ignored. whole: the rest
 * must be there, or `refused`. Return: NULL, or the reason they are invalid. */
const char *hello_read(const uint8_t *in, size_t length, bool whole, struct frame_hello *hello);

/** Whether the rest was read, not only the opening. */
static inline bool hello_is_whole(const struct frame_hello *hello)
{
	return hello->newest > HELLO_REFUSED;
}

/** Write when a rejected peer may come again, to out, which has room for BUSY_BYTES. */
void busy_write(uint64_t again_ns, uint8_t *out);

/** Return: when to come again, in ns; 0: the rejection is for another reason. */
uint64_t busy_read(const uint8_t *in, size_t length);

#endif
