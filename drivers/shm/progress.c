/* SPDX-License-Identifier: BSD-3-Clause */
/* The first step of a completion queue read: check endpoints, continue sends, notice hang-ups.
 * A poll costs the same with any number of idle connections. It checks endpoints that received
 * something lately every time (hot). The others ask their peers to call (enum shm_call) by
 * setting a bit in the queue's bell; one word of the bell is nonzero if any is set. Every peer of
 * the queue can write its bell, so the bits are not trusted: every SWEEP_EVERY polls, one more
 * endpoint is checked whether it rang or not. */
#include "shm.h"

#include <poll.h>
#include <sys/socket.h>
#include <time.h>

#define BELLS_MAX   16 /* calls answered in one poll */
#define SWEEP_EVERY 64 /* polls */
#define CLOCK_EVERY 16 /* polls between two looks at the clock */

/* Lists -------------------------------------------------------------------------------------- */

static void set_call(struct shm_ep *ep, uint32_t call)
{
	/* C3; for CALL_NONE it only saves the peer calls. */
	atomic_store_explicit(&ep->reader.segment.control->call, call, memory_order_seq_cst);
}

static bool is_read(const struct shm_ep *ep)
{
	return ep->base.state == EP_CONNECTED || ep->base.state == EP_DRAINING;
}

void progress_activate(struct shm_ep *ep)
{
	if (!is_read(ep))
		return;
	ep->base.idle_looks = 0;
	ep->base.starved = false;
	ep->is_armed = false; /* the peer may have taken the request: the next sleep asks again */
	if (ep->base.listed == LISTED_HOT)
		return;
	set_call(ep, CALL_NONE);
	ep_list(&ep->base, LISTED_HOT);
}

void progress_posted(struct prov_ep *ep)
{
	progress_activate((struct shm_ep *)ep);
}

/* Ask the peer to call. Return: false: something arrived before, and it is hot. */
static bool ask_for_call(struct shm_ep *ep, uint32_t call)
{
	set_call(ep, call);
	if (!ring_look(&ep->reader)) /* C4 */
		return true;
	ep_list(&ep->base, LISTED_NOT); /* withdraw the request */
	progress_activate(ep);
	return false;
}

/* Idle for long: the peer must call from now on. */
static void quieten(struct shm_ep *ep)
{
	if (ask_for_call(ep, CALL_BELL))
		ep_list(&ep->base, LISTED_ASIDE);
}

void progress_begin(struct shm_ep *ep)
{
	ep->inline_max = shm_params.inline_max;
	if (ep->inline_max > ring_payload_max(&ep->writer.segment))
		ep->inline_max = ring_payload_max(&ep->writer.segment);
	progress_activate(ep);
}

void progress_end(struct shm_ep *ep)
{
	if (ep->calls_later)
		send_call_peers(domain_of(ep));
	ep_list(&ep->base, LISTED_NOT);
	if (ep->is_sending)
		TAILQ_REMOVE(&domain_of(ep)->sending, ep, send_link);
	ep->is_sending = false;
	cq_detach(rx_cq_of(ep), ep);
}

void progress_send_later(struct shm_ep *ep)
{
	if (ep->is_sending)
		return;
	TAILQ_INSERT_TAIL(&domain_of(ep)->sending, ep, send_link);
	ep->is_sending = true;
}

/* Hanging up --------------------------------------------------------------------------------- */

static void finish(struct shm_ep *ep)
{
	ep->base.state = EP_DEAD;
	ep_list(&ep->base, LISTED_NOT);
	receives_flush(&ep->base, FI_ECANCELED);
	send_flush(ep, FI_ECANCELED);
	prov_ep_tell(&ep->base, FI_SHUTDOWN, NULL, 0);
}

/* The peer sends nothing more. What it sent is delivered first, as far as receives are posted;
 * without receives FI_SHUTDOWN waits until some are posted or the endpoint is closed. The peer sent
 * no more than the ring holds: reading stops there if it keeps writing or wrote a cycle. */
static bool is_drained(struct shm_ep *ep)
{
	return ep->broken || ep->reader.head >= ep->drain_end || !ring_look(&ep->reader);
}

void progress_hang_up(struct shm_ep *ep)
{
	if (ep->base.state != EP_CONNECTED && !(ep->base.state == EP_DRAINING && ep->shut_down))
		return;
	ep->base.state = EP_DRAINING;
	ep->drain_end = ep->reader.head + ep->reader.segment.ring_bytes;
	progress_activate(ep);
	while (!is_drained(ep) && receive_poll(ep, SHM_POLL_RECORDS))
		;
	if (ep->base.state == EP_DRAINING && (ep->shut_down || is_drained(ep)))
		finish(ep);
}

bool progress_peer_is_there(const struct shm_ep *ep)
{
	struct pollfd pollfd = {.fd = ep->base.source.fd, .events = POLLRDHUP};

	return poll(&pollfd, 1, 0) == 0;
}

void progress_broken(struct shm_ep *ep)
{
	if (!ep->broken && progress_peer_is_there(ep))
		shm_log(FI_LOG_WARN,
			"pid %d wrote what cannot be into a ring it shares; its connection is "
			"ended",
			(int)ep->peer_process.pid);
	ep->broken = true;
	shutdown(ep->base.source.fd, SHUT_RDWR);
	progress_hang_up(ep);
}

/* Polling ------------------------------------------------------------------------------------ */

static uint32_t look(struct shm_ep *ep, uint32_t max)
{
	uint32_t taken = receive_poll(ep, max);

	if (plx_unlikely(ep->base.state == EP_DRAINING && is_drained(ep))) {
		finish(ep);
	} else if (plx_unlikely(ep->base.starved)) {
		ep_list(&ep->base, LISTED_NOT); /* posting a receive re-lists it */
	} else if (taken || plx_unlikely(ep->base.state != EP_CONNECTED)) {
		ep->base.idle_looks = 0;
		ep->is_armed = false; /* in case the peer had no memory for the byte */
	} else if (plx_unlikely(hot_age(&ep->base))) {
		quieten(ep);
	}
	return taken;
}

static void poll_hot(struct prov_cq *q)
{
	uint32_t left = SHM_POLL_RECORDS;

	for (uint32_t i = q->hot_count; i > 0 && left > 0 && !TAILQ_EMPTY(&q->hot); i--)
		left -= look((struct shm_ep *)hot_next(q), left);
}

static void answer(struct shm_cq *cq, uint32_t slot)
{
	for (struct shm_ep *ep = cq->slots[slot], *next; ep; ep = next) {
		next = ep->next_slot;
		if (!ep->base.starved)
			progress_activate(ep);
	}
}

/* Answer some calls. An unfinished word is left for the next poll. */
static PLX_NOINLINE void take_bells(struct shm_cq *cq)
{
	/* Bits of the summary are cleared before their words and set after them. */
	uint64_t summary = atomic_exchange_explicit(&cq->bell->summary, 0, memory_order_seq_cst);
	uint32_t answered = 0;

	while (summary && answered < BELLS_MAX) {
		uint32_t index = (uint32_t)__builtin_ctzll(summary);
		uint64_t bits = atomic_exchange_explicit(&cq->bell->words[index], 0,
							 memory_order_seq_cst);

		summary &= summary - 1;
		for (; bits; bits &= bits - 1, answered++)
			answer(cq, index * 64 + (uint32_t)__builtin_ctzll(bits));
	}
	if (summary)
		atomic_fetch_or_explicit(&cq->bell->summary, summary, memory_order_relaxed);
}

static PLX_NOINLINE void sweep(struct shm_cq *cq)
{
	struct shm_ep *ep = cq->slots_used ? cq->slots[cq->sweep++ % cq->slots_used] : NULL;

	for (; ep; ep = ep->next_slot) {
		if (ep->base.listed != LISTED_HOT && !ep->base.starved && is_read(ep) &&
		    ring_look(&ep->reader))
			progress_activate(ep);
	}
}

/* If nobody waits, nor reads the event queue. */
static PLX_NOINLINE void look_for_hang_ups(struct shm_cq *cq)
{
	struct shm_domain *domain = (struct shm_domain *)cq->q.domain;
	struct prov_cq *each;
	struct timespec now;
	uint64_t now_ns;

	if (cq->q.wait.set) /* its owner handles them */
		return;
	clock_gettime(CLOCK_MONOTONIC_COARSE, &now); /* a few milliseconds, but cheap */
	now_ns = (uint64_t)now.tv_sec * PLX_NS_PER_S + (uint64_t)now.tv_nsec;
	if (now_ns == domain->looked_ns)
		return;
	domain->looked_ns = now_ns;
	LIST_FOREACH (each, &domain->base.cqs, link)
		cq_clear_wakes((struct shm_cq *)each);
}

/* Peers may read as fast as we write: after some parts, the next endpoint gets its turn. */
static PLX_NOINLINE bool continue_sends(struct shm_domain *domain)
{
	struct shm_ep *first = TAILQ_FIRST(&domain->sending), *ep, *after;
	uint32_t parts = SHM_POLL_PARTS;
	bool moved = false;

	TAILQ_FOREACH_SAFE (ep, &domain->sending, send_link, after) {
		moved |= send_go_on(ep, &parts);
		if (ep->base.tx_head == ep->base.tx_tail && ep->is_sending) {
			TAILQ_REMOVE(&domain->sending, ep, send_link);
			ep->is_sending = false;
		}
	}
	if (first && first == TAILQ_FIRST(&domain->sending)) {
		TAILQ_REMOVE(&domain->sending, first, send_link);
		TAILQ_INSERT_TAIL(&domain->sending, first, send_link);
	}
	return moved;
}

static inline void poll_one(struct shm_cq *cq)
{
	poll_hot(&cq->q);
	/* Relaxed: take_bells checks again. */
	if (plx_unlikely(atomic_load_explicit(&cq->bell->summary, memory_order_relaxed)))
		take_bells(cq);
}

/* A read of one queue progresses the whole domain: a thread waiting for a send to be delivered may
 * only read its send queue, and its peer may do the same. */
void progress_poll(struct shm_cq *cq)
{
	struct shm_domain *domain = (struct shm_domain *)cq->q.domain;
	struct prov_cq *each;

	if (domain->callers)
		send_call_peers(domain);
	poll_one(cq);
	if (plx_unlikely(domain->base.cq_count > 1)) {
		LIST_FOREACH (each, &domain->base.cqs, link) {
			if (each != &cq->q)
				poll_one((struct shm_cq *)each);
		}
	}
	if (plx_unlikely(!TAILQ_EMPTY(&domain->sending)))
		continue_sends(domain);
	if (plx_unlikely(++cq->polls % CLOCK_EVERY == 0)) {
		look_for_hang_ups(cq);
		if (cq->polls % SWEEP_EVERY == 0)
			sweep(cq);
	}
}

/* Going to sleep ----------------------------------------------------------------------------- */

/* A few hot endpoints stay hot: their peers wake us without ringing. They stay armed until a
 * message or the byte of a peer that took the request arrives; until then going back to sleep costs
 * nothing for them. With more, the first ones ask for the bell; otherwise each wake-up would check
 * all of them.
 *
 * Returns whether it has something after all. Records without room in the queue do not count: that
 * queue is read first. */
static bool arm(struct shm_ep *ep)
{
	bool stays_hot = ep->base.listed == LISTED_HOT &&
			 ep->base.rx_cq->hot_count <= HOT_AWAKE_MAX;

	if ((ep->is_armed && stays_hot) || !cq_has_room(ep->base.rx_cq))
		return false;
	if (ep->base.state == EP_DRAINING)
		return true;
	if (!stays_hot)
		ep_list(&ep->base, LISTED_NOT);
	if (!ask_for_call(ep, stays_hot ? CALL_WAKE : CALL_BELL | CALL_WAKE))
		return true;
	ep->is_armed = stays_hot;
	return false;
}

static bool arm_list(struct prov_eps *list)
{
	struct prov_ep *ep, *after;

	TAILQ_FOREACH_SAFE (ep, list, link, after) {
		if (arm((struct shm_ep *)ep))
			return true;
	}
	return false;
}

/* Sends that wait for the peer: it wakes us after reading further. */
static bool arm_sends(struct shm_domain *domain)
{
	struct shm_ep *ep;

	TAILQ_FOREACH (ep, &domain->sending, send_link) {
		/* E3 */
		atomic_store_explicit(&ep->writer.segment.control->space_call, CALL_WAKE,
				      memory_order_seq_cst);
	}
	return continue_sends(domain); /* E4 */
}

bool progress_arm(struct shm_cq *cq)
{
	struct shm_domain *domain = (struct shm_domain *)cq->q.domain;
	struct prov_cq *each;

	send_call_peers(domain);
	LIST_FOREACH (each, &domain->base.cqs, link) {
		if (arm_list(&each->hot) || arm_list(&each->aside))
			return false;
	}
	return !arm_sends(domain);
}
