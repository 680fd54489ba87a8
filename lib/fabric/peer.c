/* SPDX-License-Identifier: BSD-3-Clause */
/* Peer processes by incarnation, path and agreed times, and the lcores that have links with them.
 * Joining and leaving take a lock; the updates per frame and per check do not. */
#include "fabric_link.h"
#include "tree.h"

/* An lcore that has not polled for this multiple of the silence is no longer waited for. */
#define STUCK_AFTER 10

static_assert(sizeof(struct presence) <= 2 * PLX_CACHE_LINE, "two lines: one is of each frame");

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;

/* Peers by key, see tsearch(3). One that was given up is no longer in it: if its process sends
 * again, a new peer starts. */
static void *table;

/* Under table_lock. ------------------------------------------------------------------------- */

static int by_key(const void *a, const void *b)
{
	return memcmp(a, b, LIVENESS_KEY_BYTES);
}

static struct peer *peer_get(const struct liveness *key)
{
	struct peer *peer = tree_get(&table, by_key, key, LIVENESS_KEY_BYTES, sizeof(*peer));

	if (peer && !peer->period_ns) { /* it is new */
		peer->period_ns = key->heartbeat_ms * PLX_NS_PER_MS;
		peer->dead_after_ns = key->dead_after_ms * PLX_NS_PER_MS;
	}
	return peer;
}

/* Free the peer if no lcore has links with it. */
static void peer_put(struct peer *peer)
{
	if (!LIST_EMPTY(&peer->presences))
		return;
	if (!peer_silent_ns(peer))
		tdelete(peer, &table, by_key);
	free(peer);
}

static struct presence *presence_get(const struct liveness *key, struct plx_fabric_lcore *home,
				     uint64_t now_ns)
{
	struct peer *peer = peer_get(key);
	struct presence *presence;

	if (!peer)
		return NULL;
	LIST_FOREACH (presence, &peer->presences, of_peer) {
		if (presence->home == home)
			break;
	}
	if (!presence) {
		presence = aligned_alloc(PLX_CACHE_LINE, sizeof(*presence));
		if (!presence) {
			peer_put(peer);
			return NULL;
		}
		*presence = (struct presence){.home = home, .peer = peer};
		LIST_INSERT_HEAD(&home->watch.presences, presence, of_home);
		LIST_INSERT_HEAD(&peer->presences, presence, of_peer);
	}
	/* Relaxed: as for each frame. */
	atomic_store_explicit(&presence->heard_ns, now_ns, memory_order_relaxed);
	presence->sent_ns = presence->asked_ns = now_ns;
	time_raise(&peer->heard_ns, now_ns);
	time_raise(&peer->sent_ns, now_ns);
	return presence;
}

/* Return: the time up to which that lcore has taken all frames, and noted the bytes of others;
 * UINT64_MAX: ignore it. */
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
	silence->is_delayed |= presence->is_delayed;
	return lesser(looked_ns, presence->asked_ns);
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
	struct watch *watch = &presence->home->watch;
	struct peer *peer = presence->peer;

	link->presence = &watch->no_peer;
	if (presence->next_heartbeat == link)
		presence->next_heartbeat = LIST_NEXT(link, of_group);
	if (watch->asking == link)
		watch->asking = LIST_NEXT(link, of_group);
	LIST_REMOVE(link, of_group);
	if (!LIST_EMPTY(&presence->links))
		return;
	pthread_mutex_lock(&table_lock);
	/* Publish its last times. Relaxed: see time_raise. */
	time_raise(&peer->heard_ns,
		   atomic_load_explicit(&presence->heard_ns, memory_order_relaxed));
	time_raise(&peer->sent_ns, presence->sent_ns);
	LIST_REMOVE(presence, of_peer);
	peer_put(peer);
	pthread_mutex_unlock(&table_lock);
	if (watch->looking == presence) {
		watch->looking = LIST_NEXT(presence, of_home);
		watch->asking_ns = 0;
	}
	LIST_REMOVE(presence, of_home);
	free(presence);
}

/* The lock makes what the lcore has heard by then visible to one that asks. */
void peer_asked(struct presence *presence, uint64_t asked_ns, bool is_delayed)
{
	pthread_mutex_lock(&table_lock);
	/* Relaxed: see time_raise. */
	if (atomic_load_explicit(&presence->peer->heard_ns, memory_order_relaxed) >
	    presence->asked_ns)
		presence->is_delayed = false;
	presence->is_delayed |= is_delayed;
	presence->asked_ns = asked_ns;
	pthread_mutex_unlock(&table_lock);
}

/* The lock keeps lcores from joining the peer while it is given up. */
struct silence peer_ask(struct peer *peer, const struct plx_fabric_lcore *asking, uint64_t now_ns)
{
	struct silence silence = {.stuck = PLX_LCORE_NONE};
	uint64_t looked_ns = now_ns;
	const struct presence *presence;

	pthread_mutex_lock(&table_lock);
	LIST_FOREACH (presence, &peer->presences, of_peer)
		looked_ns = lesser(looked_ns, ask_lcore(presence, asking, now_ns, &silence));
	if (silence.is_delayed)
		silence.margin_ns += peer->dead_after_ns;
	silence.ns = plx_time_since(silence.heard_ns, looked_ns);
	time_raise(&peer->heard_ns, silence.heard_ns);
	if (silence.ns >= peer->dead_after_ns + silence.margin_ns && !peer_silent_ns(peer)) {
		tdelete(peer, &table, by_key);
		/* Relaxed: guards no other data. */
		atomic_store_explicit(&peer->silent_ns, silence.ns, memory_order_relaxed);
	}
	pthread_mutex_unlock(&table_lock);
	return silence;
}
