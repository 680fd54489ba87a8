/* SPDX-License-Identifier: BSD-3-Clause */
/* The provider: its parameters and its libfabric attributes. */
#include "shm.h"

#include <grp.h>
#include <stdlib.h>

#define INLINE_MAX  (UINT64_C(16) << 10)
#define COPY_MAX    (UINT64_C(16) << 20)
#define GROUP_BYTES (64u << 10) /* for a group's entry with all its members */

struct shm_params shm_params = {
	.ring_bytes = SHM_RING_BYTES,
	.inline_max = INLINE_MAX,
	.copy_max = COPY_MAX,
	.cma = true,
};

/* Parameters ------------------------------------------------------------------------------- */

static_assert(SHM_INJECT_MAX == 4096, "a number in the help of inline_max");

/* A number of bytes. option: its variable. bytes: unchanged if it is not set, or refused. */
static void read_bytes(bool loading, const char *name, const char *option, const char *help,
		       uint64_t least, uint64_t most, uint64_t *bytes)
{
	const char *text = prov_param(&shm_prov, loading, name, help);

	if (text && plx_parse_size(option, text, least, most, bytes))
		shm_log(FI_LOG_WARN, "%s; %llu is used", plx_error(), (unsigned long long)*bytes);
}

static void read_ring_bytes(bool loading)
{
	uint64_t bytes = shm_params.ring_bytes;

	read_bytes(loading, "ring_bytes", "FI_PLX_SHM_RING_BYTES",
		   "Bytes of the ring that each connection receives through: a power of two from "
		   "64k to 64m (default: 256k)",
		   SEGMENT_RING_BYTES_MIN, SEGMENT_RING_BYTES_MAX, &bytes);
	if (bytes & (bytes - 1))
		shm_log(FI_LOG_WARN,
			"FI_PLX_SHM_RING_BYTES: %llu is not a power of two; give 64k to 64m; %u is "
			"used",
			(unsigned long long)bytes, shm_params.ring_bytes);
	else
		shm_params.ring_bytes = (uint32_t)bytes;
}

static void read_lengths(bool loading)
{
	uint64_t most = shm_params.ring_bytes / 4 - 64;

	shm_params.inline_max = INLINE_MAX < most ? INLINE_MAX : most;
	/* At least the inject size: an injected message must be sent when the call returns. */
	read_bytes(loading, "inline_max", "FI_PLX_SHM_INLINE_MAX",
		   "Longest message that is copied through the ring as a whole: from 4096 to a "
		   "quarter of ring_bytes less 64 (default: 16k, or that quarter)",
		   SHM_INJECT_MAX, most, &shm_params.inline_max);
	read_bytes(loading, "copy_max", "FI_PLX_SHM_COPY_MAX",
		   "Longest message that both sides may copy, through the ring in parts; longer "
		   "ones, and in a stream some shorter ones, the receiver alone copies, out of "
		   "the sender's memory (default: 16m)",
		   0, 0, &shm_params.copy_max);
}

static void read_cma(bool loading)
{
	static const char *const words[2][4] = {{"0", "no", "false", "off"},
						{"1", "yes", "true", "on"}};
	const char *text = prov_param(
		&shm_prov, loading, "cma",
		"Whether memory of peers is read at all, where the system lets this process "
		"do so; else all that they send goes through the ring (default: yes)");

	for (size_t i = 0; text && i < 2 * PLX_ARRAY_LEN(words[0]); i++) {
		if (strcasecmp(text, words[i % 2][i / 2]) == 0) {
			shm_params.cma = i % 2;
			return;
		}
	}
	if (text)
		shm_log(FI_LOG_WARN, "FI_PLX_SHM_CMA is refused, yes is used; give yes or no");
}

static bool find_group(const char *name, uint32_t *gid_out)
{
	struct group entry, *found = NULL;
	char *room = malloc(GROUP_BYTES);

	if (room && getgrnam_r(name, &entry, room, GROUP_BYTES, &found) == 0 && found)
		*gid_out = entry.gr_gid;
	free(room);
	return found;
}

static void read_group(bool loading)
{
	uint64_t number = 0;
	const char *text = prov_param(&shm_prov, loading, "group",
				      "Group, by name or number, whose members may connect too "
				      "(default: none, the same user only)");

	if (!text)
		return;
	shm_params.has_group = find_group(text, &shm_params.group);
	/* -1 is not a group: chown(2) takes it as "leave unchanged". */
	if (!shm_params.has_group &&
	    plx_parse_uint("group", text, 0, UINT32_MAX - 1, &number) == 0) {
		shm_params.has_group = true;
		shm_params.group = (uint32_t)number;
	}
	if (!shm_params.has_group)
		shm_log(FI_LOG_WARN,
			"FI_PLX_SHM_GROUP=%s is refused, only the same user may connect; give a "
			"group of this host, by name or number",
			text);
}

static void read_params(bool loading)
{
	read_ring_bytes(loading);
	read_lengths(loading);
	read_cma(loading);
	read_group(loading);
	segment_look_at_overcommit();
}

/* Provider --------------------------------------------------------------------------------- */

#define PROVIDER                  shm_prov
#define PROVIDER_GETINFO          shm_getinfo
#define PROVIDER_FABRIC           shm_fabric_open
#define PROVIDER_KIND             shm_kind
#define PROVIDER_NAME             SHM_NAME
#define PROVIDER_VERSION          FI_VERSION(0, 1)
#define PROVIDER_PROTOCOL         UINT32_C(0x706c78) /* "plx" */
#define PROVIDER_PROTOCOL_VERSION WIRE_VERSION
#define PROVIDER_CAPS             FI_MSG
#define PROVIDER_TX_CAPS          FI_SEND
#define PROVIDER_RX_CAPS          FI_RECV
#define PROVIDER_COMM_CAPS        FI_LOCAL_COMM
#define PROVIDER_ORDER            FI_ORDER_SAS
#define PROVIDER_OP_FLAGS         SHM_OP_FLAGS
#define PROVIDER_INJECT_MAX       SHM_INJECT_MAX
#define PROVIDER_MESSAGE_MAX      SHM_MESSAGE_MAX
#define PROVIDER_OBJECTS          BELL_BITS
#include "../prov/provider.h"

const struct prov shm_kind = {
	.libfabric = &shm_prov,
	.most = &provider_most,
	.same_host = true,
	.read_params = read_params,
	.has_begun = &(bool){false},
	.domain_ops = &shm_domain_ops,
	.cq_ops = &shm_cq_ops,
	.ep_ops = &shm_ep_ops,
	.pep_ops = &shm_pep_ops,
};
