/* SPDX-License-Identifier: BSD-3-Clause */
/* What the tests of C++ exceptions share. */
#ifndef EXCEPTION_TURNS_H
#define EXCEPTION_TURNS_H

#include "plx_lcore.h"

#include <cstdio>
#include <stdexcept>

static int fail(const char *what)
{
	std::fprintf(stderr, "%s: %s\n", what, plx_error());
	return 1;
}

/* Turn the loop through exceptions until done, for at most 10 s. */
template <typename Done> static bool turn_until(Done done)
{
	uint64_t end_ns = plx_now_ns() + 10 * PLX_NS_PER_S;

	while (!done() && plx_now_ns() < end_ns) {
		try {
			if (plx_loop_turn() < 0)
				return false;
		} catch (const std::runtime_error &) {
		}
	}
	return done();
}

#endif
