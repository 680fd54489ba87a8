/* SPDX-License-Identifier: BSD-3-Clause */
#include "accept.h"

#include <stdio.h>

static const struct acceptor_owner *owner_of(const struct plx_acceptor *session)
{
	return (const struct acceptor_owner *)session->owner;
}

const char *acceptor_on_hello(struct plx_acceptor *session, struct plx_link *link)
{
	struct acceptor *acceptor = (struct acceptor *)session;
	const struct acceptor_owner *owner = owner_of(session);
	struct wire_greeting greeting;
	const char *wrong = wire_peer_greeting(link, WIRE_HELLO, &greeting);

	if (wrong)
		return wrong;
	if (greeting.role != owner->role)
		return wire_wrong_role(owner->role);
	if (greeting.role == WIRE_SUBSCRIBER &&
	    plx_link_message_max(link) < NETIO_PAGE_BYTES_MIN + WIRE_PAGE_OVERHEAD)
		return "the link of a subscriber takes no pages";
	if (spread_is_closed(acceptor))
		return "the port is being closed";
	return owner->has_room(acceptor) ? NULL : "the port has as many connections as it takes";
}

static void on_message(struct plx_link *link, struct plx_buf *message, void *user)
{
	struct accepted *accepted = user;
	const char *wrong;

	if (plx_unlikely(!accepted || accepted->session.acceptor->released ||
			 accepted->session.failure))
		return;
	wrong = owner_of(accepted->session.acceptor)->received(accepted, message);
	if (plx_unlikely(wrong != NULL))
		accepted_fail(accepted, wrong);
}

/* Also for a released socket: its pending data must leave. */
static void on_writable(struct plx_link *link, void *user)
{
	struct accepted *accepted = user;

	if (accepted)
		owner_of(accepted->session.acceptor)->writable(accepted);
}

static void on_suspect(struct plx_link *link, bool suspect, void *user)
{
	struct accepted *accepted = user;

	if (accepted && !accepted->session.acceptor->released)
		owner_of(accepted->session.acceptor)->suspect(accepted, suspect);
}

static const struct plx_link_events events = {
	PLX_ACCEPTED_EVENTS,
	.on_message = on_message,
	.on_writable = on_writable,
	.on_suspect = on_suspect,
};

void accepted_note_open(struct accepted *accepted)
{
	const struct plx_link *link = accepted->session.link;
	struct wire_greeting greeting = {0};

	wire_peer_greeting(link, WIRE_HELLO, &greeting); /* it was checked in on_hello */
	snprintf(accepted->peer, sizeof(accepted->peer), "%s", plx_link_peer(link));
	snprintf(accepted->provider, sizeof(accepted->provider), "%s", plx_link_provider(link));
	accepted->choice = plx_link_choice(link);
	snprintf(accepted->program, sizeof(accepted->program), "%s", plx_link_peer_program(link));
	accepted->pid = plx_link_peer_pid(link);
	accepted->message_max = greeting.message_max;
	accepted->id = ++((struct acceptor *)accepted->session.acceptor)->next_id;
}

void accepted_note_end(struct accepted *accepted, const struct plx_link *link,
		       enum plx_link_reason reason, const char *text)
{
	const char *failure = accepted->session.failure;

	accepted->reason = failure ? PLX_LINK_PROTOCOL : reason;
	snprintf(accepted->why, sizeof(accepted->why), "%s%s",
		 failure ? "the peer broke the protocol: " : "",
		 failure ?: accepted->closed_why ?: plx_link_without_peer(link, text));
}

void accepted_fail(struct accepted *accepted, const char *why)
{
	session_link_fail(&accepted->session, why);
	if (!accepted->session.link)
		accepted_note_end(accepted, NULL, PLX_LINK_PROTOCOL, why);
}

int acceptor_check(const char *provider, uint64_t message_max)
{
	if (provider && strlen(provider) >= sizeof(((struct acceptor *)0)->provider))
		return plx_fail(EINVAL, "unknown provider '%s'", provider);
	return message_check_max(message_max);
}

void acceptor_init(struct acceptor *acceptor, struct netio_eventloop *evloop, void *socket,
		   const struct acceptor_owner *owner, const char *provider, uint64_t message_max)
{
	netio_exit_uses(evloop, socket);
	acceptor->socket = socket;
	acceptor->evloop = evloop;
	acceptor->message_max = message_max;
	snprintf(acceptor->provider, sizeof(acceptor->provider), "%s", provider ?: "");
	plx_acceptor_init(&acceptor->session, &owner->session, 0, plx_lcore_id());
}

int acceptor_listen(struct acceptor *acceptor, const char *what, const char *host, unsigned port,
		    struct plx_listen_attr *attr)
{
	char address[PLX_ADDRESS_MAX];
	int rc;

	if (!acceptor)
		return netio_fail(EINVAL, "%s: the socket is not set up", what);
	rc = netio_check_open(acceptor->evloop, what);
	if (rc)
		return rc;
	if (acceptor->listener)
		return netio_fail(EALREADY, "%s: it listens at %s already", what,
				  plx_listener_address(acceptor->listener));
	rc = netio_address(what, host, port, address);
	if (rc)
		return netio_logged(rc);
	attr->link.events = &events;
	attr->link.provider = acceptor->provider[0] ? acceptor->provider : NULL;
	wire_greet(&attr->link, &(struct wire_greeting){
					.type = WIRE_WELCOME,
					.role = (uint8_t)owner_of(&acceptor->session)->role,
					.message_max = acceptor->message_max,
					.incarnation = acceptor->incarnation,
					.started_ns = acceptor->started_ns,
				});
	spread_listen(acceptor, attr);
	return netio_logged(
		plx_acceptor_listen(&acceptor->session, address, attr, &acceptor->listener));
}

void acceptor_release(struct acceptor *acceptor)
{
	plx_listener_close(acceptor->listener);
	acceptor->socket = NULL;
	if (acceptor->evloop)
		spread_release(acceptor);
	plx_acceptor_release(&acceptor->session);
}

/* The next NetIO acceptor on this lcore; after NULL: the first. */
static struct acceptor *next_of(const struct acceptor *after)
{
	struct plx_acceptor *session = plx_acceptor_next(after ? &after->session : NULL);

	while (session && session->owner->hello != acceptor_on_hello)
		session = plx_acceptor_next(session);
	return (struct acceptor *)session;
}

void acceptor_release_all(struct netio_eventloop *evloop)
{
	struct acceptor *acceptor, *next;

	for (acceptor = next_of(NULL); acceptor; acceptor = next) {
		next = next_of(acceptor);
		if (acceptor->socket && acceptor->evloop == evloop)
			owner_of(&acceptor->session)->end(acceptor);
	}
}

bool acceptor_close_all(struct netio_eventloop *evloop)
{
	const struct session_link *accepted;
	bool any_open = false;

	for (struct acceptor *it = next_of(NULL); it; it = next_of(it)) {
		if (it->session.released || (it->evloop && it->evloop != evloop))
			continue;
		plx_listener_close(it->listener);
		it->listener = NULL;
		if (it->evloop)
			any_open |= spread_close(it);
		plx_acceptor_close_all(&it->session);
		LIST_FOREACH (accepted, &it->session.links, links)
			any_open |= accepted->link != NULL; /* others wait for the queue's taker */
	}
	return any_open;
}
