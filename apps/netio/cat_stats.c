/* SPDX-License-Identifier: BSD-3-Clause */
/* netio-cat --stats: what arrives, on standard error, each second and at the end. */
#include "cat.h"

#include <inttypes.h>
#include <stdio.h>

#define GAPS_TEXT 80

struct counts {
	uint64_t messages, bytes;
	uint64_t gaps, missed;
};

static struct {
	struct netio_timer timer;
	struct counts all, before; /* before: at the last line */
	uint64_t line_ns;          /* when that was */
} stats;

void cat_stats_message(size_t len)
{
	stats.all.messages++;
	stats.all.bytes += len;
}

void cat_stats_gap(uint64_t missed)
{
	stats.all.gaps++;
	stats.all.missed += missed;
}

/* Only publishers report gaps. Return: out. */
static const char *format_gaps(uint64_t gaps, uint64_t missed, char out[GAPS_TEXT])
{
	out[0] = '\0';
	if (cat_conf.mode == CAT_SUBSCRIBE)
		snprintf(out, GAPS_TEXT, ", gaps: %" PRIu64 ", missed: %" PRIu64, gaps, missed);
	return out;
}

/* The timer may be late: divide by the time that has passed. */
static void on_second(void *data)
{
	uint64_t now_ns = plx_now_ns();
	double seconds = (double)(now_ns - stats.line_ns) / (double)PLX_NS_PER_S;
	char gaps[GAPS_TEXT];

	cat_tell("rate: %.0f messages/s, %.0f bytes/s%s",
		 (double)(stats.all.messages - stats.before.messages) / seconds,
		 (double)(stats.all.bytes - stats.before.bytes) / seconds,
		 format_gaps(stats.all.gaps - stats.before.gaps,
			     stats.all.missed - stats.before.missed, gaps));
	stats.before = stats.all;
	stats.line_ns = now_ns;
}

int cat_stats_start(struct netio_eventloop *evloop)
{
	int rc;

	if (!cat_conf.stats)
		return 0;
	stats.line_ns = plx_now_ns();
	rc = netio_timer_init(evloop, &stats.timer);
	stats.timer.cb = on_second;
	return rc ? rc : netio_timer_start_s(&stats.timer, 1);
}

void cat_stats_stop(void)
{
	if (cat_conf.stats)
		netio_timer_stop(&stats.timer);
}

void cat_stats_finish(void)
{
	char gaps[GAPS_TEXT];

	if (cat_conf.stats)
		cat_tell("total: %" PRIu64 " messages, %" PRIu64 " bytes%s", stats.all.messages,
			 stats.all.bytes, format_gaps(stats.all.gaps, stats.all.missed, gaps));
}
