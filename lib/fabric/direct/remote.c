/* SPDX-License-Identifier: BSD-3-Clause */
/* A grant as bytes, as the peer gets it. Bytes that come back are untrusted: whatever they hold, an
 * operation reaches only the memory of the peer that sent them, and offsets cannot overflow. */
#include "fabric_direct.h"

#include <assert.h>
#include <endian.h>
#include <string.h>

#define ACCESS_ALL (PLX_REMOTE_READ | PLX_REMOTE_WRITE)

/* On the wire: little-endian. */
struct token {
	uint64_t address, key, bytes;
	uint32_t access, reserved;
};

static_assert(sizeof(struct token) == PLX_REMOTE_BYTES, "the token's length is part of it");

void plx_remote_encode(const struct plx_remote *remote, void *out)
{
	struct token token = {
		.address = htole64(remote->address),
		.key = htole64(remote->key),
		.bytes = htole64(remote->bytes),
		.access = htole32(remote->access),
	};

	memcpy(out, &token, sizeof(token));
}

static const char *what_is_wrong(const struct plx_remote *remote)
{
	if (remote->bytes == 0)
		return "there are no bytes";
	if (remote->address > UINT64_MAX - remote->bytes)
		return "it goes beyond the end of all memory";
	if (remote->access == 0 || remote->access & ~(unsigned)ACCESS_ALL)
		return "its access is neither reading nor writing";
	return NULL;
}

int remote_check(const struct plx_remote *remote)
{
	const char *wrong = what_is_wrong(remote);

	return wrong ? plx_fail(EINVAL, "remote memory: %s", wrong) : 0;
}

int plx_remote_decode(const void *in, size_t size, struct plx_remote *remote_out)
{
	struct plx_remote remote;
	struct token token;
	int rc;

	if (size != sizeof(token))
		return plx_fail(EINVAL, "remote memory: %zu bytes; it is described in %d", size,
				PLX_REMOTE_BYTES);
	memcpy(&token, in, sizeof(token));
	if (token.reserved)
		return plx_fail(EINVAL, "remote memory: reserved bytes are set");
	remote = (struct plx_remote){
		.address = le64toh(token.address),
		.key = le64toh(token.key),
		.bytes = le64toh(token.bytes),
		.access = le32toh(token.access),
	};
	rc = remote_check(&remote);
	if (rc == 0)
		*remote_out = remote;
	return rc;
}
