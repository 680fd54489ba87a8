/* SPDX-License-Identifier: BSD-3-Clause */
/* A server on links: it sends each message back to the client that sent it. SIGINT ends it.
 * Run it:  link_server --listen 127.0.0.1:7000      and link_client in another terminal */
#include <plx_app.h>
#include <plx_fabric.h>
#include <stdio.h>

static const char *address;
static const struct plx_option options[] = {
	PLX_ADDRESS("listen", &address, "host:port to listen on; port 0 takes a free one",
		    .required = true),
	PLX_OPTIONS_END,
};
static const struct plx_app app = {
	.name = "link_server",
	.summary = "Send each message back to the client that sent it.",
	.options = options,
};

struct server {
	unsigned long answered;
};

static void on_open(struct plx_link *link, void *user)
{
	plx_app_say("%s connected over %s", plx_link_peer(link), plx_link_provider(link));
}

/* Each message brings credit for its answer, so a client that waits for answers never causes
 * -EAGAIN. Other clients lose their link; doc/guide/server.md shows how to queue their answers. */
static void on_message(struct plx_link *link, struct plx_buf *message, void *user)
{
	struct server *server = user;
	int rc = plx_link_send(link, message->data, message->len);

	if (rc == 0) {
		server->answered++;
	} else if (rc != -ENOTCONN) { /* closing: on_close follows */
		fprintf(stderr, "an answer: %s\n",
			rc == -EAGAIN ? "its client does not wait for answers" : plx_error());
		plx_link_abort(link);
	}
}

static void on_close(struct plx_link *link, enum plx_link_reason reason, const char *text,
		     void *user)
{
	plx_app_say("%s: %s", plx_link_peer(link), plx_link_without_peer(link, text));
}

int main(int argc, char **argv)
{
	static const struct plx_link_events events = {
		.on_open = on_open,
		.on_message = on_message,
		.on_close = on_close,
	};
	struct server server = {0};
	struct plx_listen_attr attr = {.link = {.events = &events, .user = &server}};
	struct plx_listener *listener;
	int status = plx_app_start(argc, argv, &app), rc;

	if (status != PLX_APP_RUN)
		return status;
	rc = plx_link_listen(address, &attr, &listener);
	if (rc == 0) {
		plx_app_say("listening on %s", plx_listener_address(listener));
		rc = plx_loop_run(); /* until SIGINT or SIGTERM */
	}
	plx_app_say("%lu messages answered", server.answered);
	/* plx_app_finish closes what is still open, without loss. */
	return plx_app_finish(&app, rc ? plx_app_fail(&app) : 0);
}
