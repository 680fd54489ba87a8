/* SPDX-License-Identifier: BSD-3-Clause */
/* Links to the process's self-test service instead of a listener: their bits in both HELLOs. */
#include "fabric_link.h"
#include "frame.h"

/* Written while there are no links. */
static struct plx_link_attr self_test; /* without events: no service */
static bool self_test_remote;          /* also for other hosts */

void plx_fabric_set_self_test(const struct plx_link_attr *attr, bool remote)
{
	self_test = attr ? *attr : (struct plx_link_attr){0};
	self_test_remote = remote;
}

static bool is_offered(const struct plx_link *link)
{
	return self_test.events && (self_test_remote || plx_link_is_same_host(link));
}

uint32_t self_test_feature(const struct plx_link *link)
{
	bool says_so = link->from ? is_offered(link) : link->attr.self_test;

	return says_so ? FEATURE_SELF_TEST : 0;
}

static bool accept_self_test(struct plx_link *link)
{
	if (!is_offered(link)) {
		handshake_decline(link, NULL, "%s wants the self-test service, which is off here%s",
				  link->peer, self_test.events ? " for other hosts" : "");
		return false;
	}
	link_set_events(link, self_test.events);
	link->user = self_test.user;
	link->attr.hello_length = self_test.hello_length;
	memcpy(link->attr.hello, self_test.hello, sizeof(link->attr.hello));
	return true;
}

bool self_test_agree(struct plx_link *link)
{
	bool peer_says_so = link->peer_features & FEATURE_SELF_TEST;

	if (link->from)
		return !peer_says_so || accept_self_test(link);
	if (!link->attr.self_test || peer_says_so)
		return true;
	if (plx_link_is_same_host(link))
		handshake_decline(link, NULL,
				  "the process at %s has no self-test service: it was started with "
				  "--self-test off, or is older than that service",
				  link->peer);
	else
		handshake_decline(
			link, NULL,
			"the process at %s offers its self-test service to its own host alone, if "
			"at all; start it with --self-test RATE to offer it to others",
			link->peer);
	return false;
}
