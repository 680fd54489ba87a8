/* SPDX-License-Identifier: BSD-3-Clause */
/* Direct data placement: writes a text into memory that the server has granted.
 * Run it:  direct_client 127.0.0.1:7000 hello      with direct_server in another terminal */
#include <plx_direct.h>
#include <plx_eal.h>
#include <plx_fabric.h>
#include <stdio.h>
#include <string.h>

struct client {
	const char *text;
	struct plx_remote page; /* the server's */
	bool is_closed;         /* without loss */
};

/* Called with the first message, and after -EAGAIN when there is room again. */
static void put_text(struct plx_link *link, void *user)
{
	struct client *client = user;
	uint32_t length = (uint32_t)strlen(client->text);
	struct plx_buf *buf = plx_link_buf(link, length);
	int rc = -ENOBUFS;

	if (buf) {
		memcpy(plx_buf_append(buf, length), client->text, length);
		rc = plx_link_put_and_tell(link, &client->page, 0, buf, length, NULL, NULL);
		if (rc != 0)
			plx_buf_unref(buf); /* it is the library's once the put is accepted */
	}
	if (rc != 0 && rc != -EAGAIN) {
		fprintf(stderr, "direct_client: %s\n", buf ? plx_error() : "no buffer");
		plx_link_abort(link); /* on_close follows */
	}
}

/* The first message says where the page is. */
static void on_message(struct plx_link *link, struct plx_buf *message, void *user)
{
	struct client *client = user;

	if (plx_remote_decode(message->data, message->len, &client->page) == 0) {
		put_text(link, client);
	} else {
		fprintf(stderr, "direct_client: %s\n", plx_error());
		plx_link_abort(link);
	}
}

static void on_close(struct plx_link *link, enum plx_link_reason reason, const char *text,
		     void *user)
{
	struct client *client = user;

	client->is_closed = reason == PLX_LINK_CLOSED;
	fprintf(stderr, "direct_client: %s\n", text);
	plx_loop_quit();
}

int main(int argc, char **argv)
{
	static const struct plx_link_events events = {
		.on_message = on_message,
		.on_writable = put_text,
		.on_close = on_close,
	};
	struct client client = {0};
	struct plx_link_attr attr = {.events = &events, .user = &client, .direct = true};
	struct plx_eal_conf conf = {0};
	struct plx_link *link;
	int used = plx_eal_parse(argc, argv, &conf), rc;

	if (used < 0)
		fprintf(stderr, "direct_client: %s\n", plx_error());
	if (used < 0 || argc - used != 3) {
		fprintf(stderr, "usage: direct_client [EAL options] ADDRESS TEXT\n");
		plx_eal_conf_fini(&conf);
		return 2;
	}
	client.text = argv[used + 2];
	rc = plx_eal_init(&conf);
	if (rc == 0)
		rc = plx_link_connect(argv[1 + used], &attr, &link);
	if (rc == 0)
		rc = plx_loop_run(); /* until the server has closed the link */
	if (rc != 0)
		fprintf(stderr, "direct_client: %s\n", plx_error());
	if (plx_eal_fini() != 0)
		rc = -1;
	plx_eal_conf_fini(&conf);
	return rc != 0 || !client.is_closed;
}
