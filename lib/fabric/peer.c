/* SPDX-License-Identifier: BSD-3-Clause */
/* Peer processes by incarnation, path and agreed times, and the lcores that have links with them.
 * Joining and leaving take a lock; the updates per frame and per check do not. */
#include "fabric_link.h"

#include <assert.h>
#include <stdlib.h>

#define BUCKETS_MIN 256

/* An lcore that has not polled for this multiple of the silence is no longer waited for. */
#define STUCK_AFTER 10

static_assert(sizeof(struct presence) <= 2 * PLX_CACHE_LINE, "two lines: one is of each frame");

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;

/* Guarded by table_lock. */
static struct {
	LIST_HEAD(bucket, peer) * buckets;
	uint64_t mask, count;
	struct plx_siphash_key hash_key; /* a peer chooses most of the hashed bytes */
} table;

/* Under table_lock. ------------------------------------------------------------------------- */

static struct bucket *bucket_of(const struct liveness *key)
{
	uint64_t words[] = {key->incarnation, key->own, key->path,
			    (uint64_t)key->heartbeat_ms << 32 | key->dead_after_ms};

	return &table.buckets[plx_siphash(&table.hash_key, words, sizeof(words)) & table.mask];
}

/* Grow the table. Without memory the lists grow longer instead. Return: whether there are any
 * buckets. */
static bool make_room(void)
{
	uint64_t old_count = table.buckets ? table.mask + 1 : 0;
	uint64_t new_count = old_count ? 2 * old_count : BUCKETS_MIN;
	struct bucket *old = table.buckets, *buckets;
	struct peer *peer;

	if (table.count < old_count)
		return true;
	buckets = calloc(new_count, sizeof(*buckets));
	if (!buckets)
		return old != NULL;
	if (!old)
		plx_random(&table.hash_key, sizeof(table.hash_key));
	table.buckets = buckets;
	table.mask = new_count - 1;
	for (uint64_t i = 0; i < old_count; i++) {
		while ((peer = LIST_FIRST(&old[i]))) {
			LIST_REMOVE(peer, of_bucket);
			LIST_INSERT_HEAD(bucket_of(&peer->key), peer, of_bucket);
		}
	}
	free(old);
	return true;
}

static bool is_of(const struct peer *peer, const struct liveness *key)
{
	return peer->key.incarnation == key->incarnation && peer->key.own == key->own &&
	       peer->key.path == key->path && peer->key.heartbeat_ms == key->heartbeat_ms &&
	       peer->key.dead_after_ms == key->dead_after_ms;
}

/* Skips a peer that was given up: if its process sends again, a new peer starts. */
static struct peer *peer_get(const struct liveness *key)
{
	struct peer *peer;

	if (!make_room())
		return NULL;
	LIST_FOREACH (peer, bucket_of(key), of_bucket) {
		if (is_of(peer, key) &&
		    !atomic_load_explicit(&peer->silent_ns, memory_order_relaxed))
			return peer;
	}
	peer = calloc(1, sizeof(*peer));
	if (!peer)
		return NULL;
	peer->key = *key;
	peer->period_ns = key->heartbeat_ms * PLX_NS_PER_MS;
	peer->dead_after_ns = key->dead_after_ms * PLX_NS_PER_MS;
	LIST_INSERT_HEAD(bucket_of(key), peer, of_bucket);
	table.count++;
	return peer;
}

/* Free the peer if no lcore has links with it. */
static void peer_put(struct peer *peer)
{
	if (!LIST_EMPTY(&peer->presences))
		return;
	LIST_REMOVE(peer, of_bucket);
	free(peer);
	if (--table.count == 0) {
		free(table.buckets);
		table.buckets = NULL;
	}
}

static struct presence *presence_on(const struct peer *peer, const struct plx_fabric_lcore *home)
{
	struct presence *presence;

	LIST_FOREACH (presence, &peer->presences, of_peer) {
		if (presence->home == home)
			return presence;
	}
	return NULL;
}

static struct presence *presence_add(struct peer *peer, struct plx_fabric_lcore *home)
{
	struct presence *presence = aligned_alloc(PLX_CACHE_LINE, sizeof(*presence));

	if (!presence)
		return NULL;
	*presence = (struct presence){.home = home, .peer = peer};
	LIST_INSERT_HEAD(&home->watch.presences, presence, of_home);
	LIST_INSERT_HEAD(&peer->presences, presence, of_peer);
	return presence;
}

static void presence_drop(struct presence *presence)
{
	struct watch *watch = &presence->home->watch;

	LIST_REMOVE(presence, of_peer);
	if (watch->looking == presence)
		watch->looking = LIST_NEXT(presence, of_home);
	LIST_REMOVE(presence, of_home);
	free(presence);
}

static struct presence *presence_get(const struct liveness *key, struct plx_fabric_lcore *home,
				     uint64_t now_ns)
{
	struct peer *peer = peer_get(key);
	struct presence *presence = peer ? presence_on(peer, home) : NULL;

	if (peer && !presence)
		presence = presence_add(peer, home);
	if (presence) {
		/* Relaxed: as for each frame. */
		atomic_store_explicit(&presence->heard_ns, now_ns, memory_order_relaxed);
		presence->sent_ns = now_ns;
		time_raise(&peer->heard_ns, now_ns);
		time_raise(&peer->sent_ns, now_ns);
	}
	if (peer)
		peer_put(peer);
	return presence;
}

/* Return: the time up to which that lcore has taken all frames; UINT64_MAX: ignore it. */
static uint64_t ask_lcore(const struct presence *presence, const struct plx_fabric_lcore *asking,
			  uint64_t now_ns, struct silence *silence)
{
	const struct plx_fabric_lcore *home = presence->home;

	/* V2 <- V1: frames received before that are visible below. */
	uint64_t looked_ns = atomic_load_explicit(&home->watch.looked_ns, memory_order_acquire);

	silence->heard_ns = greater(
		silence->heard_ns, atomic_load_explicit(&presence->heard_ns, memory_order_relaxed));
	if (home != asking &&
	    now_ns > plx_time_add(looked_ns, STUCK_AFTER * presence->peer->dead_after_ns)) {
		silence->stuck = home->id;
		return UINT64_MAX;
	}
	silence->margin_ns = greater(
		silence->margin_ns,
		atomic_load_explicit(&home->watch.late_ns, memory_order_relaxed));
	return looked_ns;
}

/* -------------------------------------------------------------------------------------------- */

int peer_join(struct plx_link *link, uint64_t now_ns)
{
	struct presence *presence;

	pthread_mutex_lock(&table_lock);
	presence = presence_get(&link->live, link->home, now_ns);
	pthread_mutex_unlock(&table_lock);
	if (!presence)
		return plx_fail(ENOMEM, "out of memory");
	link->presence = presence;
	LIST_INSERT_HEAD(&presence->links, link, of_group);
	return 0;
}

void peer_leave(struct plx_link *link)
{
	struct presence *presence = link->presence;
	struct peer *peer = presence->peer;

	link->presence = &presence->home->watch.no_peer;
	if (presence->next_heartbeat == link)
		presence->next_heartbeat = LIST_NEXT(link, of_group);
	LIST_REMOVE(link, of_group);
	if (!LIST_EMPTY(&presence->links))
		return;
	pthread_mutex_lock(&table_lock);
	/* Publish its last times. Relaxed: see time_raise. */
	time_raise(&peer->heard_ns,
		   atomic_load_explicit(&presence->heard_ns, memory_order_relaxed));
	time_raise(&peer->sent_ns, presence->sent_ns);
	presence_drop(presence);
	peer_put(peer);
	pthread_mutex_unlock(&table_lock);
}

/* The lock keeps lcores from joining the peer while it is given up. */
void peer_ask(struct peer *peer, const struct plx_fabric_lcore *asking, uint64_t now_ns,
	      struct silence *silence_out)
{
	struct silence silence = {.stuck = PLX_LCORE_NONE};
	uint64_t looked_ns = now_ns;
	const struct presence *presence;

	pthread_mutex_lock(&table_lock);
	LIST_FOREACH (presence, &peer->presences, of_peer) {
		uint64_t until_ns = ask_lcore(presence, asking, now_ns, &silence);

		looked_ns = until_ns < looked_ns ? until_ns : looked_ns;
	}
	silence.ns = looked_ns > silence.heard_ns ? looked_ns - silence.heard_ns : 0;
	time_raise(&peer->heard_ns, silence.heard_ns);
	/* Relaxed: guards no other data. */
	if (silence.ns >= peer->dead_after_ns + silence.margin_ns)
		atomic_store_explicit(&peer->silent_ns, silence.ns, memory_order_relaxed);
	pthread_mutex_unlock(&table_lock);
	*silence_out = silence;
}
