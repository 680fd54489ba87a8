/* SPDX-License-Identifier: BSD-3-Clause */
/* What requests and replies are over a link. All numbers are little-endian; doc/design/rpc.md tells
 * why. The private data of both HELLOs is a greeting, each message a batch of records:
 *
 *     greeting   0 "PRPC", 4 least and 5 greatest version, 6 role, 7 zero,
 *                8 requests of the other side that may be open at a time (32 bits), 12 of a
 *                service: ms for which it remembers keys (32 bits),
 *                16 longest payload accepted (64 bits), 24 who it is: a number at random (64 bits)
 *                A message of more than 4080 bytes is one record.
 *     record     0 kind, 1 flags, 2 version of the method (16 bits), 4 length of the payload (32),
 *                8 call (64 bits), 16 and 20 two numbers (32 bits each), 24 payload, padding to a
 *                multiple of 8 where another record follows
 *
 *     REQUEST    16 method, 20 time left in us (UINT32_MAX: no end); with the flag KEY the payload
 *                begins with a key of 64 bits, which is the client's: it runs once
 *     REPLY      1 status, 16 time that the handler took in ns (0: none has run;
 *                UINT32_MAX: that or more),
 *                20 ERROR: the application's code; else: try again so many us later
 *     CANCEL     nothing; there is no answer to it but the reply
 *     DRAIN      nothing, and no call: no new requests, please */
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

/* The longest message of several records, one frame of a link whose peer has receive buffers of the
 * default size: so what waits for its turn at a service is never long, or is a single request. */
#define RPC_BATCH_BYTES 4080

enum rpc_role { RPC_CLIENT = 1, RPC_SERVER = 2 };
enum rpc_kind { RPC_REQUEST = 1, RPC_REPLY, RPC_CANCEL, RPC_DRAIN };

/* As it lies in a HELLO, but of this host's byte order, and without the magic number. */
struct rpc_greeting {
	uint8_t magic[4];
	uint8_t version_min, version_max, role, zero;
	uint32_t open_max;
	uint32_t key_ms;
	uint64_t payload_max;
	uint64_t identity;
};

/* As it lies in a message, at a multiple of 8 bytes. */
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
		uint32_t code;         /* REPLY of status ERROR */
		uint32_t retry_us;     /* REPLY of another one */
	};
};

struct rpc_record {
	struct rpc_header header; /* of this host's byte order */
	const uint8_t *payload;
};

void rpc_greeting_write(uint8_t out[RPC_GREETING_BYTES], const struct rpc_greeting *greeting);

/* role: that of who should have written it. Return: NULL, or what is wrong with it. */
const char *rpc_greeting_read(const uint8_t *data, size_t length, enum rpc_role role,
			      struct rpc_greeting *out);

/* Bytes of a record in a batch. */
static inline size_t rpc_record_bytes(size_t payload)
{
	return (RPC_RECORD_BYTES + payload + RPC_ALIGN - 1) & ~(size_t)(RPC_ALIGN - 1);
}

/* From this host's byte order to that of the wire, or back, which is the same. */
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

/* Return: where the payload begins. */
static inline uint8_t *rpc_header_write(void *at, const struct rpc_header *header)
{
	*(struct rpc_header *)at = rpc_header_convert(header);
	return (uint8_t *)at + RPC_RECORD_BYTES;
}

/* The record at *offset of a batch of `length` bytes, which must lie at a multiple of 8, and the
 * offset of the next one. Return: whether there is one; if not, *wrong_out is NULL where the batch
 * has ended, or what is wrong with it. */
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
