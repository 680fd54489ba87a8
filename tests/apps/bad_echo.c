/* SPDX-License-Identifier: BSD-3-Clause */
/* A misbehaving echo, which plx-ping must detect. */
#include "app.h"
#include "plx_fabric.h"

enum fault { FLIP, SHORTEN };

static const char *const faults[] = {"flip", "shorten", NULL};
static const char *listen_address;
static unsigned fault;
static uint64_t after;
static uint64_t answered;

static const struct plx_option options[] = {
	PLX_TEXT("listen", "ADDR", &listen_address, "host:port"),
	PLX_CHOICE("fault", "KIND", &fault, faults, "flip one bit of a message, or shorten it"),
	PLX_UINT("after", "N", &after, 0, 0, "good answers before it (default 0)"),
	PLX_OPTIONS_END,
};

static const struct plx_app app = {
	.name = "bad-echo", .summary = "answers wrongly", .options = options};

static void on_message(struct plx_link *link, struct plx_buf *message, void *user)
{
	uint32_t len = message->len;

	if (answered++ == after) {
		if (fault == FLIP)
			message->data[len - 1] ^= 1;
		else
			len--;
	}
	if (plx_link_send(link, message->data, len) != 0)
		plx_link_abort(link);
}

static const struct plx_link_events events = {.on_message = on_message};

int main(int argc, char **argv)
{
	struct plx_listen_attr attr = {.link.events = &events};
	struct plx_listener *listener;
	int status = plx_app_start(argc, argv, &app);

	if (status != PLX_APP_RUN)
		return status;
	if (!listen_address || plx_link_listen(listen_address, &attr, &listener))
		return plx_app_finish(&app, plx_app_fail(&app));
	plx_app_say("listening on %s", plx_listener_address(listener));
	plx_loop_run();
	return plx_app_finish(&app, 0);
}
