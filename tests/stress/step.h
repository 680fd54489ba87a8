/* SPDX-License-Identifier: BSD-3-Clause */
/* A delay at random, of sleep_test.c. */
#ifndef STEP_H
#define STEP_H

void stress_step(void);
#define LCORE_STEP() stress_step()

#endif
