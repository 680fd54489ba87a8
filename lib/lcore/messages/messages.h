/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages between lcores, and to them from other threads. In reading order:
 *
 *   message.c   sending and receiving one; the ring of threads that are no lcores
 *   lane.c      a ring from one lcore to another, the doorbell, and waiting for room
 *   call.c      a message there and one back */
#ifndef LCORE_MESSAGES_H
#define LCORE_MESSAGES_H

#include "idle.h"
#include "plx_lcore.h"
#include "plx_ring.h"

#include <assert.h>
#include <stdalign.h>
#include <stdatomic.h>

/* Messages: message.c, call.c, and lane.c -------------------------------------------------- */

#define MESSAGES_TURN_MAX 16 /* messages received in one turn */

/* Empty looks in a row after which a lane's bell is cleared; the stress test takes a few. */
#ifndef LANE_COLD_LOOKS
#define LANE_COLD_LOOKS 256
#endif

#define MESSAGE_ARG UINT32_MAX /* as a size: it is a function with one argument */

/* One line: a slot of a lane, or an element of the ring that other threads use. */
struct message {
	union {
		plx_message_fn arg;
		plx_message_data_fn data;
	} fn;
	union {
		void *arg;
		alignas(8) char data[PLX_MESSAGE_BYTES];
	};
	uint32_t size_bytes;       /* of data, or MESSAGE_ARG */
	_Atomic uint32_t sequence; /* lanes: position + 1 of the message that is in it */
};

static_assert(sizeof(struct message) == PLX_CACHE_LINE, "a hop moves one line");

/* All but the sequence. */
void message_copy(struct message *to, const struct message *from);
void message_deliver(const struct message *message);

/* Written by: */
struct lane {
	/* the sender */
	alignas(2 * PLX_CACHE_LINE) uint32_t tail; /* positions run freely */
	uint32_t limit;          /* of the tail, when the head was last looked at */
	uint32_t send_mask;      /* slots - 1: constant */
	bool asked;              /* for room, and not told yet */
	_Atomic uint64_t full;   /* messages that found no room */
	struct plx_task waiting; /* for room: a ring, as that of the loop */
	/* the receiver */
	alignas(2 * PLX_CACHE_LINE) _Atomic uint32_t head; /* slots before it may be used again */
	uint32_t next;                                     /* where the next message will be */
	uint32_t empty_looks;                              /* in a row */
	uint32_t receive_mask;                             /* as send_mask */
	/* whoever fires; only where the lane was full */
	alignas(2 * PLX_CACHE_LINE) struct plx_signal ask; /* heard by the receiver */
	struct plx_signal tell;                            /* heard by the sender */
	uint32_t tell_at;                                  /* the sender's: which head is enough */
	/* the sender */
	alignas(2 * PLX_CACHE_LINE) struct message slots[];
};

#define BELL_WORDS (PLX_LCORE_MAX / 64)

/* What an idle lcore looks at: one line, however many lcores there are. */
struct bell {
	alignas(PLX_CACHE_LINE) _Atomic uint64_t lanes[BELL_WORDS]; /* a bit for each sender's id */
	_Atomic uint64_t others;   /* OTHERS_RING, OTHERS_SIGNALS */
	_Atomic uint32_t sleeping; /* 1: whoever sends, and takes that away, writes the eventfd */
	int eventfd;               /* constant */
	_Atomic uint64_t rung_tsc; /* when it was written */
};

/* Some thread that is no lcore has sent something; has fired a signal. */
#define OTHERS_RING    1
#define OTHERS_SIGNALS 2

static_assert(sizeof(struct bell) == PLX_CACHE_LINE, "a bell is one line");

/* Behind a message: S2 of sleep.c. */
static inline void wake_if_asleep(struct bell *bell)
{
	LCORE_STEP();
	if (plx_unlikely(atomic_load_explicit(&bell->sleeping, memory_order_seq_cst)))
		wake_write(bell);
}

struct lcore;

size_t lane_bytes(uint32_t slots);

/* An empty lane whose next position is `start`. slots: a power of two. */
void lane_init(struct lane *lane, uint32_t slots, uint32_t start, struct loop *from,
	       struct loop *to);

/* The lane from lcore `sender`, which has that loop, made if it is not there. Return: NULL with the
 * error text. */
struct lane *lane_open(uint32_t sender, struct loop *from, struct lcore *to);

/* How many messages there is room for: exact once it has been 0, at least that many else. Sender.
 */
uint32_t lane_room(struct lane *lane);

/* Call the task once there is room. Return: 0; -EINVAL no function. Sender. */
int lane_wait(const char *what, struct lane *lane, struct plx_task *task);

/* Return: 0; -EAGAIN, counted. Sender. */
int lane_send(struct lane *lane, struct bell *bell, uint32_t sender, const struct message *message);

/* Receive up to `max` messages. Returns how many. Receiver. */
unsigned lane_receive(struct lane *lane, unsigned max);

/* Receive up to `max` messages from all lanes whose bit is set. Returns how many. Receiver. */
unsigned lanes_receive(struct loop *loop, unsigned max);

/* Free the lanes to this loop. Returns how many messages were in them. */
uint64_t lanes_fini(struct loop *loop);

/* The ring of threads that are no lcores: how much memory it takes, and make it there. */
size_t others_size(void);
void others_init(struct loop *loop, void *memory);

static_assert(BELL_WORDS == 4, "bell_is_silent looks at as many");

/* Nothing to receive: all that an idle turn asks. Written out, as gcc makes a loop of a loop here.
 */
static inline bool bell_is_silent(const struct bell *bell)
{
	/* Relaxed: what a bit stands for is looked at with acquire where it is taken. */
	uint64_t any = atomic_load_explicit(&bell->others, memory_order_relaxed) |
		       atomic_load_explicit(&bell->lanes[0], memory_order_relaxed) |
		       atomic_load_explicit(&bell->lanes[1], memory_order_relaxed) |
		       atomic_load_explicit(&bell->lanes[2], memory_order_relaxed) |
		       atomic_load_explicit(&bell->lanes[3], memory_order_relaxed);

	return !any;
}

/* Receive up to MESSAGES_TURN_MAX messages and signals. Returns how many. Not inlined: an idle turn
 * is short without it. */
PLX_NOINLINE unsigned messages_receive(struct loop *loop);

/* Whether there is a message in some lane whose bit is set, or the others' bell was rung: what an
 * lcore that has said that it sleeps looks at once more. */
bool messages_wait(struct loop *loop);
bool lanes_wait(struct loop *loop);

/* Free what messages_receive receives from. Returns how many messages were left. */
uint64_t messages_fini(struct loop *loop);

/* The lane from the calling lcore. Return: NULL with the error text. */
struct lane *lane_to(struct lcore *to);

/* Send from the calling thread. Return: 0; -EAGAIN, counted; -ENOMEM no lane. */
int message_send(struct lcore *lcore, const struct message *message);

#endif
