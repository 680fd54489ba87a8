/* SPDX-License-Identifier: BSD-3-Clause */
/* What plx_session.h does not show: accepted links, and connectors whose owner renews, fails or
 * releases them. The peer is a link of the fabric's fixture. */
#include "../fabric/fixture.h"
#include "../fabric/rogue.h"
#include "log_capture.h"
#include "session.h"

/* Callbacks of the owner. */
static struct {
	_Atomic unsigned opened, refused, closed, failed, ended, freed, messages, settles;
	enum plx_link_reason reason;
	char why[400];
	const char *refuses; /* the peer's HELLO; NULL: it does not */
	bool settles_later;
	bool holds; /* of an accepted link: `ended` reports that it is not done */
} owner;

static struct plx_acceptor *acceptor; /* NULL: it was freed */
static struct session_link *accepted; /* the newest; NULL: it was freed */
static struct plx_connector connector;
static struct plx_connector *const session = &connector;
static struct plx_listener *listener;

static void note(enum plx_link_reason reason, const char *why)
{
	owner.reason = reason;
	snprintf(owner.why, sizeof(owner.why), "%s", why);
}

static bool settle(struct session_link *one)
{
	owner.settles++;
	return !owner.settles_later;
}

PLX_COUNTS(on_message, owner.messages, struct plx_link *link, struct plx_buf *message, void *user)

/* The acceptor --------------------------------------------------------------------------------- */

PLX_COUNTS(accepted_opened, owner.opened, struct session_link *one)
PLX_COUNTS(accepted_failed, owner.failed, struct session_link *one)
PLX_COUNTS(accepted_closed, owner.closed, struct session_link *one)

static const char *acceptor_hello(struct plx_acceptor *one, struct plx_link *link)
{
	return owner.refuses;
}

static struct session_link *accepted_create(struct plx_acceptor *one)
{
	accepted = calloc(1, sizeof(*accepted));
	return accepted;
}

static bool accepted_ended(struct session_link *one, struct plx_link *link,
			   enum plx_link_reason reason, const char *text)
{
	note(reason, text);
	owner.ended++;
	return !owner.holds;
}

static void accepted_free(struct session_link *one)
{
	owner.freed++;
	if (accepted == one)
		accepted = NULL;
	free(one);
}

static void acceptor_free(struct plx_acceptor *one)
{
	free(one);
	acceptor = NULL;
}

static const struct plx_link_events accepted_events = {PLX_ACCEPTED_EVENTS,
						       .on_message = on_message};

static const struct plx_acceptor_owner acceptor_owner = {
	.hello = acceptor_hello,
	.create = accepted_create,
	.opened = accepted_opened,
	.base.failed = accepted_failed,
	.base.settle = settle,
	.ended = accepted_ended,
	.closed = accepted_closed,
	.free = accepted_free,
	.free_acceptor = acceptor_free,
};

static void release_acceptor(void)
{
	plx_listener_close(listener);
	listener = NULL;
	if (acceptor && !acceptor->released)
		plx_acceptor_release(acceptor);
}

static int start(void **state)
{
	fixture_start_beating(PLX_NEVER, PLX_NEVER, false);
	memset(&owner, 0, sizeof(owner));
	log_capture();
	return 0;
}

static int start_acceptor(void **state)
{
	struct plx_listen_attr attr = {.link.events = &accepted_events};

	start(state);
	acceptor = calloc(1, sizeof(*acceptor));
	plx_acceptor_init(acceptor, &acceptor_owner, 0, plx_lcore_id());
	assert_works(plx_acceptor_listen(acceptor, here("0"), &attr, &listener));
	return 0;
}

/* With an accepted link, whose peer is `client`. */
static int start_accepted(void **state)
{
	start_acceptor(state);
	client_connect(plx_listener_address(listener), NULL);
	expect_soon(client.opened && owner.opened);
	return 0;
}

static int stop_acceptor(void **state)
{
	owner.holds = owner.settles_later = false;
	release_acceptor();
	expect_soon(!acceptor);
	assert_int_equal(plx_fabric_drain(PLX_NS_PER_S), 0);
	return fixture_down(state);
}

#define ACCEPTOR(name) PLX_TEST_WITH(name, start_acceptor, stop_acceptor)
#define ACCEPTED(name) PLX_TEST_WITH(name, start_accepted, stop_acceptor)

ACCEPTED(a_released_acceptor_closes_its_links_and_is_freed_with_the_last)
{
	const char *peer = plx_link_peer(accepted->link);

	release_acceptor();
	assert_ptr_equal(session_closing(), peer);
	assert_int_equal(owner.failed, 1); /* nothing more is delivered */
	expect_end(&client, PLX_LINK_CLOSED);
	expect_soon(owner.freed);
	assert_int_equal(owner.closed, 0);
	assert_null(acceptor);
	assert_null(session_closing());
}

ACCEPTOR(a_released_acceptor_without_links_is_freed_at_once)
{
	release_acceptor();
	assert_null(acceptor);
}

ACCEPTOR(a_link_that_its_acceptor_refuses_does_not_open)
{
	owner.refuses = "the moon is full";
	client_connect(plx_listener_address(listener), NULL);
	expect_end(&client, PLX_LINK_HELLO);
	assert_has(client.text, "refused the link: the moon is full");
	assert_int_equal(owner.opened, 0);
}

/* As if its listener accepted the link on another lcore before it closed. */
ACCEPTOR(a_link_that_finds_no_acceptor_is_refused)
{
	struct plx_listen_attr attr = {.link.events = &accepted_events};
	struct plx_acceptor nobody = {0};

	plx_acceptor_init(&nobody, &acceptor_owner, 0, plx_lcore_id());
	plx_listener_close(listener);
	assert_works(plx_acceptor_listen(&nobody, here("0"), &attr, &listener));
	plx_acceptor_fini(&nobody);
	client_connect(plx_listener_address(listener), NULL);
	expect_end(&client, PLX_LINK_HELLO);
	assert_has(client.text, " refused the link: the port is being closed");
}

ACCEPTED(an_accepted_link_fails_once)
{
	session_link_fail(accepted, "it barks");
	session_link_fail(accepted, "and bites");
	assert_int_equal(owner.failed, 1);
	assert_string_equal(accepted->failure, "it barks");
	expect_soon(owner.closed);
	assert_int_equal(owner.reason, PLX_LINK_ABORTED);
	assert_int_equal(owner.freed, 1);
}

ACCEPTED(an_accepted_link_closes_once_its_owner_has_settled)
{
	owner.settles_later = true;
	session_link_close(accepted);
	session_link_close(accepted); /* the same */
	assert_int_equal(owner.settles, 1);
	assert_int_equal(plx_link_send(accepted->link, "last", 4), 0);
	pump_ms(20);
	assert_int_equal(owner.closed, 0);
	session_link_settled(accepted);
	expect_soon(owner.closed);
	assert_int_equal(owner.reason, PLX_LINK_CLOSED);
	assert_int_equal(client.messages, 1);
}

/* 5 s in all for its owner, which settles after a while, and for its peer, which never answers. */
ACCEPTOR(an_accepted_link_takes_at_most_5_s_to_close)
{
	struct frame_hello hello = rogue_good_hello();
	struct rogue *rogue = rogue_connect(plx_listener_address(listener));
	uint64_t began_ns;

	hello.heartbeat_ms = 0;
	memcpy(hello.program, "\4slow", 5);
	hello.pid = 7;
	rogue_send_hello(rogue, &hello);
	expect_soon(owner.opened);
	owner.settles_later = true;
	began_ns = plx_now_ns();
	session_link_close(accepted);
	pump_ms(20);
	if (accepted) /* the host may be very busy */
		session_link_settled(accepted);
	assert_true(pump_until(&owner.closed, 1, 5600));
	assert_true(plx_now_ns() - began_ns >= PLX_CLOSE_NS);
	assert_int_equal(log_count(" (slow, pid 7) did not take all within 5 s"), 1);
	rogue_close(rogue);
}

ACCEPTED(an_accepted_link_may_be_finished_after_it_ended)
{
	owner.holds = true;
	plx_link_close(client.link);
	expect_soon(owner.ended);
	pump_ms(20);
	assert_int_equal(owner.closed + owner.freed, 0);
	assert_null(accepted->link);
	assert_true(plx_accepted_finish(accepted));
	assert_int_equal(owner.closed, 1);
	assert_int_equal(owner.freed, 1);
}

ACCEPTED(a_released_acceptor_does_not_wait_for_unfinished_links)
{
	owner.holds = true;
	plx_link_close(client.link);
	expect_soon(owner.ended);
	release_acceptor();
	assert_int_equal(owner.freed, 1);
	assert_null(acceptor);
}

/* The connector -------------------------------------------------------------------------------- */

PLX_COUNTS(connector_opened, owner.opened, struct plx_connector *one)
PLX_COUNTS(connector_ended, owner.ended, struct plx_connector *one, const struct plx_link *link)

static const char *connector_hello(struct plx_connector *one, struct plx_link *link)
{
	return owner.refuses;
}

static bool connector_refused(struct plx_connector *one, enum plx_link_reason reason,
			      const char *why)
{
	note(reason, why);
	owner.refused++;
	return false;
}

static void connector_closed(struct plx_connector *one, enum plx_link_reason reason,
			     const char *why)
{
	note(reason, why);
	owner.closed++;
}

static void connector_free(struct plx_connector *one)
{
	owner.freed++;
	memset(&connector, 0, sizeof(connector));
}

static const struct plx_link_events connector_events = {PLX_CONNECTOR_EVENTS,
							.on_message = on_message};

static const struct plx_connector_owner connector_owner = {
	.hello = connector_hello,
	.opened = connector_opened,
	.refused = connector_refused,
	.closed = connector_closed,
	.base.settle = settle,
	.ended = connector_ended,
	.free = connector_free,
};

static void connect_to(const char *address, uint64_t min_ns, uint64_t max_ns)
{
	struct plx_connector_attr attr = {.link.events = &connector_events,
					  .reconnect_min_ns = min_ns,
					  .reconnect_max_ns = max_ns};

	assert_works(plx_connector_check_attr(&attr));
	plx_connector_init(session, &connector_owner, &attr);
	assert_works(plx_connector_open(session, address));
}

/* Connected to `server`. */
static int start_connected(void **state)
{
	start(state);
	listener = fixture_listen(here("0"), NULL);
	connect_to(plx_listener_address(listener), PLX_NS_PER_MS, PLX_NS_PER_S);
	expect_soon(owner.opened && server.opened);
	return 0;
}

static int stop_connector(void **state)
{
	if (connector.owner)
		plx_connector_fini(session);
	memset(&connector, 0, sizeof(connector));
	assert_int_equal(plx_fabric_drain(PLX_NS_PER_S), 0);
	return fixture_down(state);
}

#define CONNECTOR(name) PLX_TEST_WITH(name, start, stop_connector)
#define CONNECTED(name) PLX_TEST_WITH(name, start_connected, stop_connector)

CONNECTED(a_renewed_connector_closes_and_reconnects)
{
	plx_connector_renew(session);
	expect_soon(owner.closed);
	assert_int_equal(owner.reason, PLX_LINK_CLOSED);
	assert_int_equal(owner.ended, 1);
	expect_soon(owner.opened == 2);
}

CONNECTED(a_failed_connector_reports_the_reason)
{
	plx_connector_fail(session, PLX_LINK_PROTOCOL, "it barks");
	plx_connector_fail(session, PLX_LINK_LOCAL, "and bites");
	assert_int_equal(owner.closed, 0);
	expect_soon(owner.closed);
	assert_int_equal(owner.reason, PLX_LINK_PROTOCOL);
	assert_has(owner.why, ": it barks");
	expect_soon(owner.opened == 2);
}

/* A peer that greets and closes counts like one that refuses. */
CONNECTED(a_connector_backs_off_from_a_peer_that_closes_at_once)
{
	for (unsigned i = 1; i <= 6; i++) {
		expect_soon(server.opened == i);
		plx_link_abort(server.link);
		expect_soon(owner.closed == i);
	}
	assert_in_range(session->backoff.attempts, 5, 6);
}

/* The limit of a range of back-offs. */
CONNECTOR(a_connector_refused_on_this_host_tries_again_within_50_ms)
{
	connect_to(here("1"), 0, 0);
	expect_soon(owner.refused >= 12);
	assert_in_range(session->backoff.attempts, 1, 3);
}

CONNECTOR(a_connector_without_retries_is_opened_again_by_its_owner)
{
	connect_to(here("1"), PLX_NEVER, 0);
	expect_soon(owner.refused);
	assert_int_equal(session->state, PLX_CONNECTOR_IDLE);
	plx_connector_open_again(session);
	expect_soon(owner.refused == 2);
}

CONNECTED(a_released_connector_settles_and_closes_without_its_owner)
{
	owner.settles_later = true;
	plx_connector_release(session);
	assert_ptr_equal(session_closing(), session->address);
	assert_int_equal(plx_link_send(session->link, "last", 4), 0);
	session_link_settled(&session->base);
	expect_soon(owner.freed);
	assert_int_equal(owner.closed, 0);
	assert_int_equal(server.messages, 1);
	assert_null(session_closing());
}

CONNECTOR(a_connector_released_between_its_links_is_freed_at_once)
{
	connect_to(here("1"), PLX_NS_PER_S, 2 * PLX_NS_PER_S);
	expect_soon(owner.refused);
	plx_connector_release(session);
	assert_int_equal(owner.freed, 1);
	connect_to("LOCALHOST:7", PLX_NS_PER_S, 2 * PLX_NS_PER_S);
	assert_int_equal(session->state, PLX_CONNECTOR_LOOKING_UP);
	plx_connector_release(session);
	assert_int_equal(owner.freed, 2);
	pump_ms(10);
	assert_int_equal(owner.refused, 1);
}

/* Its memory may be freed at once. */
CONNECTED(the_link_of_an_ended_connector_closes_on_its_own)
{
	plx_connector_fini(session);
	memset(&connector, 0, sizeof(connector));
	expect_end(&server, PLX_LINK_CLOSED);
	assert_int_equal(owner.closed + owner.ended + owner.freed, 0);
}

PLX_TEST_MAIN()
