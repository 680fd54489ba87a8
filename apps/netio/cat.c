/* SPDX-License-Identifier: BSD-3-Clause */
/* netio-cat: copies lines from standard input to NetIO sockets, and messages to standard output.
 *
 * Try it:  netio-cat subscribe --connect 127.0.0.1:12345 -t 1-9
 *          echo hello | netio-cat publish --listen 127.0.0.1:12345 -t 7 */
#include "cat.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LINE_BYTES 1024
#define GAPS_TEXT  80
#define DRAIN_NS   (PLX_CLOSE_NS + PLX_NS_PER_S)

struct netio_context cat_ctx;
static int status;
static bool ended;

static void say(const char *name, const char *format, va_list args)
{
	char line[LINE_BYTES];
	int len = snprintf(line, sizeof(line), "%s", name);

	len += vsnprintf(line + len, sizeof(line) - (size_t)len - 1, format, args);
	if (len > (int)sizeof(line) - 2)
		len = (int)sizeof(line) - 2;
	line[len] = '\n';
	plx_write_or_drop(STDERR_FILENO, line, (size_t)len + 1);
}

void cat_tell(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say("", format, args);
	va_end(args);
}

void cat_tell_connected(const char *address, const char *program, pid_t pid, const char *provider,
			const char *choice)
{
	char peer[PLX_PEER_BYTES];

	cat_tell("%s connected over %s%s%s", plx_peer_format(address, program, pid, peer), provider,
		 choice ? ": " : "", choice ?: "");
}

void cat_tell_suspect(const char *peer, bool suspect)
{
	cat_tell("%s %s", peer, suspect ? "is silent" : "is heard again");
}

void cat_fail(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say("netio-cat: ", format, args);
	va_end(args);
	status = 1;
}

void cat_end(void)
{
	ended = true;
	netio_terminate(&cat_ctx.evloop);
}

/* --stats: what arrives, each second and at the end ------------------------------------------ */

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

static void finish_stats(void)
{
	char gaps[GAPS_TEXT];

	if (cat_conf.stats)
		cat_tell("total: %" PRIu64 " messages, %" PRIu64 " bytes%s", stats.all.messages,
			 stats.all.bytes, format_gaps(stats.all.gaps, stats.all.missed, gaps));
}

/* The run ------------------------------------------------------------------------------------- */

/* Receiving sockets close first, so peers see the closure while the rest is written. */
static int run(void)
{
	static int (*const starts[])(struct netio_eventloop *evloop) = {
		[CAT_PUBLISH] = cat_publish_start, [CAT_SUBSCRIBE] = cat_subscribe_start,
		[CAT_SEND] = cat_send_start,       [CAT_PUSH] = cat_push_start,
		[CAT_RECV] = cat_recv_start,
	};
	bool sends = cat_conf.mode != CAT_SUBSCRIBE && cat_conf.mode != CAT_RECV;

	if (netio_init(&cat_ctx) != 0)
		return 1;
	if (starts[cat_conf.mode](&cat_ctx.evloop) != 0) {
		netio_fini(&cat_ctx);
		return 1;
	}
	netio_run(&cat_ctx.evloop);
	if (sends && !ended)
		cat_fail("stopped before the end of its input");
	else if (sends)
		netio_drain(&cat_ctx.evloop, DRAIN_NS); /* cb_connection_closed reports losses */
	if (ended && cat_conf.mode == CAT_PUBLISH)
		cat_publish_report();
	if (sends)
		cat_input_stop();
	else if (cat_conf.stats)
		netio_timer_stop(&stats.timer);
	if (netio_fini(&cat_ctx) != 0)
		status = 1;
	if (!sends) {
		cat_output_finish();
		finish_stats();
	}
	return status;
}

int main(int argc, char **argv)
{
	int result = plx_app_start(argc, argv, &cat_app);

	return result == PLX_APP_RUN ? plx_app_finish(&cat_app, run()) : result;
}
