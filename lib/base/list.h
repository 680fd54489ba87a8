/* SPDX-License-Identifier: BSD-3-Clause */
/* Lists use <sys/queue.h>. These are BSD's _SAFE loops, which glibc lacks: the loop body may remove
 * and free the current element. */
#ifndef PLX_LIST_H
#define PLX_LIST_H

#include <sys/queue.h>

#define LIST_FOREACH_SAFE(each, head, field, after)                                      \
	for ((each) = LIST_FIRST(head); (each) && ((after) = LIST_NEXT(each, field), 1); \
	     (each) = (after))

#define TAILQ_FOREACH_SAFE(each, head, field, after)                                       \
	for ((each) = TAILQ_FIRST(head); (each) && ((after) = TAILQ_NEXT(each, field), 1); \
	     (each) = (after))

#endif
