/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ECHO_SERVICE_H
#define ECHO_SERVICE_H

#include "plx_fabric.h"
#include "plx_lcore.h"

/** Receive buffers of a link, and so the most answers that can wait on it: its listener has to ask
 * for this rx_buf_count. */
#define ECHO_WINDOW 6

/** What an lcore has taken. */
struct echo_counts {
	uint64_t links, messages, bytes;
};

/** Sends every message back on the link that it came from. The `user` of its listener's links is a
 * struct plx_lcore_var of struct echo_counts, where each lcore counts, or NULL. */
extern const struct plx_link_events echo_service;

/** Drops every message. Its `user` is that of echo_service; any rx_buf_count will do. */
extern const struct plx_link_events sink_service;

/** Receive buffers of a link to the sink, unless somebody says otherwise: 128, or as many as 8 MiB
 * hold, but 4 at least. */
uint32_t sink_window(uint32_t rx_buf_bytes);

/** Where the calling lcore counts. counts: the `user` of a listener's links. */
struct echo_counts *echo_counts_here(const struct plx_lcore_var *counts);

#endif
