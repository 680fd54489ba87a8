/* SPDX-License-Identifier: BSD-3-Clause */
/* Direct data placement: grants a page of its memory to a client, which writes into it.
 * Run it:  direct_server --listen 127.0.0.1:7000      and direct_client in another terminal */
#include <plx_app.h>
#include <plx_direct.h>
#include <plx_fabric.h>
#include <stdio.h>

static const char *address;
static const struct plx_option options[] = {
	PLX_ADDRESS("listen", &address, "host:port to listen on; port 0 takes a free one",
		    .required = true),
	PLX_OPTIONS_END,
};
static const struct plx_app app = {
	.name = "direct_server",
	.summary = "Grant a page of memory to a client, which writes into it.",
	.options = options,
};

struct server {
	char page[4096];
	bool is_closed; /* without loss */
};

/* A message tells the client where the page is. */
static void on_open(struct plx_link *link, void *user)
{
	struct server *server = user;
	uint8_t token[PLX_REMOTE_BYTES];
	struct plx_remote remote;
	struct plx_region *region;
	int rc = plx_link_grant(link, server->page, sizeof(server->page), PLX_REMOTE_WRITE,
				&region);

	if (rc == 0) {
		plx_region_remote(region, &remote);
		plx_remote_encode(&remote, token);
		rc = plx_link_send(link, token, sizeof(token));
	}
	if (rc != 0) {
		plx_app_fail(&app);
		plx_link_abort(link); /* on_close follows */
	}
}

/* The client has written. Its value, here the length, may be anything: check it. */
static void on_put(struct plx_link *link, uint32_t value, void *user)
{
	struct server *server = user;
	int length = value < sizeof(server->page) ? (int)value : (int)sizeof(server->page);

	printf("%.*s\n", length, server->page);
	plx_link_close(link); /* takes the grant back, too */
}

static void on_close(struct plx_link *link, enum plx_link_reason reason, const char *text,
		     void *user)
{
	struct server *server = user;

	server->is_closed = reason == PLX_LINK_CLOSED;
	fprintf(stderr, "direct_server: %s\n", text);
	plx_loop_quit();
}

int main(int argc, char **argv)
{
	static const struct plx_link_events events = {
		.on_open = on_open,
		.on_put = on_put,
		.on_close = on_close,
	};
	static struct server server;
	struct plx_listen_attr attr = {
		.link = {.events = &events, .user = &server, .direct = true}};
	struct plx_listener *listener;
	int status = plx_app_start(argc, argv, &app), rc;

	if (status != PLX_APP_RUN)
		return status;
	rc = plx_link_listen(address, &attr, &listener);
	if (rc == 0) {
		plx_app_say("listening on %s", plx_listener_address(listener));
		rc = plx_loop_run(); /* until the first client has gone */
	}
	if (rc != 0)
		plx_app_fail(&app);
	return plx_app_finish(&app, rc != 0 || !server.is_closed);
}
