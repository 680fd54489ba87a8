/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TURN_UNTIL_H
#define TURN_UNTIL_H

#include "plx_lcore.h"
#include "plx_test.h"

#define LIMIT_NS (20 * PLX_NS_PER_S)

/* Turn the loop until cond holds; fail if it never does. */
#define TURN_UNTIL(cond)                                                 \
	do {                                                             \
		uint64_t turn_limit_ns = plx_now_ns() + LIMIT_NS;        \
		while (!(cond)) {                                        \
			plx_loop_turn();                                 \
			if (plx_now_ns() > turn_limit_ns)                \
				fail_msg("it never came to: %s", #cond); \
		}                                                        \
	} while (0)

#endif
