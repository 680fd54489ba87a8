/* SPDX-License-Identifier: BSD-3-Clause */
/* A server on links: it sends each message back to the client that sent it. SIGINT ends it.
 * Run it:  link_server 127.0.0.1:7000      and link_client in another terminal */
#include <plx_eal.h>
#include <plx_fabric.h>
#include <stdio.h>

struct server {
	unsigned long answered;
};

static void on_open(struct plx_link *link, void *user)
{
	printf("%s connected over %s\n", plx_link_peer(link), plx_link_provider(link));
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
	printf("%s: %s\n", plx_link_peer(link), plx_link_without_peer(link, text));
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
	struct plx_eal_conf conf = {0};
	struct plx_listener *listener;
	int used = plx_eal_parse(argc, argv, &conf), rc;

	if (used < 0)
		fprintf(stderr, "link_server: %s\n", plx_error());
	if (used < 0 || argc - used != 2) {
		fprintf(stderr, "usage: link_server [EAL options] ADDRESS\n");
		plx_eal_conf_fini(&conf);
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	rc = plx_eal_init(&conf);
	plx_stop_on_signals();
	if (rc == 0)
		rc = plx_link_listen(argv[1 + used], &attr, &listener);
	if (rc == 0) {
		printf("listening on %s\n", plx_listener_address(listener));
		rc = plx_loop_run(); /* until SIGINT or SIGTERM */
	}
	if (rc != 0)
		fprintf(stderr, "link_server: %s\n", plx_error());
	if (plx_eal_fini() != 0) /* closes what is still open, without loss */
		rc = -1;
	plx_eal_conf_fini(&conf);
	printf("%lu messages answered\n", server.answered);
	return rc != 0;
}
