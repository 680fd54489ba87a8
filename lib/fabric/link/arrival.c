/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames that are not complete, of providers that report how far they have arrived (plx_arrival.h).
 * Their bytes show that the peer is alive: liveness.c asks. So a frame needs the rate that a
 * message in several frames needs (assembly.c), or its peer could keep the link for ever. Nothing
 * reports that a frame has begun: each link is looked at once per second. doc/design/arrival.md */
#include "fabric_link.h"

#include <inttypes.h>

#define ROUND_NS       PLX_NS_PER_S /* between two looks at a link */
#define LOOKS_MAX      64           /* per turn */
#define DELAYING_BYTES (16u << 10)  /* 0.25 s at 0.5 Mb/s; many times what heartbeats send */
#define NO_FRAME       UINT64_MAX

/* Return: whether the provider tells; otherwise *out is 0. */
static bool look(const struct plx_link *link, struct plx_arrival *out)
{
	*out = (struct plx_arrival){0};
	if (!link->arrival.ops || link->ep_closed)
		return false;
	link->arrival.ops->look(link->ep, out);
	return true;
}

bool arrival_is_told(const struct plx_link *link)
{
	return link->arrival.ops;
}

/* Without a frame that is incomplete, what came is known: frames are taken when they are whole. */
bool arrival_has_moved(struct plx_link *link)
{
	uint64_t before = link->arrival.heard_bytes;
	struct plx_arrival at;

	look(link, &at);
	link->arrival.heard_bytes = at.bytes;
	return at.bytes != at.begin && at.bytes != before;
}

bool arrival_is_delayed(const struct plx_link *link)
{
	return link->arrival.ops->in_flight(link->ep) >= DELAYING_BYTES;
}

uint32_t arrival_bytes(const struct plx_link *link, bool *is_held_out)
{
	struct plx_arrival at;

	look(link, &at);
	*is_held_out = at.is_held;
	return (uint32_t)(at.bytes - at.begin);
}

static void look_at(struct plx_link *link, uint64_t now_ns)
{
	struct arrival *arrival = &link->arrival;
	uint64_t passed_ns = plx_time_since(arrival->looked_ns, now_ns);
	struct plx_arrival at;
	uint32_t bytes;

	if (link->state != LINK_OPEN || !look(link, &at))
		return;
	bytes = (uint32_t)(at.bytes - at.begin);
	arrival->looked_ns = now_ns;
	if (!bytes || at.begin != arrival->begin) {
		arrival->begin = bytes ? at.begin : NO_FRAME;
		arrival->pace = (struct pace){0};
	} else if (!at.is_held && pace_is_slow(&arrival->pace, ROUND_NS, passed_ns, bytes)) {
		close_now(link, PLX_LINK_PROTOCOL,
			  "too slow: of a frame, %" PRIu32 " bytes came, " PACE_TEXT, bytes,
			  PACE_NUMBERS);
	}
}

static void on_round(struct plx_timer *timer, void *arg)
{
	struct plx_fabric_lcore *home = arg;
	struct plx_link *link = home->arrivals.next ?: LIST_FIRST(&home->links);

	for (unsigned looks = 0; link && looks < LOOKS_MAX; looks++) {
		look_at(link, plx_loop_now_ns());
		link = LIST_NEXT(link, of_home);
	}
	home->arrivals.next = link;
	if (!LIST_EMPTY(&home->links))
		plx_timer_start(timer, link ? 0 : ROUND_NS);
}

void arrival_home_init(struct plx_fabric_lcore *home)
{
	plx_timer_init(&home->arrivals.timer, on_round, home);
	plx_timer_set_lax(&home->arrivals.timer, true);
}

void arrival_home_fini(struct plx_fabric_lcore *home)
{
	plx_timer_stop(&home->arrivals.timer);
}

void arrival_begin(struct plx_link *link)
{
	struct plx_timer *timer = &link->home->arrivals.timer;

	link->arrival = (struct arrival){.begin = NO_FRAME};
	if (fi_open_ops(&link->ep->fid, PLX_ARRIVAL_OPS, 0, (void **)&link->arrival.ops, NULL)) {
		link->arrival.ops = NULL;
		return;
	}
	if (!plx_timer_running(timer))
		plx_timer_start(timer, ROUND_NS);
}

void arrival_end(const struct plx_link *link)
{
	if (link->home->arrivals.next == link)
		link->home->arrivals.next = LIST_NEXT(link, of_home);
}
