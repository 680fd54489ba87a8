/* SPDX-License-Identifier: BSD-3-Clause */
#include "session_fixture.h"

struct events connecting, accepting;
struct test_connector connector;
struct plx_acceptor *acceptor;
struct plx_accepted *accepted;
struct plx_listener *session_listener;

static char address[64];

static const char *judge(struct events *events, const uint8_t *hello, uint32_t length)
{
	memcpy(events->hello, hello, length);
	events->hello[length] = '\0';
	return events->refuses;
}

static void note(struct events *events, enum plx_link_reason reason, const char *why)
{
	events->reason = reason;
	snprintf(events->why, sizeof(events->why), "%s", why);
}

static bool settle(struct events *events)
{
	events->settles++;
	return !events->settles_later;
}

/* Defines a callback that is only counted. */
#define COUNTS(name, type, counter)     \
	static void name(type *session) \
	{                               \
		(counter)++;            \
	}

/* The connector -------------------------------------------------------------------------------- */

static struct events *events_of(struct plx_connector *session)
{
	return ((struct test_connector *)session)->events;
}

COUNTS(connector_opened, struct plx_connector, events_of(session)->opened)
COUNTS(connector_ended, struct plx_connector, events_of(session)->ended)
COUNTS(connector_free, struct plx_connector, events_of(session)->freed)

static const char *connector_hello(struct plx_connector *session, struct plx_link *link,
				   const uint8_t *hello, uint32_t length)
{
	return judge(events_of(session), hello, length);
}

static bool connector_refused(struct plx_connector *session, enum plx_link_reason reason,
			      const char *why)
{
	note(events_of(session), reason, why);
	events_of(session)->refused++;
	return false;
}

static void connector_closed(struct plx_connector *session, enum plx_link_reason reason,
			     const char *why)
{
	note(events_of(session), reason, why);
	events_of(session)->closed++;
}

static bool connector_settle(struct plx_connector *session)
{
	return settle(events_of(session));
}

static void connector_message(struct plx_link *link, struct plx_buf *message, void *user)
{
	events_of(user)->messages++;
}

static const struct plx_link_events connector_events = {PLX_CONNECTOR_EVENTS,
							.on_message = connector_message};

static const struct plx_connector_owner connector_owner = {
	.hello = connector_hello,
	.opened = connector_opened,
	.refused = connector_refused,
	.closed = connector_closed,
	.settle = connector_settle,
	.ended = connector_ended,
	.free = connector_free,
};

/* The acceptor --------------------------------------------------------------------------------- */

COUNTS(accepted_opened, struct plx_accepted, accepting.opened)
COUNTS(accepted_failed, struct plx_accepted, accepting.failed)
COUNTS(accepted_closed, struct plx_accepted, accepting.closed)

static const char *acceptor_hello(struct plx_acceptor *session, struct plx_link *link,
				  const uint8_t *hello, uint32_t length)
{
	return judge(&accepting, hello, length);
}

static struct plx_accepted *accepted_create(struct plx_acceptor *session)
{
	accepted = calloc(1, sizeof(*accepted));
	return accepted;
}

static bool accepted_settle(struct plx_accepted *session)
{
	return settle(&accepting);
}

static bool accepted_ended(struct plx_accepted *session, struct plx_link *link,
			   enum plx_link_reason reason, const char *text)
{
	note(&accepting, reason, text);
	accepting.ended++;
	return !accepting.holds;
}

static void accepted_free(struct plx_accepted *session)
{
	accepting.freed++;
	if (accepted == session)
		accepted = NULL;
	free(session);
}

static void acceptor_free(struct plx_acceptor *session)
{
	free(session);
	acceptor = NULL;
}

static void accepted_message(struct plx_link *link, struct plx_buf *message, void *user)
{
	accepting.messages++;
}

const struct plx_link_events accepted_events = {PLX_ACCEPTED_EVENTS,
						.on_message = accepted_message};

static const struct plx_acceptor_owner acceptor_owner = {
	.hello = acceptor_hello,
	.create = accepted_create,
	.opened = accepted_opened,
	.failed = accepted_failed,
	.settle = accepted_settle,
	.ended = accepted_ended,
	.closed = accepted_closed,
	.free = accepted_free,
	.free_acceptor = acceptor_free,
};

/* Life ----------------------------------------------------------------------------------------- */

void session_begin(void)
{
	fixture_start("tcp", false);
	memset(&connecting, 0, sizeof(connecting));
	memset(&accepting, 0, sizeof(accepting));
	memset(&connector, 0, sizeof(connector));
}

int session_down(void **state)
{
	if (connector.events)
		plx_connector_fini(&connector.session);
	accepting.holds = accepting.settles_later = false;
	session_listen_no_more();
	for (int i = 0; i < 1000 && acceptor; i++)
		pump_ms(1);
	assert_null(acceptor);
	assert_int_equal(plx_fabric_drain(PLX_NS_PER_S), 0);
	fixture_stop();
	return 0;
}

static void say(struct plx_link_attr *attr, const char *hello)
{
	attr->hello_length = (uint8_t)strlen(hello);
	memcpy(attr->hello, hello, attr->hello_length);
}

void session_listen(const char *answer, const char *port)
{
	struct plx_listen_attr attr = {.link.events = &accepted_events};

	acceptor = calloc(1, sizeof(*acceptor));
	plx_acceptor_init(acceptor, &acceptor_owner, plx_acceptor_new_number(), plx_lcore_id());
	say(&attr.link, answer);
	assert_works(
		plx_acceptor_listen(acceptor, port ? port : here("0"), &attr, &session_listener));
	snprintf(address, sizeof(address), "%s", plx_listener_address(session_listener));
}

void session_listen_no_more(void)
{
	plx_listener_close(session_listener);
	session_listener = NULL;
	if (acceptor && !acceptor->released)
		plx_acceptor_release(acceptor);
}

void session_connect(const char *hello, uint64_t min_ns, uint64_t max_ns)
{
	struct plx_connector_attr attr = {
		.link.events = &connector_events,
		.reconnect_min_ns = min_ns,
		.reconnect_max_ns = max_ns,
	};

	say(&attr.link, hello);
	assert_int_equal(plx_connector_check_attr(&attr), 0);
	plx_connector_init(&connector.session, &connector_owner, &attr);
	connector.events = &connecting;
	assert_works(plx_connector_open(&connector.session, address[0] ? address : here("1")));
}

void session_connect_in_vain(uint64_t min_ns, uint64_t max_ns, unsigned refusals)
{
	session_listen("", NULL);
	session_listen_no_more();
	session_connect("", min_ns, max_ns);
	assert_true(pump_until(&connecting.refused, refusals, 10000));
}

void session_meet(void)
{
	session_listen("answer", NULL);
	session_connect("question", 0, 0);
	assert_true(pump_until(&connecting.opened, 1, 3000));
	assert_true(pump_until(&accepting.opened, 1, 3000));
}
