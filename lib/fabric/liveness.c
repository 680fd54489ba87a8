/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether the process at the other end is alive. A connection does not tell: a host without power,
 * a cut cable, and a process that was stopped say nothing, and neither does the transport. So a
 * process that has nothing to send says so, in a HEARTBEAT: one to each peer process and period,
 * however many links and lcores they share, as any frame on any of them tells the same. And it
 * gives up a peer that is silent for longer than both have agreed to bear.
 *
 * Each lcore looks at its own presences at the same multiples of the period. In the steady state
 * lcores tell each other only by two words of the peer: when one of them last heard and last sent
 * something, as of their last look. Before a peer is suspected the other lcores are asked, under a
 * lock: what they have heard, and how far they have looked. One that stands still may have the
 * peer's heartbeats waiting for it.
 *
 * The silence that is borne grows by what this host itself lost lately: lcores that look late, as
 * the machine was stopped or a callback took long, would find silence everywhere. */
#include "fabric_priv.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static_assert(PLX_HEARTBEAT_NS_MIN == HEARTBEAT_MS_MIN * PLX_NS_PER_MS, "as on the wire");
static_assert(PLX_HEARTBEAT_NS_MAX == HEARTBEAT_MS_MAX * PLX_NS_PER_MS, "as on the wire");
static_assert(PLX_DEAD_AFTER_NS_MAX == DEAD_AFTER_MS_MAX * PLX_NS_PER_MS, "as on the wire");
/* A frame that left just behind a look is 1.5 periods before the next one at worst, see beat(); a
 * peer is suspect after half of the time. */
static_assert(PLX_DEAD_AFTER_MIN > 2 * 1.5, "who is alive is never suspect");

/* An lcore that cannot judge yet, as another one has not looked, asks again so soon. */
#define ASK_AGAIN_NS (10 * PLX_NS_PER_MS)

/* Having been late counts for one to two of these. */
#define LATE_WINDOW_NS (10 * PLX_NS_PER_S)

/* Links that a heartbeat is tried on: one that takes none has frames waiting to leave, which will
 * do as well. */
#define TRIES_MAX    8

#define PEER_BUCKETS 256

/* Another process, by one path: as long as any lcore has a link with it. */
struct peer {
	struct peer *next; /* in its bucket; under the lock */
	uint64_t incarnation;
	uint32_t path;
	uint64_t period_ns, dead_after_ns;
	struct presence *presences; /* under the lock */
	_Atomic uint64_t heard_ns;  /* by any lcore, as of its last look */
	_Atomic uint64_t sent_ns;   /* the same; or when an lcore took it on to send a heartbeat */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct peer *peers[PEER_BUCKETS]; /* under the lock */

/* What this process asks for; constant after init. */
static uint64_t own_period_ns, own_dead_after_ns; /* 0: no heartbeats */

static void look(struct plx_timer *timer, void *arg);

/* Set-up ----------------------------------------------------------------------------------- */

static int out_of_range(const char *what, uint64_t value_ns, uint64_t min_ns, uint64_t max_ns)
{
	return plx_fail(EINVAL, "%s of %llu ms is out of range; give %llu ms to %llu ms", what,
			(unsigned long long)(value_ns / PLX_NS_PER_MS),
			(unsigned long long)(min_ns / PLX_NS_PER_MS),
			(unsigned long long)(max_ns / PLX_NS_PER_MS));
}

int liveness_init(const struct plx_fabric_conf *conf)
{
	uint64_t period_ns = conf->heartbeat_ns ? conf->heartbeat_ns : PLX_HEARTBEAT_NS_DEFAULT;
	uint64_t dead_ns = conf->dead_after_ns;

	own_period_ns = own_dead_after_ns = 0;
	if (conf->heartbeat_ns == UINT64_MAX)
		return 0;
	if (period_ns < PLX_HEARTBEAT_NS_MIN || period_ns > PLX_HEARTBEAT_NS_MAX)
		return out_of_range("a heartbeat", period_ns, PLX_HEARTBEAT_NS_MIN,
				    PLX_HEARTBEAT_NS_MAX);
	if (!dead_ns)
		dead_ns = PLX_DEAD_AFTER_DEFAULT * period_ns;
	if (dead_ns < PLX_DEAD_AFTER_MIN * period_ns || dead_ns > PLX_DEAD_AFTER_NS_MAX)
		return out_of_range("silence", dead_ns, PLX_DEAD_AFTER_MIN * period_ns,
				    PLX_DEAD_AFTER_NS_MAX);
	own_period_ns = period_ns;
	own_dead_after_ns = dead_ns;
	return 0;
}

void liveness_home_init(struct plx_fabric_lcore *home)
{
	struct pulse *pulse = &home->pulse;

	plx_timer_init(&pulse->timer, look, home);
	pulse->nobody.home = home;
}

/* HELLO ------------------------------------------------------------------------------------ */

/* FNV-1a, 32 bits: http://www.isthe.com/chongo/tech/comp/fnv/ */
static uint32_t hash(uint32_t hash, const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		hash = (hash ^ (uint8_t)text[i]) * UINT32_C(16777619);
	return hash;
}

/* The connector names the path, by what it knows of it: two networks between a pair of processes
 * are two paths, and what is heard by one says nothing of the other. */
static uint32_t path_of(const struct plx_link *link)
{
	const char *name = link->set->driver->name;
	const char *port = strrchr(link->peer, ':');
	uint32_t path = hash(UINT32_C(2166136261), name, strlen(name) + 1);

	return hash(path, link->peer, port ? (size_t)(port - link->peer) : strlen(link->peer));
}

void liveness_offer(const struct plx_link *link, struct frame_hello *hello)
{
	hello->incarnation = fabric_incarnation;
	hello->heartbeat_ms = (uint32_t)(own_period_ns / PLX_NS_PER_MS);
	hello->dead_after_ms = (uint32_t)(own_dead_after_ns / PLX_NS_PER_MS);
	hello->path = link->connector ? path_of(link) : 0;
}

static uint32_t longer(uint64_t own_ns, uint32_t peers_ms)
{
	uint32_t own_ms = (uint32_t)(own_ns / PLX_NS_PER_MS);

	return own_ms > peers_ms ? own_ms : peers_ms;
}

/* The more patient of both decides; none is most patient. */
void liveness_agree(struct plx_link *link, const struct frame_hello *hello)
{
	struct liveness *live = &link->live;

	live->incarnation = hello->incarnation;
	live->path = link->connector ? path_of(link) : hello->path;
	if (!own_period_ns || !hello->heartbeat_ms)
		return;
	live->heartbeat_ms = longer(own_period_ns, hello->heartbeat_ms);
	live->dead_after_ms = longer(own_dead_after_ns, hello->dead_after_ms);
}

/* Peers ------------------------------------------------------------------------------------ */

static struct peer **bucket_of(const struct liveness *live)
{
	return &peers[(live->incarnation ^ live->path) % PEER_BUCKETS];
}

/* The lock is held by who calls these. */
static struct peer *peer_get(const struct liveness *live)
{
	struct peer **bucket = bucket_of(live), *peer = *bucket;

	while (peer && (peer->incarnation != live->incarnation || peer->path != live->path))
		peer = peer->next;
	if (peer)
		return peer;
	peer = calloc(1, sizeof(*peer));
	if (!peer)
		return NULL;
	peer->incarnation = live->incarnation;
	peer->path = live->path;
	peer->period_ns = live->heartbeat_ms * PLX_NS_PER_MS;
	peer->dead_after_ns = live->dead_after_ms * PLX_NS_PER_MS;
	peer->next = *bucket;
	*bucket = peer;
	return peer;
}

static void peer_put(struct peer *peer, const struct liveness *live)
{
	struct peer **at = bucket_of(live);

	if (peer->presences)
		return;
	while (*at != peer)
		at = &(*at)->next;
	*at = peer->next;
	free(peer);
}

static struct presence *presence_on(struct peer *peer, const struct plx_fabric_lcore *home)
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

	while (*at != presence)
		at = &(*at)->next_of_peer;
	*at = presence->next_of_peer;
	*presence->prev_next = presence->next;
	if (presence->next)
		presence->next->prev_next = presence->prev_next;
	free(presence);
}

static struct presence *presence_get(struct plx_link *link)
{
	struct presence *presence = NULL;
	struct peer *peer;

	pthread_mutex_lock(&lock);
	peer = peer_get(&link->live);
	if (peer) {
		presence = presence_on(peer, link->set->home);
		presence = presence ? presence : presence_add(peer, link->set->home);
		peer_put(peer, &link->live);
	}
	pthread_mutex_unlock(&lock);
	return presence;
}

/* A later time; another lcore's that is lost now comes again with its next look. Relaxed: it stands
 * for itself. */
static void raise_to(_Atomic uint64_t *time, uint64_t time_ns)
{
	if (atomic_load_explicit(time, memory_order_relaxed) < time_ns)
		atomic_store_explicit(time, time_ns, memory_order_relaxed);
}

static uint64_t host_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * PLX_NS_PER_S + (uint64_t)ts.tv_nsec;
}

/* At the next multiple of the period, by a clock that all processes of the host share: lcores look
 * together, and one that wakes to send its heartbeat finds those of its neighbours. earlier_ns: or
 * then. */
static void look_again(struct plx_fabric_lcore *home, uint64_t now_ns, uint64_t earlier_ns)
{
	uint64_t next_ns = plx_now_ns() + own_period_ns - host_ns() % own_period_ns;

	home->pulse.due_ns = next_ns < earlier_ns ? next_ns : earlier_ns;
	plx_timer_start(&home->pulse.timer, home->pulse.due_ns - now_ns);
}

void liveness_join(struct plx_link *link)
{
	struct plx_fabric_lcore *home = link->set->home;
	struct liveness *live = &link->live;
	uint64_t now_ns = plx_loop_now_ns();

	/* A link with oneself: whoever could ask whether this process is alive knows. */
	if (!live->heartbeat_ms || live->incarnation == fabric_incarnation)
		return;

	struct presence *presence = presence_get(link);

	if (!presence) {
		plx_log(&fabric_log, PLX_LOG_WARNING,
			"link with %s: no memory to watch whether it is alive", link->peer);
		return;
	}
	live->presence = presence;
	live->next = presence->links;
	live->prev_next = &presence->links;
	if (live->next)
		live->next->live.prev_next = &live->next;
	presence->links = link;
	/* Its HELLO has just come, and ours has left. */
	atomic_store_explicit(&presence->heard_ns, now_ns, memory_order_relaxed);
	presence->sent_ns = now_ns;
	raise_to(&presence->peer->heard_ns, now_ns);
	raise_to(&presence->peer->sent_ns, now_ns);
	if (!plx_timer_running(&home->pulse.timer))
		look_again(home, now_ns, UINT64_MAX);
}

void liveness_leave(struct plx_link *link)
{
	struct plx_fabric_lcore *home = link->set->home;
	struct liveness *live = &link->live;
	struct presence *presence = live->presence;

	if (!presence->peer)
		return;
	live->presence = &home->pulse.nobody;
	*live->prev_next = live->next;
	if (live->next)
		live->next->live.prev_next = live->prev_next;
	if (presence->links)
		return;
	pthread_mutex_lock(&lock);

	struct peer *peer = presence->peer;

	presence_drop(presence);
	peer_put(peer, live);
	pthread_mutex_unlock(&lock);
	if (!home->pulse.presences)
		plx_timer_stop(&home->pulse.timer);
}

/* Looking ---------------------------------------------------------------------------------- */

static uint64_t greater(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* What all lcores together know of a peer. */
struct silence {
	uint64_t heard_ns;  /* last */
	uint64_t looked_ns; /* until then nothing more had come */
	uint64_t margin_ns;
};

static void ask_lcore(const struct presence *presence, struct silence *silence)
{
	const struct plx_fabric_lcore *home = presence->home;

	/* V1 -> V2: what had come before that turn is seen below. */
	uint64_t turn_ns = atomic_load_explicit(&home->turn_ns, memory_order_acquire);

	if (turn_ns < silence->looked_ns)
		silence->looked_ns = turn_ns;
	silence->heard_ns = greater(
		silence->heard_ns, atomic_load_explicit(&presence->heard_ns, memory_order_relaxed));
	silence->margin_ns = greater(
		silence->margin_ns,
		atomic_load_explicit(&home->pulse.late_ns, memory_order_relaxed));
}

static struct silence ask_all(const struct peer *peer, uint64_t now_ns)
{
	struct silence silence = {.looked_ns = now_ns};

	pthread_mutex_lock(&lock);
	for (const struct presence *presence = peer->presences; presence;
	     presence = presence->next_of_peer)
		ask_lcore(presence, &silence);
	pthread_mutex_unlock(&lock);
	return silence;
}

static void set_suspect(struct presence *presence, bool suspect, uint64_t silent_ns)
{
	if (presence->suspect == suspect)
		return;
	presence->suspect = suspect;
	plx_log(&fabric_log, PLX_LOG_INFO, "lcore %u: %s %s (%llu ms)", presence->home->id,
		presence->links->peer, suspect ? "is silent" : "is heard again",
		(unsigned long long)(silent_ns / PLX_NS_PER_MS));
}

/* Its links end; with the last of this lcore the presence is gone, and may be the peer. */
static void give_up(struct presence *presence, uint64_t silent_ns)
{
	struct plx_link *link = presence->links;

	plx_log(&fabric_log, PLX_LOG_NOTICE,
		"lcore %u: %s has said nothing for %llu ms: its links end", presence->home->id,
		link->peer, (unsigned long long)(silent_ns / PLX_NS_PER_MS));
	for (struct plx_link *next; link; link = next) {
		next = link->live.next;
		link_end(link, PLX_LINK_SILENT, "%s has said nothing for %llu ms", link->peer,
			 (unsigned long long)(silent_ns / PLX_NS_PER_MS));
	}
}

/* Nothing was heard for so long that it may be dead. Return: when to look at it again; 0: it was
 * given up, and is gone. */
static uint64_t judge(struct presence *presence, uint64_t now_ns)
{
	struct silence silence = ask_all(presence->peer, now_ns);
	uint64_t dead_ns = presence->peer->dead_after_ns + silence.margin_ns;
	uint64_t suspect_ns = presence->peer->dead_after_ns / 2 + silence.margin_ns;
	uint64_t silent_ns = silence.looked_ns > silence.heard_ns
				   ? silence.looked_ns - silence.heard_ns
				   : 0;

	raise_to(&presence->peer->heard_ns, silence.heard_ns);
	if (silent_ns >= dead_ns) {
		give_up(presence, silent_ns);
		return 0;
	}
	set_suspect(presence, silent_ns >= suspect_ns, silent_ns);
	return greater(silence.heard_ns + (presence->suspect ? dead_ns : suspect_ns),
		       now_ns + ASK_AGAIN_NS);
}

/* Return: when to look again; 0: it is gone. */
static uint64_t listen_to(struct presence *presence, uint64_t now_ns)
{
	struct peer *peer = presence->peer;
	uint64_t own_ns = atomic_load_explicit(&presence->heard_ns, memory_order_relaxed);
	uint64_t suspect_ns = peer->dead_after_ns / 2, heard_ns;

	raise_to(&peer->heard_ns, own_ns);
	heard_ns = greater(own_ns, atomic_load_explicit(&peer->heard_ns, memory_order_relaxed));
	if (now_ns >= heard_ns + suspect_ns)
		return judge(presence, now_ns);
	set_suspect(presence, false, now_ns > heard_ns ? now_ns - heard_ns : 0);
	return heard_ns + suspect_ns;
}

/* Say that this process is alive, if nothing else has said so lately: what left in the half period
 * before a look has, and what left earlier is followed by a heartbeat now, as it would be 1.5
 * periods old at the next look. */
static void beat(struct presence *presence, uint64_t now_ns)
{
	struct peer *peer = presence->peer;
	uint64_t sent_ns = atomic_load_explicit(&peer->sent_ns, memory_order_relaxed);
	struct plx_link *link = presence->links;
	uint64_t fresh_ns = peer->period_ns - own_period_ns / 2;

	if (presence->sent_ns > sent_ns) {
		raise_to(&peer->sent_ns, presence->sent_ns);
		sent_ns = presence->sent_ns;
	}
	if (now_ns < sent_ns + fresh_ns)
		return;
	/* Relaxed: whoever swaps sends it. */
	if (!atomic_compare_exchange_strong_explicit(&peer->sent_ns, &sent_ns, now_ns,
						     memory_order_relaxed, memory_order_relaxed))
		return;
	for (unsigned tries = 0; link && tries < TRIES_MAX; tries++) {
		struct plx_link *next = link->live.next; /* sending may end the link */

		if (send_heartbeat(link) == 0)
			break;
		link = next;
	}
}

static void note_lateness(struct pulse *pulse, uint64_t now_ns)
{
	uint64_t late_ns = now_ns > pulse->due_ns ? now_ns - pulse->due_ns : 0;

	if (now_ns - pulse->window_ns >= LATE_WINDOW_NS) {
		pulse->window_ns = now_ns;
		pulse->late_before_ns = pulse->late_now_ns;
		pulse->late_now_ns = 0;
	}
	pulse->late_now_ns = greater(pulse->late_now_ns, late_ns);
	/* Relaxed: it stands for itself. */
	atomic_store_explicit(&pulse->late_ns, greater(pulse->late_now_ns, pulse->late_before_ns),
			      memory_order_relaxed);
}

static void look(struct plx_timer *timer, void *arg)
{
	struct plx_fabric_lcore *home = arg;
	uint64_t now_ns = plx_loop_now_ns(), next_ns = UINT64_MAX;

	note_lateness(&home->pulse, now_ns);
	for (struct presence *presence = home->pulse.presences, *next; presence; presence = next) {
		next = presence->next;

		uint64_t again_ns = listen_to(presence, now_ns);

		if (!again_ns)
			continue;
		if (again_ns < next_ns)
			next_ns = again_ns;
		beat(presence, now_ns);
	}
	if (home->pulse.presences)
		look_again(home, now_ns, next_ns);
}

bool plx_link_is_suspect(const struct plx_link *link)
{
	return link->live.presence->suspect;
}
