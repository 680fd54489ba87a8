/* SPDX-License-Identifier: BSD-3-Clause */
/* A random delay at each step of the files under test: see delays.h. */
#ifndef STEP_H
#define STEP_H

void stress_step(void);
#define LCORE_STEP() stress_step()
#define QUEUE_STEP() stress_step()

#endif
