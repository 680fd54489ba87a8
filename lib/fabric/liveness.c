/* SPDX-License-Identifier: BSD-3-Clause */
/* Detects failed peers. Connections do not report a host without power, a cut cable or a stopped
 * process. So each process sends a HEARTBEAT to each peer process once per period if it sent
 * nothing else. Any frame on any link between the two counts, however many links and lcores they
 * share; so do bytes of an incomplete one, see arrival.c. A peer that is silent for longer than
 * both sides agreed on is given up.
 *
 * Each lcore checks its presences at the same multiples of the period. In the steady state lcores
 * share only two words per peer: when one of them last received, and last sent, a frame as of its
 * last check. Before a peer becomes suspect, its lcore asks the others under a lock what they
 * received, and how far they have polled. An lcore that does not run may have the peer's heartbeats
 * in its queue.
 *
 * This host's own delays are added to the allowed silence. An lcore that checks late, because of a
 * slow callback or a descheduled or suspended machine, would otherwise find every peer silent. */
#include "fabric_link.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static_assert(PLX_HEARTBEAT_NS_MIN == HEARTBEAT_MS_MIN * PLX_NS_PER_MS, "as on the wire");
static_assert(PLX_HEARTBEAT_NS_MAX == HEARTBEAT_MS_MAX * PLX_NS_PER_MS, "as on the wire");
static_assert(PLX_DEAD_AFTER_NS_MAX == DEAD_AFTER_MS_MAX * PLX_NS_PER_MS, "as on the wire");
static_assert(PLX_DEAD_AFTER_MIN == DEAD_AFTER_HEARTBEATS_MIN, "as on the wire");
/* A frame that left just after a check is at most 1.5 periods old when the next one leaves, see
 * send_heartbeat_if_due(). A peer becomes suspect after half of the time. */
static_assert(PLX_DEAD_AFTER_MIN > 3, "who is alive is never suspect");

/* Retry delay: when another lcore has not polled far enough for a verdict, and when no link accepts
 * a heartbeat. */
#define AGAIN_NS (10 * PLX_NS_PER_MS)

/* A delay counts for one to two windows. */
#define LATE_WINDOW_NS (10 * PLX_NS_PER_S)

/* Presences checked, and links ended, per turn. */
#define LOOKS_MAX  32

#define TRIES_MAX  8    /* links tried per heartbeat */
#define PASSES_MAX 4096 /* links skipped: their peers may have no receive for one */

/* This process's settings; constant after init. */
static uint64_t own_period_ns, own_dead_after_ns; /* 0: no heartbeats */
static uint64_t dead_after_max_ns;                /* of links that listeners accept */
static char too_rare[REFUSE_TEXT_MAX + 1];
static struct plx_siphash_key incarnation_key, path_key;

static void look(struct plx_timer *timer, void *arg);

/* Set-up ----------------------------------------------------------------------------------- */

static uint64_t whole_ms(uint64_t ns)
{
	return ns - ns % PLX_NS_PER_MS;
}

int liveness_init(const struct plx_fabric_conf *conf)
{
	uint64_t period_ns = whole_ms(conf->heartbeat_ns ?: PLX_HEARTBEAT_NS_DEFAULT);
	uint64_t dead_ns = whole_ms(conf->dead_after_ns ?: PLX_DEAD_AFTER_DEFAULT * period_ns);
	uint64_t dead_min_ns = PLX_DEAD_AFTER_MIN * period_ns;
	uint64_t max_ns = whole_ms(conf->dead_after_max_ns ?: greater(60 * PLX_NS_PER_S, dead_ns));
	int rc;

	plx_random(&incarnation_key, sizeof(incarnation_key));
	plx_random(&path_key, sizeof(path_key));
	own_period_ns = own_dead_after_ns = 0;
	if (conf->heartbeat_ns == PLX_NEVER)
		return 0;
	rc = check_range("heartbeat_ns", period_ns, PLX_HEARTBEAT_NS_MIN, PLX_HEARTBEAT_NS_MAX);
	rc = rc ?: check_range("dead_after_ns", dead_ns, dead_min_ns, PLX_DEAD_AFTER_NS_MAX);
	rc = rc ?: check_range("dead_after_max_ns", max_ns, dead_ns, PLX_DEAD_AFTER_NS_MAX);
	if (rc)
		return rc;
	own_period_ns = period_ns;
	own_dead_after_ns = dead_ns;
	dead_after_max_ns = max_ns;
	snprintf(too_rare, sizeof(too_rare),
		 "give --heartbeat of at most %llu ms, or the listener more than "
		 "--dead-after-max %llu ms",
		 MS(max_ns / PLX_DEAD_AFTER_MIN), MS(max_ns));
	return 0;
}

void liveness_home_init(struct plx_fabric_lcore *home)
{
	plx_timer_init(&home->watch.timer, look, home);
	plx_timer_set_lax(&home->watch.timer, true);
	home->watch.no_peer.home = home;
	home->watch.suspended_ns = plx_clock_suspended_ns();
}

/* HELLO ------------------------------------------------------------------------------------ */

/* A keyed hash of the provider and the peer's host. Incarnations differ for each host: with a
 * common number, one peer could send heartbeats to another in the name of this process. The
 * connector names the path: two networks between a pair of processes are two paths, because frames
 * on one prove nothing about the other. */
static uint64_t number_of(const struct plx_link *link, const struct plx_siphash_key *key)
{
	const char *port = strrchr(link->peer, ':');
	int host_length = port ? (int)(port - link->peer) : (int)strlen(link->peer);
	char text[PLX_ADDRESS_MAX + 64];

	snprintf(text, sizeof(text), "%s %.*s", link->driver->name, host_length, link->peer);
	return plx_siphash(key, text, strlen(text));
}

void liveness_offer(const struct plx_link *link, struct frame_hello *hello)
{
	hello->incarnation = number_of(link, &incarnation_key);
	hello->heartbeat_ms = (uint32_t)(own_period_ns / PLX_NS_PER_MS);
	hello->dead_after_ms = (uint32_t)(own_dead_after_ns / PLX_NS_PER_MS);
	hello->path = link->connector ? (uint32_t)number_of(link, &path_key) : 0;
}

/* Take the longer times of both sides, a listener up to its limit; no heartbeats counts as longest.
 * The other side may bear more silence: it only ends the link later. */
void liveness_agree(struct plx_link *link, const struct frame_hello *hello)
{
	struct liveness *live = &link->live;
	uint64_t period_ms = own_period_ns / PLX_NS_PER_MS;
	uint64_t dead_after_ms = own_dead_after_ns / PLX_NS_PER_MS;

	live->incarnation = hello->incarnation;
	live->own = number_of(link, &incarnation_key);
	live->path = link->connector ? (uint32_t)number_of(link, &path_key) : hello->path;
	if (!period_ms || !hello->heartbeat_ms)
		return;
	live->heartbeat_ms = (uint32_t)greater(period_ms, hello->heartbeat_ms);
	live->dead_after_ms = (uint32_t)greater(dead_after_ms, hello->dead_after_ms);
	if (!link->connector)
		live->dead_after_ms = (uint32_t)lesser(live->dead_after_ms,
						       dead_after_max_ns / PLX_NS_PER_MS);
}

const char *liveness_refusal(const struct plx_link *link)
{
	const struct liveness *live = &link->live;
	uint64_t least_ms = PLX_DEAD_AFTER_MIN * (uint64_t)live->heartbeat_ms;

	return !link->connector && least_ms > live->dead_after_ms ? too_rare : NULL;
}

/* Joining ---------------------------------------------------------------------------------- */

/* Start the timer for the next multiple of the period, by a clock that all processes of the host
 * share: lcores check together, and one that wakes to send a heartbeat finds those of its
 * neighbours. earlier_ns: the time, if it is earlier. */
static void look_again(struct watch *watch, uint64_t earlier_ns)
{
	uint64_t now_ns = plx_now_ns(), host_ns;
	struct timespec host;

	clock_gettime(CLOCK_MONOTONIC, &host);
	host_ns = (uint64_t)host.tv_sec * PLX_NS_PER_S + (uint64_t)host.tv_nsec;
	watch->multiple_ns = now_ns + own_period_ns - host_ns % own_period_ns;
	watch->due_ns = lesser(earlier_ns, watch->multiple_ns);
	plx_timer_start(&watch->timer, plx_time_since(plx_loop_now_ns(), watch->due_ns));
}

/* Without heartbeats. If this side wants them, the peer does not choose how long a listener waits
 * for it. */
static void keep_alive(struct plx_link *link)
{
	bool is_limited = !link->connector && own_period_ns;

	if (link->driver->keep_alive)
		link->driver->keep_alive(link->ep, is_limited ? dead_after_max_ns / 2 : 0);
}

void liveness_join(struct plx_link *link)
{
	struct watch *watch = &link->home->watch;
	uint64_t now_ns = plx_loop_now_ns();

	if (!link->live.heartbeat_ms)
		keep_alive(link);
	/* A link to this process itself needs no check. */
	if (!link->live.heartbeat_ms || link->live.incarnation == link->live.own)
		return;
	/* The peer's HELLO has just arrived, and ours has left. */
	if (peer_join(link, now_ns) != 0) {
		log_warning("link with %s: no memory to watch whether it is alive", link->peer);
		return;
	}
	if (plx_timer_running(&watch->timer))
		return;
	time_raise(&watch->looked_ns, now_ns);
	look_again(watch, UINT64_MAX);
}

void liveness_leave(struct plx_link *link)
{
	struct watch *watch = &link->home->watch;

	if (!link->presence->peer)
		return;
	peer_leave(link);
	if (LIST_EMPTY(&watch->presences))
		plx_timer_stop(&watch->timer);
}

/* Silence ---------------------------------------------------------------------------------- */

static void set_suspect(struct presence *presence, bool suspect, uint64_t silent_ns)
{
	char who[PLX_PEER_BYTES];
	struct plx_link *link;

	if (presence->suspect == suspect)
		return;
	presence->suspect = suspect;
	LIST_FOREACH (link, &presence->links, of_group)
		link_schedule(link, WANT_ON_SUSPECT);
	log_info("lcore %u: %s %s (%llu ms)", presence->home->id,
		 plx_link_peer_format(LIST_FIRST(&presence->links), who),
		 suspect ? "is silent" : "is heard again", MS(silent_ns));
}

/* End some of the peer's links on this lcore. The last one frees the presence, and maybe the peer.
 * Return: number of links ended. */
static unsigned give_up(struct presence *presence, uint64_t silent_ns)
{
	struct plx_link *link = LIST_FIRST(&presence->links);
	unsigned count = 0;

	for (struct plx_link *next; link && count < LOOKS_MAX; link = next, count++) {
		next = LIST_NEXT(link, of_group);
		close_now(link, PLX_LINK_SILENT, "%s has said nothing for %llu ms", link->peer,
			  MS(silent_ns));
	}
	return count;
}

/* The peer may have failed. Return: when to check again; 0: it has. */
static uint64_t check_silence(struct presence *presence, uint64_t now_ns)
{
	const struct plx_link *link = LIST_FIRST(&presence->links);
	struct peer *peer = presence->peer;
	struct silence silence = peer_ask(peer, presence->home, now_ns);
	char who[PLX_PEER_BYTES];
	uint64_t dead_ns = peer->dead_after_ns + silence.margin_ns;
	uint64_t suspect_ns = peer->dead_after_ns / 2 + silence.margin_ns;

	if (silence.ns >= suspect_ns)
		set_suspect(presence, true, silence.ns);
	if (silence.ns < dead_ns)
		return greater(silence.heard_ns + (presence->suspect ? dead_ns : suspect_ns),
			       now_ns + AGAIN_NS);
	if (silence.stuck != PLX_LCORE_NONE &&
	    plx_log_allowed(&link->set->log_limit, plx_loop_now_ns()))
		log_warning("%s is silent, and lcore %u, which may have heard it, does not turn "
			    "its loop: its links go unheard",
			    plx_link_peer_format(link, who), silence.stuck);
	return 0;
}

/* When the peer may be suspect, as far as this lcore knows. */
static uint64_t suspect_from_ns(struct presence *presence)
{
	struct peer *peer = presence->peer;
	uint64_t own_ns = atomic_load_explicit(&presence->heard_ns, memory_order_relaxed);

	time_raise(&peer->heard_ns, own_ns);
	return peer->dead_after_ns / 2 +
	       greater(own_ns, atomic_load_explicit(&peer->heard_ns, memory_order_relaxed));
}

/* A frame may take longer than the allowed silence: bytes that came of it count as heard now.
 * Return: whether all links were asked; the next turn asks the others. */
static bool ask_links(struct watch *watch, uint64_t now_ns)
{
	struct presence *presence = watch->looking;
	unsigned count = 0;

	if (!watch->asking_ns) {
		/* Providers know of bytes once they are polled. Relaxed: this lcore stored it. */
		watch->asking_ns = atomic_load_explicit(&watch->looked_ns, memory_order_relaxed);
		watch->is_delayed = false;
		watch->asking = LIST_FIRST(&presence->links);
		if (!arrival_is_told(watch->asking)) /* nor by others of this driver */
			watch->asking = NULL;
	}
	for (; watch->asking && count < LOOKS_MAX; count++) {
		if (arrival_has_moved(watch->asking))
			liveness_heard(watch->asking, now_ns);
		watch->is_delayed |= arrival_is_delayed(watch->asking);
		watch->asking = LIST_NEXT(watch->asking, of_group);
	}
	if (watch->asking)
		return false;
	peer_asked(presence, watch->asking_ns, watch->is_delayed);
	watch->asking_ns = 0;
	return true;
}

/* Return: when to check again; 0: the peer failed. */
static uint64_t listen_to(struct presence *presence, uint64_t now_ns)
{
	uint64_t suspect_ns = suspect_from_ns(presence);

	if (now_ns >= suspect_ns)
		return check_silence(presence, now_ns);
	set_suspect(presence, false,
		    plx_time_since(suspect_ns - presence->peer->dead_after_ns / 2, now_ns));
	return suspect_ns;
}

/* Heartbeats ------------------------------------------------------------------------------- */

/* Try one link after the other, so that NATs and firewalls on the path keep each connection.
 * Return: 0; -EAGAIN no link accepts it; -ENOTCONN the last link tried has ended, and the presence
 * may be freed. */
static int send_heartbeat(struct presence *presence)
{
	struct plx_link *link = presence->next_heartbeat ?: LIST_FIRST(&presence->links);
	unsigned tries = 0;
	int rc = -EAGAIN;

	for (unsigned passes = 0; link && rc && tries < TRIES_MAX && passes < PASSES_MAX;
	     passes++) {
		struct plx_link *next = LIST_NEXT(link, of_group);

		presence->next_heartbeat = next;
		if (!control_can_wait(link)) {
			rc = control_send_heartbeat(link);
			tries++;
		}
		link = next;
	}
	return rc;
}

/* Send a heartbeat unless a frame left in the half period before this check. An older frame would
 * be 1.5 periods old at the next check. Return: when to try again. */
static uint64_t send_heartbeat_if_due(struct presence *presence, uint64_t now_ns)
{
	struct peer *peer = presence->peer;
	uint64_t sent_ns = atomic_load_explicit(&peer->sent_ns, memory_order_relaxed);
	uint64_t fresh_ns = peer->period_ns - own_period_ns / 2;

	if (presence->sent_ns > sent_ns) {
		time_raise(&peer->sent_ns, presence->sent_ns);
		sent_ns = presence->sent_ns;
	}
	if (now_ns < sent_ns + fresh_ns)
		return UINT64_MAX;
	/* Relaxed: the lcore whose exchange succeeds sends. */
	if (!atomic_compare_exchange_strong_explicit(&peer->sent_ns, &sent_ns, now_ns,
						     memory_order_relaxed, memory_order_relaxed))
		return UINT64_MAX;
	presence->heartbeat_unsent = false;
	if (send_heartbeat(presence) != -EAGAIN)
		return UINT64_MAX;
	/* Not sent: let another lcore try; this one retries later. */
	presence->heartbeat_unsent = true;
	atomic_store_explicit(&peer->sent_ns, sent_ns, memory_order_relaxed);
	return now_ns + AGAIN_NS;
}

/* Checks ----------------------------------------------------------------------------------- */

/* How long this lcore did not run: since the check was due, or within this turn. And how long the
 * host was suspended since the last check: peers may need as long to be received. */
static void note_lateness(struct watch *watch, uint64_t now_ns)
{
	uint64_t late_ns = greater(plx_time_since(watch->due_ns, now_ns),
				   plx_time_since(now_ns, plx_now_ns()));
	uint64_t suspended_ns = watch->suspended_ns; /* before */

	if (plx_time_since(watch->window_ns, now_ns) >= LATE_WINDOW_NS) {
		watch->window_ns = now_ns;
		watch->late_before_ns = watch->late_now_ns;
		watch->late_now_ns = 0;
	}
	plx_clock_look(false); /* a loop that never idles, or is embedded, does not check */
	lcore_note_cpu();
	watch->suspended_ns = plx_clock_suspended_ns();
	late_ns = greater(late_ns, watch->suspended_ns - suspended_ns);
	watch->late_now_ns = greater(watch->late_now_ns, late_ns);
	/* Relaxed: guards no other data. */
	atomic_store_explicit(&watch->late_ns, greater(watch->late_now_ns, watch->late_before_ns),
			      memory_order_relaxed);
}

static void begin_look(struct plx_fabric_lcore *home, uint64_t now_ns)
{
	struct watch *watch = &home->watch;
	uint64_t until_ns = now_ns; /* when this lcore had taken all completions of all sets */
	const struct plx_set *set;

	LIST_FOREACH (set, &home->sets, of_home) {
		if (set->links)
			until_ns = lesser(until_ns, set->emptied_ns);
	}
	note_lateness(watch, now_ns);
	watch->on_time = now_ns >= watch->multiple_ns;
	/* V1: a thread that reads this value sees the frames received before. */
	atomic_store_explicit(&watch->looked_ns, until_ns, memory_order_release);
	watch->looking = LIST_FIRST(&watch->presences);
	watch->again_ns = UINT64_MAX;
}

/* Check one presence and advance watch->looking, unless links are left to end. Return: the cost, in
 * units of LOOKS_MAX. */
static unsigned look_at(struct watch *watch, uint64_t now_ns)
{
	struct presence *presence = watch->looking;
	uint64_t again_ns = 0;

	if (!peer_silent_ns(presence->peer)) {
		if ((watch->asking_ns || now_ns >= suspect_from_ns(presence)) &&
		    !ask_links(watch, now_ns))
			return LOOKS_MAX;
		again_ns = listen_to(presence, now_ns);
	}
	if (!again_ns)
		return give_up(presence, peer_silent_ns(presence->peer));
	watch->looking = LIST_NEXT(presence, of_home);
	watch->again_ns = lesser(watch->again_ns, again_ns);
	if (watch->on_time || presence->heartbeat_unsent)
		watch->again_ns = lesser(watch->again_ns, send_heartbeat_if_due(presence, now_ns));
	return 1;
}

static void look(struct plx_timer *timer, void *arg)
{
	struct plx_fabric_lcore *home = arg;
	struct watch *watch = &home->watch;
	uint64_t now_ns = plx_loop_now_ns();
	unsigned done = 0;

	if (!watch->looking)
		begin_look(home, now_ns);
	while (watch->looking && done < LOOKS_MAX)
		done += look_at(watch, now_ns);
	if (watch->looking)
		plx_timer_start(&watch->timer, 0);
	else if (!LIST_EMPTY(&watch->presences))
		look_again(watch, watch->again_ns);
}
