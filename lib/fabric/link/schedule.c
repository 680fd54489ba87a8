/* SPDX-License-Identifier: BSD-3-Clause */
/* Per-turn work of links that asked for it. */
#include "fabric_link.h"

/* Serve the link in this turn or the next, for the reasons in want. */
void link_schedule(struct plx_link *link, uint32_t want)
{
	struct plx_fabric_lcore *home = link->home;

	link->want |= want;
	if (link->scheduled)
		return;
	link->scheduled = true;
	link->next_scheduled = home->scheduled;
	home->scheduled = link;
}

/* It may have changed back by now. */
static void notify_suspect(struct plx_link *link)
{
	bool suspect = link->presence->suspect;

	link->want &= ~WANT_ON_SUSPECT;
	if (link->state != LINK_OPEN || link->suspect_reported == suspect)
		return;
	link->suspect_reported = suspect;
	if (link->events->on_suspect)
		link->events->on_suspect(link, suspect, link->user);
}

/* Return: whether the link still exists. */
static bool run(struct plx_link *link)
{
	if (plx_unlikely(link->settling)) { /* the rest waits for the next turn */
		close_settled(link);
		return true;
	}
	if (link->want & WANT_DESTROY)
		return !close_reap(link, plx_loop_now_ns());
	if (plx_unlikely(link->want & WANT_EARLY)) {
		link->want &= ~WANT_EARLY;
		receive_early(link);
	}
	if (link->want & WANT_REFILL)
		receive_refill(link);
	if (link->want & WANT_CONTROL) {
		control_send(link, 0);
		handshake_try_open(link);
		close_step(link);
	}
	if (link->want & WANT_TX)
		send_buf_continue(link);
	if (link->want & WANT_ON_CREDIT) {
		link->want &= ~WANT_ON_CREDIT;
		if (link->state == LINK_OPEN)
			link->events->on_credit(link, link->user);
	}
	if (plx_unlikely(link->want & WANT_RELEASE))
		region_release_done(link);
	if ((link->want & WANT_ON_WRITABLE) && link->state == LINK_OPEN &&
	    (tx_has_room(link) || direct_has_room(link))) {
		link->want &= ~WANT_ON_WRITABLE;
		if (link->direct)
			link->direct->blocked = false;
		if (link->events->on_writable)
			link->events->on_writable(link, link->user);
	}
	if (plx_unlikely(link->want & WANT_ON_SUSPECT))
		notify_suspect(link);
	if (link->want & WANT_AGREED) {
		link->want &= ~WANT_AGREED;
		close_agreed(link);
	}
	return true;
}

/* Thousands of links may want service at once: closing an endpoint takes several system calls, and
 * sending a frame 0.5 us. */
#define LOOKS_BETWEEN_CLOCKS 32

struct budget {
	uint64_t end_ns; /* 0: nothing was served yet */
	unsigned looks;
};

/* Return: whether to leave the rest for the next turn. */
static bool is_spent(struct budget *budget, const struct plx_link *link)
{
	if (plx_likely(!(link->want & WANT_DESTROY) && ++budget->looks % LOOKS_BETWEEN_CLOCKS))
		return false;
	if (budget->end_ns)
		return plx_now_ns() >= budget->end_ns;
	budget->end_ns = plx_now_ns() + turn_budget_ns;
	return false;
}

struct serving {
	struct plx_fabric_lcore *home;
	struct plx_link *link; /* whose callbacks may run */
	struct plx_link *rest;
};

/* Keep the rest for the next turn, and the link whose C++ callback has thrown. */
static inline PLX_ALWAYS_INLINE void keep_rest(struct serving *serving)
{
	if (plx_unlikely(serving->link != NULL))
		link_schedule(serving->link, 0);
	if (plx_unlikely(serving->rest != NULL)) {
		serving->home->unserved = serving->rest;
		serving->home->chores = true;
	}
}

/* Serve the links of a list, for turn_budget_ns; the rest stays in home->unserved. Return: the
 * number of links that changed or were left for later. */
static int serve(struct plx_fabric_lcore *home, struct plx_link *list)
{
	struct serving now PLX_CLEANUP(keep_rest) = {.home = home, .rest = list};
	struct budget budget = {0};
	int count = 0;

	while (now.rest) {
		struct plx_link *link = now.rest;
		uint32_t want = link->want, rx_posted = link->rx_posted;
		uint64_t frames_sent = link->stats.frames_sent;
		bool is_left;

		if (plx_unlikely(is_spent(&budget, link)))
			return count + 1;
		now.rest = link->next_scheduled;
		link->scheduled = false;
		now.link = link;
		is_left = run(link);
		now.link = NULL;
		if (!is_left) {
			count++;
			continue;
		}
		if (link->want & WANT_EVERY_TURN || link->settling)
			link_schedule(link, 0);
		count += !link->scheduled || link->settling || link->want != want ||
			 link->rx_posted != rx_posted || link->stats.frames_sent != frames_sent;
	}
	return count;
}

static struct plx_link *take(struct plx_link **list)
{
	struct plx_link *first = *list;

	*list = NULL;
	return first;
}

/* Unserved links come before those that asked meanwhile. These wait for another turn: the two lists
 * are never joined, because that would walk one of them in each turn. */
static PLX_NOINLINE int run_chores(struct plx_fabric_lcore *home)
{
	bool unserved = home->unserved;
	int count = serve(home, take(unserved ? &home->unserved : &home->scheduled));

	kept_pool_reap(home);
	home->chores = home->unserved || home->kept_pool_count;
	return count + (unserved && home->scheduled);
}

/* Serve links that asked for it. Return: the number of links that changed or are left for later. */
int link_run_scheduled(struct plx_fabric_lcore *home)
{
	if (plx_unlikely(home->chores))
		return run_chores(home);
	return serve(home, take(&home->scheduled));
}
