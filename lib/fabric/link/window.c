/* SPDX-License-Identifier: BSD-3-Clause */
/* How much the links of an lcore can be sent ahead. All of it is memory that a provider has, link
 * by link, so many links share what there is of it: doc/design/receives.md. */
#include "fabric_link.h"

#define SHARES      16   /* once half is taken, a link gets at most that part of what is left, */
#define LEAST_BYTES 1024 /* but buffers of that size, as many as a link needs */

static uint64_t bytes_max; /* of each lcore */

/* Return: 0; -EINVAL. */
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

/* Fewer buffers first, as messages then still come in one frame, if they did. */
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

/* A new link, whose rx_buf_bytes and rx_buf_count are what it was to have. */
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
