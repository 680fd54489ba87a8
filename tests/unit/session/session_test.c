/* SPDX-License-Identifier: BSD-3-Clause */
/* A connector and an acceptor that count the calls of their owners' callbacks. The private data of
 * a HELLO is one word. */
#include "../fabric/fixture.h"
#include "../fabric/rogue.h"
#include "log_capture.h"
#include "session.h"

#include <pthread.h>

/* Callbacks of one side's owner. */
struct events {
	_Atomic unsigned opened, refused, closed, failed, ended, freed, messages, settles;
	enum plx_link_reason reason;
	char why[400];
	char hello[PLX_LINK_HELLO_MAX + 1]; /* of the peer */
	const char *refuses;                /* that; NULL: nothing */
	bool settles_later;
	bool holds; /* of an accepted link: `ended` reports that it is not done */
};

struct test_connector {
	struct plx_connector session; /* must be first */
	struct events *events;
};

static struct events connecting, accepting;
static struct test_connector connector;
static struct plx_acceptor *acceptor; /* NULL: it was freed */
static struct session_link *accepted; /* the newest; NULL: it was freed */
static struct plx_listener *session_listener;
static struct plx_admission session_limits; /* of the next acceptor */
static char session_address[64];

static const char *judge(struct events *events, const struct plx_link *link)
{
	uint32_t length;
	const uint8_t *hello = plx_link_hello(link, &length);

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

static bool no_threads; /* as at a limit of processes */

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *),
			  void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *),
			  void *arg);

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *),
			  void *arg)
{
	return no_threads ? EAGAIN : __real_pthread_create(thread, attr, fn, arg);
}

/* The connector -------------------------------------------------------------------------------- */

static struct events *events_of(struct plx_connector *session)
{
	return ((struct test_connector *)session)->events;
}

COUNTS(connector_opened, struct plx_connector, events_of(session)->opened)
COUNTS(connector_free, struct plx_connector, events_of(session)->freed)

static void connector_ended(struct plx_connector *session, const struct plx_link *link)
{
	events_of(session)->ended++;
}

static const char *connector_hello(struct plx_connector *session, struct plx_link *link)
{
	return judge(events_of(session), link);
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

static bool connector_settle(struct session_link *session)
{
	return settle(events_of((struct plx_connector *)session));
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
	.base.settle = connector_settle,
	.ended = connector_ended,
	.free = connector_free,
};

/* The acceptor --------------------------------------------------------------------------------- */

COUNTS(accepted_opened, struct session_link, accepting.opened)
COUNTS(accepted_failed, struct session_link, accepting.failed)
COUNTS(accepted_closed, struct session_link, accepting.closed)

static const char *acceptor_hello(struct plx_acceptor *session, struct plx_link *link)
{
	return judge(&accepting, link);
}

static struct session_link *accepted_create(struct plx_acceptor *session)
{
	accepted = calloc(1, sizeof(*accepted));
	return accepted;
}

static bool accepted_settle(struct session_link *session)
{
	return settle(&accepting);
}

static bool accepted_ended(struct session_link *session, struct plx_link *link,
			   enum plx_link_reason reason, const char *text)
{
	note(&accepting, reason, text);
	accepting.ended++;
	return !accepting.holds;
}

static void accepted_free(struct session_link *session)
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

static const struct plx_link_events accepted_events = {PLX_ACCEPTED_EVENTS,
						       .on_message = accepted_message};

static const struct plx_acceptor_owner acceptor_owner = {
	.hello = acceptor_hello,
	.create = accepted_create,
	.opened = accepted_opened,
	.base.failed = accepted_failed,
	.base.settle = accepted_settle,
	.ended = accepted_ended,
	.closed = accepted_closed,
	.free = accepted_free,
	.free_acceptor = acceptor_free,
};

/* Life ----------------------------------------------------------------------------------------- */

static void say(struct plx_link_attr *attr, const char *hello)
{
	attr->hello_length = (uint8_t)strlen(hello);
	memcpy(attr->hello, hello, attr->hello_length);
}

/* A new listening acceptor. port: NULL: any free port. */
static void session_listen(const char *answer, const char *port)
{
	struct plx_listen_attr attr = {.link.events = &accepted_events,
				       .admission = session_limits};

	acceptor = calloc(1, sizeof(*acceptor));
	plx_acceptor_init(acceptor, &acceptor_owner, 0, plx_lcore_id());
	say(&attr.link, answer);
	assert_works(
		plx_acceptor_listen(acceptor, port ? port : here("0"), &attr, &session_listener));
	snprintf(session_address, sizeof(session_address), "%s",
		 plx_listener_address(session_listener));
}

static void session_listen_no_more(void)
{
	plx_listener_close(session_listener);
	session_listener = NULL;
	if (acceptor && !acceptor->released)
		plx_acceptor_release(acceptor);
}

static void session_open_as(struct test_connector *as, struct events *events,
			    struct plx_connector_attr attr, const char *address)
{
	attr.link.events = &connector_events;
	assert_int_equal(plx_connector_check_attr(&attr), 0);
	plx_connector_init(&as->session, &connector_owner, &attr);
	as->events = events;
	assert_works(plx_connector_open(&as->session, address));
}

static void session_connect_by(const char *provider, const char *address)
{
	session_open_as(&connector, &connecting,
			(struct plx_connector_attr){.link.provider = provider,
						    .reconnect_min_ns = PLX_NS_PER_MS,
						    .reconnect_max_ns = 5 * PLX_NS_PER_MS},
			address);
}

static void session_connect_as(struct test_connector *as, struct events *events, const char *hello,
			       uint64_t min_ns, uint64_t max_ns)
{
	struct plx_connector_attr attr = {.reconnect_min_ns = min_ns, .reconnect_max_ns = max_ns};

	say(&attr.link, hello);
	session_open_as(as, events, attr, session_address[0] ? session_address : here("1"));
}

/* Connect to the acceptor; or to one that no longer listens, until refused that often. */
static void session_connect(const char *hello, uint64_t min_ns, uint64_t max_ns)
{
	session_connect_as(&connector, &connecting, hello, min_ns, max_ns);
}

static void session_connect_in_vain(uint64_t min_ns, uint64_t max_ns, unsigned refusals)
{
	session_listen("", NULL);
	session_listen_no_more();
	session_connect("", min_ns, max_ns);
	assert_true(pump_until(&connecting.refused, refusals, 10000));
}

static void session_start(bool two_lcores)
{
	fixture_start_beating(PLX_NEVER, PLX_NEVER, two_lcores);
	no_threads = false;
	memset(&connecting, 0, sizeof(connecting));
	memset(&accepting, 0, sizeof(accepting));
	memset(&connector, 0, sizeof(connector));
	session_limits = (struct plx_admission){0};
	log_capture();
}

PLX_FIXTURE(session_up, 0, session_start(false))
PLX_FIXTURE(session_up_on_two_lcores, 0, session_start(true))

static int session_up_and_meet(void **state)
{
	session_up(state);
	session_listen("answer", NULL);
	session_connect("question", 0, 0);
	assert_true(pump_until(&connecting.opened, 1, 3000));
	assert_true(pump_until(&accepting.opened, 1, 3000));
	return 0;
}

static int session_down(void **state)
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

#define TEST(name)     PLX_TEST_WITH(name, session_up, session_down)
#define TEST_MET(name) PLX_TEST_WITH(name, session_up_and_meet, session_down)

/* The accepting side: its links, and their end ------------------------------------------------- */

TEST_MET(a_released_acceptor_closes_its_links_and_is_freed_with_the_last)
{
	const char *peer = plx_link_peer(accepted->link);

	session_listen_no_more();
	assert_ptr_equal(session_closing(), peer);
	assert_int_equal(accepting.failed, 1); /* nothing more is delivered */
	assert_true(pump_until(&connecting.closed, 1, 3000));
	assert_int_equal(connecting.reason, PLX_LINK_CLOSED);
	assert_true(pump_until(&accepting.freed, 1, 3000));
	assert_int_equal(accepting.closed, 0);
	assert_null(acceptor);
	assert_null(session_closing());
}

TEST(a_released_acceptor_without_links_is_freed_at_once)
{
	session_listen("", NULL);
	session_listen_no_more();
	assert_null(acceptor);
}

/* As if its listener accepted the link on another lcore before it closed. */
TEST(a_link_that_finds_no_acceptor_is_refused)
{
	struct plx_listen_attr attr = {.link.events = &accepted_events};
	struct plx_acceptor nobody = {0}, *was;

	session_listen("", NULL);
	was = acceptor;
	plx_acceptor_init(&nobody, was->owner, 0, plx_lcore_id());
	plx_listener_close(session_listener);
	assert_works(plx_acceptor_listen(&nobody, here("0"), &attr, &session_listener));
	plx_acceptor_fini(&nobody);
	client_connect(plx_listener_address(session_listener), NULL);
	expect_end(&client, PLX_LINK_HELLO);
	assert_has(client.text, " refused the link: the port is being closed");
}

TEST_MET(an_accepted_link_fails_once)
{
	session_link_fail(accepted, "it barks");
	session_link_fail(accepted, "and bites");
	assert_int_equal(accepting.failed, 1);
	assert_string_equal(accepted->failure, "it barks");
	assert_true(pump_until(&accepting.closed, 1, 3000));
	assert_int_equal(accepting.reason, PLX_LINK_ABORTED);
	assert_int_equal(accepting.freed, 1);
}

TEST_MET(an_accepted_link_closes_once_its_owner_has_settled)
{
	accepting.settles_later = true;
	session_link_close(accepted);
	session_link_close(accepted); /* the same */
	assert_int_equal(accepting.settles, 1);
	assert_int_equal(plx_link_send(accepted->link, "last", 4), 0);
	pump_ms(20);
	assert_int_equal(accepting.closed, 0);
	session_link_settled(accepted);
	assert_true(pump_until(&accepting.closed, 1, 3000));
	assert_int_equal(accepting.reason, PLX_LINK_CLOSED);
	assert_int_equal(connecting.messages, 1);
}

/* 5 s in all for its owner, which settles after a while, and for its peer, which never answers. */
TEST(an_accepted_link_takes_at_most_5_s_to_close)
{
	struct frame_hello hello = rogue_good_hello();
	uint64_t began_ns;

	session_listen("", NULL);
	hello.heartbeat_ms = 0;
	memcpy(hello.program, "\4slow", 5);
	hello.pid = 7;
	struct rogue *rogue = rogue_connect(session_address);
	rogue_send_hello(rogue, &hello);
	assert_true(pump_until(&accepting.opened, 1, 3000));
	accepting.settles_later = true;
	began_ns = plx_now_ns();
	session_link_close(accepted);
	pump_ms(200); /* of CPU time: less than 5 s on a busy host */
	session_link_settled(accepted);
	assert_true(pump_until(&accepting.closed, 1, 5600));
	assert_true(plx_now_ns() - began_ns >= PLX_CLOSE_NS);
	assert_int_equal(log_count(" (slow, pid 7) did not take all within 5 s"), 1);
	rogue_close(rogue);
}

TEST_MET(an_accepted_link_may_be_finished_after_it_ended)
{
	accepting.holds = true;
	plx_connector_close(&connector.session);
	assert_true(pump_until(&accepting.ended, 1, 3000));
	pump_ms(20);
	assert_int_equal(accepting.closed + accepting.freed, 0);
	assert_null(accepted->link);
	assert_true(plx_accepted_finish(accepted));
	assert_int_equal(accepting.closed, 1);
	assert_int_equal(accepting.freed, 1);
}

TEST_MET(a_released_acceptor_does_not_wait_for_unfinished_links)
{
	accepting.holds = true;
	plx_connector_close(&connector.session);
	assert_true(pump_until(&accepting.ended, 1, 3000));
	session_listen_no_more();
	assert_int_equal(accepting.freed, 1);
	assert_null(acceptor);
}

/* The connecting side: from its first attempt to its end --------------------------------------- */

static struct plx_connector *const session = &connector.session;

TEST_MET(a_connector_opens_once_both_sides_have_checked_the_hello)
{
	assert_string_equal(accepting.hello, "question");
	assert_string_equal(connecting.hello, "answer");
	assert_int_equal(session->state, PLX_CONNECTOR_OPEN);
	assert_int_equal(plx_link_send(session->link, "x", 1), 0);
	assert_true(pump_until(&accepting.messages, 1, 3000));
}

TEST(a_refused_connector_gets_the_reason_and_tries_again)
{
	accepting.refuses = "the moon is full";
	session_listen("", NULL);
	session_connect("", PLX_NS_PER_MS, 5 * PLX_NS_PER_MS);
	assert_true(pump_until(&connecting.refused, 5, 5000));
	assert_int_equal(connecting.reason, PLX_LINK_HELLO);
	assert_has(connecting.why, "refused the link: the moon is full");
	assert_int_equal(log_count("refused the link: the moon is full; trying again"), 1);
	assert_int_equal(connecting.opened + connecting.closed + accepting.opened, 0);
	accepting.refuses = NULL;
	assert_true(pump_until(&connecting.opened, 1, 3000));
}

TEST(a_connector_that_refuses_the_peer_tries_again)
{
	connecting.refuses = "that is no answer";
	session_listen("no answer", NULL);
	session_connect("", PLX_NS_PER_MS, 5 * PLX_NS_PER_MS);
	assert_true(pump_until(&connecting.refused, 2, 5000));
	assert_has(connecting.why, "was refused: that is no answer");
	assert_true(pump_until(&accepting.closed, 1, 3000)); /* on its side the link was open */
	assert_has(accepting.why, "refused the link: that is no answer");
	assert_int_equal(connecting.opened, 0);
}

TEST_MET(a_connector_reconnects_after_the_peer_closed)
{
	session_link_close(accepted);
	assert_true(pump_until(&connecting.closed, 1, 3000));
	assert_int_equal(connecting.reason, PLX_LINK_CLOSED);
	assert_int_equal(connecting.ended, 1);
	assert_null(session->link);
	assert_true(pump_until(&connecting.opened, 2, 3000));
	assert_int_equal(connecting.refused, 0);
}

/* No attempt extends the range beyond that. */
TEST(a_connector_refused_on_this_host_tries_again_within_50_ms)
{
	session_connect_in_vain(0, 0, 12);
	assert_int_equal(session->state, PLX_CONNECTOR_WAITING);
	assert_true(session->refused_here);
	assert_in_range(session->backoff.attempts, 1, 3);
}

/* Many that wait for one process -------------------------------------------------------------- */

#define CROWD 8

static struct test_connector crowd[CROWD];
static struct events crowd_events[CROWD];

static unsigned crowd_sum(const _Atomic unsigned *first)
{
	unsigned sum = 0;

	for (unsigned i = 0; i < CROWD; i++)
		sum += *(const _Atomic unsigned *)((const char *)first + i * sizeof(struct events));
	return sum;
}

/* All are refused at an address where nobody listens; return the one that retries for all, after
 * some attempts. */
static unsigned crowd_waits(void)
{
	unsigned leader = CROWD;

	memset(crowd_events, 0, sizeof(crowd_events));
	session_listen("", NULL);
	session_listen_no_more();
	for (unsigned i = 0; i < CROWD; i++)
		session_connect_as(&crowd[i], &crowd_events[i], "", 0, 0);
	expect_soon(crowd_sum(&crowd_events[0].refused) >= CROWD + 5);
	for (unsigned i = 0; i < CROWD; i++) {
		if (crowd_events[i].refused == 1)
			continue;
		assert_int_equal(leader, CROWD);
		leader = i;
	}
	return leader;
}

static void crowd_ends(void)
{
	for (unsigned i = 0; i < CROWD; i++)
		plx_connector_fini(&crowd[i].session);
}

TEST(one_of_many_that_wait_for_a_process_of_this_host_retries_for_all)
{
	char port[64];

	crowd_waits();
	snprintf(port, sizeof(port), "%s", session_address);
	session_listen("", port);
	expect_soon(crowd_sum(&crowd_events[0].opened) == CROWD);
	crowd_ends();
}

TEST(another_one_retries_after_the_one_that_did_ends)
{
	unsigned leader = crowd_waits(), before;

	plx_connector_fini(&crowd[leader].session);
	before = crowd_sum(&crowd_events[0].refused);
	expect_soon(crowd_sum(&crowd_events[0].refused) > before + 2);
	assert_int_equal(crowd_sum(&crowd_events[0].opened), 0);
	crowd_ends();
}

TEST(one_that_waits_for_another_can_be_closed)
{
	unsigned follower = crowd_waits() == 0 ? 1 : 0;

	plx_connector_close(&crowd[follower].session);
	expect_soon(crowd_events[follower].closed == 1);
	crowd_ends();
}

/* It asks to come again in a second. */
TEST(a_connector_comes_again_when_a_busy_peer_asked_it_to)
{
	static struct test_connector second;
	static struct events events;
	uint64_t begin_ns;

	memset(&events, 0, sizeof(events));
	session_limits = (struct plx_admission){.links_max = 1};
	session_listen("", NULL);
	session_connect("", PLX_NS_PER_MS, 5 * PLX_NS_PER_MS);
	assert_true(pump_until(&connecting.opened, 1, 3000));
	begin_ns = plx_now_ns();
	session_connect_as(&second, &events, "", PLX_NS_PER_MS, 5 * PLX_NS_PER_MS);
	assert_true(pump_until(&events.refused, 1, 3000));
	assert_int_equal(events.reason, PLX_LINK_REFUSED);
	assert_has(events.why, " is busy: come again in 1000 ms");
	plx_connector_close(&connector.session);
	assert_true(pump_until(&events.opened, 1, 5000));
	assert_true(plx_now_ns() - begin_ns >= PLX_NS_PER_S);
	assert_int_equal(events.refused, 1);
	plx_connector_fini(&second.session);
}

/* A peer that greets and closes counts like one that refuses. */
TEST(a_connector_backs_off_from_a_peer_that_closes_at_once)
{
	session_listen("", NULL);
	session_connect("", PLX_NS_PER_MS, PLX_NS_PER_S);
	for (unsigned i = 1; i <= 6; i++) {
		assert_true(pump_until(&accepting.opened, i, 10000));
		plx_link_abort(accepted->link);
		assert_true(pump_until(&connecting.closed, i, 3000));
	}
	assert_in_range(session->backoff.attempts, 5, 6);
}

TEST_MET(a_failure_is_logged_again_after_a_successful_attempt)
{
	char at[64];

	snprintf(at, sizeof(at), "%s", plx_listener_address(session_listener));
	for (unsigned i = 1; i <= 2; i++) {
		unsigned refused = connecting.refused;

		session_listen_no_more();
		assert_true(pump_until(&connecting.refused, refused + 3, 5000));
		assert_int_equal(log_count("is anything listening there?; trying again"), i);
		session_listen("answer", at);
		assert_true(pump_until(&connecting.opened, i + 1, 5000));
	}
}

TEST(a_connector_without_retries_tries_once)
{
	session_connect_in_vain(UINT64_MAX, 0, 1);
	assert_int_equal(session->state, PLX_CONNECTOR_IDLE);
	plx_connector_open_again(session);
	assert_true(pump_until(&connecting.refused, 2, 5000));
}

TEST(a_look_up_without_a_thread_is_reported_and_retried)
{
	char address[64];

	session_listen("", NULL);
	snprintf(address, sizeof(address), "lOCALHOST%s",
		 strrchr(plx_listener_address(session_listener), ':'));
	no_threads = true;
	session_connect_by(NULL, address);
	assert_true(pump_until(&connecting.refused, 3, 5000));
	assert_has(connecting.why, "no thread can be started");
	no_threads = false;
	assert_true(pump_until(&connecting.opened, 1, 30000));
}

/* No route: shm reaches no other host. */
TEST(a_first_attempt_without_a_route_is_reported_and_retried)
{
	session_connect_by("shm", "203.0.113.1:7");
	assert_int_equal(session->state, PLX_CONNECTOR_WAITING);
	assert_int_equal(connecting.refused, 0); /* from the loop */
	assert_true(pump_until(&connecting.refused, 3, 5000));
	assert_has(connecting.why, "203.0.113.1:7");
	assert_int_equal(log_count("203.0.113.1:7"), 1);
	plx_connector_close(session);
	assert_true(pump_until(&connecting.closed, 1, 3000));
}

TEST(a_first_attempt_without_a_route_may_be_closed_at_once)
{
	session_connect_by("shm", "203.0.113.1:7");
	plx_connector_close(session);
	assert_true(pump_until(&connecting.closed, 1, 3000));
	assert_int_equal(connecting.refused, 0);
	assert_int_equal(session->state, PLX_CONNECTOR_IDLE);
}

TEST(a_mistake_of_the_caller_is_an_error_of_the_call)
{
	static const struct {
		const char *address, *error;
	} rows[] = {
		{"127.0.0.1", "there is no port"},
		{"127.0.0.1:0", "port 0"},
		{"*:7", "a host is needed"},
	};

	session_connect_by("shm", "203.0.113.1:7");
	for (size_t i = 0; i < PLX_ARRAY_LEN(rows); i++) {
		assert_fails(plx_connector_open(session, rows[i].address), -EINVAL, rows[i].error);
		assert_int_equal(session->state, PLX_CONNECTOR_IDLE);
	}
	snprintf(session->provider, sizeof(session->provider), "carrier-pigeon");
	assert_fails(plx_connector_open(session, "127.0.0.1:7"), -EINVAL, "unknown provider");
	pump_ms(20);
	assert_int_equal(connecting.refused + connecting.closed, 0);
}

TEST(a_connector_closed_during_its_back_off_reports_from_the_loop)
{
	session_connect_in_vain(PLX_NS_PER_S, 2 * PLX_NS_PER_S, 1);
	plx_connector_close(session);
	assert_int_equal(connecting.closed, 0);
	assert_true(pump_until(&connecting.closed, 1, 500));
	assert_int_equal(connecting.reason, PLX_LINK_ABORTED);
	assert_int_equal(session->state, PLX_CONNECTOR_IDLE);
}

TEST(a_connector_closed_while_it_connects_is_not_refused)
{
	session_listen("", NULL);
	session_connect("", 0, 0);
	plx_connector_close(session);
	assert_true(pump_until(&connecting.closed, 1, 3000));
	assert_int_equal(connecting.refused + connecting.opened, 0);
	assert_int_equal(session->state, PLX_CONNECTOR_IDLE);
}

TEST_MET(a_connector_closes_once_its_owner_has_settled)
{
	connecting.settles_later = true;
	plx_connector_close(session);
	assert_true(session->base.settling);
	assert_int_equal(plx_link_send(session->link, "last", 4), 0);
	pump_ms(20);
	assert_int_equal(connecting.closed, 0);
	session_link_settled(&session->base);
	assert_null(session->link);
	assert_true(pump_until(&connecting.closed, 1, 3000));
	assert_int_equal(connecting.reason, PLX_LINK_CLOSED);
	assert_int_equal(accepting.messages, 1);
}

/* 5 s in all for its owner, which settles after a while, and for its peer: an lcore that stands
 * still. */
PLX_TEST_WITH(a_connector_takes_at_most_5_s_to_close, session_up_on_two_lcores, session_down)
{
	struct plx_listener *elsewhere = fixture_listen_as(
		here("0"),
		(struct plx_listen_attr){.spread = PLX_SPREAD_CALLBACK, .place = place_on_lcore_1});
	uint64_t began_ns;

	snprintf(session_address, sizeof(session_address), "%s", plx_listener_address(elsewhere));
	worker_start();
	session_connect("", PLX_NEVER, 0);
	assert_true(pump_until(&connecting.opened, 1, 3000));
	worker_stop();
	connecting.settles_later = true;
	began_ns = plx_now_ns();
	plx_connector_close(session);
	pump_ms(200); /* of CPU time: less than 5 s on a busy host */
	session_link_settled(&session->base);
	assert_true(pump_until(&connecting.closed, 1, 5600));
	assert_true(plx_now_ns() - began_ns >= PLX_CLOSE_NS);
	assert_int_equal(connecting.reason, PLX_LINK_TIMEOUT);
	assert_has(connecting.why, ": it did not take all within 5 s");
	plx_listener_close(elsewhere);
}

TEST_MET(a_renewed_connector_closes_and_reconnects)
{
	plx_connector_renew(session);
	assert_true(pump_until(&connecting.closed, 1, 3000));
	assert_int_equal(connecting.reason, PLX_LINK_CLOSED);
	assert_true(pump_until(&connecting.opened, 2, 3000));
}

TEST_MET(a_failed_connector_reports_the_reason)
{
	plx_connector_fail(session, PLX_LINK_PROTOCOL, "it barks");
	plx_connector_fail(session, PLX_LINK_LOCAL, "and bites");
	assert_int_equal(connecting.closed, 0);
	assert_true(pump_until(&connecting.closed, 1, 3000));
	assert_int_equal(connecting.reason, PLX_LINK_PROTOCOL);
	assert_has(connecting.why, ": it barks");
	assert_true(pump_until(&connecting.opened, 2, 3000));
}

TEST_MET(a_released_connector_settles_and_closes_without_its_owner)
{
	connecting.settles_later = true;
	plx_connector_release(session);
	assert_ptr_equal(session_closing(), session->address);
	assert_int_equal(plx_link_send(session->link, "last", 4), 0);
	session_link_settled(&session->base);
	assert_true(pump_until(&connecting.freed, 1, 3000));
	connector.events = NULL;
	assert_int_equal(connecting.closed, 0);
	assert_int_equal(accepting.messages, 1);
	assert_null(session_closing());
}

TEST(a_connector_released_during_its_back_off_is_freed_at_once)
{
	session_connect_in_vain(PLX_NS_PER_S, 2 * PLX_NS_PER_S, 1);
	plx_connector_release(session);
	assert_int_equal(connecting.freed, 1);
	connector.events = NULL;
}

/* Its memory may be freed at once. */
TEST_MET(the_link_of_an_ended_connector_closes_on_its_own)
{
	plx_connector_fini(session);
	memset(&connector, 0xff, sizeof(connector));
	connector.events = NULL;
	assert_true(pump_until(&accepting.closed, 1, 3000));
	assert_int_equal(accepting.reason, PLX_LINK_CLOSED);
	assert_int_equal(connecting.closed + connecting.ended + connecting.freed, 0);
}

/* By name instead of number. An earlier look-up stays valid for a second. */
static void connect_by_name(const char *name)
{
	char address[64];

	session_listen("", NULL);
	session_connect("", PLX_NS_PER_MS, 5 * PLX_NS_PER_MS);
	assert_true(pump_until(&connecting.opened, 1, 5000));
	plx_connector_close(session);
	assert_true(pump_until(&connecting.closed, 1, 5000));
	snprintf(address, sizeof(address), "%s%s", name,
		 strrchr(plx_listener_address(session_listener), ':'));
	assert_int_equal(plx_connector_open(session, address), 0);
	assert_int_equal(session->state, PLX_CONNECTOR_LOOKING_UP);
	assert_null(session->base.link);
}

TEST(a_connector_waits_for_the_look_up_of_a_name)
{
	connect_by_name("localhost");
	assert_true(pump_until(&connecting.opened, 2, 30000));
}

TEST(a_connector_closed_during_a_look_up_reports_from_the_loop)
{
	connect_by_name("Localhost");
	plx_connector_close(session);
	assert_int_equal(connecting.closed, 1);
	assert_true(pump_until(&connecting.closed, 2, 5000));
	assert_int_equal(session->state, PLX_CONNECTOR_IDLE);
	pump_ms(10);
	assert_int_equal(connecting.opened, 1);
}

TEST(a_connector_released_during_a_look_up_is_freed_at_once)
{
	connect_by_name("LOCALHOST");
	plx_connector_release(session);
	assert_int_equal(connecting.freed, 1);
	connector.events = NULL;
	pump_ms(10);
}

PLX_TEST(bad_attributes_are_refused)
{
	struct plx_connector_attr attr = {.reconnect_min_ns = 2, .reconnect_max_ns = 1};
	char name[65];

	assert_fails(plx_connector_check_attr(&attr), -EINVAL,
		     "reconnect_min_ns 2 is more than reconnect_max_ns 1");
	memset(name, 'x', sizeof(name));
	name[64] = '\0';
	attr = (struct plx_connector_attr){.link.provider = name};
	assert_fails(plx_connector_check_attr(&attr), -EINVAL, "unknown provider");
	attr = (struct plx_connector_attr){.reconnect_min_ns = 3 * PLX_NS_PER_S};
	assert_int_equal(plx_connector_check_attr(&attr), 0);
	assert_int_equal(attr.reconnect_max_ns, 3 * PLX_NS_PER_S);
}

PLX_TEST_MAIN()
