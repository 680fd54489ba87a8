/* SPDX-License-Identifier: BSD-3-Clause */
/* A client on a link: it sends each text when the previous one is answered, then closes the link.
 * Run it:  link_client 127.0.0.1:7000 hello again      with link_server in another terminal */
#include <plx_eal.h>
#include <plx_fabric.h>
#include <stdio.h>
#include <string.h>

struct client {
	char *const *texts;
	int count, sent, answered;
	bool is_closed; /* without loss */
};

/* Called when the link opens, after each answer, and after -EAGAIN when there is room again. */
static void send_next(struct plx_link *link, void *user)
{
	struct client *client = user;
	const char *text = client->texts[client->sent];
	int rc = plx_link_send(link, text, strlen(text));

	if (rc == 0) {
		client->sent++;
	} else if (rc != -EAGAIN && rc != -ENOTCONN) { /* not connected: on_close follows */
		fprintf(stderr, "link_client: %s\n", plx_error());
		plx_link_abort(link);
	}
}

static void on_message(struct plx_link *link, struct plx_buf *message, void *user)
{
	struct client *client = user;

	printf("%.*s\n", (int)message->len, (const char *)message->data);
	if (++client->answered < client->count)
		send_next(link, client);
	else
		plx_link_close(link);
}

/* The last callback of a link, even if the link never opened. text says why it ended. */
static void on_close(struct plx_link *link, enum plx_link_reason reason, const char *text,
		     void *user)
{
	struct client *client = user;

	client->is_closed = reason == PLX_LINK_CLOSED;
	fprintf(stderr, "link_client: %s\n", text);
	plx_loop_quit();
}

int main(int argc, char **argv)
{
	static const struct plx_link_events events = {
		.on_open = send_next,
		.on_message = on_message,
		.on_writable = send_next,
		.on_close = on_close,
	};
	struct client client = {0};
	struct plx_link_attr attr = {.events = &events, .user = &client};
	struct plx_eal_conf conf = {0};
	struct plx_link *link;
	int used = plx_eal_parse(argc, argv, &conf), rc;

	if (used < 0)
		fprintf(stderr, "link_client: %s\n", plx_error());
	if (used < 0 || argc - used < 3) {
		fprintf(stderr, "usage: link_client [EAL options] ADDRESS TEXT...\n");
		plx_eal_conf_fini(&conf);
		return 2;
	}
	client.texts = argv + used + 2;
	client.count = argc - used - 2;
	rc = plx_eal_init(&conf);
	if (rc == 0)
		rc = plx_link_connect(argv[1 + used], &attr, &link);
	if (rc == 0)
		rc = plx_loop_run();
	if (rc != 0)
		fprintf(stderr, "link_client: %s\n", plx_error());
	if (plx_eal_fini() != 0)
		rc = -1;
	plx_eal_conf_fini(&conf);
	return rc != 0 || !client.is_closed || client.answered < client.count;
}
