/* SPDX-License-Identifier: BSD-3-Clause */
/* A service that answers nothing: messages are counted and dropped. What measures how many of them
 * a link carries one way sends to it. */
#include "plx_app.h"
#include "service.h"

#include <inttypes.h>

#define WINDOW_BYTES (UINT32_C(8) << 20) /* of large buffers: few, so that they stay in a cache */
#define WINDOW_MIN   4
#define WINDOW_MAX   128

/* The sender is told of room when it has used half of the window: 128 small buffers make bursts of
 * 64 messages, and one frame of news for each of them. */
uint32_t sink_window(uint32_t rx_buf_bytes)
{
	uint32_t fit = WINDOW_BYTES / rx_buf_bytes;

	return fit < WINDOW_MIN ? WINDOW_MIN : fit > WINDOW_MAX ? WINDOW_MAX : fit;
}

static void on_message(struct plx_link *link, struct plx_buf *message, void *user)
{
	struct echo_counts *counts = user;

	counts->messages++;
	counts->bytes += message->len;
}

static void on_open(struct plx_link *link, void *user)
{
	struct echo_counts *counts = echo_counts_here(user);

	plx_link_set_user(link, counts);
	counts->links++;
	plx_app_say("%s connected over %s", plx_link_peer(link), plx_link_provider(link));
}

static void on_close(struct plx_link *link, enum plx_link_reason reason, const char *text,
		     void *user)
{
	struct plx_link_stats stats;

	plx_link_stats(link, &stats);
	plx_app_say("%s gone: %s; %" PRIu64 " messages, %" PRIu64 " bytes", plx_link_peer(link),
		    plx_link_without_peer(link, text), stats.messages_received,
		    stats.bytes_received);
}

const struct plx_link_events sink_service = {
	.on_open = on_open,
	.on_message = on_message,
	.on_close = on_close,
};
