/* SPDX-License-Identifier: BSD-3-Clause */
/* The cost of many idle links for the lcore that accepted them:
 *
 *     link-idle [EAL options] -- --listen ADDR --links N [--duration S] --out FILE
 *
 * Waits until many_links has opened N links, each with one message there and back. Writes as JSON:
 * the longest turn while they connected, the memory of each link, the cost of an idle turn, and the
 * CPU share of the sleeping process. Turns are measured in CPU time, so preemption does not
 * count. */
#include "app.h"
#include "plx_fabric.h"
#include "plx_lcore.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define LIMIT_NS   (300 * PLX_NS_PER_S) /* for all links to connect */
#define COOL_TURNS 100000               /* until no socket counts as busy */
#define STRETCH    1000                 /* turns timed together */
#define STRETCHES  301
#define SETTLE_NS  PLX_NS_PER_S /* asleep, before measuring */

/* The minimum of a link, so that most of its memory is the provider's and the link's structures. */
#define RX_BUF_BYTES 256
#define RX_BUF_COUNT 2

static const char *listen_address, *out_file;
static uint64_t link_count = 1, duration_ns = 5 * PLX_NS_PER_S;
static uint64_t opened, answered, closed;

static struct {
	uint64_t longest_turn_ns, cpu_ns, wakes;
	double turn_ns;
	int64_t grown_bytes;
	uint32_t size_bytes; /* of each link's one message */
	char provider[32];
} result;

static const struct plx_option options[] = {
	PLX_TEXT("listen", "ADDR", &listen_address, "where many_links comes"),
	PLX_UINT("links", "N", &link_count, 1, 100000, "how many will come"),
	PLX_TIME("duration", "S", &duration_ns, PLX_NS_PER_MS, 3600 * PLX_NS_PER_S,
		 "how long it sleeps (default 5s)"),
	PLX_TEXT("out", "FILE", &out_file, "where to write the figures"),
	PLX_OPTIONS_END,
};

static int check(void)
{
	return listen_address && out_file ? 0 : plx_fail(EINVAL, "give --listen and --out");
}

static const struct plx_app app = {
	.name = "link-idle",
	.summary = "What many idle links cost the lcore that accepted them.",
	.options = options,
	.check = check};

/* Links ------------------------------------------------------------------------------------ */

static void on_open(struct plx_link *link, void *user)
{
	if (opened++ == 0)
		snprintf(result.provider, sizeof(result.provider), "%s",
			 plx_link_fi_provider(link));
}

static void on_message(struct plx_link *link, struct plx_buf *message, void *user)
{
	result.size_bytes = message->len;
	if (plx_link_send(link, message->data, message->len) == 0)
		answered++;
	else
		plx_link_abort(link);
}

static void on_close(struct plx_link *link, enum plx_link_reason reason, const char *text,
		     void *user)
{
	if (closed++ == 0)
		plx_app_say("%s", text);
	plx_loop_quit();
}

/* Measuring -------------------------------------------------------------------------------- */

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * PLX_NS_PER_S + (uint64_t)now.tv_nsec;
}

static int64_t resident_bytes(void)
{
	long total, resident = 0;
	FILE *file = fopen("/proc/self/statm", "re");

	if (file) {
		if (fscanf(file, "%ld %ld", &total, &resident) != 2)
			resident = 0;
		fclose(file);
	}
	return (int64_t)resident * sysconf(_SC_PAGESIZE);
}

static int wait_for_links(void)
{
	uint64_t limit_ns = plx_now_ns() + LIMIT_NS;
	int64_t before = resident_bytes();

	while (answered < link_count) {
		uint64_t begin_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
		int rc = plx_loop_turn();
		uint64_t turn_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin_ns;

		if (rc < 0 || plx_stopping())
			return rc < 0 ? rc : plx_fail(EINTR, "stopped");
		if (closed || plx_now_ns() > limit_ns)
			return plx_fail(ETIMEDOUT, "%" PRIu64 " links of %" PRIu64 " came", opened,
					link_count);
		if (turn_ns > result.longest_turn_ns)
			result.longest_turn_ns = turn_ns;
	}
	result.grown_bytes = resident_bytes() - before;
	return 0;
}

static int ascending(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Of an idle turn: the median over stretches. */
static void measure_turns(void)
{
	static uint64_t ns[STRETCHES];

	for (unsigned i = 0; i < COOL_TURNS; i++)
		plx_loop_turn();
	for (unsigned i = 0; i < STRETCHES; i++) {
		uint64_t begin_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);

		for (unsigned turn = 0; turn < STRETCH; turn++)
			plx_loop_turn();
		ns[i] = clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin_ns;
	}
	qsort(ns, STRETCHES, sizeof(ns[0]), ascending);
	result.turn_ns = (double)ns[STRETCHES / 2] / STRETCH;
}

static void on_time(struct plx_timer *timer, void *arg)
{
	plx_loop_quit();
}

static void sleep_for(uint64_t ns)
{
	struct plx_timer timer;

	plx_timer_init(&timer, on_time, NULL);
	plx_timer_start(&timer, ns);
	plx_loop_run();
	plx_timer_stop(&timer);
}

static uint64_t sleeps(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (uint64_t)usage.ru_nvcsw;
}

static int measure_sleep(void)
{
	sleep_for(SETTLE_NS);
	result.cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	result.wakes = sleeps();
	sleep_for(duration_ns);
	result.cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - result.cpu_ns;
	result.wakes = sleeps() - result.wakes;
	return closed ? plx_fail(EPIPE, "a link ended while nothing happened") : 0;
}

static int write_result(void)
{
	double seconds = (double)duration_ns / (double)PLX_NS_PER_S;
	json_t *object = json_pack(
		"{s:s, s:I, s:I, s:f, s:f, s:f, s:f, s:f}", "provider", result.provider, "links",
		(json_int_t)link_count, "size_bytes", (json_int_t)result.size_bytes,
		"longest_turn_ns", (double)result.longest_turn_ns, "turn_ns", result.turn_ns,
		"bytes_per_link", (double)result.grown_bytes / (double)link_count, "cpu_percent",
		(double)result.cpu_ns / (double)duration_ns * 100, "wakes_per_s",
		(double)result.wakes / seconds);
	int rc = plx_app_write_json(out_file, object);

	json_decref(object);
	return rc;
}

static int measure(void)
{
	static const struct plx_link_events events = {
		.on_open = on_open, .on_message = on_message, .on_close = on_close};
	struct plx_listen_attr attr = {.link = {.events = &events,
						.rx_buf_bytes = RX_BUF_BYTES,
						.rx_buf_count = RX_BUF_COUNT}};
	struct plx_listener *listener;
	int rc = plx_link_listen(listen_address, &attr, &listener);

	if (rc)
		return rc;
	plx_app_say("listening on %s", plx_listener_address(listener));
	rc = wait_for_links();
	if (rc)
		return rc;
	measure_turns();
	rc = measure_sleep();
	return rc ? rc : write_result();
}

int main(int argc, char **argv)
{
	int status = plx_app_start(argc, argv, &app);

	if (status != PLX_APP_RUN)
		return status;
	int rc = measure();

	if (rc)
		plx_app_fail(&app);
	return plx_app_finish(&app, rc != 0);
}
