/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions of lib/fabric for the libraries above it; not installed. */
#ifndef FABRIC_INTERNAL_H
#define FABRIC_INTERNAL_H

#include "plx_fabric.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

struct plx_fabric_lcore;

/** Runs in plx_fabric_fini, on the main thread, once the last link has ended. It may run callbacks,
 * and what it leaves to do is lost. Ownership: static. */
struct fabric_fini_hook {
	void (*fn)(void);
	struct fabric_fini_hook *next; /* private */
};

/** Thread: setup (constructors). */
void fabric_fini_hook_add(struct fabric_fini_hook *hook);

/** The link's table of callbacks, as its user passed it: not a copy. Thread: owner. */
const struct plx_link_events *link_events(const struct plx_link *link);

/** Check a user's attributes and set defaults.
 * Thread: any. Return: 0; -EINVAL. */
int link_check_attr(const struct plx_link_attr *attr, struct plx_link_attr *out);

/** Check that the receive buffers of one link are not too many bytes in all.
 * Thread: any. Return: 0; -EINVAL. */
int link_check_window(uint32_t buf_bytes, uint32_t buf_count);

/** The longest message that link_send_copied sends from the caller's memory: one frame; 0: none,
 * the provider needs a copy. Thread: owner. */
uint64_t link_copied_max(const struct plx_link *link);

/** As plx_link_sendv, of 1 to 3 pieces, up to link_copied_max. `sent` runs once as for
 * plx_link_send_buf, with a buffer of the link. Thread: owner. */
int link_send_copied(struct plx_link *link, const struct iovec *iov, int count,
		     plx_link_sent_fn sent, void *arg);

/** As plx_link_send_buf, for memory that this lcore has just written and will write again: where
 * there is a choice the peer does not read it there, because both would fetch its lines from each
 * other. Thread: owner. */
int link_send_written(struct plx_link *link, struct plx_buf *buf, plx_link_sent_fn sent, void *arg);

/* The budget of a turn: turn.c. All receivers of an lcore share it. */

/* What is left of plx_fabric_conf.turn_max and turn_ns. The messages of a burst are counted alone;
 * after it the clock is read. */
struct turn {
	uint32_t burst;  /* messages left in it */
	uint32_t given;  /* it had at first */
	uint32_t pace;   /* the length of bursts */
	uint32_t left;   /* messages, with the burst */
	uint64_t number; /* of the turn for which these hold */
	uint64_t over;   /* the last turn whose budget was spent */
	uint64_t slow;   /* the last turn with a slow message */
	uint64_t looked_ns, end_ns;
	uint32_t often;      /* bursts of one message still to come */
	uint32_t often_next; /* the same after the next turn_look_often */
};

/* Of the link's lcore. */
struct turn *turn_of(const struct plx_link *link);
/* The burst is over. Return: whether another one may follow in this turn. */
bool turn_look(struct turn *turn);
/* Whether this turn's budget is spent, as of the last look. */
bool turn_is_over(const struct turn *turn);

/* Call after each message. Return: whether another one may follow in this turn; otherwise keep the
 * rest, and turn_wait. */
static inline PLX_ALWAYS_INLINE bool turn_goes_on(struct turn *turn)
{
	return plx_likely(--turn->burst) || turn_look(turn);
}

/* The rest of a receiver's input, inside a message. Receivers with a rest and completion queues
 * take turns. Zeroed: it has none. */
struct turn_rest {
	/* Handle some of it: at least one message, then as turn_goes_on says. Call turn_end when
	 * nothing is left. Return: how much was done, for the loop. */
	int (*go_on)(struct turn_rest *rest);
	struct plx_fabric_lcore *home; /* NULL: it does not wait */
	struct plx_link *link;         /* kept; NULL: none */
	TAILQ_ENTRY(turn_rest) of_home;
};

/* Call go_on in the next turns, until turn_end. No effect if it waits. keeps_link: on_close waits,
 * too. */
void turn_wait(struct turn_rest *rest, struct plx_link *link, bool keeps_link);
/* No effect if it does not wait. */
void turn_end(struct turn_rest *rest);

#endif
