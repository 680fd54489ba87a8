/* SPDX-License-Identifier: BSD-3-Clause */
/* Names the link whose callbacks keep the rest of its lcore waiting. No callback is measured: each
 * would pay for it. turn.c reads the clock after a burst of messages, and after each one once they
 * are slow; the loop reports long turns, which may end inside a burst. */
#include "fabric_link.h"
#include "fabric_provider.h"

#include <stdio.h>

/* Whether it is the link whose message the set handled last. The link may have been freed since,
 * and with it the operation. */
static bool was_last(const struct plx_set *set, const struct plx_link *link)
{
	const uint8_t *next = (const uint8_t *)set->read.next;
	const struct plx_op *op;

	if (!next)
		return false;
	op = *(struct plx_op *const *)(next - completion_bytes(set));
	return op >= link->ops && op < link->ops + link_receives(link);
}

/* The link whose message was handled last. NULL: not known. */
static struct plx_link *last_link(const struct plx_fabric_lcore *home)
{
	const struct turn_rest *running = home->running;
	struct plx_link *link;

	if (!running)
		return NULL;
	if (running->go_on != set_go_on)
		return running->link;
	LIST_FOREACH (link, &home->links, of_home)
		if (was_last(plx_container_of(running, struct plx_set, turn), link))
			return link;
	return NULL;
}

/* The first link with a frame in this turn, other than those of its handshake. NULL: none has. */
static struct plx_link *first_heard(const struct plx_fabric_lcore *home, bool *is_only_out)
{
	struct plx_link *link, *first = NULL;
	unsigned count = 0;

	LIST_FOREACH (link, &home->links, of_home) {
		/* Relaxed: this lcore wrote it. */
		if (!link->stats.messages_received ||
		    atomic_load_explicit(&link->presence->heard_ns, memory_order_relaxed) !=
			    home->turn_ns)
			continue;
		first = first ?: link;
		count++;
	}
	*is_only_out = count == 1;
	return first;
}

/* What the log says of the link. */
static void report(struct plx_fabric_lcore *home, const struct plx_link *link, uint64_t took_ns,
		   uint64_t away_ns, bool is_sure)
{
	char who[PLX_PEER_BYTES];

	if (fabric_log.level < (is_sure ? PLX_LOG_WARNING : PLX_LOG_INFO) ||
	    !plx_log_allowed(&home->slow_limits[is_sure], plx_loop_now_ns()))
		return;
	if (is_sure)
		log_warning("lcore %u: callbacks for messages of %s took %llu ms; everything else "
			    "on the lcore waited",
			    home->id, plx_link_peer_format(link, who), MS(took_ns));
	else
		log_info("lcore %u: a turn with messages of %s took %llu ms; its thread was "
			 "without its CPU for up to %llu ms of that: preempted, or asleep in a "
			 "callback",
			 home->id, plx_link_peer_format(link, who), MS(took_ns), MS(away_ns));
}

/* If its CPU was not away, each message is followed by a look from now on: it is certain which the
 * next slow one is. */
void slow_burst(struct plx_fabric_lcore *home, uint64_t took_ns, uint32_t messages)
{
	struct plx_link *link = last_link(home);
	uint64_t away_ns = lcore_away_ns(took_ns);
	bool was_away = away_ns > took_ns / 2, is_only = false;
	bool is_sure = link && messages == 1;

	home->slow_turn = home->turn;
	if (!was_away)
		turn_look_often(&home->budget);
	if (!link) {
		link = first_heard(home, &is_only);
		is_sure = is_only && messages > 0 && !home->running;
	}
	if (!link)
		return;
	is_sure &= !was_away;
	link->stats.slow += is_sure;
	report(home, link, took_ns, away_ns, is_sure);
}

static void on_long_turn(void *arg, uint64_t took_ns)
{
	struct plx_fabric_lcore *home = arg;

	if (home->slow_turn != home->turn)
		slow_burst(home, took_ns, 0);
}

void slow_home_init(struct plx_fabric_lcore *home)
{
	home->slow_limits[0].burst = home->slow_limits[1].burst = 1;
	home->slow_turn = UINT64_MAX;
	lcore_on_long_turn(home->id, on_long_turn, home);
}

void slow_home_fini(struct plx_fabric_lcore *home)
{
	lcore_on_long_turn(home->id, NULL, NULL);
}
