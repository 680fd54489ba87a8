/* SPDX-License-Identifier: BSD-3-Clause */
/* The choice of an lcore for a listener's next link. */
#include "fabric_listen.h"

/* The lcore with the highest weight gets the link: rendezvous hashing (Thaler, Ravishankar, "Using
 * Name-Based Mappings to Increase Hit Rates", IEEE/ACM ToN 6(1), 1998). Adding an lcore to n moves
 * 1 in n + 1 hosts, and only to the new one. */
uint64_t spread_weight(const struct sockaddr *peer, uint32_t lcore)
{
	const struct plx_siphash_key key = {1, lcore};
	struct in6_addr host = address_host(peer);

	return plx_siphash(&key, &host, sizeof(host));
}

static bool is_named(const uint64_t *lcores, uint32_t id)
{
	return lcores[id / 64] >> id % 64 & 1;
}

/* The first lcore at or after `from` that may get a link now: it runs its loop, or is the
 * listener's own, which calls this. Return: PLX_LCORE_NONE: none. */
static uint32_t next_candidate(const struct plx_listener *listener, uint32_t from)
{
	uint32_t id = plx_lcore_next(from), own = listener->set->home->id;

	while (id != PLX_LCORE_NONE && (!is_named(listener->shared->attr.lcores, id) ||
					(id != own && !plx_loop_is_running(id))))
		id = plx_lcore_next(id + 1);
	return id;
}

static uint32_t choose_by_hash(const struct plx_listener *listener, const struct sockaddr *peer)
{
	uint32_t best = next_candidate(listener, 0);
	uint32_t id = best;

	while (id != PLX_LCORE_NONE) {
		if (spread_weight(peer, id) > spread_weight(peer, best))
			best = id;
		id = next_candidate(listener, id + 1);
	}
	return best;
}

/* The lcore for a link with that peer. PLX_SPREAD_CALLBACK may return one that does not exist, and
 * may close the listener. */
uint32_t spread_choose(struct plx_listener *listener, const struct sockaddr *peer)
{
	const struct plx_listen_attr *attr = &listener->shared->attr;
	uint32_t id = PLX_LCORE_NONE;

	if (attr->spread == PLX_SPREAD_CALLBACK)
		return attr->place(listener->front, peer, attr->place_arg);
	if (attr->spread == PLX_SPREAD_HASH)
		id = choose_by_hash(listener, peer);
	if (attr->spread == PLX_SPREAD_ROUND_ROBIN) {
		id = next_candidate(listener, listener->front->turn);
		if (id == PLX_LCORE_NONE)
			id = next_candidate(listener, 0);
		listener->front->turn = id != PLX_LCORE_NONE ? id + 1 : 0;
	}
	return id != PLX_LCORE_NONE ? id : listener->set->home->id;
}

int spread_check(struct plx_listen_attr *attr)
{
	bool names_any = false;

	if ((unsigned)attr->spread > PLX_SPREAD_CALLBACK)
		return plx_fail(EINVAL, "spread %u is none of enum plx_spread",
				(unsigned)attr->spread);
	if (attr->spread == PLX_SPREAD_CALLBACK && !attr->place)
		return plx_fail(EINVAL, "PLX_SPREAD_CALLBACK needs a callback; set place");
	for (uint32_t id = 0; id < PLX_LCORE_MAX; id++) {
		names_any |= is_named(attr->lcores, id);
		if (is_named(attr->lcores, id) && plx_lcore_next(id) != id)
			return plx_fail(EINVAL,
					"lcores of a listener: there is no lcore %u; name those "
					"that were started, or none for all that run their loop",
					id);
	}
	if (!names_any)
		memset(attr->lcores, 0xff, sizeof(attr->lcores));
	return 0;
}
