/* SPDX-License-Identifier: BSD-3-Clause */
/* Round trips on one link while another one between the same two lcores streams:
 *
 *     link-beside [EAL options] -- --listen ADDR
 *     link-beside [EAL options] -- --connect ADDR [--duration S] [--out DIR] [--name NAME]
 *
 * In each turn the client sends a message of 4 KiB on the second link, if the link takes it. The
 * server returns messages of the first link and drops those of the second; it distinguishes them by
 * size. */
#include "load.h"
#include "plx_fabric.h"

#include <inttypes.h>
#include <string.h>

#define PING_BYTES   64
#define STREAM_BYTES 4096
#define STREAM_BUFS  64 /* receive buffers of the stream */

static const char *listen_address, *connect_address;
static struct plx_measure run = {.name = "link-beside", .duration_ns = 2 * PLX_NS_PER_S};
static uint64_t warmup = 5000;

static const struct plx_option options[] = {
	PLX_TEXT("listen", "ADDR", &listen_address, "serve"),
	PLX_TEXT("connect", "ADDR", &connect_address, "of the server"),
	PLX_TIME("duration", "S", &run.duration_ns, PLX_NS_PER_MS, 3600 * PLX_NS_PER_S,
		 "measure that long (default 2s)"),
	PLX_UINT("warmup", "N", &warmup, 0, 1000000, "round trips before (default 5000)"),
	PLX_TEXT("out", "DIR", &run.out_dir, "write NAME.json, NAME.hgrm and NAME.csv there"),
	PLX_TEXT("name", "NAME", &run.name, "of the run"),
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
	struct plx_load load;
	struct plx_link *ping, *stream;
	uint8_t message[PING_BYTES], payload[STREAM_BYTES];
	uint64_t number, streamed;
	unsigned opened;
	bool blocked;
} client;

static int send_ping(struct plx_load *load, struct plx_flight *flight)
{
	client.number++;
	memcpy(client.message, &client.number, sizeof(client.number));
	flight->sent_tsc = plx_tsc();
	return plx_link_send(client.ping, client.message, PING_BYTES);
}

static void on_open(struct plx_link *link, void *user)
{
	if (++client.opened < 2)
		return;
	plx_load_note_provider(&client.load, plx_link_fi_provider(link), plx_link_choice(link));
	plx_load_start(&client.load, plx_tsc());
}

static void on_message(struct plx_link *link, struct plx_buf *message, void *user)
{
	uint64_t seen_tsc = plx_tsc_after_loads();

	if (plx_unlikely(message->len != PING_BYTES ||
			 memcmp(message->data, client.message, PING_BYTES) != 0))
		plx_load_fail(&client.load, "a wrong answer");
	else
		plx_load_reply(&client.load, plx_load_oldest(&client.load), seen_tsc,
			       PLX_REPLY_GOOD);
}

static void on_writable(struct plx_link *link, void *user)
{
	if (link == client.stream)
		client.blocked = false;
}

static void on_close(struct plx_link *link, enum plx_link_reason reason, const char *text,
		     void *user)
{
	plx_load_fail(&client.load, text);
}

/* Once per turn. */
static int stream_one(void *arg, uint64_t now_ns)
{
	if (client.blocked || !plx_load_is_on(&client.load))
		return 0;
	int rc = plx_link_send(client.stream, client.payload, STREAM_BYTES);

	client.blocked = rc == -EAGAIN;
	client.streamed += rc == 0;
	if (rc && rc != -EAGAIN)
		plx_load_fail(&client.load, plx_error());
	return rc == 0;
}

static void say_streamed(const struct plx_load *load)
{
	plx_app_say("streamed %" PRIu64 " messages of %d B during %" PRIu64 " round trips",
		    client.streamed, STREAM_BYTES, client.number);
}

/* Return: the exit status; PLX_MEASURE_DOUBTED also if the stream did not run throughout. */
static int measure(void)
{
	static const struct plx_link_events events = {.on_open = on_open,
						      .on_message = on_message,
						      .on_writable = on_writable,
						      .on_close = on_close};
	struct plx_link_attr attr = {.events = &events};
	int rc = plx_load_init(&client.load, &run, PING_BYTES, 1);

	client.load.send = send_ping;
	client.load.warmup = warmup;
	rc = rc ? rc : plx_link_connect(connect_address, &attr, &client.ping);
	rc = rc ? rc : plx_link_connect(connect_address, &attr, &client.stream);
	rc = rc ? rc : plx_poller_add("stream", stream_one, NULL, NULL);
	rc = rc ? rc : plx_load_run(&client.load);
	if (rc)
		return plx_app_fail(&app);
	rc = plx_load_report(&client.load, &app, say_streamed);
	if (rc || 2 * client.streamed >= client.number)
		return rc;
	plx_fail(ERANGE, "the other link streamed less than a message in two round trips");
	plx_app_fail(&app);
	return PLX_MEASURE_DOUBTED;
}

int main(int argc, char **argv)
{
	int status = plx_app_start(argc, argv, &app);

	if (status != PLX_APP_RUN)
		return status;
	status = connect_address ? measure() : serve() != 0 ? plx_app_fail(&app) : 0;
	plx_load_fini(&client.load);
	return plx_app_finish(&app, status);
}
