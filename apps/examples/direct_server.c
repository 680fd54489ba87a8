/* SPDX-License-Identifier: BSD-3-Clause */
/* Direct data placement: grants a page of its memory to a client, which writes into it.
 * Run it:  direct_server 127.0.0.1:7000      and direct_client in another terminal */
#include <plx_direct.h>
#include <plx_eal.h>
#include <plx_fabric.h>
#include <stdio.h>

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
		fprintf(stderr, "direct_server: %s\n", plx_error());
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
	struct plx_eal_conf conf = {0};
	struct plx_listener *listener;
	int used = plx_eal_parse(argc, argv, &conf), rc;

	if (used < 0)
		fprintf(stderr, "direct_server: %s\n", plx_error());
	if (used < 0 || argc - used != 2) {
		fprintf(stderr, "usage: direct_server [EAL options] ADDRESS\n");
		plx_eal_conf_fini(&conf);
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	rc = plx_eal_init(&conf);
	if (rc == 0)
		rc = plx_link_listen(argv[1 + used], &attr, &listener);
	if (rc == 0) {
		printf("listening on %s\n", plx_listener_address(listener));
		rc = plx_loop_run(); /* until the first client has gone */
	}
	if (rc != 0)
		fprintf(stderr, "direct_server: %s\n", plx_error());
	if (plx_eal_fini() != 0)
		rc = -1;
	plx_eal_conf_fini(&conf);
	return rc != 0 || !server.is_closed;
}
