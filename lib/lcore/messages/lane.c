/* SPDX-License-Identifier: BSD-3-Clause */
/* Lanes, and the doorbell that shows which of them to check.
 *
 * A lane has one sender and one receiver. A message takes a slot of one cache line with a sequence:
 * the slot of position p has a message when its sequence is p + 1. So the receiver reads only the
 * slot, and a message moves one line between CPUs. The receiver stores how far it has read (head)
 * once per drain. The sender reads that line only when the lane looks full.
 *
 * The doorbell has a sticky bit per sender. The sender sets it if it is clear; the receiver clears
 * it only after LANE_COLD_LOOKS empty checks in a row. While it is set, both only read it, and the
 * line does not move. One argument covers two races:
 *
 *     sender                                    receiver
 *     D1 store the slot's sequence              D3 clear the bit
 *     D2 load the bell; ring if clear           D4 check the slot again
 *
 * All four are sequentially consistent. Either D2 comes after D3 in their common order, and the
 * sender rings; or D1, D2, D3, D4 come in this order, and the receiver sees the message. The model
 * is tests/model/lane.pml. */
#include "lcore_priv.h"

#include "plx_mem.h"

#include <string.h>

/* Sending ---------------------------------------------------------------------------------- */

uint32_t lane_room(struct lane *lane)
{
	if (lane->tail == lane->limit) {
		/* H2 <- H1: the message was taken from the slot before it is written again. */
		lane->limit = atomic_load_explicit(&lane->head, memory_order_acquire) +
			      lane->send_mask + 1;
	}
	return lane->limit - lane->tail;
}

/* Ring if the bit is clear. */
static void ring(struct bell *bell, uint32_t sender)
{
	_Atomic uint64_t *word = &bell->lanes[sender / 64];
	uint64_t bits = atomic_load_explicit(word, memory_order_seq_cst); /* D2 */

	if (plx_unlikely(!(bits >> sender % 64 & 1)))
		atomic_fetch_or_explicit(word, UINT64_C(1) << sender % 64, memory_order_seq_cst);
}

int lane_send(struct lane *lane, struct bell *bell, uint32_t sender, const struct message *message)
{
	struct message *slot;

	if (plx_unlikely(lane_room(lane) == 0)) {
		counter_add(&lane->full, 1);
		return -EAGAIN;
	}
	slot = &lane->slots[lane->tail & lane->send_mask];
	message_copy(slot, message);
	lane->tail++;
	/* D1; and A1 -> A2: the receiver sees the message, and the sender's earlier writes. */
	atomic_store_explicit(&slot->sequence, lane->tail, memory_order_seq_cst);
	LCORE_STEP();
	ring(bell, sender);
	wake_if_asleep(bell); /* after S1, which is D1 */
	return 0;
}

/* Room ------------------------------------------------------------------------------------- */

/* A sender that waits for room notifies the receiver by a signal, and the receiver answers by
 * another one. This keeps it out of the message path; signals are never lost, and wake a sleeping
 * lcore. The answer comes once half the lane is free, so a slow receiver does not report each
 * slot. */
static void ask(struct lane *lane)
{
	if (lane->asked)
		return;
	lane->asked = true;
	if (lane_room(lane)) {
		plx_signal_fire(&lane->tell);
		return;
	}
	lane->tell_at = lane->tail - (lane->send_mask + 1) / 2; /* G1 of signal.c publishes it */
	plx_signal_fire(&lane->ask);
}

/* On the receiver. With less room it has messages left, and checks again next turn. */
static void on_ask(struct plx_signal *signal, uint64_t fires, void *arg)
{
	struct lane *lane = arg;

	/* The sender sees the head stored before (H1). */
	if ((int32_t)(lane->next - lane->tell_at) >= 0)
		plx_signal_fire(&lane->tell);
	else
		plx_signal_fire(signal);
}

/* On the sender. Tasks that find no room wait again, before those that are new. */
static void on_room(struct plx_signal *signal, uint64_t fires, void *arg)
{
	struct lane *lane = arg;

	lane->asked = false;
	lane->waiting.run++;
	while (lane_room(lane) && task_run_next(&lane->waiting))
		continue;
	if (tasks_wait(&lane->waiting))
		ask(lane);
}

int lane_wait(const char *what, struct lane *lane, struct plx_task *task)
{
	int err = task_append(what, &lane->waiting, task);

	if (!err)
		ask(lane);
	return err;
}

/* Receiving -------------------------------------------------------------------------------- */

unsigned lane_receive(struct lane *lane, unsigned max)
{
	unsigned received = 0;

	while (received < max) {
		struct message *slot = &lane->slots[lane->next & lane->receive_mask];

		/* A2 <- A1 */
		if (atomic_load_explicit(&slot->sequence, memory_order_acquire) != lane->next + 1)
			break;
		lane->next++;
		received++;
		message_deliver(slot);
	}
	if (received) {
		/* H1 -> H2 */
		atomic_store_explicit(&lane->head, lane->next, memory_order_release);
		lane->empty_looks = 0;
	}
	return received;
}

/* The lane was empty. After LANE_COLD_LOOKS such checks clear its bit, and check once more. */
static void grow_cold(struct lane *lane, _Atomic uint64_t *word, uint64_t bit)
{
	struct message *slot = &lane->slots[lane->next & lane->receive_mask];

	if (++lane->empty_looks < LANE_COLD_LOOKS)
		return;
	lane->empty_looks = 0;
	atomic_fetch_and_explicit(word, ~bit, memory_order_seq_cst); /* D3 */
	/* D4; the next turn receives the message. */
	if (atomic_load_explicit(&slot->sequence, memory_order_seq_cst) == lane->next + 1)
		atomic_fetch_or_explicit(word, bit, memory_order_seq_cst);
}

/* Receive from the lanes of one word of the bell that are in `mask`. */
static unsigned receive_word(struct loop *loop, unsigned index, uint64_t mask, unsigned max)
{
	_Atomic uint64_t *word = &loop->bell.lanes[index];
	/* N2 <- N1, through the bit: a lane exists before its bell rings. */
	uint64_t bits = atomic_load_explicit(word, memory_order_acquire) & mask;
	unsigned received = 0;

	for (; bits && received < max; bits &= bits - 1) {
		unsigned at = (unsigned)__builtin_ctzll(bits);
		struct lane *lane = atomic_load_explicit(&loop->in[index * 64 + at],
							 memory_order_acquire);
		unsigned count = lane_receive(lane, max - received);

		if (count == 0)
			grow_cold(lane, word, UINT64_C(1) << at);
		else
			loop->first_lane = (index * 64 + at + 1) % PLX_LCORE_MAX;
		received += count;
	}
	return received;
}

unsigned lanes_receive(struct loop *loop, unsigned max)
{
	unsigned first = loop->first_lane;
	uint64_t rest = UINT64_MAX << first % 64;
	unsigned received = 0;

	/* Start after the lane that was served last, so that full lanes do not starve others.
	 * The word of that lane is checked twice: first the lanes after it, last the others. */
	for (unsigned i = 0; i <= BELL_WORDS && received < max; i++) {
		uint64_t mask = i == 0 ? rest : i == BELL_WORDS ? ~rest : UINT64_MAX;

		received += receive_word(loop, (first / 64 + i) % BELL_WORDS, mask, max - received);
	}
	return received;
}

/* Sleeping --------------------------------------------------------------------------------- */

/* Sticky bits do not mean messages: check the slots. A sender that sets a bit just now rings before
 * S2. */
bool lanes_wait(struct loop *loop)
{
	for (unsigned i = 0; i < BELL_WORDS; i++) {
		/* S4; and N2, as in receive_word. */
		uint64_t bits = atomic_load_explicit(&loop->bell.lanes[i], memory_order_seq_cst);

		for (; bits; bits &= bits - 1) {
			unsigned at = (unsigned)__builtin_ctzll(bits);
			struct lane *lane = atomic_load_explicit(&loop->in[i * 64 + at],
								 memory_order_acquire);
			struct message *slot = &lane->slots[lane->next & lane->receive_mask];

			if (atomic_load_explicit(&slot->sequence, memory_order_seq_cst) ==
			    lane->next + 1)
				return true;
		}
	}
	return false;
}

/* Creating and freeing lanes --------------------------------------------------------------- */

size_t lane_bytes(uint32_t slots)
{
	return sizeof(struct lane) + slots * sizeof(struct message);
}

void lane_init(struct lane *lane, uint32_t slots, uint32_t at, struct loop *from, struct loop *to)
{
	assert((slots & (slots - 1)) == 0); /* positions wrap at 2^32 */
	/* Relaxed: the lane is not published yet. */
	memset(lane, 0, lane_bytes(slots));
	lane->tail = at;
	lane->limit = at + slots;
	lane->next = at;
	lane->send_mask = lane->receive_mask = slots - 1;
	lane->ask = (struct plx_signal){.fn = on_ask, .arg = lane, .loop = to};
	lane->tell = (struct plx_signal){.fn = on_room, .arg = lane, .loop = from};
	tasks_init(&lane->waiting, from->pollers.lcore_id);
	atomic_store_explicit(&lane->head, at, memory_order_relaxed);
	for (uint32_t i = 0; i < slots; i++)
		/* The sequence of one lap ago. */
		atomic_store_explicit(&lane->slots[(at + i) & (slots - 1)].sequence,
				      at + i + 1 - slots, memory_order_relaxed);
}

/* Creating a lane is rare. Two lcores may create the same one: the sender, and a caller that needs
 * the way back. */
static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;

struct lane *lane_open(uint32_t sender, struct loop *from, struct lcore *to)
{
	/* L2 of lcore.c */
	struct loop *receiver = atomic_load_explicit(&to->loop, memory_order_acquire);
	/* N2 <- N1 */
	struct lane *lane = atomic_load_explicit(&receiver->in[sender], memory_order_acquire);

	if (plx_likely(lane))
		return lane;
	pthread_mutex_lock(&making);
	/* Relaxed: the lock orders it. */
	lane = atomic_load_explicit(&receiver->in[sender], memory_order_relaxed);
	if (!lane) {
		lane = plx_mem_alloc(lane_bytes(lcore_lane_slots), alignof(struct lane), to->node,
				     NULL);
		if (lane) {
			lane_init(lane, lcore_lane_slots, 0, from, receiver);
			/* N1 -> N2: a thread that finds the lane sees it initialized. */
			atomic_store_explicit(&receiver->in[sender], lane, memory_order_release);
		}
	}
	pthread_mutex_unlock(&making);
	return lane;
}

uint64_t lanes_fini(struct loop *loop)
{
	uint64_t unread = 0;

	for (uint32_t id = 0; id < PLX_LCORE_MAX; id++) {
		/* Relaxed: the lcores have ended, or wait; joining them ordered it. */
		struct lane *lane = atomic_load_explicit(&loop->in[id], memory_order_relaxed);

		if (!lane)
			continue;
		unread += lane->tail - lane->next;
		tasks_fini(&lane->waiting);
		atomic_store_explicit(&loop->in[id], NULL, memory_order_relaxed);
		plx_mem_free(lane);
	}
	return unread;
}
