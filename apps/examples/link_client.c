/* SPDX-License-Identifier: BSD-3-Clause */
/* A client on a link: it sends each text when the previous one is answered, then closes the link.
 * Run it:  link_client --connect 127.0.0.1:7000 --send hello --send again
 *          with link_server in another terminal */
#include <plx_app.h>
#include <plx_fabric.h>
#include <stdio.h>
#include <string.h>

static const char *address;
static struct plx_app_list texts;
static const struct plx_option options[] = {
	PLX_ADDRESS("connect", &address, "host:port of link_server", .required = true),
	PLX_LIST("send", "TEXT", &texts, "a text to send; may be repeated", .required = true),
	PLX_OPTIONS_END,
};
static const struct plx_app app = {
	.name = "link_client",
	.summary = "Send each text when the previous one is answered.",
	.options = options,
};

struct client {
	unsigned sent, answered;
	bool is_closed; /* without loss */
};

/* Called when the link opens, after each answer, and after -EAGAIN when there is room again. */
static void send_next(struct plx_link *link, void *user)
{
	struct client *client = user;
	const char *text = texts.at[client->sent];
	int rc = plx_link_send(link, text, strlen(text));

	if (rc == 0) {
		client->sent++;
	} else if (rc != -EAGAIN && rc != -ENOTCONN) { /* not connected: on_close follows */
		plx_app_fail(&app);
		plx_link_abort(link);
	}
}

static void on_message(struct plx_link *link, struct plx_buf *message, void *user)
{
	struct client *client = user;

	printf("%.*s\n", (int)message->len, (const char *)message->data);
	if (++client->answered < texts.count)
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
	struct plx_link *link;
	int status = plx_app_start(argc, argv, &app), rc;

	if (status != PLX_APP_RUN)
		return status;
	rc = plx_link_connect(address, &attr, &link);
	if (rc == 0)
		rc = plx_loop_run();
	if (rc != 0)
		plx_app_fail(&app);
	return plx_app_finish(&app, rc != 0 || !client.is_closed || client.answered < texts.count);
}
