/* SPDX-License-Identifier: BSD-3-Clause */
/* The provider: its parameters and its libfabric attributes. */
#include "shm.h"

#include <ctype.h>
#include <grp.h>
#include <stdlib.h>
#include <strings.h>

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

/* Define a parameter. Return: its text; NULL: not set. */
static const char *get_text(const char *name, const char *help)
{
	char *text = NULL;

	fi_param_define(&shm_prov, name, FI_PARAM_STRING, "%s", help);
	return fi_param_get_str(&shm_prov, name, &text) ? NULL : text;
}

/* A decimal number, or hexadecimal after 0x; suffixes k and m mean KiB and MiB. */
static bool parse_bytes(const char *text, uint64_t *bytes_out)
{
	unsigned shift;
	uint64_t number;
	char *end;

	errno = 0;
	number = strtoull(text, &end, strncasecmp(text, "0x", 2) == 0 ? 16 : 10);
	shift = *end == 'k' || *end == 'K' ? 10 : *end == 'm' || *end == 'M' ? 20 : 0;
	if (!isdigit((unsigned char)text[0]) || errno || end[shift != 0] != '\0' ||
	    number > UINT64_MAX >> shift)
		return false;
	*bytes_out = number << shift;
	return true;
}

static void read_ring_bytes(void)
{
	const char *text = get_text(
		"ring_bytes",
		"Bytes of the ring that each connection receives through: a power of two "
		"from 64k to 64m (default: 256k)");
	uint64_t bytes;

	if (!text)
		return;
	if (parse_bytes(text, &bytes) && bytes >= SEGMENT_RING_BYTES_MIN &&
	    bytes <= SEGMENT_RING_BYTES_MAX && (bytes & (bytes - 1)) == 0)
		shm_params.ring_bytes = (uint32_t)bytes;
	else
		shm_log(FI_LOG_WARN,
			"FI_PLX_SHM_RING_BYTES=%s is refused, %uk is used; give a power of two "
			"from %uk to %um",
			text, SHM_RING_BYTES >> 10, SEGMENT_RING_BYTES_MIN >> 10,
			SEGMENT_RING_BYTES_MAX >> 20);
}

/* At least the inject size: an injected message must be sent when the call returns. */
static void read_inline_max(void)
{
	uint64_t most = shm_params.ring_bytes / 4 - 64;
	const char *text = get_text(
		"inline_max",
		"Longest message that is copied through the ring as a whole: from 4096 to a "
		"quarter of ring_bytes less 64 (default: 16k, or that quarter)");
	uint64_t bytes;

	shm_params.inline_max = INLINE_MAX < most ? INLINE_MAX : most;
	if (!text)
		return;
	if (parse_bytes(text, &bytes) && bytes >= SHM_INJECT_MAX && bytes <= most)
		shm_params.inline_max = bytes;
	else
		shm_log(FI_LOG_WARN,
			"FI_PLX_SHM_INLINE_MAX=%s is refused, %llu is used; give %d to %llu", text,
			(unsigned long long)shm_params.inline_max, SHM_INJECT_MAX,
			(unsigned long long)most);
}

static void read_copy_max(void)
{
	const char *text = get_text(
		"copy_max",
		"Longest message that both sides copy, through the ring in parts; longer "
		"ones the receiver alone copies, out of the sender's memory (default: 16m)");

	if (text && !parse_bytes(text, &shm_params.copy_max))
		shm_log(FI_LOG_WARN,
			"FI_PLX_SHM_COPY_MAX=%s is refused, %llum is used; give a number of bytes, "
			"with k or m after it for KiB or MiB",
			text, (unsigned long long)(COPY_MAX >> 20));
}

static void read_cma(void)
{
	int wanted, rc;

	fi_param_define(
		&shm_prov, "cma", FI_PARAM_BOOL,
		"Whether memory of peers is read at all, where the system lets this process "
		"do so; else all that they send goes through the ring (default: yes)");
	rc = fi_param_get_bool(&shm_prov, "cma", &wanted);
	if (rc == 0)
		shm_params.cma = wanted;
	else if (rc == -FI_EINVAL)
		shm_log(FI_LOG_WARN, "FI_PLX_SHM_CMA is refused, yes is used; give yes or no");
}

/* -1 is not a group: chown(2) takes it as "leave unchanged". */
static bool parse_gid(const char *text, uint32_t *gid_out)
{
	uint64_t number = 0;
	int rc = plx_parse_uint("group", text, 0, UINT32_MAX - 1, &number);

	*gid_out = (uint32_t)number;
	return rc == 0;
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

static void read_group(void)
{
	const char *text = get_text("group",
				    "Group, by name or number, whose members may connect too "
				    "(default: none, the same user only)");

	if (!text)
		return;
	shm_params.has_group = find_group(text, &shm_params.group) ||
			       parse_gid(text, &shm_params.group);
	if (!shm_params.has_group)
		shm_log(FI_LOG_WARN,
			"FI_PLX_SHM_GROUP=%s is refused, only the same user may connect; give a "
			"group of this host, by name or number",
			text);
}

static void read_params(void)
{
	read_ring_bytes();
	read_inline_max();
	read_copy_max();
	read_cma();
	read_group();
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
#define PROVIDER_OP_FLAGS         FI_DELIVERY_COMPLETE
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
