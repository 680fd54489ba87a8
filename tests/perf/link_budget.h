/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages between two ends that one thread has, in lock-step: each received message is sent back
 * at once, and the next poll finds it at the other end. */
#ifndef LINK_BUDGET_H
#define LINK_BUDGET_H

#include "plx_base.h"
#include "plx_fabric_driver.h"

struct budget_conf {
	const struct plx_fabric_driver *driver;
	const char *provider; /* the driver's name */
	const char *host;
	size_t size; /* of each message */
};

/* What there was to count. */
struct budget_tally {
	uint64_t messages;
	uint64_t empty; /* polls that found no message */
};

extern struct budget_tally budget_tally;

/* End the program with plx_error(). */
_Noreturn void budget_fail(const char *what);

/* One way to do it; a failure ends the program. The functions from `messages` on are measured: a
 * profiler finds them by name, raw_messages and so on, so they are not static. */
struct budget_way {
	const char *name;
	void (*open)(const struct budget_conf *conf); /* returns when both ends are connected */
	void (*close)(void);
	void (*turn_by_turn)(uint64_t count); /* as messages, for a few, or as warm-up */
	/* Send `count` messages, each returned by its receiver. */
	void (*messages)(uint64_t count);
	/* The same in steps: send one; poll once and find it; poll without finding any, repeatedly.
	 */
	void (*send)(void);
	void (*receive)(void);
	void (*looks)(unsigned count);
};

extern const struct budget_way budget_raw, budget_link;

/* Define a way; its functions are prefixed with its name. */
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

/* They must keep their names and remain calls. */
#define BUDGET_PART __attribute__((noinline, used))

#endif
