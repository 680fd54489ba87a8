/* SPDX-License-Identifier: BSD-3-Clause */
/* A socket that closes must know when other lcores have closed their connections:
 *
 *     the lcore of a connection              the lcore of the socket
 *     P1 count one more                      P3 mark the socket as closed
 *     P2 if closed: undo P1                  P4 check whether any is open
 *
 * All four are sequentially consistent: either P2 sees P3, or P4 sees P1. If P4 finds none open, no
 * callback follows. After P3 a signal makes the other lcores close their connections. A second
 * signal, fired once, makes each release its acceptor, which only that lcore then touches. */
#include "accept.h"

#include <stdlib.h>

#define ID_SHIFT 48 /* of connection ids: the rest counts from 1 on each lcore */

/* The socket's part on one lcore. */
struct part {
	struct acceptor *acceptor; /* NULL: a later lcore, or none */
	struct plx_signal close, release;
	uint64_t placed; /* connections that the listener placed there; not round-robin */
	_Atomic uint64_t opened, ended;
};

struct spread {
	enum netio_spread how;
	uint32_t last; /* chosen last */
	_Atomic bool closed;
	_Atomic uint32_t refs; /* parts not forgotten, plus spread_release */
	struct part parts[PLX_LCORE_MAX];
};

static struct part *part_of(const struct acceptor *acceptor)
{
	return &acceptor->spread->parts[acceptor->session.lcore];
}

static void unref(struct spread *spread)
{
	/* R1 -> R2: the last reference frees all after the other lcores are done. */
	if (atomic_fetch_sub_explicit(&spread->refs, 1, memory_order_acq_rel) == 1)
		free(spread);
}

/* On the lcore of a part ---------------------------------------------------------------------- */

bool spread_is_closed(const struct acceptor *acceptor)
{
	return acceptor->spread &&
	       atomic_load_explicit(&acceptor->spread->closed, memory_order_seq_cst);
}

bool spread_enter(struct acceptor *acceptor)
{
	if (!acceptor->spread)
		return true;
	atomic_fetch_add_explicit(&part_of(acceptor)->opened, 1, memory_order_seq_cst); /* P1 */
	if (!spread_is_closed(acceptor))                                                /* P2 */
		return true;
	spread_leave(acceptor);
	return false;
}

void spread_leave(struct acceptor *acceptor)
{
	/* P5 -> P4: after its callbacks. */
	if (acceptor->spread)
		atomic_fetch_add_explicit(&part_of(acceptor)->ended, 1, memory_order_release);
}

void spread_forget(struct acceptor *acceptor)
{
	if (!acceptor->spread)
		return;
	plx_signal_fini(&part_of(acceptor)->close);
	plx_signal_fini(&part_of(acceptor)->release);
	unref(acceptor->spread);
}

static void on_close(struct plx_signal *signal, uint64_t fires, void *arg)
{
	const struct part *part = arg;

	if (spread_is_closed(part->acceptor)) /* otherwise it listens again */
		plx_acceptor_close_all(&part->acceptor->session);
}

static void on_release(struct plx_signal *signal, uint64_t fires, void *arg)
{
	acceptor_release(((const struct part *)arg)->acceptor);
}

/* On the lcore of the socket ------------------------------------------------------------------ */

bool spread_close(struct acceptor *own)
{
	struct spread *spread = own->spread;
	bool any_open = false;

	if (!spread || plx_is_forked())
		return false;
	if (!spread_is_closed(own)) {
		atomic_store_explicit(&spread->closed, true, memory_order_seq_cst); /* P3 */
		PLX_LCORE_FOREACH (id)
			plx_signal_fire(&spread->parts[id].close);
	}
	for (uint32_t id = 0; id < PLX_LCORE_MAX; id++) {
		const struct part *part = &spread->parts[id];
		/* P4, P4 <- P5 */
		uint64_t ended = atomic_load_explicit(&part->ended, memory_order_acquire);

		any_open |= ended != atomic_load_explicit(&part->opened, memory_order_seq_cst);
	}
	return any_open;
}

/* On behalf of an idle lcore. */
static void end_there(struct acceptor *acceptor)
{
	struct session_link *it;

	LIST_FOREACH (it, &acceptor->session.links, links)
		if (it->link)
			plx_link_abort(it->link);
	acceptor_release(acceptor);
}

void spread_release(struct acceptor *own)
{
	struct spread *spread = own->spread;

	if (!spread || plx_is_forked())
		return;
	spread_close(own);
	PLX_LCORE_FOREACH (id) {
		struct part *part = &spread->parts[id];

		if (!part->acceptor || part->acceptor == own)
			continue;
		if (lcore_hold_idle(id)) {
			end_there(part->acceptor);
			lcore_release_idle();
		} else {
			plx_signal_fire(&part->release);
		}
	}
	unref(spread);
}

/* Connections that are open or opening there; settled: none is opening. */
static uint64_t load_of(struct part *part, bool settled)
{
	/* Relaxed: an estimate. */
	uint64_t ended = atomic_load_explicit(&part->ended, memory_order_relaxed);
	uint64_t opened = atomic_load_explicit(&part->opened, memory_order_relaxed);

	if (settled || part->placed < opened)
		part->placed = opened;
	return part->placed - ended;
}

/* The lcore with the least load; ties go to the next one after the last choice. */
static uint32_t place(struct plx_listener *listener, const struct sockaddr *peer, void *arg)
{
	struct acceptor *own = arg;
	struct spread *spread = own->spread;
	uint32_t best = own->session.lcore;
	uint64_t least = UINT64_MAX;
	struct plx_listener_stats stats;
	bool settled;

	plx_listener_stats_read(listener, &stats);
	/* The request being placed counts. Failed links were never opened here. */
	settled = stats.requests <= stats.opened + stats.refused + stats.failed + 1;
	PLX_LCORE_FOREACH (id) {
		struct part *part = &spread->parts[id];
		uint64_t load = load_of(part, settled) * PLX_LCORE_MAX +
				(id - spread->last - 1) % PLX_LCORE_MAX;

		if (load < least && part->acceptor &&
		    (part->acceptor == own || plx_loop_is_running(id))) {
			least = load;
			best = id;
		}
	}
	spread->parts[best].placed++;
	spread->last = best;
	return best;
}

void spread_listen(struct acceptor *own, struct plx_listen_attr *attr)
{
	if (!own->spread)
		return;
	atomic_store_explicit(&own->spread->closed, false, memory_order_seq_cst);
	attr->spread = own->spread->how == NETIO_SPREAD_ROUND_ROBIN ? PLX_SPREAD_ROUND_ROBIN
								    : PLX_SPREAD_CALLBACK;
	attr->place = place;
	attr->place_arg = own;
	for (uint32_t id = 0; id < PLX_LCORE_MAX; id++) {
		if (own->spread->parts[id].acceptor)
			attr->lcores[id / 64] |= UINT64_C(1) << id % 64;
	}
}

static struct acceptor *copy(const struct acceptor *own, size_t bytes, uint32_t id)
{
	struct acceptor *acceptor = malloc(bytes);

	if (!acceptor)
		return NULL;
	memcpy(acceptor, own, bytes);
	acceptor->evloop = NULL;
	acceptor->next_id = (uint64_t)id << ID_SHIFT;
	plx_acceptor_init(&acceptor->session, own->session.owner, own->session.number, id);
	return acceptor;
}

int spread_create(struct acceptor *own, size_t bytes, enum netio_spread how)
{
	struct spread *spread = calloc(1, sizeof(*spread));

	if (!spread)
		return plx_fail(ENOMEM, "out of memory");
	spread->how = how;
	spread->last = PLX_LCORE_MAX - 1;
	own->spread = spread;
	own->next_id = (uint64_t)own->session.lcore << ID_SHIFT;
	atomic_init(&spread->refs, 2); /* for spread_release and the own part */
	PLX_LCORE_FOREACH (id) {
		struct part *part = &spread->parts[id];
		bool is_own = id == own->session.lcore;

		part->acceptor = is_own ? own : copy(own, bytes, id);
		if (!part->acceptor)
			return plx_fail(ENOMEM, "out of memory");
		plx_signal_init(&part->close, id, on_close, part);
		plx_signal_init(&part->release, id, on_release, part);
		/* Relaxed: no other lcore knows it yet. */
		atomic_fetch_add_explicit(&spread->refs, !is_own, memory_order_relaxed);
	}
	return 0;
}
