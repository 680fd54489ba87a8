/* SPDX-License-Identifier: BSD-3-Clause */
#include "plx_rpc.h"

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
