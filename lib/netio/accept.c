/* SPDX-License-Identifier: BSD-3-Clause */
#include "accept.h"

#include <stdio.h>
#include <stdlib.h>

#define HELLO_NS  (2 * PLX_NS_PER_S) /* as on_timer says */
#define SETTLE_NS (2 * PLX_NS_PER_S) /* the same */

/* Of this lcore. A link that is accepted has the number of its acceptor until it is open, as the
 * acceptor may be gone by then. */
static __thread struct acceptor *acceptors;
static __thread uintptr_t last_number;

static struct acceptor *find(uintptr_t number)
{
	struct acceptor *acceptor = acceptors;

	while (acceptor && (acceptor->number != number || !acceptor->socket))
		acceptor = acceptor->next;
	return acceptor;
}

static void free_if_done(struct acceptor *acceptor)
{
	if (acceptor->socket || acceptor->links)
		return;
	*acceptor->prev_next = acceptor->next;
	if (acceptor->next)
		acceptor->next->prev_next = acceptor->prev_next;
	acceptor->owner->free_acceptor(acceptor);
}

/* Notices ------------------------------------------------------------------------------------- */

void accepted_notify(struct accepted *accepted, const struct notice *notice)
{
	const struct acceptor *acceptor = accepted->acceptor;

	if (acceptor->socket)
		acceptor->owner->notify(acceptor->socket, accepted->one, notice);
}

/* Of one that is established, while the socket is there. */
static void report(struct accepted *accepted, struct notice notice)
{
	const struct acceptor_owner *owner = accepted->acceptor->owner;

	if (!accepted->established || !accepted->acceptor->socket)
		return;
	if (owner->on[notice.type])
		owner->on[notice.type](accepted, &notice);
	else
		accepted_notify(accepted, &notice);
}

/* A link's end ------------------------------------------------------------------------------- */

static void note_end(struct accepted *accepted, enum plx_link_reason reason, const char *text)
{
	accepted->reason = accepted->failure ? PLX_LINK_PROTOCOL : reason;
	snprintf(accepted->why, sizeof(accepted->why), "%s%s",
		 accepted->failure ? "the peer broke the protocol: " : "",
		 accepted->failure      ? accepted->failure
		 : accepted->closed_why ? accepted->closed_why
					: text);
}

void accepted_fail(struct accepted *accepted, const char *why)
{
	if (accepted->failure)
		return;
	accepted->failure = why;
	if (accepted->acceptor->owner->failed)
		accepted->acceptor->owner->failed(accepted);
	if (accepted->link)
		plx_link_abort(accepted->link);
	else
		note_end(accepted, PLX_LINK_PROTOCOL, why);
}

/* message: what came instead; NULL: nothing did. */
static void not_greeted(struct accepted *accepted, const char *why, const struct plx_buf *message)
{
	plx_link_no_handshake(accepted->link, why, message ? message->data : NULL,
			      message ? message->len : 0);
	accepted_fail(accepted, why);
}

static void destroy(struct accepted *accepted)
{
	plx_timer_stop(&accepted->timer);
	*accepted->prev_next = accepted->next;
	if (accepted->next)
		accepted->next->prev_next = accepted->prev_next;
	accepted->acceptor->owner->free(accepted);
}

bool accepted_finish(struct accepted *accepted)
{
	struct acceptor *acceptor = accepted->acceptor;
	bool is_there;

	accepted->finishing = true;
	report(accepted, (struct notice){.type = NOTICE_CLOSED,
					 .reason = accepted->reason,
					 .why = accepted->why});
	is_there = acceptor->socket != NULL;
	destroy(accepted);
	free_if_done(acceptor);
	return is_there;
}

static void on_close(struct plx_link *link, enum plx_link_reason reason, const char *text,
		     void *user)
{
	struct accepted *accepted = user;
	const struct acceptor_owner *owner;

	if (!accepted)
		return;
	owner = accepted->acceptor->owner;
	plx_timer_stop(&accepted->timer);
	if (!accepted->established && !accepted->failure && !accepted->closing)
		plx_link_no_handshake(link, "it went away before it greeted", NULL, 0);
	accepted->link = NULL;
	note_end(accepted, reason, plx_link_without_peer(link, text));
	accepted->finishing = true; /* a callback may end the socket */
	if (!owner->ended || owner->ended(accepted) || !accepted->acceptor->socket)
		accepted_finish(accepted);
	else
		accepted->finishing = false;
}

/* Closing ------------------------------------------------------------------------------------- */

static void on_timer(struct plx_timer *timer, void *arg)
{
	struct accepted *accepted = arg;

	if (accepted->settling) {
		plx_log(&netio_log, PLX_LOG_WARNING,
			"%s took nothing more for 2 s: what it had not taken is lost",
			accepted->peer);
		plx_link_abort(accepted->link);
	} else {
		not_greeted(accepted, "it did not greet within 2 s", NULL);
	}
}

void accepted_close(struct accepted *accepted)
{
	const struct acceptor_owner *owner = accepted->acceptor->owner;

	if (!accepted->link || accepted->closing)
		return;
	accepted->closing = true;
	plx_timer_stop(&accepted->timer);
	if (!accepted->established || !owner->settle || owner->settle(accepted)) {
		plx_link_close(accepted->link); /* closing already: the same */
		return;
	}
	accepted->settling = true;
	plx_timer_start(&accepted->timer, SETTLE_NS);
}

void accepted_settles(struct accepted *accepted)
{
	if (!accepted->settling)
		return;
	netio_note_progress();
	plx_timer_start(&accepted->timer, SETTLE_NS);
}

void accepted_settled(struct accepted *accepted)
{
	if (!accepted->settling)
		return;
	accepted->settling = false;
	plx_timer_stop(&accepted->timer);
	plx_link_close(accepted->link);
}

/* The link ------------------------------------------------------------------------------------ */

static bool create(struct acceptor *acceptor, struct plx_link *link)
{
	struct accepted *accepted = acceptor->owner->create(acceptor);

	if (!accepted)
		return false;
	snprintf(accepted->peer, sizeof(accepted->peer), "%s", plx_link_peer(link));
	snprintf(accepted->provider, sizeof(accepted->provider), "%s", plx_link_provider(link));
	accepted->link = link;
	accepted->acceptor = acceptor;
	accepted->next = acceptor->links;
	accepted->prev_next = &acceptor->links;
	if (accepted->next)
		accepted->next->prev_next = &accepted->next;
	acceptor->links = accepted;
	plx_timer_init(&accepted->timer, on_timer, accepted);
	plx_timer_set_lax(&accepted->timer, true);
	plx_timer_start(&accepted->timer, HELLO_NS);
	plx_link_set_user(link, accepted);
	return true;
}

static void on_open(struct plx_link *link, void *user)
{
	struct acceptor *acceptor = find((uintptr_t)user);

	if (!acceptor || (acceptor->owner->has_room && !acceptor->owner->has_room(acceptor)) ||
	    !create(acceptor, link)) {
		plx_link_set_user(link, NULL);
		plx_link_abort(link);
	}
}

static int welcome(const struct accepted *accepted)
{
	uint8_t bytes[WIRE_GREETING_BYTES];

	wire_greeting_write(bytes, &(struct wire_greeting){
					   .type = WIRE_WELCOME,
					   .version_min = WIRE_VERSION_MIN,
					   .version_max = WIRE_VERSION_MAX,
					   .role = accepted->acceptor->owner->role,
					   .message_max = accepted->acceptor->message_max,
				   });
	return plx_link_send(accepted->link, bytes, sizeof(bytes));
}

static void greeted(struct accepted *accepted, const struct plx_buf *message)
{
	struct acceptor *acceptor = accepted->acceptor;
	struct wire_greeting hello;
	const char *wrong = wire_greeting_read(message->data, message->len, WIRE_HELLO, &hello);

	if (!wrong && welcome(accepted) != 0)
		wrong = "there was no room for the first answer";
	if (wrong) {
		not_greeted(accepted, wrong, message);
		return;
	}
	plx_timer_stop(&accepted->timer);
	if (hello.role != acceptor->owner->role) { /* which the answer has told it */
		accepted->failure = "it is another kind of socket";
		plx_link_no_handshake(accepted->link, accepted->failure, NULL, 0);
		plx_link_close(accepted->link);
		return;
	}
	if (hello.role == WIRE_SUBSCRIBER &&
	    plx_link_message_max(accepted->link) < NETIO_PAGE_BYTES_MIN + WIRE_PAGE_OVERHEAD) {
		not_greeted(accepted, "its link accepts no pages", NULL);
		return;
	}
	accepted->message_max = hello.message_max;
	accepted->id = ++acceptor->next_id;
	accepted->established = true;
	report(accepted, (struct notice){.type = NOTICE_ESTABLISHED});
}

static void on_message(struct plx_link *link, struct plx_buf *message, void *user)
{
	struct accepted *accepted = user;
	const char *wrong;

	if (plx_unlikely(!accepted || !accepted->acceptor->socket || accepted->failure))
		return;
	if (plx_unlikely(!accepted->established)) {
		greeted(accepted, message);
		return;
	}
	wrong = accepted->acceptor->owner->received(accepted, message);
	if (plx_unlikely(wrong != NULL))
		accepted_fail(accepted, wrong);
}

/* Behind the socket's back, too: what waits has to leave. */
static void on_writable(struct plx_link *link, void *user)
{
	struct accepted *accepted = user;

	if (accepted && accepted->established)
		accepted->acceptor->owner->writable(accepted);
}

static void on_suspect(struct plx_link *link, bool suspect, void *user)
{
	struct accepted *accepted = user;

	if (accepted)
		report(accepted, (struct notice){.type = NOTICE_SUSPECT, .suspect = suspect});
}

static const struct plx_link_events events = {
	.on_open = on_open,
	.on_message = on_message,
	.on_writable = on_writable,
	.on_suspect = on_suspect,
	.on_close = on_close,
};

/* The acceptor -------------------------------------------------------------------------------- */

int acceptor_check(const char *provider, uint64_t message_max)
{
	if (message_max < WIRE_MESSAGE_MAX_LEAST || message_max > WIRE_MESSAGE_MAX_LIMIT)
		return plx_fail(EINVAL, "message_max_bytes %llu: give %d to %llu",
				(unsigned long long)message_max, WIRE_MESSAGE_MAX_LEAST,
				(unsigned long long)WIRE_MESSAGE_MAX_LIMIT);
	if (provider && strlen(provider) >= sizeof(((struct acceptor *)0)->provider))
		return plx_fail(EINVAL, "provider '%s': there is none of that name", provider);
	return 0;
}

void acceptor_init(struct acceptor *acceptor, struct netio_eventloop *evloop, void *socket,
		   const struct acceptor_owner *owner, const char *provider, uint64_t message_max)
{
	acceptor->owner = owner;
	acceptor->socket = socket;
	acceptor->evloop = evloop;
	acceptor->number = ++last_number;
	acceptor->message_max = message_max;
	if (provider)
		snprintf(acceptor->provider, sizeof(acceptor->provider), "%s", provider);
	acceptor->next = acceptors;
	acceptor->prev_next = &acceptors;
	if (acceptor->next)
		acceptor->next->prev_next = &acceptor->next;
	acceptors = acceptor;
}

static int start(struct acceptor *acceptor, const char *address, struct plx_link_attr *link)
{
	struct plx_listen_attr attr = {.link = *link};
	const char *colon;
	int rc;

	attr.link.events = &events;
	attr.link.user = (void *)acceptor->number;
	attr.link.protocol = PLX_PROTOCOL_NETIO;
	attr.link.provider = acceptor->provider[0] ? acceptor->provider : NULL;
	rc = plx_link_listen(address, &attr, &acceptor->listener);
	if (rc)
		return rc;
	colon = strrchr(plx_listener_address(acceptor->listener), ':');
	acceptor->port = colon ? (unsigned)strtoul(colon + 1, NULL, 10) : 0;
	return 0;
}

int acceptor_listen(struct acceptor *acceptor, const char *what, const char *host, unsigned port,
		    struct plx_link_attr *attr)
{
	char address[PLX_ADDRESS_MAX];
	int rc;

	if (!acceptor)
		return netio_fail(plx_fail(EINVAL, "%s: the socket is not set up", what));
	if (acceptor->listener)
		return netio_fail(plx_fail(EALREADY, "%s: it listens at %s already", what,
					   plx_listener_address(acceptor->listener)));
	rc = netio_address(what, host, port, address);
	if (rc == 0)
		rc = start(acceptor, address, attr);
	return rc ? netio_fail(rc) : 0;
}

void acceptor_release(struct acceptor *acceptor)
{
	struct accepted *accepted, *next;

	plx_listener_close(acceptor->listener);
	acceptor->socket = NULL;
	for (accepted = acceptor->links; accepted; accepted = next) {
		next = accepted->next;
		if (acceptor->owner->failed)
			acceptor->owner->failed(accepted);
		if (accepted->link)
			accepted_close(accepted);
		else if (!accepted->finishing)
			destroy(accepted);
	}
	free_if_done(acceptor);
}

void acceptor_release_all(struct netio_eventloop *evloop)
{
	struct acceptor *acceptor = acceptors;

	while (acceptor) {
		struct acceptor *next = acceptor->next;

		if (acceptor->evloop == evloop && acceptor->socket)
			acceptor->owner->fini(acceptor);
		acceptor = next;
	}
}

bool acceptor_any_closing(void)
{
	const struct acceptor *acceptor = acceptors;

	while (acceptor && acceptor->socket)
		acceptor = acceptor->next;
	return acceptor != NULL;
}

/* Nobody is told meanwhile: the lists stay as they are. */
static void close_links(struct acceptor *acceptor)
{
	plx_listener_close(acceptor->listener);
	acceptor->listener = NULL;
	acceptor->port = 0;
	for (struct accepted *accepted = acceptor->links; accepted; accepted = accepted->next)
		accepted_close(accepted);
}

void acceptor_close_all(struct netio_eventloop *evloop)
{
	for (struct acceptor *acceptor = acceptors; acceptor; acceptor = acceptor->next)
		if (acceptor->evloop == evloop && acceptor->socket)
			close_links(acceptor);
}

bool acceptor_any_open(const struct netio_eventloop *evloop)
{
	for (const struct acceptor *acceptor = acceptors; acceptor; acceptor = acceptor->next) {
		const struct accepted *accepted = acceptor->links;

		while (accepted && !accepted->link) /* those wait for who takes from the queue */
			accepted = accepted->next;
		if (acceptor->evloop == evloop && accepted)
			return true;
	}
	return false;
}
