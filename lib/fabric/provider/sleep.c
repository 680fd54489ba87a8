/* SPDX-License-Identifier: BSD-3-Clause */
/* How an lcore's links sleep. The loop asks after a turn that polled every set and found nothing
 * (plx_loop_falls_asleep). Each set's driver arms it, and the lcore waits for its descriptors. Wait
 * objects of some providers and versions are broken: one that is always readable would keep the
 * lcore awake, one that stays silent would miss messages. So each wake-up is compared with what the
 * next poll finds. On a broken set the lcore naps instead. A peer may have caused it, so this lasts
 * for a limited time, which doubles each time. */
#include "fabric_listen.h"
#include "tx.h"

#include <inttypes.h>

/* A descriptor that is always readable ends a sleep at once. It counts as broken if SPURIOUS_MAX
 * times in a row a poll finds nothing and the descriptor, armed again, is still readable. A partial
 * message also wakes the lcore without work, but reading it clears the descriptor. */
#define SPURIOUS_NS  (20 * PLX_NS_PER_US)
#define SPURIOUS_MAX 1000

/* Sleeps in a row that lasted until a timer, with no descriptor readable, although the next poll
 * found something. A message at that very moment looks the same, but not repeatedly. */
#define MISSED_MAX 8

/* How long a broken set naps: doubled each time, and reset after BROKEN_FORGET_NS without trouble.
 * In the worst case, SPURIOUS_MAX wake-ups of 10 us take 0.25 % of a CPU. */
#define BROKEN_MIN_NS       PLX_NS_PER_S
#define BROKEN_MAX_NS       (4 * PLX_NS_PER_S)
#define BROKEN_FORGET_NS    (60 * PLX_NS_PER_S)

#define KEPT_POOLS_EVERY_NS (100 * PLX_NS_PER_MS)

/* Whether a frame or a completion will wake the lcore when the link can continue. */
static bool will_be_notified(const struct plx_link *link)
{
	switch (link->want & WANT_EVERY_TURN) {
	case WANT_TX:
		return link->tx_inflight || !tx_frames_left(link);
	case WANT_REFILL: /* the peer has credit left, and more can wait until something arrives */
		return !link->rx_long_kept && link->rx_kept <= link->rx_buf_count / 2;
	default:
		return false;
	}
}

static bool all_will_be_notified(const struct plx_fabric_lcore *home)
{
	for (const struct plx_link *link = home->scheduled; link; link = link->next_scheduled) {
		if (!will_be_notified(link))
			return false;
	}
	return true;
}

/* Arming ------------------------------------------------------------------------------------ */

static bool is_broken(const struct plx_set *set)
{
	return set->broken_until_ns > plx_loop_now_ns();
}

static void mark_broken(struct plx_set *set, const char *why)
{
	uint64_t now_ns = plx_loop_now_ns(), before_ns = set->broken_ns;

	if (is_broken(set))
		return;
	if (!set->broken_ns || plx_time_since(set->broken_until_ns, now_ns) > BROKEN_FORGET_NS)
		set->broken_ns = BROKEN_MIN_NS;
	else if (set->broken_ns < BROKEN_MAX_NS)
		set->broken_ns *= 2;
	set->broken_until_ns = now_ns + set->broken_ns;
	set->spurious = set->missed = 0;
	if (set->broken_ns == before_ns)
		return;
	log_warning(
		"lcore %u: %s cannot be waited for, because %s; for the next %" PRIu64
		" s this lcore looks at it every 50 us to 1 ms while it is idle. --idle poll keeps "
		"it awake",
		set->home->id, set->label, why, set->broken_ns / PLX_NS_PER_S);
}

/* Called after a sleep that ended at once without work. Return: whether the set may sleep. */
static bool wait_fd_works(struct plx_set *set)
{
	set->in_doubt = false;
	if (!driver_is_ready(&set->fids, 0)) {
		set->spurious = 0;
		return true;
	}
	if (set->listeners && descriptors_used_up()) { /* a connection keeps it readable */
		set->broken_until_ns = plx_loop_now_ns() + PLX_NS_PER_S;
		set->spurious = 0;
		listener_out_of_descriptors(set);
	} else if (++set->spurious >= SPURIOUS_MAX) {
		mark_broken(set, "it wakes the lcore for nothing");
	}
	return !is_broken(set);
}

/* A set that does not support sleeping, or not now, makes the lcore nap. Return: 0; -EAGAIN there
 * is work. */
static int arm_set(struct plx_set *set, struct plx_sleep *sleep)
{
	bool works = set->fids.wait_fd >= 0 && plx_likely(!is_broken(set));
	int rc = works ? driver_arm(set->driver, &set->fids) : 0;

	if (rc == -FI_EAGAIN)
		return -EAGAIN;
	if (rc)
		mark_broken(set, "arming it fails");
	works = works && rc == 0 && (plx_likely(!set->in_doubt) || wait_fd_works(set));
	if (!works) {
		plx_sleep_nap(sleep);
		return 0;
	}
	/* A set without room in `sleep` cannot wake the lcore: not its fault. */
	set->armed = plx_sleep_on(sleep, set->fids.wait_fd);
	if (set->fids.eq_fd >= 0)
		set->armed &= plx_sleep_on(sleep, set->fids.eq_fd);
	return 0;
}

static void disarm_all(struct plx_fabric_lcore *home)
{
	for (struct plx_set *set = LIST_FIRST(&home->sets); set; set = LIST_NEXT(set, of_home))
		set->armed = false;
}

int sleep_arm(void *arg, struct plx_sleep *sleep)
{
	struct plx_fabric_lcore *home = arg;

	disarm_all(home);
	for (struct plx_set *set = LIST_FIRST(&home->sets); set; set = LIST_NEXT(set, of_home)) {
		if (set->links + set->listeners > 0 && arm_set(set, sleep) != 0) {
			disarm_all(home); /* the lcore does not sleep */
			return -EAGAIN;
		}
	}
	if (!all_will_be_notified(home))
		plx_sleep_nap(sleep);
	if (home->kept_pool_count)
		plx_sleep_until(sleep, plx_time_add(plx_loop_now_ns(), KEPT_POOLS_EVERY_NS));
	return 0;
}

/* A new set has nothing to report: if it is ready now, it always will be. */
void sleep_check_new(struct plx_set *set)
{
	if (set->fids.wait_fd >= 0 && driver_arm(set->driver, &set->fids) == 0 &&
	    driver_is_ready(&set->fids, 0))
		mark_broken(set, "it is ready where nothing has come");
}

/* Awake ------------------------------------------------------------------------------------- */

void sleep_woke(void *arg, const struct plx_sleep *sleep)
{
	struct plx_fabric_lcore *home = arg;

	for (struct plx_set *set = LIST_FIRST(&home->sets); set; set = LIST_NEXT(set, of_home)) {
		int fd = set->fids.wait_fd, eq_fd = set->fids.eq_fd;

		if (!set->armed)
			continue;
		set->armed = false;
		if (plx_sleep_ended_by(sleep, fd) ||
		    (eq_fd >= 0 && plx_sleep_ended_by(sleep, eq_fd)))
			set->woke = plx_sleep_lasted_ns(sleep) < SPURIOUS_NS ? WOKE_AT_ONCE
									     : WOKE_BY_IT;
		else if (plx_sleep_ended_by_time(sleep) && !driver_is_ready(&set->fids, 0))
			set->woke = WOKE_BY_TIME;
		else
			set->woke = WOKE_OTHERWISE;
	}
}

/* Evaluate the last sleep: the turn after it found `found` items on the set. */
void sleep_check(struct plx_set *set, int found)
{
	enum set_woke woke = set->woke;
	bool told = woke == WOKE_BY_IT || woke == WOKE_AT_ONCE;

	set->woke = WOKE_NOT;
	if (told && found)
		set->missed = set->spurious = 0;
	set->in_doubt = woke == WOKE_AT_ONCE && !found && !set->driver->wakes_only_for_work;
	if (woke == WOKE_BY_TIME && found && ++set->missed >= MISSED_MAX)
		mark_broken(set, "it does not wake the lcore for what is there");
}
