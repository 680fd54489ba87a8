/* SPDX-License-Identifier: BSD-3-Clause */
/* Uses objects of lcore 0 on another lcore. */
#ifndef MISUSE_H
#define MISUSE_H

#include "mem/child.h"

#define MISUSE_LCORE 77

/* name: the function that fn calls on lcore MISUSE_LCORE, which is not its owner. */
struct misuse {
	void (*fn)(void);
	const char *name;
};

/** A case that only calls that function. */
#define MISUSE(function, ...)                  \
	static void misuse_of_##function(void) \
	{                                      \
		(void)function(__VA_ARGS__);   \
	}
/** Its row in a table of struct misuse. */
#define MISUSE_ROW(function) {misuse_of_##function, #function}

/* For the child: the running case. */
static void (*misuse_set_up)(void);
static void (*misuse_fn)(void);

/* The lcore counts, not the thread. */
static int misuse_in_child(void)
{
	misuse_set_up();
	plx_lcore_id_tls = MISUSE_LCORE;
	misuse_fn();
	return 0;
}

static inline void assert_misuses(void (*set_up)(void), const struct misuse *misuses, size_t count)
{
	misuse_set_up = set_up;
	for (size_t i = 0; i < count; i++) {
		char text[128];

		misuse_fn = misuses[i].fn;
		snprintf(text, sizeof(text), "%s: called on lcore %d, but lcore 0 owns the object",
			 misuses[i].name, MISUSE_LCORE);
		assert_fatal(&(struct fatal_case){misuse_in_child, text}, 1);
	}
}

#endif
