/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages between lcores, and from other threads to lcores. In reading order:
 *
 *   message.c   sending and receiving a message; the ring for threads that are not lcores; calls
 *   lane.c      a ring from one lcore to another, the doorbell, and waiting for room */
#ifndef LCORE_MESSAGES_H
#define LCORE_MESSAGES_H

#include "idle.h"
#include "plx_lcore.h"
#include "plx_ring.h"

#include <assert.h>
#include <stdalign.h>
#include <stdatomic.h>

/* Messages: message.c and lane.c -------------------------------------------------- */

#define MESSAGES_TURN_MAX 16 /* messages received per turn */

/* Empty checks in a row after which a lane's bit is cleared; the stress test uses a few. */
#ifndef LANE_COLD_LOOKS
#define LANE_COLD_LOOKS 256
#endif

#define MESSAGE_ARG UINT32_MAX /* as a size: a function with one argument */

/* One cache line: a slot of a lane, or an element of the ring for other threads. */
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
	_Atomic uint32_t sequence; /* lanes: position + 1 of the message in it */
};

static_assert(sizeof(struct message) == PLX_CACHE_LINE, "a hop moves one line");

/* Copy all except the sequence. */
void message_copy(struct message *to, const struct message *from);
void message_deliver(const struct message *message);

/* Written by: */
struct lane {
	/* the sender */
	alignas(2 * PLX_CACHE_LINE) uint32_t tail; /* positions wrap at 2^32 */
	uint32_t limit;                            /* for the tail, as of the last read of head */
	uint32_t send_mask;                        /* slots - 1: constant */
	bool asked;                                /* waits for an answer about room */
	_Atomic uint64_t full;                     /* messages that found no room */
	struct plx_task waiting;                   /* for room: a ring, like the loop's */
	/* the receiver */
	alignas(2 * PLX_CACHE_LINE) _Atomic uint32_t head; /* slots before it may be reused */
	uint32_t next;                                     /* position of the next message */
	uint32_t empty_looks;                              /* in a row */
	uint32_t receive_mask;                             /* as send_mask */
	/* firing threads; only if the lane was full */
	alignas(2 * PLX_CACHE_LINE) struct plx_signal ask; /* runs on the receiver */
	struct plx_signal tell;                            /* runs on the sender */
	uint32_t tell_at;                                  /* the sender's: the head to wait for */
	/* the sender */
	alignas(2 * PLX_CACHE_LINE) struct message slots[];
};

#define BELL_WORDS (PLX_LCORE_MAX / 64)

/* All that an idle lcore reads for messages: one line, however many lcores there are. */
struct bell {
	alignas(PLX_CACHE_LINE) _Atomic uint64_t lanes[BELL_WORDS]; /* a bit per sender's id */
	_Atomic uint64_t others;   /* OTHERS_RING, OTHERS_SIGNALS */
	_Atomic uint32_t sleeping; /* 1: the sender that clears it writes the eventfd */
	int eventfd;               /* constant */
	_Atomic uint64_t rung_tsc; /* when it was written */
};

/* A thread that is not an lcore has sent a message; has fired a signal. */
#define OTHERS_RING    1
#define OTHERS_SIGNALS 2

static_assert(sizeof(struct bell) == PLX_CACHE_LINE, "a bell is one line");

/* Call after a message: S2 of sleep.c. */
static inline void wake_if_asleep(struct bell *bell)
{
	LCORE_STEP();
	if (plx_unlikely(atomic_load_explicit(&bell->sleeping, memory_order_seq_cst)))
		wake_write(bell);
}

struct lcore;

size_t lane_bytes(uint32_t slots);
/* Initialize an empty lane whose next position is `at`. slots: a power of two. */
void lane_init(struct lane *lane, uint32_t slots, uint32_t at, struct loop *from, struct loop *to);

/* The lane from lcore `sender`, which has the loop `from`; created if needed. Return: NULL with an
 * error text. */
struct lane *lane_open(uint32_t sender, struct loop *from, struct lcore *to);
/* Room for messages: exact after it was 0, otherwise a lower bound. Sender. */
uint32_t lane_room(struct lane *lane);
/* Call the task once there is room. Return: 0; -EINVAL no function. Sender. */
int lane_wait(const char *what, struct lane *lane, struct plx_task *task);
/* Return: 0; -EAGAIN, counted. Sender. */
int lane_send(struct lane *lane, struct bell *bell, uint32_t sender, const struct message *message);
/* Receive up to `max` messages. Return: their number. Receiver. */
unsigned lane_receive(struct lane *lane, unsigned max);
/* Receive up to `max` messages from all lanes whose bit is set. Return: their number. Receiver. */
unsigned lanes_receive(struct loop *loop, unsigned max);
/* Free the lanes to this loop. Return: the number of messages left in them. */
uint64_t lanes_fini(struct loop *loop);
/* The ring for threads that are not lcores: its size, and its creation in the given memory. */
size_t others_size(void);
void others_init(struct loop *loop, void *memory);
static_assert(BELL_WORDS == 4, "bell_is_silent looks at as many");

/* Whether there is nothing to receive: all that an idle turn checks. Unrolled, because gcc keeps a
 * loop here. */
static inline bool bell_is_silent(const struct bell *bell)
{
	/* Relaxed: the lanes themselves are read with acquire. */
	uint64_t any = atomic_load_explicit(&bell->others, memory_order_relaxed) |
		       atomic_load_explicit(&bell->lanes[0], memory_order_relaxed) |
		       atomic_load_explicit(&bell->lanes[1], memory_order_relaxed) |
		       atomic_load_explicit(&bell->lanes[2], memory_order_relaxed) |
		       atomic_load_explicit(&bell->lanes[3], memory_order_relaxed);

	return !any;
}

/* Receive up to MESSAGES_TURN_MAX messages and signals. Return: their number. Not inlined: keeps an
 * idle turn short. */
PLX_NOINLINE unsigned messages_receive(struct loop *loop);

/* Whether a lane whose bit is set has a message, or the others' bell rang: the check of an lcore
 * that has set `sleeping`. */
bool messages_wait(struct loop *loop);
bool lanes_wait(struct loop *loop);
/* Free what messages_receive reads from. Return: the number of messages left. */
uint64_t messages_fini(struct loop *loop);

#endif
