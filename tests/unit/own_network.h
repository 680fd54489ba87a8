/* SPDX-License-Identifier: BSD-3-Clause */
/* For tests with fixed CPU claims, whose names are those of a network namespace. */
#ifndef OWN_NETWORK_H
#define OWN_NETWORK_H

#include <sched.h>

/** A group's setup: a private network namespace, so that the same test of another checkout does not
 * interfere. Needs root; without it the namespace stays shared. */
static inline int own_network(void **state)
{
	(void)unshare(CLONE_NEWNET);
	return 0;
}

#endif
