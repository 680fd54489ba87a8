/* SPDX-License-Identifier: BSD-3-Clause */
/* Two processes that only share memory: the cost of a message without any transport. */
#ifndef RAW_LOCAL_H
#define RAW_LOCAL_H

#include "raw_common.h"

#define RAW_LOCAL_SIZE 64 /* of every message */

int raw_local_serve(const struct raw_options *options);
int raw_local_ping(const struct raw_options *options, uint8_t *message, struct raw_run *run);

#endif
