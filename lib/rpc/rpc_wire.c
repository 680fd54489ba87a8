/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc_wire.h"

#include "plx_rpc.h"

static const uint8_t magic[4] = {'P', 'R', 'P', 'C'};

_Static_assert(sizeof(struct rpc_header) == RPC_RECORD_BYTES &&
		       sizeof(struct rpc_greeting) == RPC_GREETING_BYTES,
	       "both are what is on the wire");

/* Convert between host and wire byte order, in either direction. */
static void convert(struct rpc_greeting *greeting)
{
	greeting->open_max = htole32(greeting->open_max);
	greeting->key_ms = htole32(greeting->key_ms);
	greeting->payload_max = htole64(greeting->payload_max);
	greeting->identity = htole64(greeting->identity);
}

void rpc_greeting_write(uint8_t out[RPC_GREETING_BYTES], const struct rpc_greeting *greeting)
{
	struct rpc_greeting whole = *greeting;

	memcpy(whole.magic, magic, sizeof(magic));
	convert(&whole);
	memcpy(out, &whole, sizeof(whole));
}

/* Bytes that are zero in this version are ignored: a later version may use them. */
const char *rpc_greeting_read(const uint8_t *data, size_t length, enum rpc_role role,
			      struct rpc_greeting *out)
{
	if (length < RPC_GREETING_BYTES || memcmp(data, magic, sizeof(magic)) != 0)
		return role == RPC_SERVER ? "the HELLO is no service's"
					  : "the HELLO is no client's";
	memcpy(out, data, RPC_GREETING_BYTES);
	convert(out);
	if (out->version_min > out->version_max || out->version_min > RPC_VERSION_MAX ||
	    out->version_max < RPC_VERSION_MIN)
		return "there is no version of the protocol that both sides know";
	if (out->role != role)
		return role == RPC_SERVER ? "the HELLO is a client's, not a service's"
					  : "the HELLO is a service's, not a client's";
	return NULL;
}

static const char *const names[] = {
	[PLX_RPC_OK] = "ok",
	[PLX_RPC_ERROR] = "error",
	[PLX_RPC_DEADLINE] = "deadline",
	[PLX_RPC_CANCELLED] = "cancelled",
	[PLX_RPC_BUSY] = "busy",
	[PLX_RPC_UNKNOWN] = "unknown",
	[PLX_RPC_OVERLOADED] = "overloaded",
	[PLX_RPC_DRAINING] = "draining",
	[PLX_RPC_PEER_DOWN] = "peer down",
	[PLX_RPC_TOO_BIG] = "too big",
	[PLX_RPC_DENIED] = "denied",
};

_Static_assert(PLX_ARRAY_LEN(names) == PLX_RPC_STATUS_COUNT, "each status has a name");

const char *plx_rpc_status_name(enum plx_rpc_status status)
{
	return (unsigned)status < PLX_RPC_STATUS_COUNT ? names[status] : "?";
}
