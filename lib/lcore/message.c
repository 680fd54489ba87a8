/* SPDX-License-Identifier: BSD-3-Clause */
/* The mailbox of an lcore: a bounded queue from many senders to one receiver, after D. Vyukov's
 * bounded MPMC queue (1024cores.net). Each slot has a sequence that tells whose turn it is: `place`
 * a sender's that has claimed that place, `place + 1` the receiver's, `place + MAILBOX_SLOTS` that
 * of the sender one lap later. A sender that claimed a place and was then taken off its CPU holds
 * up the messages behind it until it runs again; nobody spins for it. */
#include "lcore_priv.h"

void mailbox_init(struct mailbox *box)
{
	/* Relaxed: the box is not known to any other thread yet. */
	atomic_store_explicit(&box->tail, 0, memory_order_relaxed);
	atomic_store_explicit(&box->full, 0, memory_order_relaxed);
	box->head = 0;
	for (uint64_t i = 0; i < MAILBOX_SLOTS; i++)
		atomic_store_explicit(&box->slots[i].sequence, i, memory_order_relaxed);
}

/* Claim the next place. Returns its slot; NULL if the box is full. */
static struct mailbox_slot *claim(struct mailbox *box, uint64_t *place_out)
{
	/* Relaxed throughout: the tail only shares out places, and the slot's sequence says whether
	 * the place may be written to. */
	uint64_t place = atomic_load_explicit(&box->tail, memory_order_relaxed);

	for (;;) {
		struct mailbox_slot *slot = &box->slots[place % MAILBOX_SLOTS];
		/* B2 <- B1: the receiver has read what was there before it is overwritten. */
		uint64_t sequence = atomic_load_explicit(&slot->sequence, memory_order_acquire);

		if ((int64_t)(sequence - place) < 0)
			return NULL;
		if (sequence != place) /* another sender was faster */
			place = atomic_load_explicit(&box->tail, memory_order_relaxed);
		else if (atomic_compare_exchange_weak_explicit(&box->tail, &place, place + 1,
							       memory_order_relaxed,
							       memory_order_relaxed)) {
			*place_out = place;
			return slot;
		}
	}
}

int mailbox_send(struct mailbox *box, plx_message_fn fn, void *arg)
{
	uint64_t place;
	struct mailbox_slot *slot = claim(box, &place);

	if (!slot) {
		/* Relaxed: a statistic; many write it, so it takes a real addition. */
		atomic_fetch_add_explicit(&box->full, 1, memory_order_relaxed);
		return -EAGAIN;
	}
	slot->fn = fn;
	slot->arg = arg;
	/* A1 -> A2: the message, and all that its sender wrote before, is visible to the receiver.
	 */
	atomic_store_explicit(&slot->sequence, place + 1, memory_order_release);
	return 0;
}

unsigned mailbox_receive(struct mailbox *box, unsigned max)
{
	unsigned received = 0;

	while (received < max) {
		struct mailbox_slot *slot = &box->slots[box->head % MAILBOX_SLOTS];
		/* A2 <- A1 */
		uint64_t sequence = atomic_load_explicit(&slot->sequence, memory_order_acquire);

		if (sequence != box->head + 1)
			break;

		plx_message_fn fn = slot->fn;
		void *arg = slot->arg;

		/* B1 -> B2: the slot was read before a sender may write to it again. */
		atomic_store_explicit(&slot->sequence, box->head + MAILBOX_SLOTS,
				      memory_order_release);
		box->head++;
		received++;
		fn(arg);
	}
	return received;
}

int plx_lcore_send(uint32_t id, plx_message_fn fn, void *arg)
{
	struct lcore *lcore = lcore_get(id);

	if (!lcore)
		return plx_fail(ENOENT, "plx_lcore_send: there is no lcore %u", id);
	/* L2 of lcore.c */
	return mailbox_send(&atomic_load_explicit(&lcore->loop, memory_order_acquire)->mailbox, fn,
			    arg);
}
