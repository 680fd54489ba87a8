/* SPDX-License-Identifier: BSD-3-Clause */
/* The wire format of requests and replies. All numbers are little-endian; doc/design/rpc.md has the
 * reasons. The private data of both HELLOs is a greeting; each message is a batch of records:
 *
 *     greeting   0 "PRPC", 4 minimum and 5 maximum version, 6 role, 7 zero,
 *                8 how many requests the peer may have open (32 bits), 12 services only:
 *                how long it remembers keys, in ms (32 bits), 16 longest payload
 *                accepted (64 bits), 24 identity: a random number (64 bits)
 *                A message of more than 4080 bytes is one record.
 *     record     0 kind, 1 flags, 2 version of the method (16 bits), 4 length of the payload (32),
 *                8 call (64 bits), 16 and 20 two numbers (32 bits each), 24 payload, padding to a
 *                multiple of 8 if another record follows
 *
 *     REQUEST    16 method, 20 time left in us (UINT32_MAX: no deadline); with the flag KEY the
 *                payload starts with a 64-bit key of the client: the request runs once
 *     REPLY      1 status, 16 handler time in ns (0: no handler ran; UINT32_MAX: that or more),
 *                20 ERROR: the application's code; other statuses: retry after this many us
 *     CANCEL     empty; the only answer is the reply
 *     DRAIN      empty, without a call: send no new requests */
#ifndef PLX_RPC_WIRE_H
#define PLX_RPC_WIRE_H

#include "plx_base.h"

#include <endian.h>
#include <string.h>

#define RPC_VERSION_MIN    1
#define RPC_VERSION_MAX    1
#define RPC_GREETING_BYTES 32
#define RPC_RECORD_BYTES   24
#define RPC_ALIGN          8
#define RPC_NO_DEADLINE_US UINT32_MAX
#define RPC_FLAG_KEY       0x01 /* of a request */
#define RPC_KEY_BYTES      8

/* The longest message of several records: one frame on a link whose peer has receive buffers of the
 * default size. So a message that waits at a service is short, or is a single request. */
#define RPC_BATCH_BYTES 4080

enum rpc_role { RPC_CLIENT = 1, RPC_SERVER = 2 };
enum rpc_kind { RPC_REQUEST = 1, RPC_REPLY, RPC_CANCEL, RPC_DRAIN };

/* As in a HELLO, but in host byte order and without the magic number. */
struct rpc_greeting {
	uint8_t magic[4];
	uint8_t version_min, version_max, role, zero;
	uint32_t open_max;
	uint32_t key_ms;
	uint64_t payload_max;
	uint64_t identity;
};

/* As in a message, at a multiple of 8 bytes. */
struct rpc_header {
	uint8_t kind;
	union {
		uint8_t flags;  /* REQUEST */
		uint8_t status; /* REPLY */
	};
	uint16_t version;
	uint32_t length;
	uint64_t call;
	union {
		uint32_t method;     /* REQUEST */
		uint32_t handler_ns; /* REPLY */
	};
	union {
		uint32_t remaining_us; /* REQUEST */
		uint32_t code;         /* REPLY with status ERROR */
		uint32_t retry_us;     /* REPLY with another status */
	};
};

struct rpc_record {
	struct rpc_header header; /* in host byte order */
	const uint8_t *payload;
};

void rpc_greeting_write(uint8_t out[RPC_GREETING_BYTES], const struct rpc_greeting *greeting);
/* role: that of the expected sender. Return: NULL, or the error as text. */
const char *rpc_greeting_read(const uint8_t *data, size_t length, enum rpc_role role,
			      struct rpc_greeting *out);

/* The size of a record in a batch. */
static inline size_t rpc_record_bytes(size_t payload)
{
	return (RPC_RECORD_BYTES + payload + RPC_ALIGN - 1) & ~(size_t)(RPC_ALIGN - 1);
}

/* Convert between host and wire byte order; the conversion is symmetric. */
static inline struct rpc_header rpc_header_convert(const struct rpc_header *header)
{
	return (struct rpc_header){
		.kind = header->kind,
		.flags = header->flags,
		.version = htole16(header->version),
		.length = htole32(header->length),
		.call = htole64(header->call),
		.method = htole32(header->method),
		.remaining_us = htole32(header->remaining_us),
	};
}

/* Return: where the payload starts. */
static inline uint8_t *rpc_header_write(void *at, const struct rpc_header *header)
{
	*(struct rpc_header *)at = rpc_header_convert(header);
	return (uint8_t *)at + RPC_RECORD_BYTES;
}

/* Read the record at *offset of a batch of `length` bytes, and advance *offset to the next. The
 * batch must be at a multiple of 8. Return: whether there is a record; if not, *wrong_out is NULL
 * at the end of the batch, or the error as text. */
static inline bool rpc_record_next(const uint8_t *batch, size_t length, size_t *offset,
				   struct rpc_record *out, const char **wrong_out)
{
	size_t left = length - *offset;
	const struct rpc_header *in = (const struct rpc_header *)(batch + *offset);

	*wrong_out = NULL;
	if (left == 0)
		return false;
	if (plx_unlikely(left < RPC_RECORD_BYTES ||
			 le32toh(in->length) > left - RPC_RECORD_BYTES)) {
		*wrong_out = "a record is longer than its message";
		return false;
	}
	out->header = rpc_header_convert(in);
	out->payload = (const uint8_t *)in + RPC_RECORD_BYTES;

	size_t bytes = rpc_record_bytes(out->header.length);

	*offset += bytes < left ? bytes : left;
	return true;
}

#endif
