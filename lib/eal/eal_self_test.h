/* SPDX-License-Identifier: BSD-3-Clause */
/* The process' self-test service. lib/rpc implements it; without lib/rpc there is none. */
#ifndef EAL_SELF_TEST_H
#define EAL_SELF_TEST_H

#include <stdbool.h>
#include <stdint.h>

#define EAL_SELF_TEST_RATE_DEFAULT 100000 /* a few percent of an lcore */

struct eal_self_test {
	/* rate: self_test_rate of struct plx_eal_conf. remote: also serve other hosts.
	 * Thread: the main lcore, before links are made. Return: 0; -errno. */
	int (*start)(uint32_t rate, bool remote);
	/* Does nothing if it was not started. Thread: the main lcore, while no other lcore runs. */
	void (*stop)(void);
};

/* Called by a constructor. */
void eal_register_self_test(const struct eal_self_test *service);

#endif
