/* SPDX-License-Identifier: BSD-3-Clause */
/* Is the last message before a close ever lost? The sender sends --count messages, closes at once
 * and exits in its callback. The receiver reports how many arrived, and their contents. */
#include "app.h"
#include "plx_fabric.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *listen_address, *connect_address;
static uint64_t count = 1, size_bytes = 64, rounds = 1;
static uint64_t sent, round_number;
static uint8_t *payload;
static int status;

static const struct plx_option options[] = {
	PLX_TEXT("listen", "ADDR", &listen_address, "receive"),
	PLX_TEXT("connect", "ADDR", &connect_address, "send"),
	PLX_UINT("count", "N", &count, 1, 0, "messages of a round (default 1)"),
	PLX_SIZE("size", "BYTES", &size_bytes, 0, 1 << 20, "of a message (default 64)"),
	PLX_UINT("rounds", "N", &rounds, 1, 0, "links, one after the other (default 1)"),
	PLX_OPTIONS_END,
};

static const struct plx_app app = {.name = "last-message",
				   .summary = "sends some messages, closes, and is gone",
				   .options = options};

static void fill(uint8_t *out, uint64_t size, uint64_t seq)
{
	memset(out, (int)(seq * 31 + 7), size);
}

/* The receiver ----------------------------------------------------------------------------- */

struct tally {
	uint64_t messages, wrong;
};

static void on_accepted(struct plx_link *link, void *user)
{
	plx_link_set_user(link, calloc(1, sizeof(struct tally)));
}

static void on_message(struct plx_link *link, struct plx_buf *message, void *user)
{
	struct tally *tally = user;

	fill(payload, size_bytes, tally->messages++);
	if (message->len != size_bytes || memcmp(message->data, payload, size_bytes) != 0)
		tally->wrong++;
}

static void on_accepted_close(struct plx_link *link, enum plx_link_reason reason, const char *text,
			      void *user)
{
	struct tally *tally = user;

	plx_app_say("round %" PRIu64 ": %" PRIu64 " messages, %" PRIu64 " wrong, %s",
		    ++round_number, tally->messages, tally->wrong, plx_link_reason_name(reason));
	free(tally);
}

static const struct plx_link_events receiver_events = {
	.on_open = on_accepted, .on_message = on_message, .on_close = on_accepted_close};

static int receive(void)
{
	struct plx_listen_attr attr = {.link.events = &receiver_events};
	struct plx_listener *listener;

	if (plx_link_listen(listen_address, &attr, &listener))
		return plx_app_fail(&app);
	plx_app_say("listening on %s", plx_listener_address(listener));
	plx_loop_run();
	return 0;
}

/* The sender ------------------------------------------------------------------------------- */

static int start_round(void);

static void send_all(struct plx_link *link, void *user)
{
	while (sent < count) {
		int rc;

		fill(payload, size_bytes, sent);
		rc = plx_link_send(link, payload, size_bytes);
		if (rc == -EAGAIN)
			return; /* on_writable follows */
		if (rc) {
			status = plx_app_fail(&app);
			plx_link_abort(link);
			return;
		}
		sent++;
	}
	plx_link_close(link);
}

static void on_close(struct plx_link *link, enum plx_link_reason reason, const char *text,
		     void *user)
{
	if (reason != PLX_LINK_CLOSED) {
		fprintf(stderr, "%s\n", text);
		status = 1;
	}
	if (status || ++round_number == rounds || start_round())
		plx_loop_quit();
}

static const struct plx_link_events sender_events = {
	.on_open = send_all, .on_writable = send_all, .on_close = on_close};

static int start_round(void)
{
	struct plx_link_attr attr = {.events = &sender_events};
	struct plx_link *link;

	sent = 0;
	if (plx_link_connect(connect_address, &attr, &link))
		status = plx_app_fail(&app);
	return status;
}

/* Exits without calling the library again: the worst that a sender can do. */
static int send_rounds(void)
{
	if (start_round() == 0)
		plx_loop_run();
	_Exit(status);
}

int main(int argc, char **argv)
{
	status = plx_app_start(argc, argv, &app);
	if (status != PLX_APP_RUN)
		return status;
	status = 0;
	payload = malloc(size_bytes + 1);
	if (!payload || !listen_address == !connect_address)
		return 2;
	if (connect_address)
		return send_rounds();
	status = receive();
	free(payload);
	return plx_app_finish(&app, status);
}
