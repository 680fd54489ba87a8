/* SPDX-License-Identifier: BSD-3-Clause */
/* What is spoken above a link: what the two HELLOs say of that. */
#include "base_internal.h"
#include "fabric_link.h"

#include <stdio.h>

const char *protocol_name(uint8_t protocol, char out[PROTOCOL_NAME_BYTES])
{
	static const char *const names[] = {
		[PLX_PROTOCOL_NETIO] = PLX_NAME_NETIO,
		[PLX_PROTOCOL_RPC] = PLX_NAME_RPC,
		[PLX_PROTOCOL_ECHO] = "the echo of plx-ping",
	};

	if (protocol < PLX_ARRAY_LEN(names) && names[protocol])
		return names[protocol];
	snprintf(out, PROTOCOL_NAME_BYTES, "protocol %u", protocol);
	return out;
}

uint32_t protocol_feature(const struct plx_link *link)
{
	return (uint32_t)link->attr.protocol << FEATURE_PROTOCOL_SHIFT;
}

bool protocol_agree(struct plx_link *link)
{
	uint32_t features = link->peer_features;
	uint8_t own = link->attr.protocol;
	uint8_t theirs = (features & FEATURE_PROTOCOL_MASK) >> FEATURE_PROTOCOL_SHIFT;
	bool is_self_test = link->from ? features & FEATURE_SELF_TEST : link->attr.self_test;
	char own_text[PROTOCOL_NAME_BYTES], their_text[PROTOCOL_NAME_BYTES];

	if (is_self_test || own == theirs || !own || !theirs)
		return true;
	link_decline(link, NULL,
		     link->from ? "%s speaks %s; this port expects %s"
				: "%s speaks %s, not %s; check the port",
		     link->peer, protocol_name(theirs, their_text), protocol_name(own, own_text));
	return false;
}
