/* SPDX-License-Identifier: BSD-3-Clause */
/* plx-echo: sends every message back on its link. The first program to read: main listens, each new
 * link is given to one of the lcores, and that lcore's loop calls on_message.
 *
 * Try it:  plx-echo --listen 127.0.0.1:7000
 *          plx-ping --connect 127.0.0.1:7000 */
#include "app.h"

#include <stdlib.h>

#define WINDOW 6 /* receive buffers of a link */

/* Messages to answer, oldest first, from `answered` on. Each stays in its receive buffer, so a peer
 * that takes no answers can send no more than WINDOW. */
struct client {
	struct plx_buf *waiting[WINDOW];
	unsigned received, answered;
};

static void on_writable(struct plx_link *link, void *user)
{
	for (struct client *client = user; client->answered != client->received;) {
		struct plx_buf *message = client->waiting[client->answered % WINDOW];
		int rc = plx_link_send_buf(link, message, NULL, NULL);

		if (rc == -EAGAIN)
			return; /* called again when there is room */
		if (rc != 0)
			plx_buf_unref(message);
		if (rc != 0 && rc != -ENOTCONN) /* closing already */
			plx_link_abort(link);
		client->answered++;
	}
}

static void on_message(struct plx_link *link, struct plx_buf *message, void *user)
{
	struct client *client = user;

	client->waiting[client->received++ % WINDOW] = plx_buf_ref(message);
	on_writable(link, client);
}

static void on_open(struct plx_link *link, void *user)
{
	struct client *client = calloc(1, sizeof(*client));
	char name[PLX_PEER_BYTES];

	plx_link_set_user(link, client);
	plx_app_say("%s connected over %s", plx_link_peer_format(link, name),
		    plx_link_provider(link));
	if (!client)
		plx_link_abort(link);
}

static void on_close(struct plx_link *link, enum plx_link_reason reason, const char *text,
		     void *user)
{
	plx_app_say("%s gone: %s", plx_link_peer(link), plx_link_without_peer(link, text));
	if (user)
		on_writable(link, user); /* nothing can be sent: it drops what waits */
	free(user);
}

int main(int argc, char **argv)
{
	static const char *address;
	static const struct plx_option options[] = {
		PLX_ADDRESS("listen", &address,
			    "host:port to listen on; *:port is every address, port 0 a free one",
			    .required = true),
		PLX_OPTIONS_END,
	};
	static const struct plx_app app = {.name = "plx-echo",
					   .summary = "Send every message back.",
					   .examples = "  plx-echo --listen 127.0.0.1:7000\n"
						       "  plx-echo -l 2 --listen '*:7000'",
					   .more = "man plx-echo, or doc/apps/plx-echo.md",
					   .options = options};
	static const struct plx_link_events events = {.on_open = on_open,
						      .on_message = on_message,
						      .on_writable = on_writable,
						      .on_close = on_close};
	const struct plx_listen_attr attr = {
		.link = {.events = &events, .rx_buf_count = WINDOW, .protocol = PLX_PROTOCOL_ECHO},
		.spread = PLX_SPREAD_ROUND_ROBIN};
	struct plx_listener *listener;
	int status = plx_app_start(argc, argv, &app);

	if (status != PLX_APP_RUN)
		return status;
	if (plx_link_listen(address, &attr, &listener) != 0)
		return plx_app_finish(&app, plx_app_fail(&app));
	plx_app_say("listening on %s", plx_listener_address(listener));
	plx_app_serve(); /* until SIGINT or SIGTERM */
	return plx_app_finish(&app, 0);
}
