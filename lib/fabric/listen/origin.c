/* SPDX-License-Identifier: BSD-3-Clause */
/* What each address holds. All under the lock of its admission. */
#include "admission.h"
#include "tree.h"

#include <sockaddr.h>
#include <stdio.h>

/* Keys of users, which are no addresses of peers: ::fffe:a.b.c.d. */
#define USER_MARK 0xfe

static void init(struct origin *origin, struct origin *parent)
{
	origin->parent = parent;
	LIST_INIT(&origin->busy);
	LIST_INIT(&origin->quiet);
	TAILQ_INIT(&origin->silent);
	TAILQ_INIT(&origin->kept);
}

void origins_init(struct origins *origins)
{
	*origins = (struct origins){0};
	init(&origins->root, NULL);
}

struct in6_addr origin_key(const struct plx_admit_request *asked)
{
	struct in6_addr key = {0};

	if (asked->peer) {
		key = address_host(asked->peer);
		return address_group(&key);
	}
	key.s6_addr[10] = 0xff;
	key.s6_addr[11] = USER_MARK;
	memcpy(&key.s6_addr[12], &asked->user, sizeof(asked->user));
	return key;
}

static struct origin *find_below(struct origins *origins, struct origin *parent,
				 const struct in6_addr *key)
{
	struct origin *origin = tree_get(&origins->by_key, tree_by_address, key, sizeof(*key),
					 sizeof(*origin));

	if (origin && !origin->parent) {
		init(origin, parent);
		LIST_INSERT_HEAD(&parent->quiet, origin, of_parent);
	}
	return origin;
}

struct origin *origin_find(struct origins *origins, const struct in6_addr *key)
{
	struct origin *parent = &origins->root, *origin;
	struct in6_addr network;

	if (address_network(key, &network))
		parent = find_below(origins, parent, &network);
	origin = parent ? find_below(origins, parent, key) : NULL;
	if (parent && !origin)
		origin_release(origins, parent);
	return origin;
}

static bool is_busy(const struct origin *origin)
{
	return origin->shares[ORIGIN_HALF_OPEN] || origin->shares[ORIGIN_WAITING];
}

void origin_add(struct origin *origin, enum origin_share share, int more)
{
	for (; origin; origin = origin->parent) {
		bool was_busy = is_busy(origin);

		origin->shares[share] += (uint32_t)more;
		if (is_busy(origin) == was_busy || !origin->parent)
			continue;
		LIST_REMOVE(origin, of_parent);
		if (was_busy)
			LIST_INSERT_HEAD(&origin->parent->quiet, origin, of_parent);
		else
			LIST_INSERT_HEAD(&origin->parent->busy, origin, of_parent);
	}
}

void origin_release(struct origins *origins, struct origin *origin)
{
	while (origin->parent && !origin->shares[ORIGIN_LINKS] && !is_busy(origin) &&
	       LIST_EMPTY(&origin->busy) && LIST_EMPTY(&origin->quiet)) {
		struct origin *parent = origin->parent;

		tdelete(origin, &origins->by_key, tree_by_address);
		LIST_REMOVE(origin, of_parent);
		free(origin);
		origin = parent;
	}
}

/* Of equals, the one that has connections for longest loses a half-open one, and the one that came
 * last loses its turn. The newest are first in the list. */
static struct origin *most_below(struct origin *parent, enum origin_share share)
{
	uint32_t more = share != ORIGIN_HALF_OPEN;
	struct origin *most = NULL, *each;

	LIST_FOREACH (each, &parent->busy, of_parent) {
		if (!most || each->shares[share] >= most->shares[share] + more)
			most = each;
	}
	if (share != ORIGIN_LINKS)
		return most;
	LIST_FOREACH (each, &parent->quiet, of_parent) {
		if (!most || each->shares[share] > most->shares[share])
			most = each;
	}
	return most;
}

struct origin *origin_most(struct origins *origins, enum origin_share share)
{
	struct origin *most = NULL, *below = most_below(&origins->root, share);

	while (below && below->shares[share]) {
		most = below;
		below = most_below(most, share);
	}
	return most;
}

struct origin *origin_top(struct origin *origin)
{
	while (origin->parent->parent)
		origin = origin->parent;
	return origin;
}

const char *origin_key_text(const struct in6_addr *key, char *out)
{
	struct in6_addr user = {0};
	uid_t number;

	memcpy(&number, &key->s6_addr[12], sizeof(number));
	user.s6_addr[10] = 0xff;
	user.s6_addr[11] = USER_MARK;
	if (memcmp(key, &user, sizeof(user) - sizeof(number)) == 0)
		snprintf(out, ORIGIN_TEXT_BYTES, "user %u", (unsigned)number);
	else
		address_group_format(key, out, ORIGIN_TEXT_BYTES);
	return out;
}
