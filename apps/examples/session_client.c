/* SPDX-License-Identifier: BSD-3-Clause */
/* A client on a session: it sends each text until that is answered, also to a server that starts
 * later, or again. The next text follows the answer.
 * Run it:  session_client --connect 127.0.0.1:7000,127.0.0.1:7001 --send hello --send again
 *          with link_server in another terminal */
#include <plx_app.h>
#include <plx_session.h>
#include <stdio.h>
#include <string.h>

static const char *address;
static struct plx_app_list texts;
static const struct plx_option options[] = {
	PLX_TEXT("connect", "ADDRESSES", &address, "host:port of link_server, or several: a:1,b:2",
		 .required = true),
	PLX_LIST("send", "TEXT", &texts, "a text to send; may be repeated", .required = true),
	PLX_OPTIONS_END,
};
static const struct plx_app app = {
	.name = "session_client",
	.summary = "Send each text until it is answered, to one of several servers.",
	.options = options,
};

struct client {
	struct plx_session *session;
	unsigned answered;
};

/* Called when a link opens, after each answer, and after -EAGAIN when there is room again. */
static void send_next(struct plx_link *link, void *user)
{
	struct client *client = user;
	const char *text = texts.at[client->answered];
	int rc = plx_link_send(link, text, strlen(text));

	if (rc != 0 && rc != -EAGAIN && rc != -ENOTCONN) { /* not connected: another link follows */
		plx_app_fail(&app);
		plx_session_close(client->session);
	}
}

static void on_message(struct plx_link *link, struct plx_buf *message, void *user)
{
	struct client *client = user;

	if (client->answered == texts.count)
		return;
	printf("%.*s\n", (int)message->len, (const char *)message->data);
	if (++client->answered < texts.count)
		send_next(link, client);
	else
		plx_session_close(client->session);
}

static void on_close(struct plx_link *link, enum plx_link_reason reason, const char *text,
		     void *user)
{
	fprintf(stderr, "session_client: %s\n", text);
}

/* Without this callback the log would name each address once. */
static void on_refused(struct plx_session *session, enum plx_link_reason reason, const char *text,
		       void *user)
{
	fprintf(stderr, "session_client: %s\n", text);
}

static void on_end(struct plx_session *session, void *user)
{
	plx_loop_quit();
}

int main(int argc, char **argv)
{
	static const struct plx_link_events link_events = {
		.on_open = send_next,
		.on_message = on_message,
		.on_writable = send_next,
		.on_close = on_close,
	};
	static const struct plx_session_events events = {.on_refused = on_refused,
							 .on_end = on_end};
	struct client client = {0};
	struct plx_session_attr attr = {.link = {.events = &link_events, .user = &client},
					.events = &events};
	int status = plx_app_start(argc, argv, &app), rc;

	if (status != PLX_APP_RUN)
		return status;
	rc = plx_session_connect(address, &attr, &client.session);
	if (rc == 0)
		rc = plx_loop_run();
	if (rc != 0)
		plx_app_fail(&app);
	return plx_app_finish(&app, rc != 0 || client.answered < texts.count);
}
