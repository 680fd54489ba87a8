/* SPDX-License-Identifier: BSD-3-Clause */
/* What a function that is documented "Thread: owner" asserts: that the calling lcore owns the
 * object. The lcore counts, not the thread. Release builds (NDEBUG) check nothing. */
#ifndef PLX_OWNER_H
#define PLX_OWNER_H

#include "plx_base.h"

/* End the process as a failed assertion does, and say which function was called on which lcore, and
 * which lcore owns the object. */
_Noreturn void owner_fail(const char *function, uint32_t owner);

/* Whether the calling thread may act for the owner, which it is not: set by lib/lcore, which says
 * when. NULL: it may not. */
extern bool (*owner_may_stand_in)(uint32_t owner);

static inline bool owner_is_here(uint32_t owner)
{
	return plx_likely(plx_lcore_id() == owner) ||
	       (owner_may_stand_in && owner_may_stand_in(owner));
}

/* The same with a condition, and in a helper of the function that is named. */
#ifdef NDEBUG
#define ASSERT_OWNER_IF(condition, function, owner) ((void)(false && (condition) && (owner)))
#else
#define ASSERT_OWNER_IF(condition, function, owner) \
	(plx_likely(condition) ? (void)0 : owner_fail((function), (owner)))
#endif

#define ASSERT_OWNER(owner) ASSERT_OWNER_IF(owner_is_here(owner), __func__, (owner))

#endif
