/* SPDX-License-Identifier: BSD-3-Clause */
/* A listener: a passive endpoint, its counters, and its end. */
#include "fabric_link.h"
#include "fabric_listen.h"
#include "list.h"

#include <stdio.h>
#include <stdlib.h>

/* Counters ------------------------------------------------------------------------------------ */

struct listener_shared *listener_shared_create(const struct plx_listen_attr *attr)
{
	struct listener_shared *shared = calloc(1, sizeof(*shared));

	if (!shared)
		return NULL;
	shared->attr = *attr;
	plx_random(&shared->log_key, sizeof(shared->log_key));
	admission_init(&shared->admission, &attr->admission, attr->link.connect_timeout_ns);
	atomic_init(&shared->refs, 1);
	return shared;
}

void listener_ref(struct listener_shared *shared)
{
	/* Relaxed: the caller holds a reference. */
	atomic_fetch_add_explicit(&shared->refs, 1, memory_order_relaxed);
}

void listener_unref(struct listener_shared *shared)
{
	/* U1 -> U2: every holder's uses come before the last one's free. Each decrement is both
	 * ends of the edge. */
	if (!shared || atomic_fetch_sub_explicit(&shared->refs, 1, memory_order_acq_rel) != 1)
		return;
	pthread_mutex_destroy(&shared->admission.lock);
	free(shared);
}

/* Failed handshakes --------------------------------------------------------------------------- */

/* Peers that do not complete a handshake, with the wrong program or port, retry: each host gets one
 * log line per second; those of one hash share it. */
#define PAUSE_NS PLX_NS_PER_S

static void log_host(struct listener_shared *shared, enum plx_log_level level,
		     const struct in6_addr *host, const char *peer, const char *who,
		     const char *what)
{
	uint64_t hash = plx_siphash(&shared->log_key, host, sizeof(*host));
	uint64_t now_ns = plx_loop_now_ns();
	_Atomic uint64_t *next_ns = &shared->log_next_ns[hash % HANDSHAKE_LOGS];

	if (atomic_load_explicit(next_ns, memory_order_relaxed) > now_ns)
		return;
	atomic_store_explicit(next_ns, now_ns + PAUSE_NS, memory_order_relaxed);
	plx_log(&fabric_log, level, "%s did not complete the handshake: %s%s", peer, who, what);
}

/* Health checks of load balancers connect and close: no reason to warn. */
void listener_no_handshake(const struct ticket *ticket, bool left, const char *why)
{
	char peer[ORIGIN_TEXT_BYTES];

	counter_add_shared(&ticket->shared->no_handshake, 1);
	origin_key_text(&ticket->origin->key, peer);
	log_host(ticket->shared, left ? PLX_LOG_INFO : PLX_LOG_WARNING, &ticket->origin->key, peer,
		 "", why);
}

/* A link of that listener ended before it was open: log and count it, without a callback. */
void listener_failed(const struct plx_link *link)
{
	struct listener_shared *shared = link->from;
	const char *text = plx_link_without_peer(link, link->text);

	counter_add_shared(&shared->failed, 1);
	pthread_mutex_lock(&shared->admission.lock);
	snprintf(shared->last_failure, sizeof(shared->last_failure), "%.159s", link->text);
	pthread_mutex_unlock(&shared->admission.lock);
	/* Relaxed: the eviction was logged already. */
	if (atomic_load_explicit(&link->ticket->evicted, memory_order_relaxed))
		return;
	if (link->reason == PLX_LINK_HELLO) {
		counter_add_shared(&shared->no_handshake, 1);
		log_host(shared, PLX_LOG_WARNING, &link->ticket->origin->key, link->peer, "it ",
			 text);
	} else if (plx_log_allowed(&link->set->log_limit, plx_loop_now_ns())) {
		log_warning("connection from %s dropped: %s", link->peer, text);
	}
}

void plx_listener_stats_read(const struct plx_listener *listener,
			     struct plx_listener_stats *stats_out)
{
	struct listener_shared *shared = listener->shared;
	_Atomic uint64_t *counts = shared->admission.counts;

	stats_out->requests = counter_get(&shared->requests);
	stats_out->opened = counter_get(&shared->opened);
	stats_out->refused = counter_get(&shared->refused);
	stats_out->refused_links = counter_get(&counts[ADMISSION_LINKS]);
	stats_out->refused_host = counter_get(&counts[ADMISSION_HOST]);
	stats_out->refused_rate = counter_get(&counts[ADMISSION_RATE]);
	stats_out->refused_handshakes = counter_get(&counts[ADMISSION_HANDSHAKES]);
	stats_out->evicted = counter_get(&counts[ADMISSION_EVICTED]);
	stats_out->failed = counter_get(&shared->failed);
	stats_out->no_handshake = counter_get(&shared->no_handshake);
	stats_out->protocol_broken = counter_get(&shared->protocol_broken);
	pthread_mutex_lock(&shared->admission.lock);
	memcpy(stats_out->last_failure, shared->last_failure, sizeof(stats_out->last_failure));
	memcpy(stats_out->last_refused, shared->last_refused, sizeof(stats_out->last_refused));
	pthread_mutex_unlock(&shared->admission.lock);
}

/* The user's ----------------------------------------------------------------------------------- */

const char *plx_listener_address(const struct plx_listener *listener)
{
	return listener->address;
}

unsigned plx_listener_port(const struct plx_listener *listener)
{
	return listener ? listener->port : 0;
}

void listener_end(struct plx_listener *listener)
{
	struct plx_listener *also, *next;

	LIST_FOREACH_SAFE (also, &listener->also, of_front, next)
		listener_free(also);
	if (!listener->pep)
		return;
	handover_close(listener);
	fi_close(&listener->pep->fid);
	listener->pep = NULL;
	if (!listener->of_home.le_prev)
		return;
	listener->set->listeners--;
	LIST_REMOVE(listener, of_home);
	LIST_INSERT_HEAD(&listener->home->ended, listener, of_home);
}

void listener_free(struct plx_listener *listener)
{
	listener_end(listener);
	if (listener->of_home.le_prev)
		LIST_REMOVE(listener, of_home);
	if (listener->of_front.le_prev)
		LIST_REMOVE(listener, of_front);
	listener_unref(listener->shared);
	free(listener);
}

void plx_listener_close(struct plx_listener *listener)
{
	if (!listener || plx_is_forked())
		return;
	ASSERT_OWNER(listener->home->id);
	listener_free(listener);
}
