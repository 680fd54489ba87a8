/* SPDX-License-Identifier: BSD-3-Clause */
/* Receive windows. All receive buffers of an lcore's links come from one budget, which many links
 * share: doc/design/receives.md. */
#include "fabric_link.h"

#define SHARES      16   /* once half is used, a link gets at most 1 / SHARES of the rest, */
#define LEAST_BYTES 1024 /* but at least its minimum of buffers of this size */

static uint64_t bytes_max; /* per lcore */

int window_init(uint64_t receive_bytes)
{
	bytes_max = receive_bytes ? receive_bytes : PLX_RECEIVE_BYTES_DEFAULT;
	return fabric_check_range("receive_bytes", bytes_max, PLX_RECEIVE_BYTES_MIN,
				  PLX_RECEIVE_BYTES_MAX);
}

static uint64_t bytes_of(const struct plx_link *link)
{
	return (uint64_t)link_receives(link) * link->rx_buf_bytes;
}

/* Reduce the number of buffers first: messages that fit into one frame still do. */
static void fit(struct plx_link *link, uint64_t share)
{
	uint64_t count = share / link->rx_buf_bytes;

	if (count < link_receives(link))
		link->rx_buf_count = count < LINK_RX_BUF_COUNT_MIN + link->rx_control
					   ? LINK_RX_BUF_COUNT_MIN
					   : (uint32_t)count - link->rx_control;
	if (bytes_of(link) > share && link->rx_buf_bytes > LEAST_BYTES) {
		uint64_t bytes = share / link_receives(link);

		link->rx_buf_bytes = bytes > LEAST_BYTES ? (uint32_t)bytes : LEAST_BYTES;
	}
}

static void log_once(struct plx_fabric_lcore *home)
{
	if (home->windows_logged)
		return;
	home->windows_logged = true;
	plx_log(&fabric_log, PLX_LOG_NOTICE,
		"lcore %u: its links have %llu KiB of receive buffers, of %llu KiB that they may "
		"have (--receive-mem): from here on new links get fewer and shorter ones",
		home->id, (unsigned long long)(home->rx_bytes >> 10),
		(unsigned long long)(bytes_max >> 10));
}

/* Fit the window of a new link: rx_buf_bytes and rx_buf_count are the requested values. */
void window_take(struct plx_link *link)
{
	struct plx_fabric_lcore *home = link->home;
	uint64_t left = bytes_max > home->rx_bytes ? bytes_max - home->rx_bytes : 0;

	if (left <= bytes_max / 2 && bytes_of(link) > left / SHARES) {
		log_once(home);
		fit(link, left / SHARES);
	}
	home->rx_bytes += bytes_of(link);
}

void window_give(struct plx_link *link)
{
	link->home->rx_bytes -= bytes_of(link);
}
