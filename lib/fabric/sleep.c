/* SPDX-License-Identifier: BSD-3-Clause */
/* How an lcore's links sleep. The loop asks after a turn in which every set was looked into and
 * nothing was found (plx_loop_falls_asleep); each set is armed as its driver knows, and waited for
 * by its descriptors. Wait objects lie, in some providers and versions: one that is always readable
 * would keep the lcore awake, one that stays silent would make it miss messages. So what they say
 * is compared with what is found, and who lies is not asked any more: then the lcore naps. */
#include "tx.h"

#include <poll.h>

/* One that is readable for ever is readable at once: wakes for nothing count where the lcore slept
 * for less than that, so many in a row. What comes in parts wakes it for nothing, too, but later.
 */
#define SPURIOUS_NS  (20 * PLX_NS_PER_US)
#define SPURIOUS_MAX 1000

/* Times in a row that the lcore slept until it was time and then found something. What comes in the
 * moment between looks the same, but not again and again. */
#define RESCUES_MAX      8

#define ORPHANS_EVERY_NS (100 * PLX_NS_PER_MS)

static bool in_use(const struct plx_set *set)
{
	return set->links + set->listeners > 0;
}

/* Links that wait for something ----------------------------------------------------------- */

/* Whether a frame or a completion will tell when what the link waits for is there. */
static bool will_be_told(const struct plx_link *link)
{
	switch (link->want & WANT_EVERY_TURN) {
	case WANT_TX:
		return link->tx_inflight || !tx_frames_left(link);
	case WANT_REFILL: /* the peer has credit left, and more can wait until something comes */
		return !link->rx_long_kept && link->rx_kept <= link->rx_buf_count / 2;
	default:
		return false;
	}
}

static bool all_will_be_told(const struct plx_fabric_lcore *home)
{
	for (const struct plx_link *link = home->attended; link; link = link->next_attended) {
		if (!will_be_told(link))
			return false;
	}
	return true;
}

/* Arming ------------------------------------------------------------------------------------ */

/* Return: 0; -EAGAIN. */
static int arm_set(struct plx_set *set, struct plx_sleep *sleep)
{
	if (set->liar || set->fids.wait_fd < 0) {
		plx_sleep_nap(sleep);
		return 0;
	}

	int rc = set->driver->arm(&set->fids);

	if (rc == -FI_EAGAIN)
		return -EAGAIN;
	if (rc) {
		fabric_distrust(set, "arming it fails");
		plx_sleep_nap(sleep);
		return 0;
	}
	/* One that found no place is not to be blamed for not waking the lcore. */
	set->armed = plx_sleep_on(sleep, set->fids.wait_fd);
	if (set->fids.eq_fd >= 0)
		set->armed &= plx_sleep_on(sleep, set->fids.eq_fd);
	return 0;
}

static void disarm_all(struct plx_fabric_lcore *home)
{
	for (struct plx_set *set = home->sets; set; set = set->next)
		set->armed = false;
}

int fabric_arm(void *arg, struct plx_sleep *sleep)
{
	struct plx_fabric_lcore *home = arg;

	disarm_all(home);
	for (struct plx_set *set = home->sets; set; set = set->next) {
		int rc = in_use(set) ? arm_set(set, sleep) : 0;

		if (rc) {
			disarm_all(home); /* nothing is waited for now */
			return rc;
		}
	}
	if (!all_will_be_told(home))
		plx_sleep_nap(sleep);
	if (home->orphan_count)
		plx_sleep_until(sleep, plx_time_add(plx_loop_now_ns(), ORPHANS_EVERY_NS));
	return 0;
}

/* At the start there is nothing: one that is ready then will always be. */
void fabric_first_look(struct plx_set *set)
{
	struct pollfd fds[] = {
		{.fd = set->fids.wait_fd, .events = POLLIN},
		{.fd = set->fids.eq_fd, .events = POLLIN}, /* negative: left out */
	};

	if (set->fids.wait_fd >= 0 && set->driver->arm(&set->fids) == 0 && poll(fds, 2, 0) > 0)
		fabric_distrust(set, "it is ready where nothing has come");
}

/* Awake ------------------------------------------------------------------------------------- */

static bool is_ready(const struct plx_set *set, const struct plx_sleep *sleep)
{
	return plx_sleep_ended_by(sleep, set->fids.wait_fd) ||
	       (set->fids.eq_fd >= 0 && plx_sleep_ended_by(sleep, set->fids.eq_fd));
}

void fabric_woke(void *arg, const struct plx_sleep *sleep)
{
	struct plx_fabric_lcore *home = arg;

	for (struct plx_set *set = home->sets; set; set = set->next) {
		if (!set->armed)
			continue;
		set->armed = false;
		if (is_ready(set, sleep))
			set->woke = plx_sleep_lasted_ns(sleep) < SPURIOUS_NS ? WOKE_AT_ONCE
									     : WOKE_BY_IT;
		else if (plx_sleep_ended_by_time(sleep))
			set->woke = WOKE_BY_TIME;
		else
			set->woke = WOKE_OTHERWISE;
	}
}

void fabric_distrust(struct plx_set *set, const char *why)
{
	if (set->liar)
		return;
	set->liar = true;
	plx_log(&fabric_log, PLX_LOG_WARNING,
		"lcore %u: %s cannot be slept on, as %s; from now on this lcore looks at it every "
		"50 us to 1 ms while it is idle. --idle poll keeps it awake",
		set->home->id, set->label, why);
}

/* The turn behind a sleep has found so much on the set. */
void fabric_judge(struct plx_set *set, int found)
{
	enum set_woke woke = set->woke;
	bool told = woke == WOKE_BY_IT || woke == WOKE_AT_ONCE;

	set->woke = WOKE_NOT;
	if (told && found)
		set->rescues = set->spurious = 0;
	if (woke == WOKE_AT_ONCE && !found && ++set->spurious >= SPURIOUS_MAX)
		fabric_distrust(set, "it wakes the lcore for nothing");
	if (woke == WOKE_BY_TIME && found && ++set->rescues >= RESCUES_MAX)
		fabric_distrust(set, "it does not wake the lcore for what is there");
}
