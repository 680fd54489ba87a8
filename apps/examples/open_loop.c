/* SPDX-License-Identifier: BSD-3-Clause */
/* Sends requests at a fixed rate. Prints latencies from their intended times and from the sends.
 * Run it:  open_loop --connect 127.0.0.1:7000 --rate 20000      while plx-echo runs */
#include <plx_app.h>
#include <plx_fabric.h>
#include <plx_stats.h>
#include <string.h>

static const char *address;
static uint64_t rate = 10000, count = 50000;
static const struct plx_option options[] = {
	PLX_ADDRESS("connect", &address, "host:port of plx-echo", .required = true),
	PLX_UINT("rate", "R", &rate, 1, 10000000, "requests per second (default 10000)"),
	PLX_UINT("count", "N", &count, 1, 1000000000, "number of requests (default 50000)"),
	PLX_OPTIONS_END,
};
static const struct plx_app app = {.summary = "Measure at a fixed rate.", .options = options};
static struct plx_hist from_intended, from_send; /* ns */
static struct plx_link *server;
static bool has_room; /* false also before it opens */
static uint64_t first_ns, sent;

static uint64_t next_due_ns(void)
{
	return has_room && sent < count ? first_ns + sent * PLX_NS_PER_S / rate : PLX_NEVER;
}

/* A poller. After a stall it sends all that is due: late, but no request is left out. */
static int send_due(void *arg, uint64_t now_ns)
{
	uint64_t before = sent;

	while (next_due_ns() <= now_ns) {
		uint64_t times[2] = {next_due_ns(), plx_now_ns()}; /* plx-echo returns them */

		has_room = plx_link_send(server, times, sizeof(times)) == 0;
		sent += has_room; /* -EAGAIN: the schedule stays, and on_room follows */
	}
	return (int)(sent - before);
}

static int arm(void *arg, struct plx_sleep *sleep)
{
	plx_sleep_until(sleep, next_due_ns());
	return 0;
}

static void on_room(struct plx_link *link, void *user)
{
	has_room = true; /* so the poller sends */
	first_ns = first_ns ? first_ns : plx_now_ns();
}

static void on_message(struct plx_link *link, struct plx_buf *message, void *user)
{
	uint64_t now_ns = plx_tsc_time_ns(plx_tsc_after_loads()), times[2];

	if (message->len != sizeof(times))
		return;
	memcpy(times, message->data, sizeof(times));
	plx_hist_record(&from_intended, plx_time_since(times[0], now_ns));
	plx_hist_record(&from_send, plx_time_since(times[1], now_ns));
	if (from_send.count == count)
		plx_link_close(link);
}

static void on_close(struct plx_link *link, enum plx_link_reason why, const char *text, void *user)
{
	has_room = false;
	fprintf(stderr, "open_loop: %s\n", text);
	plx_loop_quit();
}

static const struct plx_link_events events = {
	.on_open = on_room, .on_message = on_message, .on_writable = on_room, .on_close = on_close};

int main(int argc, char **argv)
{
	struct plx_link_attr attr = {.events = &events};
	struct plx_poller *poller;
	int status = plx_app_start(argc, argv, &app), rc;

	if (status != PLX_APP_RUN)
		return status;
	rc = plx_hist_init(&from_intended, 10 * PLX_NS_PER_S, 3);
	rc = rc ? rc : plx_hist_init(&from_send, 10 * PLX_NS_PER_S, 3);
	rc = rc ? rc : plx_poller_add("schedule", send_due, NULL, &poller);
	if (rc == 0)
		plx_poller_set_arm(poller, arm);
	rc = rc ? rc : plx_link_connect(address, &attr, &server);
	rc = rc ? rc : plx_loop_run();
	plx_hist_print_quantiles(NULL, stdout, "latency, us", PLX_NS_PER_US);
	plx_hist_print_quantiles(&from_intended, stdout, "  from intended", PLX_NS_PER_US);
	plx_hist_print_quantiles(&from_send, stdout, "  from send", PLX_NS_PER_US);
	printf("\n");
	plx_hist_print_bars(&from_intended, stdout, "latency, us", PLX_NS_PER_US, 0);
	plx_hist_fini(&from_send);
	plx_hist_fini(&from_intended);
	return plx_app_finish(&app, rc ? plx_app_fail(&app) : from_send.count < count);
}
