/* SPDX-License-Identifier: BSD-3-Clause */
/* Round trips on one link while another one between the same two lcores streams:
 *
 *     link-beside [EAL options] -- --listen ADDR
 *     link-beside [EAL options] -- --connect ADDR [--duration S] [--out DIR] [--name NAME]
 *
 * In each turn the client sends a message of 4 KiB on the second link, if the link takes it. The
 * server returns messages of the first link and drops those of the second; it distinguishes them by
 * size. */
#include "raw_common.h"

#include "app.h"
#include "plx_fabric.h"

#include <inttypes.h>
#include <stdio.h>

#define PING_BYTES   64
#define STREAM_BYTES 4096
#define STREAM_BUFS  64 /* receive buffers of the stream */
#define HIGHEST_NS   (10 * PLX_NS_PER_S)
#define DIGITS       3

static const char *listen_address, *connect_address;
static uint64_t duration_ns = 2 * PLX_NS_PER_S;
static struct raw_options run_options = {
	.name = "link-beside", .idle = "poll", .size = PING_BYTES, .warmup = 5000};

static const struct plx_option options[] = {
	PLX_TEXT("listen", "ADDR", &listen_address, "serve"),
	PLX_TEXT("connect", "ADDR", &connect_address, "of the server"),
	PLX_TIME("duration", "S", &duration_ns, PLX_NS_PER_MS, 3600 * PLX_NS_PER_S,
		 "measure that long (default 2s)"),
	PLX_UINT("warmup", "N", &run_options.warmup, 0, 1000000,
		 "round trips before (default 5000)"),
	PLX_TEXT("out", "DIR", &run_options.out, "write NAME.json, NAME.hgrm and NAME.csv there"),
	PLX_TEXT("name", "NAME", &run_options.name, "of the run"),
	PLX_OPTIONS_END,
};

static int check(void)
{
	return !listen_address != !connect_address
		     ? 0
		     : plx_fail(EINVAL, "give one of --listen ADDR and --connect ADDR");
}

static const struct plx_app app = {.name = "link-beside",
				   .summary = "Round trips on one link while another one streams.",
				   .options = options,
				   .check = check};

/* Server ----------------------------------------------------------------------------------- */

static void serve_message(struct plx_link *link, struct plx_buf *message, void *user)
{
	if (message->len == PING_BYTES && plx_link_send(link, message->data, PING_BYTES) != 0)
		plx_link_abort(link);
}

static void serve_close(struct plx_link *link, enum plx_link_reason reason, const char *text,
			void *user)
{
	plx_loop_quit();
}

static int serve(void)
{
	static const struct plx_link_events events = {.on_message = serve_message,
						      .on_close = serve_close};
	struct plx_listen_attr attr = {.link = {.events = &events,
						.rx_buf_bytes = STREAM_BYTES,
						.rx_buf_count = STREAM_BUFS}};
	struct plx_listener *listener;
	int rc = plx_link_listen(listen_address, &attr, &listener);

	if (rc)
		return rc;
	plx_app_say("listening on %s", plx_listener_address(listener));
	return plx_loop_run();
}

/* Client ----------------------------------------------------------------------------------- */

static struct {
	struct plx_link *ping, *stream;
	struct raw_run run;
	uint8_t message[PING_BYTES], payload[STREAM_BYTES];
	uint64_t sent_tsc, number;
	uint64_t streamed;
	unsigned opened;
	bool blocked, finished;
	char error[256];
} client;

static void fail(const char *text)
{
	if (!*client.error)
		snprintf(client.error, sizeof(client.error), "%s", text);
	plx_loop_quit();
}

static void finish(void)
{
	client.finished = true;
	plx_loop_quit();
}

static void send_ping(void)
{
	raw_number(client.message, PING_BYTES, ++client.number);
	client.sent_tsc = plx_tsc();
	if (plx_unlikely(plx_link_send(client.ping, client.message, PING_BYTES)))
		fail(plx_error());
}

static void on_open(struct plx_link *link, void *user)
{
	if (++client.opened == 2)
		send_ping();
}

static void on_message(struct plx_link *link, struct plx_buf *message, void *user)
{
	uint64_t seen_tsc = plx_tsc_after_loads();

	if (plx_unlikely(message->len != PING_BYTES ||
			 raw_check_number(message->data, PING_BYTES, client.number) != 0))
		fail("a wrong answer");
	else if (raw_run_add(&client.run, client.sent_tsc, seen_tsc))
		send_ping();
	else
		finish();
}

static void on_writable(struct plx_link *link, void *user)
{
	if (link == client.stream)
		client.blocked = false;
}

static void on_close(struct plx_link *link, enum plx_link_reason reason, const char *text,
		     void *user)
{
	fail(text);
}

/* Once per turn. */
static int stream_one(void *arg, uint64_t now_ns)
{
	if (client.opened < 2 || client.blocked || client.finished)
		return 0;
	int rc = plx_link_send(client.stream, client.payload, STREAM_BYTES);

	client.blocked = rc == -EAGAIN;
	client.streamed += rc == 0;
	if (rc && rc != -EAGAIN)
		fail(plx_error());
	return rc == 0;
}

/* Return: 0; -ERANGE: the stream did not run throughout; -errno. */
static int report(void)
{
	plx_app_say("streamed %" PRIu64 " messages of %d B during %" PRIu64 " round trips",
		    client.streamed, STREAM_BYTES, client.number);
	int rc = raw_report_run(&run_options, &client.run);

	return rc || 2 * client.streamed >= client.number
		     ? rc
		     : plx_fail(ERANGE,
				"the other link streamed less than a message in two round trips");
}

static int measure(void)
{
	static const struct plx_link_events events = {.on_open = on_open,
						      .on_message = on_message,
						      .on_writable = on_writable,
						      .on_close = on_close};
	struct plx_link_attr attr = {.events = &events};
	int rc = plx_hist_init(&client.run.hist, HIGHEST_NS, DIGITS);

	client.run.warmup_left = run_options.warmup;
	client.run.duration_tsc = (uint64_t)((double)duration_ns / (double)PLX_NS_PER_S *
					     plx_clock_info_read()->hz);
	rc = rc ? rc : plx_link_connect(connect_address, &attr, &client.ping);
	rc = rc ? rc : plx_link_connect(connect_address, &attr, &client.stream);
	rc = rc ? rc : plx_poller_add("stream", stream_one, NULL, NULL);
	rc = rc ? rc : plx_loop_run();
	if (rc || !client.finished)
		return rc ? rc : plx_fail(EPIPE, "%s", *client.error ? client.error : "stopped");
	run_options.provider = plx_link_fi_provider(client.ping);
	return report();
}

int main(int argc, char **argv)
{
	int status = plx_app_start(argc, argv, &app);

	if (status != PLX_APP_RUN)
		return status;
	int rc = listen_address ? serve() : measure();

	plx_hist_fini(&client.run.hist);
	if (rc)
		plx_app_fail(&app);
	return plx_app_finish(&app, rc == -ERANGE ? 3 : rc != 0);
}
