/* SPDX-License-Identifier: BSD-3-Clause */
/* Links that are not for who listens, but for the process' self-test service: what the two HELLOs
 * say of that. */
#include "fabric_priv.h"
#include "frame.h"

static const struct plx_link_events *self_test_events; /* written while there are no links */
static void *self_test_user;

void plx_fabric_set_self_test(const struct plx_link_events *events, void *user)
{
	self_test_events = events;
	self_test_user = user;
}

static bool is_accepted(const struct plx_link *link)
{
	return link->from != NULL;
}

uint32_t self_test_feature(const struct plx_link *link)
{
	bool says_so = is_accepted(link) ? self_test_events != NULL : link->attr.self_test;

	return says_so ? FEATURE_SELF_TEST : 0;
}

static bool accept_self_test(struct plx_link *link)
{
	if (!self_test_events) {
		link_end(link, PLX_LINK_HELLO, "%s wants the self-test service, which is off here",
			 link->peer);
		return false;
	}
	link_set_events(link, self_test_events);
	link->user = self_test_user;
	return true;
}

bool self_test_agree(struct plx_link *link, uint32_t features)
{
	bool peer_says_so = features & FEATURE_SELF_TEST;

	if (is_accepted(link))
		return !peer_says_so || accept_self_test(link);
	if (!link->attr.self_test || peer_says_so)
		return true;
	link_end(link, PLX_LINK_HELLO,
		 "the process at %s has no self-test service: it is off there (--self-test), or "
		 "older "
		 "than that",
		 link->peer);
	return false;
}
