/* SPDX-License-Identifier: BSD-3-Clause */
/* Program output: unbuffered lines, untrusted text, and detection of write errors. */
#include "base_internal.h"
#include "plx_app.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio_ext.h>
#include <string.h>
#include <unistd.h>

#define LINE_BYTES 1024

/* errno of a line that could not be written; 0: none, or it had no reader. Relaxed: no other data
 * depends on it. Lcores write it, the main lcore reads it. */
static _Atomic int failure;

void plx_app_say(const char *format, ...)
{
	char line[LINE_BYTES];
	va_list args;
	int rc;

	va_start(args, format);
	int len = vsnprintf(line, sizeof(line) - 1, format, args);
	va_end(args);
	if (len < 0)
		return;
	if (len > (int)sizeof(line) - 2)
		len = (int)sizeof(line) - 2;
	line[len] = '\n';
	fflush(stdout);
	rc = plx_write_or_drop(STDOUT_FILENO, line, (size_t)len + 1);
	if (rc && rc != -EAGAIN && rc != -EPIPE)
		atomic_store_explicit(&failure, -rc, memory_order_relaxed);
}

void plx_app_put_text(FILE *out, const void *text, size_t length, const char *plain)
{
	const char *bytes = text;

	for (size_t at = 0; at < length;) {
		char one[PLX_PRINTABLE_BYTES];

		at += plx_printable_next(bytes + at, length - at, plain, one);
		fputs(one, out);
	}
}

const char *plx_app_stream_error(int err)
{
	return err == 0     ? "not all of it could be written"
	     : err == EBADF ? "it is closed" /* see plx_hold_stdio */
	     : err == EPIPE ? "nobody reads it"
			    : strerror(err);
}

int plx_app_flush(void)
{
	int said = atomic_exchange_explicit(&failure, 0, memory_order_relaxed), err;

	errno = 0;
	if (fflush(stdout) == 0 && !ferror(stdout) && !said)
		return 0;
	err = said ? said : errno;
	/* Reported once, and not retried by exit(3). */
	__fpurge(stdout);
	clearerr(stdout);
	return plx_fail(EIO, "standard output: %s", plx_app_stream_error(err));
}

void plx_app_say_idle(uint32_t id)
{
	static const char *const causes[PLX_WAKE_CAUSES] = {
		[PLX_WAKE_MESSAGE] = "messages", [PLX_WAKE_POLLER] = "links",
		[PLX_WAKE_FD] = "descriptors",   [PLX_WAKE_TIMER] = "timers",
		[PLX_WAKE_CAP] = "cap",          [PLX_WAKE_NAP] = "naps",
	};
	struct plx_idle_stats stats;
	char woken_by[512] = "", one[64];

	if (plx_idle_stats_read(id, &stats) || !stats.sleeps)
		return;
	for (unsigned i = 0; i < PLX_WAKE_CAUSES; i++) {
		snprintf(one, sizeof(one), "%s %" PRIu64, causes[i], stats.wakes[i]);
		if (stats.wakes[i])
			plx_list_add(woken_by, sizeof(woken_by), one);
	}
	plx_app_say("lcore %" PRIu32 ": slept %" PRIu64 " times, %.3f s; woken by %s", id,
		    stats.sleeps, (double)stats.asleep_ns / (double)PLX_NS_PER_S, woken_by);
	if (stats.spurious)
		plx_app_say("lcore %" PRIu32 ": woken for nothing %" PRIu64 " times", id,
			    stats.spurious);
	if (stats.rescues)
		plx_app_say("lcore %" PRIu32 ": not woken where there was work %" PRIu64
			    " times: what should have woken it is broken",
			    id, stats.rescues);
	if (stats.naps && stats.awake_by)
		plx_app_say("lcore %" PRIu32 ": poller %s cannot be waited for", id,
			    stats.awake_by);
}
