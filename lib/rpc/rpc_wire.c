/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc_wire.h"

static const uint8_t magic[4] = {'P', 'R', 'P', 'C'};

_Static_assert(sizeof(struct rpc_header) == RPC_RECORD_BYTES, "a header is what is on the wire");

void rpc_greeting_write(uint8_t out[RPC_GREETING_BYTES], const struct rpc_greeting *greeting)
{
	uint32_t open_max = htole32(greeting->open_max);
	uint32_t key_ms = htole32(greeting->key_ms);
	uint64_t payload_max = htole64(greeting->payload_max);
	uint64_t identity = htole64(greeting->identity);

	memset(out, 0, RPC_GREETING_BYTES);
	memcpy(out, magic, sizeof(magic));
	out[4] = greeting->version_min;
	out[5] = greeting->version_max;
	out[6] = greeting->role;
	memcpy(out + 8, &open_max, sizeof(open_max));
	memcpy(out + 12, &key_ms, sizeof(key_ms));
	memcpy(out + 16, &payload_max, sizeof(payload_max));
	memcpy(out + 24, &identity, sizeof(identity));
}

/* Bytes that are zero in this version are not looked at: a later one may use them. */
const char *rpc_greeting_read(const uint8_t *data, size_t length, enum rpc_role role,
			      struct rpc_greeting *out)
{
	uint32_t open_max, key_ms;
	uint64_t payload_max, identity;

	if (length < RPC_GREETING_BYTES || memcmp(data, magic, sizeof(magic)) != 0)
		return role == RPC_SERVER ? "the HELLO is no service's"
					  : "the HELLO is no client's";
	memcpy(&open_max, data + 8, sizeof(open_max));
	memcpy(&key_ms, data + 12, sizeof(key_ms));
	memcpy(&payload_max, data + 16, sizeof(payload_max));
	memcpy(&identity, data + 24, sizeof(identity));
	*out = (struct rpc_greeting){
		.version_min = data[4],
		.version_max = data[5],
		.role = data[6],
		.open_max = le32toh(open_max),
		.key_ms = le32toh(key_ms),
		.payload_max = le64toh(payload_max),
		.identity = le64toh(identity),
	};
	if (out->version_min > out->version_max || out->version_min > RPC_VERSION_MAX ||
	    out->version_max < RPC_VERSION_MIN)
		return "there is no version of the protocol that both sides know";
	if (out->role != role)
		return role == RPC_SERVER ? "the HELLO is a client's, not a service's"
					  : "the HELLO is a service's, not a client's";
	return NULL;
}
