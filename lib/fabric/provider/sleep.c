/* SPDX-License-Identifier: BSD-3-Clause */
/* How an lcore's links sleep. The loop asks after a turn that found nothing. fi_trywait looks into
 * the queues of each set and arms them; what arrives from then on is seen by the lcore's epoll set.
 * The next turn polls all completion queues, and event queues that have something. */
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
	const struct plx_watch_ops *ops = set->fids.watch_ops;
	struct fid *both[] = {&set->fids.cq->fid, &set->fids.eq->fid};

	if (set->read.left)
		return -EAGAIN;
	if (fi_trywait(set->fids.fabric, both, 2)) {
		set->eq_due = true;
		return -EAGAIN;
	}
	if (ops)
		plx_sleep_until(sleep, plx_time_add(plx_loop_now_ns(), ops->left_ns(set->fids.eq)));
	return 0;
}

int sleep_arm(void *arg, struct plx_sleep *sleep)
{
	struct plx_fabric_lcore *home = arg;

	home->turn |= COLD_TURNS - 1; /* the next turn also polls cold sets */
	for (struct plx_set *set = LIST_FIRST(&home->sets); set; set = LIST_NEXT(set, of_home)) {
		bool is_used = set->links + set->listeners > 0;

		/* Descriptors stay readable until fi_trywait. */
		if ((is_used || !set->fids.watch_ops) && arm_set(set, sleep) != 0)
			return -EAGAIN;
	}
	if (home->rest_count || !all_will_be_notified(home))
		plx_sleep_nap(sleep);
	if (home->kept_pool_count)
		plx_sleep_until(sleep, plx_time_add(plx_loop_now_ns(), KEPT_POOLS_EVERY_NS));
	return 0;
}
