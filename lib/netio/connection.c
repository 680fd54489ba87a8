/* SPDX-License-Identifier: BSD-3-Clause */
#include "connection.h"

#include <stdio.h>
#include <stdlib.h>

#define CONNECT_NS_DEFAULT  (5 * PLX_NS_PER_S)
#define WELCOME_NS          (2 * PLX_NS_PER_S) /* as on_timer says */
#define SETTLE_NS           (2 * PLX_NS_PER_S) /* the same */
#define MESSAGE_MAX_DEFAULT (UINT64_C(16) << 20)

static void ended(struct netio_connection *connection, enum plx_link_reason reason,
		  const char *why);

/* Of this lcore: those whose socket is gone. */
static __thread struct netio_connection *closing;

int connection_check_attr(const struct netio_connect_attr *attr, struct netio_connect_attr *out)
{
	*out = attr ? *attr : (struct netio_connect_attr){0};
	if (out->message_max_bytes == 0)
		out->message_max_bytes = MESSAGE_MAX_DEFAULT;
	if (out->connect_timeout_ns == 0)
		out->connect_timeout_ns = CONNECT_NS_DEFAULT;
	if (out->reconnect_min_ns == 0)
		out->reconnect_min_ns = PLX_RECONNECT_MIN_NS;
	if (out->reconnect_max_ns == 0)
		out->reconnect_max_ns = out->reconnect_min_ns > PLX_RECONNECT_MAX_NS
					      ? out->reconnect_min_ns
					      : PLX_RECONNECT_MAX_NS;
	if (out->provider &&
	    strlen(out->provider) >= sizeof(((struct netio_connection *)0)->provider))
		return plx_fail(EINVAL, "provider '%s': there is none of that name", out->provider);
	if (out->message_max_bytes < WIRE_MESSAGE_MAX_LEAST ||
	    out->message_max_bytes > WIRE_MESSAGE_MAX_LIMIT)
		return plx_fail(EINVAL, "message_max_bytes %llu: give %d to %llu",
				(unsigned long long)out->message_max_bytes, WIRE_MESSAGE_MAX_LEAST,
				(unsigned long long)WIRE_MESSAGE_MAX_LIMIT);
	if (out->reconnect_min_ns != UINT64_MAX && out->reconnect_min_ns > out->reconnect_max_ns)
		return plx_fail(EINVAL, "reconnect_min_ns %llu is more than reconnect_max_ns %llu",
				(unsigned long long)out->reconnect_min_ns,
				(unsigned long long)out->reconnect_max_ns);
	return 0;
}

/* Notices ------------------------------------------------------------------------------------ */

static void join(struct netio_connection *connection, struct netio_connection **list)
{
	connection->next = *list;
	connection->prev_next = list;
	if (connection->next)
		connection->next->prev_next = &connection->next;
	*list = connection;
}

/* Take it out of its list. */
static void leave(struct netio_connection *connection)
{
	*connection->prev_next = connection->next;
	if (connection->next)
		connection->next->prev_next = connection->prev_next;
}

static void free_it(struct netio_connection *connection)
{
	plx_timer_stop(&connection->timer);
	leave(connection);
	connection->freed = true;
	if (connection->holds == 0)
		connection->owner->free(connection);
}

void connection_hold(struct netio_connection *connection)
{
	connection->holds++;
}

void connection_unhold(struct netio_connection *connection)
{
	if (--connection->holds == 0 && connection->freed)
		connection->owner->free(connection);
}

bool connection_notify(struct netio_connection *connection, const struct notice *notice)
{
	return connection->socket &&
	       connection->owner->notify(connection->socket, connection->one, notice);
}

/* Return: whether the user has a callback for it, if the owner does nothing in addition. */
static bool report(struct netio_connection *connection, struct notice notice)
{
	const struct connection_owner *owner = connection->owner;
	bool is_told = true;

	connection_hold(connection);
	if (owner->on[notice.type])
		owner->on[notice.type](connection, &notice);
	else
		is_told = connection_notify(connection, &notice);
	connection_unhold(connection);
	return is_told;
}

/* Trying again --------------------------------------------------------------------------------- */

static void wait_for_next(struct netio_connection *connection)
{
	connection->state = CONNECTION_IDLE;
	if (connection->quit || connection->attr.reconnect_min_ns == UINT64_MAX)
		return;
	connection->state = CONNECTION_WAITING;
	plx_timer_start(&connection->timer,
			connection->refused_here
				? plx_backoff_next_same_host_ns(&connection->backoff)
				: plx_backoff_next_ns(&connection->backoff));
}

/* Each cause is logged once, as attempts go on for as long as the program runs; a program with a
 * callback knows, and need not be warned. The callback may free the connection. */
static void tell_refused(struct netio_connection *connection, enum plx_link_reason reason,
			 const char *why)
{
	const char *then = connection->state == CONNECTION_WAITING ? "; trying again" : "";
	bool is_new = !(connection->logged & 1u << reason);
	bool is_told;

	connection->logged |= 1u << reason;
	is_told = report(connection,
			 (struct notice){.type = NOTICE_REFUSED, .reason = reason, .why = why});
	if (is_new)
		plx_log(&netio_log, is_told ? PLX_LOG_INFO : PLX_LOG_WARNING, "%s%s", why, then);
}

/* The link ---------------------------------------------------------------------------------- */

/* This side ends it; the link tells when. */
static void fail(struct netio_connection *connection, struct plx_link *link,
		 enum plx_link_reason reason, const char *why)
{
	connection->failure = why;
	connection->failed_as = reason;
	plx_link_abort(link);
}

static void on_open(struct plx_link *link, void *user)
{
	struct netio_connection *connection = user;
	uint8_t hello[WIRE_GREETING_BYTES];
	int rc;

	wire_greeting_write(hello, &(struct wire_greeting){
					   .type = WIRE_HELLO,
					   .version_min = WIRE_VERSION_MIN,
					   .version_max = WIRE_VERSION_MAX,
					   .role = (uint8_t)connection->role,
					   .message_max = connection->attr.message_max_bytes,
				   });
	rc = plx_link_send(link, hello, sizeof(hello));
	plx_timer_start(&connection->timer, WELCOME_NS);
	if (rc) /* nothing was sent before it: there is room */
		fail(connection, link, PLX_LINK_HELLO,
		     "it went away before it greeted: is it NetIO?");
}

/* Pages and messages of what it says it accepts must be messages that its link does. */
static const char *check_welcome(const struct netio_connection *connection,
				 const struct plx_buf *message, struct wire_greeting *welcome)
{
	const char *wrong = wire_greeting_read(message->data, message->len, WIRE_WELCOME, welcome);
	uint64_t accepted = plx_link_message_max(connection->opening);

	if (!wrong && welcome->role != connection->role)
		wrong = welcome->role == WIRE_SUBSCRIBER
			      ? "it is a publish socket, which is subscribed to"
			      : "it is a listening socket, which takes messages and publishes none";
	if (!wrong && (accepted < welcome->message_max + WIRE_MESSAGE_BYTES ||
		       accepted < NETIO_PAGE_BYTES_MIN + WIRE_PAGE_OVERHEAD))
		wrong = "it accepts longer messages than its link does";
	return wrong;
}

static void welcomed(struct netio_connection *connection, const struct plx_buf *message)
{
	struct wire_greeting welcome;
	const char *wrong = check_welcome(connection, message, &welcome);

	if (wrong) {
		fail(connection, connection->opening, PLX_LINK_HELLO, wrong);
		return;
	}
	plx_timer_stop(&connection->timer);
	connection->established_ns = plx_loop_now_ns();
	connection->message_max = welcome.message_max;
	connection->link = connection->opening;
	connection->opening = NULL;
	connection->logged = 0;
	connection->state = CONNECTION_ESTABLISHED;
	report(connection, (struct notice){.type = NOTICE_ESTABLISHED});
}

static void on_message(struct plx_link *link, struct plx_buf *message, void *user)
{
	struct netio_connection *connection = user;
	const char *wrong;

	if (!connection->socket || connection->failure)
		return;
	if (connection->state == CONNECTION_OPENING) {
		welcomed(connection, message);
		return;
	}
	wrong = connection->owner->received(connection, message);
	if (wrong)
		fail(connection, link, PLX_LINK_PROTOCOL, wrong);
}

static void on_writable(struct plx_link *link, void *user)
{
	struct netio_connection *connection = user;

	connection->owner->writable(connection);
}

static void on_suspect(struct plx_link *link, bool suspect, void *user)
{
	struct netio_connection *connection = user;

	if (connection->socket && connection->state == CONNECTION_ESTABLISHED)
		report(connection, (struct notice){.type = NOTICE_SUSPECT, .suspect = suspect});
}

static void on_credit(struct plx_link *link, void *user)
{
	struct netio_connection *connection = user;

	if (connection->link)
		connection->owner->credit(connection);
}

/* The last of a link, or of an attempt to open one. */
static void ended(struct netio_connection *connection, enum plx_link_reason reason, const char *why)
{
	bool is_closed = connection->state != CONNECTION_OPENING || connection->quit;

	plx_timer_stop(&connection->timer);
	if (connection->link && plx_time_since(connection->established_ns, plx_loop_now_ns()) >=
					connection->attr.reconnect_max_ns)
		plx_backoff_reset(&connection->backoff);
	connection->link = connection->opening = NULL;
	connection->failure = NULL;
	if (connection->owner->ended)
		connection->owner->ended(connection);
	if (!connection->socket) {
		free_it(connection);
		return;
	}
	wait_for_next(connection);
	if (is_closed)
		report(connection,
		       (struct notice){.type = NOTICE_CLOSED, .reason = reason, .why = why});
	else
		tell_refused(connection, reason, why);
}

static void on_close(struct plx_link *link, enum plx_link_reason reason, const char *text,
		     void *user)
{
	struct netio_connection *connection = user;
	char why[PLX_ADDRESS_MAX + 120];

	if (connection->owner->look_back && connection->socket)
		connection->owner->look_back(connection, link);
	connection->refused_here = reason == PLX_LINK_REFUSED && plx_link_is_same_host(link);
	if (!connection->failure && connection->state == CONNECTION_OPENING && !connection->quit &&
	    (reason == PLX_LINK_PEER_DOWN || reason == PLX_LINK_CLOSED)) {
		connection->failure = "it went away before it greeted: is it NetIO?";
		connection->failed_as = PLX_LINK_HELLO;
	}
	if (!connection->failure) {
		ended(connection, reason, text);
		return;
	}
	snprintf(why, sizeof(why), "%s: %s", connection->address, connection->failure);
	ended(connection, connection->failed_as, why);
}

static const struct plx_link_events events = {
	.on_open = on_open,
	.on_message = on_message,
	.on_writable = on_writable,
	.on_suspect = on_suspect,
	.on_close = on_close,
};

static const struct plx_link_events events_with_credit = {
	.on_open = on_open,
	.on_message = on_message,
	.on_writable = on_writable,
	.on_suspect = on_suspect,
	.on_close = on_close,
	.on_credit = on_credit,
};

/* Opening ------------------------------------------------------------------------------------- */

static int try_to_open(struct netio_connection *connection)
{
	struct plx_link_attr attr = connection->link_attr;
	int rc;

	attr.events = connection->owner->credit ? &events_with_credit : &events;
	attr.user = connection;
	attr.protocol = PLX_PROTOCOL_NETIO;
	attr.provider = connection->attr.provider;
	attr.connect_timeout_ns = connection->attr.connect_timeout_ns;
	if (attr.message_max_bytes == 0)
		attr.message_max_bytes = connection->attr.message_max_bytes + WIRE_MESSAGE_BYTES;
	connection->state = CONNECTION_OPENING;
	connection->refused_here = false;
	rc = plx_link_connect(connection->address, &attr, &connection->opening);
	if (rc)
		connection->state = CONNECTION_IDLE;
	return rc;
}

static void try_again(struct netio_connection *connection)
{
	char why[PLX_ADDRESS_MAX + 100];

	if (try_to_open(connection) == 0)
		return;
	snprintf(why, sizeof(why), "%s", plx_error());
	wait_for_next(connection);
	tell_refused(connection, PLX_LINK_LOCAL, why);
}

static void on_timer(struct plx_timer *timer, void *arg)
{
	struct netio_connection *connection = arg;

	switch (connection->state) {
	case CONNECTION_WAITING:
		if (connection->quit)
			ended(connection, PLX_LINK_ABORTED, "closed before it was open");
		else
			try_again(connection);
		break;
	case CONNECTION_OPENING:
		fail(connection, connection->opening, PLX_LINK_HELLO,
		     "it did not greet within 2 s: is it NetIO?");
		break;
	case CONNECTION_SETTLING:
		if (!connection->socket) /* else it is told */
			plx_log(&netio_log, PLX_LOG_WARNING,
				"%s took nothing more for 2 s: what it had not taken is lost",
				connection->address);
		fail(connection, connection->link, PLX_LINK_TIMEOUT,
		     "it took nothing more for 2 s; what it had not taken is lost");
		break;
	default:
		break;
	}
}

void connection_init(struct netio_connection *connection, struct netio_eventloop *evloop,
		     void *socket, struct netio_connection **handle,
		     const struct connection_owner *owner, const struct netio_connect_attr *attr)
{
	if (handle)
		*handle = connection;
	*connection = (struct netio_connection){
		.socket = socket,
		.one = socket,
		.handle = handle,
		.evloop = evloop,
		.owner = owner,
		.attr = *attr,
		.role = WIRE_SENDER,
	};
	plx_backoff_init(&connection->backoff, attr->reconnect_min_ns, attr->reconnect_max_ns,
			 plx_now_ns() ^ (uintptr_t)connection);
	if (attr->provider)
		snprintf(connection->provider, sizeof(connection->provider), "%s", attr->provider);
	connection->attr.provider = attr->provider ? connection->provider : NULL;
	join(connection, &evloop->connections);
	plx_timer_init(&connection->timer, on_timer, connection);
	plx_timer_set_lax(&connection->timer, true);
}

int connection_open(struct netio_connection *connection, const char *host, unsigned port)
{
	char address[PLX_ADDRESS_MAX];
	int rc;

	if (!connection)
		return netio_fail(plx_fail(EINVAL, "netio_connect: the socket is not set up"));
	if (connection->state != CONNECTION_IDLE &&
	    (connection->state != CONNECTION_WAITING || connection->quit))
		return netio_fail(plx_fail(EALREADY,
					   "netio_connect: it is connected to %s, or about to be; "
					   "call netio_disconnect, and wait until it is closed",
					   connection->address));
	rc = netio_address("netio_connect", host, port, address);
	if (rc)
		return netio_fail(rc);
	plx_timer_stop(&connection->timer);
	if (strcmp(connection->address, address) != 0)
		connection->logged = 0;
	memcpy(connection->address, address, sizeof(address));
	plx_backoff_reset(&connection->backoff);
	connection->quit = false;
	rc = try_to_open(connection);
	return rc ? netio_fail(rc) : 0;
}

void connection_open_again(struct netio_connection *connection)
{
	plx_timer_stop(&connection->timer);
	plx_backoff_reset(&connection->backoff);
	connection->quit = false;
	try_again(connection);
}

/* Closing ------------------------------------------------------------------------------------- */

static void close_link(struct netio_connection *connection)
{
	struct plx_link *link = connection->link;

	plx_timer_stop(&connection->timer);
	connection->state = CONNECTION_CLOSING;
	connection->link = NULL;
	plx_link_close(link); /* that it is ending already comes to the same */
}

static void start_closing(struct netio_connection *connection)
{
	const struct connection_owner *owner = connection->owner;

	connection->state = CONNECTION_SETTLING;
	if (!owner->settle || owner->settle(connection))
		close_link(connection);
	else
		plx_timer_start(&connection->timer, SETTLE_NS);
}

void connection_settles(struct netio_connection *connection)
{
	if (connection->state != CONNECTION_SETTLING)
		return;
	netio_note_progress();
	plx_timer_start(&connection->timer, SETTLE_NS);
}

void connection_settled(struct netio_connection *connection)
{
	if (connection->state == CONNECTION_SETTLING)
		close_link(connection);
}

int connection_close(struct netio_connection *connection)
{
	if (!connection)
		return netio_fail(plx_fail(EINVAL, "netio_disconnect: the socket is not set up"));
	if (connection->state == CONNECTION_IDLE)
		return netio_fail(plx_fail(ENOTCONN, "netio_disconnect: it is not connected"));
	connection->quit = true;
	switch (connection->state) {
	case CONNECTION_WAITING: /* told from the loop */
		plx_timer_start(&connection->timer, 0);
		break;
	case CONNECTION_OPENING:
		plx_link_abort(connection->opening);
		break;
	case CONNECTION_ESTABLISHED:
		start_closing(connection);
		break;
	default:
		break;
	}
	return 0;
}

void connection_release(struct netio_connection *connection)
{
	if (!connection)
		return;
	if (connection->handle)
		*connection->handle = NULL;
	connection->socket = NULL;
	leave(connection);
	join(connection, &closing);
	if (connection->state == CONNECTION_IDLE || connection->state == CONNECTION_WAITING)
		free_it(connection);
	else
		connection_close(connection);
}

void connection_release_all(struct netio_eventloop *evloop)
{
	while (evloop->connections)
		connection_release(evloop->connections);
}

bool connection_any_closing(void)
{
	return closing != NULL;
}

/* Nobody is told meanwhile: the list stays as it is. */
void connection_close_all(struct netio_eventloop *evloop, enum wire_role role)
{
	for (struct netio_connection *it = evloop->connections; it; it = it->next)
		if (it->role == role && it->state != CONNECTION_IDLE)
			connection_close(it);
}

bool connection_any_open(const struct netio_eventloop *evloop, enum wire_role role)
{
	const struct netio_connection *it = evloop->connections;

	while (it && (it->role != role || it->state == CONNECTION_IDLE))
		it = it->next;
	return it != NULL;
}
