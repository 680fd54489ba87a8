/* SPDX-License-Identifier: BSD-3-Clause */
/* How an lcore's links sleep. The loop asks after a turn that polled every set and found nothing
 * (plx_loop_falls_asleep). fi_trywait arms each set, and the lcore waits for the descriptors of its
 * queues. The first turn after a sleep polls all queues again. */
#include "fabric_listen.h"
#include "tx.h"

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

/* Return: 0; -EAGAIN there is work, or the provider fails: if it keeps refusing, the lcore naps. */
static int arm_set(struct plx_set *set, struct plx_sleep *sleep)
{
	struct fid *both[] = {&set->fids.cq->fid, &set->fids.eq->fid};

	if (fi_trywait(set->fids.fabric, both, 2))
		return -EAGAIN;
	plx_sleep_on(sleep, set->fids.wait_fd);
	plx_sleep_on(sleep, set->fids.eq_fd);
	return 0;
}

int sleep_arm(void *arg, struct plx_sleep *sleep)
{
	struct plx_fabric_lcore *home = arg;

	for (struct plx_set *set = LIST_FIRST(&home->sets); set; set = LIST_NEXT(set, of_home)) {
		if (set->links + set->listeners > 0 && arm_set(set, sleep) != 0)
			return -EAGAIN;
	}
	if (!all_will_be_notified(home))
		plx_sleep_nap(sleep);
	if (home->kept_pool_count)
		plx_sleep_until(sleep, plx_time_add(plx_loop_now_ns(), KEPT_POOLS_EVERY_NS));
	return 0;
}

void sleep_woke(void *arg, const struct plx_sleep *sleep)
{
	struct plx_fabric_lcore *home = arg;

	home->turn |= COLD_TURNS - 1; /* the next turn also polls cold sets */
	for (struct plx_set *set = LIST_FIRST(&home->sets); set; set = LIST_NEXT(set, of_home))
		set->eq_in_polls = 1;
}
