/* SPDX-License-Identifier: BSD-3-Clause */
/* The peer processes that this one has links with, by incarnation and path, and which lcores have
 * such links. Links open and close under a lock; what is asked and told with each frame, and ten
 * times a second, needs none. */
#include "fabric_priv.h"

#include <assert.h>
#include <stdlib.h>

#define BUCKETS 256

static_assert(sizeof(struct presence) <= 2 * PLX_CACHE_LINE, "two lines: one is of each frame");

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static struct peer *table[BUCKETS]; /* under table_lock */

/* The lock is held by who calls these. -------------------------------------------------------- */

static struct peer **bucket_of(const struct liveness *key)
{
	return &table[(key->incarnation ^ key->path) % BUCKETS];
}

static bool is_of(const struct peer *peer, const struct liveness *key)
{
	return peer->key.incarnation == key->incarnation && peer->key.path == key->path &&
	       peer->key.heartbeat_ms == key->heartbeat_ms &&
	       peer->key.dead_after_ms == key->dead_after_ms;
}

/* One that was given up is passed over: if its process speaks again it begins anew. */
static struct peer *peer_get(const struct liveness *key)
{
	struct peer **bucket = bucket_of(key), *peer = *bucket;

	while (peer &&
	       (!is_of(peer, key) || atomic_load_explicit(&peer->silent_ns, memory_order_relaxed)))
		peer = peer->next;
	if (peer)
		return peer;
	peer = calloc(1, sizeof(*peer));
	if (!peer)
		return NULL;
	peer->key = *key;
	peer->period_ns = key->heartbeat_ms * PLX_NS_PER_MS;
	peer->dead_after_ns = key->dead_after_ms * PLX_NS_PER_MS;
	peer->next = *bucket;
	*bucket = peer;
	return peer;
}

/* Free it if no lcore has links with it. */
static void peer_put(struct peer *peer)
{
	struct peer **at = bucket_of(&peer->key);

	if (peer->presences)
		return;
	while (*at != peer)
		at = &(*at)->next;
	*at = peer->next;
	free(peer);
}

static struct presence *presence_on(const struct peer *peer, const struct plx_fabric_lcore *home)
{
	struct presence *presence = peer->presences;

	while (presence && presence->home != home)
		presence = presence->next_of_peer;
	return presence;
}

static struct presence *presence_add(struct peer *peer, struct plx_fabric_lcore *home)
{
	struct presence *presence = aligned_alloc(PLX_CACHE_LINE, sizeof(*presence));

	if (!presence)
		return NULL;
	*presence = (struct presence){
		.home = home,
		.peer = peer,
		.next = home->pulse.presences,
		.prev_next = &home->pulse.presences,
		.next_of_peer = peer->presences,
	};
	if (presence->next)
		presence->next->prev_next = &presence->next;
	home->pulse.presences = peer->presences = presence;
	return presence;
}

static void presence_drop(struct presence *presence)
{
	struct presence **at = &presence->peer->presences;
	struct pulse *pulse = &presence->home->pulse;

	while (*at != presence)
		at = &(*at)->next_of_peer;
	*at = presence->next_of_peer;
	*presence->prev_next = presence->next;
	if (presence->next)
		presence->next->prev_next = presence->prev_next;
	if (pulse->looking == presence)
		pulse->looking = presence->next;
	free(presence);
}

static struct presence *presence_get(const struct liveness *key, struct plx_fabric_lcore *home)
{
	struct peer *peer = peer_get(key);
	struct presence *presence = peer ? presence_on(peer, home) : NULL;

	if (peer && !presence)
		presence = presence_add(peer, home);
	if (peer)
		peer_put(peer);
	return presence;
}

/* -------------------------------------------------------------------------------------------- */

int peer_join(struct plx_link *link)
{
	struct presence *presence;

	pthread_mutex_lock(&table_lock);
	presence = presence_get(&link->live, link->set->home);
	pthread_mutex_unlock(&table_lock);
	if (!presence)
		return plx_fail(ENOMEM, "out of memory");
	link->presence = presence;
	link->group_next = presence->links;
	link->group_prev_next = &presence->links;
	if (link->group_next)
		link->group_next->group_prev_next = &link->group_next;
	presence->links = link;
	return 0;
}

void peer_leave(struct plx_link *link)
{
	struct presence *presence = link->presence;
	struct peer *peer = presence->peer;

	link->presence = &presence->home->pulse.nobody;
	*link->group_prev_next = link->group_next;
	if (link->group_next)
		link->group_next->group_prev_next = link->group_prev_next;
	if (presence->beats_next == link)
		presence->beats_next = link->group_next;
	if (presence->links)
		return;
	pthread_mutex_lock(&table_lock);
	/* What it knew the others know now. Relaxed: see peer_raise. */
	peer_raise(&peer->heard_ns,
		   atomic_load_explicit(&presence->heard_ns, memory_order_relaxed));
	peer_raise(&peer->sent_ns, presence->sent_ns);
	presence_drop(presence);
	peer_put(peer);
	pthread_mutex_unlock(&table_lock);
}

void peer_ask(const struct peer *peer, void (*fn)(const struct presence *presence, void *arg),
	      void *arg)
{
	pthread_mutex_lock(&table_lock);
	for (const struct presence *presence = peer->presences; presence;
	     presence = presence->next_of_peer)
		fn(presence, arg);
	pthread_mutex_unlock(&table_lock);
}
