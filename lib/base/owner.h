/* SPDX-License-Identifier: BSD-3-Clause */
/* Assertions for functions documented "Thread: owner": the calling lcore must own the object. They
 * compare lcores, not threads. Release builds (NDEBUG) check nothing. */
#ifndef PLX_OWNER_H
#define PLX_OWNER_H

#include "plx_base.h"

/* Abort, naming the function, the calling lcore and the owner. */
_Noreturn void owner_fail(const char *function, uint32_t owner);

/* Return whether the calling thread may act for an owner other than itself. lib/lcore sets this and
 * documents when it may. NULL: never. */
extern bool (*owner_may_stand_in)(uint32_t owner);

static inline bool owner_is_here(uint32_t owner)
{
	return plx_likely(plx_lcore_id() == owner) ||
	       (owner_may_stand_in && owner_may_stand_in(owner));
}

/* The same with an extra condition, for a helper of the named function. */
#ifdef NDEBUG
#define ASSERT_OWNER_IF(condition, function, owner) ((void)(false && (condition) && (owner)))
#else
#define ASSERT_OWNER_IF(condition, function, owner) \
	(plx_likely(condition) ? (void)0 : owner_fail((function), (owner)))
#endif

#define ASSERT_OWNER(owner) ASSERT_OWNER_IF(owner_is_here(owner), __func__, (owner))

#endif
