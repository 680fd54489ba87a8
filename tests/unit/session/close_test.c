/* SPDX-License-Identifier: BSD-3-Clause */
/* plx_session.h: closing, and what plx_fabric_drain and plx_fabric_fini leave. */
#include "misuse.h"
#include "program.h"

#include <pthread.h>

static void open_one(void)
{
	program_connect(listened, (struct plx_session_attr){SOON});
	expect_opened(1);
}

static void close_it(void)
{
	program.in_call = true;
	plx_session_close(program.session);
	program.in_call = false;
}

static void expect_ended(void)
{
	assert_true(pump_until(&program.ended, 1, 10000));
	pump_ms(20); /* no callback follows: see note */
}

TEST(closing_an_open_session_asks_it_to_settle_and_delivers)
{
	open_one();
	program.settles_later = true;
	close_it();
	close_it(); /* the same */
	plx_session_close(NULL);
	assert_true(pump_until(&program.settles, 1, 5000));
	pump_ms(20);
	assert_int_equal(program.closed, 0);
	assert_int_equal(plx_link_send(plx_session_link(program.session), "late", 4), 0);
	plx_session_settled(program.session);
	assert_null(plx_session_link(program.session));
	expect_ended();
	assert_int_equal(program.settles, 1);
	assert_int_equal(program.closed, 1);
	assert_int_equal(program.reason, PLX_LINK_CLOSED);
	assert_int_equal(server.messages, 1);
	assert_int_equal(server.reason, PLX_LINK_CLOSED);
}

TEST(a_link_that_is_lost_while_it_settles_ends_the_session)
{
	open_one();
	program.settles_later = true;
	close_it();
	assert_true(pump_until(&program.settles, 1, 5000));
	plx_link_abort(server.link);
	expect_ended();
	assert_int_equal(program.reason, PLX_LINK_PEER_DOWN);
}

/* 5 s in all for the program, which settles after a while, and for its peer: an lcore that stands
 * still. */
PLX_TEST_WITH(a_session_takes_at_most_5_s_to_close, program_up_with_worker, program_down)
{
	struct plx_listener *elsewhere = fixture_listen_as(
		here("0"),
		(struct plx_listen_attr){.spread = PLX_SPREAD_CALLBACK, .place = place_on_lcore_1});
	uint64_t began_ns;

	worker_start();
	program_connect(plx_listener_address(elsewhere), (struct plx_session_attr){NEVER});
	expect_opened(1);
	worker_stop();
	program.settles_later = true;
	began_ns = plx_now_ns();
	close_it();
	pump_ms(20);
	if (program.session) /* the host may be very busy */
		plx_session_settled(program.session);
	assert_true(pump_until(&program.closed, 1, 5600));
	assert_true(plx_now_ns() - began_ns >= PLX_CLOSE_NS);
	assert_int_equal(program.reason, PLX_LINK_TIMEOUT);
	assert_has(program.text, ": it did not take all within 5 s");
	plx_listener_close(elsewhere);
}

/* While it connects or looks up a name, or in its back-off. */
TEST(a_session_closed_before_it_opens_only_ends)
{
	static const char *const addresses[] = {listened, "LoCaLhOsT:7", "127.0.0.1:1"};

	for (size_t i = 0; i < PLX_ARRAY_LEN(addresses); i++) {
		memset(&program, 0, sizeof(program));
		program_connect(addresses[i], (struct plx_session_attr){NEVER});
		if (i == 2)
			assert_true(pump_until(&program.refused, 1, 5000));
		close_it();
		expect_ended();
		assert_int_equal(program.opened + program.closed, 0);
		assert_int_equal(program.refused, i == 2);
	}
}

TEST(a_session_may_be_closed_in_each_of_its_callbacks)
{
	static const char *const callbacks[] = {
		"on_refused", "on_hello", "on_open", "on_message",
		"on_settle",  "on_close", "on_end",
	};

	for (size_t i = 0; i < PLX_ARRAY_LEN(callbacks); i++) {
		memset(&program, 0, sizeof(program));
		program.closes_in = callbacks[i];
		program_connect(list_of(here("1"), listened), (struct plx_session_attr){SOON});
		while (!program.ended && !program.messages) {
			if (server.link && program.link)
				plx_link_send(server.link, "x", 1);
			pump_ms(1);
		}
		plx_session_close(program.session);
		expect_ended();
		assert_true(program.has_closed);
		assert_int_equal(program.opened, program.closed);
		expect_soon(!server.link);
		memset(&server, 0, sizeof(server));
	}
}

/* Sessions that the program leaves ------------------------------------------------------------- */

static int drain_inside;

static void drain_on_message(struct side *side, struct plx_buf *message)
{
	drain_inside = plx_session_drain(PLX_NEVER);
}

TEST(a_callback_cannot_drain_sessions)
{
	open_one();
	drain_inside = 0;
	server.on_message = drain_on_message;
	assert_int_equal(plx_link_send(program.link, "x", 1), 0);
	expect_soon(drain_inside == -EBUSY);
	assert_int_equal(program.settles, 0);
}

TEST(a_drain_that_runs_out_of_time_names_a_session)
{
	open_one();
	program.settles_later = true;
	assert_fails(plx_session_drain(20 * PLX_NS_PER_MS), -ETIMEDOUT, listened);
	assert_int_equal(program.settles, 1);
	plx_session_settled(program.session);
}

TEST(plx_fabric_drain_closes_the_link_of_a_session_that_reconnects_after_it)
{
	open_one();
	assert_int_equal(plx_fabric_drain(5 * PLX_NS_PER_S), 0);
	assert_int_equal(program.closed, 1);
	assert_int_equal(program.closed_as, PLX_LINK_CLOSED);
	assert_int_equal(program.settles, 0);
	listen_no_more();
	listen_again();
	expect_opened(2);
}

/* It is open, in its back-off, or looks up a name. */
PLX_TEST(a_session_ends_in_plx_fabric_fini)
{
	static const char *const addresses[] = {listened, "127.0.0.1:1", "lOcAlHoSt:7"};

	for (size_t i = 0; i < PLX_ARRAY_LEN(addresses); i++) {
		program_up(state);
		program_connect(addresses[i], (struct plx_session_attr){NEVER});
		if (i < 2)
			expect_soon(program.opened || program.refused);
		listen_no_more();
		plx_fabric_fini();
		assert_int_equal(program.ended, 1);
		assert_int_equal(program.settles, 0);
		assert_int_equal(program.closed, i == 0);
		fixture_stop();
	}
}

static _Atomic unsigned visits, visits_ended;
static int visit_rc;

PLX_COUNTS(count_end, visits_ended, struct plx_session *session, void *user)

static bool has_link(void *session)
{
	return plx_session_link(session);
}

/* A thread that becomes an lcore, and leaves with an open session. */
static void *visit(void *arg)
{
	static const struct plx_link_events no_events;
	static const struct plx_session_events events = {.on_end = count_end};
	const struct plx_session_attr attr = {.link.events = &no_events, .events = &events};
	struct plx_session *session;

	visit_rc = plx_lcore_adopt() ?: plx_session_connect(listened, &attr, &session);
	visit_rc = visit_rc ?: plx_loop_until(has_link, session, 10 * PLX_NS_PER_S);
	visit_rc = visit_rc ?: plx_lcore_leave();
	visits++;
	return NULL;
}

TEST(a_session_ends_when_the_thread_of_its_lcore_leaves)
{
	pthread_t thread;

	visits = visits_ended = 0;
	assert_int_equal(pthread_create(&thread, NULL, visit, NULL), 0);
	assert_true(pump_until(&visits, 1, 20000));
	pthread_join(thread, NULL);
	assert_int_equal(visit_rc, 0);
	assert_int_equal(visits_ended, 1);
	assert_true(pump_until(&server.closed, 1, 5000));
	assert_int_equal(server.reason, PLX_LINK_CLOSED);
}

/* Other lcores --------------------------------------------------------------------------------- */

static void up_with_session(void)
{
	program_up(NULL);
	open_one();
}

MISUSE(plx_session_link, program.session)
MISUSE(plx_session_address, program.session)
MISUSE(plx_session_close, program.session)
MISUSE(plx_session_settled, program.session)

PLX_TEST(a_session_may_be_used_only_on_its_lcore)
{
	assert_misuses(up_with_session);
}

PLX_TEST_MAIN()
