/* SPDX-License-Identifier: BSD-3-Clause */
/* netio-cat: copies lines from standard input to NetIO sockets, and messages to standard output.
 *
 * Try it:  netio-cat subscribe --connect 127.0.0.1:12345 -t 1-9
 *          echo hello | netio-cat publish --listen 127.0.0.1:12345 -t 7 */
#include "cat.h"

#include "plx_eal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINE_BYTES 1024

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

/* Sockets close first, so peers see the closure while the rest is written. */
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
	if (sends)
		cat_input_stop();
	else
		cat_stats_stop();
	if (netio_fini(&cat_ctx) != 0)
		status = 1;
	if (!sends) {
		cat_output_finish();
		cat_stats_finish();
	}
	return status;
}

int main(int argc, char **argv)
{
	int result = plx_app_start(argc, argv, &cat_app);

	return result == PLX_APP_RUN ? plx_app_finish(&cat_app, run()) : result;
}
