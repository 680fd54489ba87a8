/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ECHO_SERVICE_H
#define ECHO_SERVICE_H

#include "plx_fabric.h"

/** Receive buffers of a link, and so the most answers that can wait on it: its listener has to ask
 * for this rx_buf_count. */
#define ECHO_WINDOW 6

/** Sends every message back on the link that it came from. */
extern const struct plx_link_events echo_service;

#endif
