/* SPDX-License-Identifier: BSD-3-Clause */
/* Direct data placement: writes a text into memory that the server has granted.
 * Run it:  direct_client --connect 127.0.0.1:7000 --put hello
 *          with direct_server in another terminal */
#include <plx_app.h>
#include <plx_direct.h>
#include <plx_fabric.h>
#include <stdio.h>
#include <string.h>

static const char *address, *text;
static const struct plx_option options[] = {
	PLX_ADDRESS("connect", &address, "host:port of direct_server", .required = true),
	PLX_TEXT("put", "TEXT", &text, "what to write there", .required = true),
	PLX_OPTIONS_END,
};
static const struct plx_app app = {
	.name = "direct_client",
	.summary = "Write a text into memory that the server has granted.",
	.options = options,
};

struct client {
	struct plx_remote page; /* the server's */
	bool is_closed;         /* without loss */
};

/* Called with the first message, and after -EAGAIN when there is room again. */
static void put_text(struct plx_link *link, void *user)
{
	struct client *client = user;
	uint32_t length = (uint32_t)strlen(text);
	struct plx_buf *buf = plx_link_buf(link, length);
	int rc = -ENOBUFS;

	if (buf) {
		memcpy(plx_buf_append(buf, length), text, length);
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
		plx_app_fail(&app);
		plx_link_abort(link);
	}
}

static void on_close(struct plx_link *link, enum plx_link_reason reason, const char *why,
		     void *user)
{
	struct client *client = user;

	client->is_closed = reason == PLX_LINK_CLOSED;
	fprintf(stderr, "direct_client: %s\n", why);
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
	struct plx_link *link;
	int status = plx_app_start(argc, argv, &app), rc;

	if (status != PLX_APP_RUN)
		return status;
	rc = plx_link_connect(address, &attr, &link);
	if (rc == 0)
		rc = plx_loop_run(); /* until the server has closed the link */
	if (rc != 0)
		plx_app_fail(&app);
	return plx_app_finish(&app, rc != 0 || !client.is_closed);
}
