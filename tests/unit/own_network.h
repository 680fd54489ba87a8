/* SPDX-License-Identifier: BSD-3-Clause */
/* For tests with fixed CPU claims, whose names are those of a network namespace, and tests of slow
 * networks. */
#ifndef OWN_NETWORK_H
#define OWN_NETWORK_H

#include "plx_test.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/** A group's setup: a private network namespace, so that the same test of another checkout does not
 * interfere. Needs root; without it the namespace stays shared. */
static inline int own_network(void **state)
{
	(void)unshare(CLONE_NEWNET);
	return 0;
}

/* For a process that is not root. Return: whether it may have namespaces. */
static inline bool own_user_namespace(void)
{
	uid_t user = getuid();
	FILE *map;

	if (unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0)
		return false;
	map = fopen("/proc/self/uid_map", "w");
	if (!map)
		return false;
	fprintf(map, "0 %u 1\n", (unsigned)user);
	return fclose(map) == 0;
}

/** Move this process, which has one thread, to a private network, whose loopback device sends
 * `rate` (as tc(8) writes it) in packets of 1500 bytes. Skips the test, and prints why, on a host
 * without tc(8), or where the process may not have that. */
static inline void own_slow_network(const char *rate)
{
	char command[256];

	snprintf(command, sizeof(command),
		 "ip link set lo up mtu 1500 && tc qdisc replace dev lo root tbf rate %s "
		 "burst 32kb latency 400ms",
		 rate);
	if (system("command -v ip tc >/dev/null") != 0) {
		print_message("skipped: no ip or tc; install iproute2\n");
		skip();
	}
	if ((unshare(CLONE_NEWNET) != 0 && !own_user_namespace()) || system(command) != 0) {
		print_message("skipped: no private network, or no tbf in this kernel\n");
		skip();
	}
}

#endif
