/* SPDX-License-Identifier: BSD-3-Clause */
/* Uses objects of lcore 0 on another lcore. */
#ifndef MISUSE_H
#define MISUSE_H

#include "mem/child.h"

#define MISUSE_LCORE 77

/* Functions to call on lcore MISUSE_LCORE, which is not the owner. */
static struct misuse {
	void (*fn)(void);
	const char *name;
} misuses[16];
static unsigned misuse_count;

/** List a case that only calls that function. */
#define MISUSE(function, ...)                                                               \
	static void misuse_of_##function(void)                                              \
	{                                                                                   \
		(void)function(__VA_ARGS__);                                                \
	}                                                                                   \
	PLX_CONSTRUCTOR static void misuse_of_##function##_is_listed(void)                  \
	{                                                                                   \
		misuses[misuse_count++] = (struct misuse){misuse_of_##function, #function}; \
	}

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

/** Fail unless each listed case aborts, and names both lcores. */
static inline void assert_misuses(void (*set_up)(void))
{
	misuse_set_up = set_up;
	assert_in_range(misuse_count, 1, PLX_ARRAY_LEN(misuses));
	for (unsigned i = 0; i < misuse_count; i++) {
		char text[128];

		misuse_fn = misuses[i].fn;
		snprintf(text, sizeof(text), "%s: called on lcore %d, but lcore 0 owns the object",
			 misuses[i].name, MISUSE_LCORE);
		assert_fatal(&(struct fatal_case){misuse_in_child, text}, 1);
	}
}

#endif
