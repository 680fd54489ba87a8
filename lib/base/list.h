/* SPDX-License-Identifier: BSD-3-Clause */
/* Lists are those of <sys/queue.h>. Here are the loops of BSD's that glibc's lacks: the element at
 * hand may leave its list, and be freed. */
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
