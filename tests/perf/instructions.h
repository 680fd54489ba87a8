/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages of SIZE bytes between two ends of one thread. */
#ifndef INSTRUCTIONS_H
#define INSTRUCTIONS_H

#include "plx_base.h"

#define SIZE       64           /* bytes per message */
#define ADDRESS    "127.0.0.78" /* not 127.0.0.1, where other tests reuse ports */
#define CONNECT_NS (10 * PLX_NS_PER_S)

/* End the program with plx_error(). */
_Noreturn void fail(const char *what);

/* libfabric alone: connect two endpoints of the provider; then let `count` messages travel, each
 * returned by its receiver. */
void raw_open(const char *provider);
void raw_run(uint64_t count);

#endif
