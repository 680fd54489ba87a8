/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages that go back and forth between two ends which one thread has, in lock-step: the one that
 * was received is sent back at once, and the next look finds it at the other end. */
#ifndef LINK_BUDGET_H
#define LINK_BUDGET_H

#include "plx_base.h"
#include "plx_fabric_driver.h"

struct budget_conf {
	const struct plx_fabric_driver *driver;
	const char *provider; /* as links are told; libfabric's name is the driver's affair */
	const char *host;
	size_t size; /* of each message */
};

/* What was there to count. */
struct budget_tally {
	uint64_t messages;
	uint64_t empty; /* looks that found no message */
};

extern struct budget_tally budget_tally;

/* One way to do it. The functions from `messages` on are what is measured: a profiler finds them by
 * their names, raw_messages and so on, so they are not static. */
struct budget_way {
	const char *name;
	int (*open)(const struct budget_conf *conf); /* both ends are connected then */
	void (*close)(void);
	int (*turn_by_turn)(uint64_t count); /* as messages, for a few, or to warm up */
	/* So many, each sent back from where it is received. Return: 0; -errno with a text. */
	int (*messages)(uint64_t count);
	/* The same taken apart: send one; look once, and find it; look in vain, so often. */
	int (*send)(void);
	int (*receive)(void);
	int (*looks)(unsigned count);
};

extern const struct budget_way budget_raw, budget_link;

/* Define one, whose functions have its name before theirs. */
#define BUDGET_WAY(way)                             \
	const struct budget_way budget_##way = {    \
		.name = #way,                       \
		.open = way##_open,                 \
		.close = way##_close,               \
		.turn_by_turn = way##_turn_by_turn, \
		.messages = way##_messages,         \
		.send = way##_send,                 \
		.receive = way##_receive,           \
		.looks = way##_looks,               \
	}

/* They must keep their names and stay calls. */
#define BUDGET_PART __attribute__((noinline, used))

#endif
