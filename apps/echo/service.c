/* SPDX-License-Identifier: BSD-3-Clause */
/* The service itself: four callbacks, run by the loop of the lcore that owns the link. */
#include "service.h"

#include "plx_app.h"

#include <stdlib.h>

/* Answers that a peer does not take yet. They stay where they were received, so they fill the
 * link's window, and the peer can send no more until it takes them: nothing grows, nobody else
 * waits. */
struct client {
	struct plx_buf *waiting[ECHO_WINDOW];
	unsigned count;
	struct echo_counts *counts; /* of this lcore, which no other one writes to */
};

/* The message goes back from its own receive buffer: one more reference keeps it there until it is
 * sent. A small one is quicker copied. */
static int answer(struct plx_link *link, struct plx_buf *message)
{
	if (message->len <= 64)
		return plx_link_send(link, message->data, message->len);

	int rc = plx_link_send_buf(link, plx_buf_ref(message), NULL, NULL);

	if (rc != 0)
		plx_buf_unref(message);
	return rc;
}

/* No room is no failure: the message waits. Anything else is the end of this link. */
static void give_up(struct plx_link *link)
{
	plx_app_say("an answer: %s", plx_error());
	plx_link_abort(link);
}

static void on_message(struct plx_link *link, struct plx_buf *message, void *user)
{
	struct client *client = user;
	int rc = client->count ? -EAGAIN : answer(link, message);

	client->counts->messages++;
	client->counts->bytes += message->len;
	if (rc == -EAGAIN)
		client->waiting[client->count++] = plx_buf_ref(message);
	else if (rc != 0 && rc != -ENOTCONN) /* closing already: on_close follows */
		give_up(link);
}

static void on_writable(struct plx_link *link, void *user)
{
	struct client *client = user;
	unsigned sent = 0;
	int rc = 0;

	while (sent < client->count && (rc = answer(link, client->waiting[sent])) == 0)
		plx_buf_unref(client->waiting[sent++]);
	client->count -= sent;
	for (unsigned i = 0; i < client->count; i++)
		client->waiting[i] = client->waiting[i + sent];
	if (rc != 0 && rc != -EAGAIN && rc != -ENOTCONN) /* closing already: on_close follows */
		give_up(link);
}

struct echo_counts *echo_counts_here(const struct plx_lcore_var *counts)
{
	static __thread struct echo_counts nobodys;

	return counts ? plx_lcore_var_mine(*counts) : &nobodys;
}

static void on_open(struct plx_link *link, void *user)
{
	struct client *client = calloc(1, sizeof(*client));

	plx_link_set_user(link, client);
	if (!client) {
		plx_link_abort(link);
		return;
	}
	client->counts = echo_counts_here(user);
	client->counts->links++;
	plx_app_say("%s connected over %s", plx_link_peer(link), plx_link_provider(link));
}

static void on_close(struct plx_link *link, enum plx_link_reason reason, const char *text,
		     void *user)
{
	struct client *client = user;

	plx_app_say("%s gone: %s", plx_link_peer(link), plx_link_without_peer(link, text));
	for (unsigned i = 0; client && i < client->count; i++)
		plx_buf_unref(client->waiting[i]);
	free(client);
}

const struct plx_link_events echo_service = {
	.on_open = on_open,
	.on_message = on_message,
	.on_writable = on_writable,
	.on_close = on_close,
};
