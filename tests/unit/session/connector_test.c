/* SPDX-License-Identifier: BSD-3-Clause */
/* The connecting side: from its first attempt to its end. */
#include "session_fixture.h"

static struct plx_connector *const session = &connector.session;

TEST_MET(it_opens_once_both_sides_have_judged_the_others_hello)
{
	assert_string_equal(accepting.hello, "question");
	assert_string_equal(connecting.hello, "answer");
	assert_int_equal(session->state, PLX_CONNECTOR_OPEN);
	assert_int_equal(plx_link_send(session->link, "x", 1), 0);
	assert_true(pump_until(&accepting.messages, 1, 3000));
}

TEST(refused_by_the_peer_it_hears_why_and_tries_again)
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

TEST(what_it_refuses_itself_is_tried_again)
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

TEST_MET(it_comes_again_when_the_peer_has_closed)
{
	plx_accepted_close(accepted);
	assert_true(pump_until(&connecting.closed, 1, 3000));
	assert_int_equal(connecting.reason, PLX_LINK_CLOSED);
	assert_int_equal(connecting.ended, 1);
	assert_null(session->link);
	assert_true(pump_until(&connecting.opened, 2, 3000));
	assert_int_equal(connecting.refused, 0);
}

/* No attempt extends the range beyond that. */
TEST(refused_on_this_host_it_comes_again_within_50_ms)
{
	session_connect_in_vain(0, 0, 12);
	assert_int_equal(session->state, PLX_CONNECTOR_WAITING);
	assert_true(session->refused_here);
	assert_in_range(session->backoff.attempts, 1, 3);
}

/* A peer that greets and closes counts like one that refuses. */
TEST(a_peer_that_closes_at_once_is_tried_less_and_less_often)
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

TEST_MET(an_attempt_that_opened_is_logged_anew)
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

TEST(it_is_not_tried_again_if_the_owner_says_so)
{
	session_connect_in_vain(UINT64_MAX, 0, 1);
	assert_int_equal(session->state, PLX_CONNECTOR_IDLE);
	plx_connector_try_later(session);
	assert_int_equal(session->state, PLX_CONNECTOR_IDLE);
	plx_connector_open_again(session);
	assert_true(pump_until(&connecting.refused, 2, 5000));
}

TEST(closed_while_it_waits_it_is_told_from_the_loop)
{
	session_connect_in_vain(PLX_NS_PER_S, 2 * PLX_NS_PER_S, 1);
	plx_connector_close(session);
	assert_int_equal(connecting.closed, 0);
	assert_true(pump_until(&connecting.closed, 1, 500));
	assert_int_equal(connecting.reason, PLX_LINK_ABORTED);
	assert_int_equal(session->state, PLX_CONNECTOR_IDLE);
}

TEST(closed_while_it_connects_it_is_closed_and_not_refused)
{
	session_listen("", NULL);
	session_connect("", 0, 0);
	plx_connector_close(session);
	assert_true(pump_until(&connecting.closed, 1, 3000));
	assert_int_equal(connecting.refused + connecting.opened, 0);
	assert_int_equal(session->state, PLX_CONNECTOR_IDLE);
}

TEST_MET(it_closes_once_all_has_settled)
{
	connecting.settles_later = true;
	plx_connector_close(session);
	assert_int_equal(session->state, PLX_CONNECTOR_SETTLING);
	assert_int_equal(plx_link_send(session->link, "last", 4), 0);
	pump_ms(20);
	assert_int_equal(connecting.closed, 0);
	plx_connector_progressed(session);
	assert_int_equal(plx_session_progress() > 0, true);
	plx_connector_settled(session);
	assert_null(session->link);
	assert_true(pump_until(&connecting.closed, 1, 3000));
	assert_int_equal(connecting.reason, PLX_LINK_CLOSED);
	assert_int_equal(accepting.messages, 1);
}

TEST_MET(what_does_not_settle_is_not_waited_for_longer_than_2_s)
{
	connecting.settles_later = true;
	plx_connector_close(session);
	assert_true(pump_until(&connecting.closed, 1, 5000));
	assert_int_equal(connecting.reason, PLX_LINK_TIMEOUT);
	assert_has(connecting.why, ": it took nothing more for 2 s");
}

TEST_MET(renewed_it_closes_and_comes_again)
{
	plx_connector_renew(session);
	assert_true(pump_until(&connecting.closed, 1, 3000));
	assert_int_equal(connecting.reason, PLX_LINK_CLOSED);
	assert_true(pump_until(&connecting.opened, 2, 3000));
}

TEST_MET(ended_from_here_it_says_why)
{
	plx_connector_fail(session, PLX_LINK_PROTOCOL, "it barks");
	plx_connector_fail(session, PLX_LINK_LOCAL, "and bites");
	assert_int_equal(connecting.closed, 0);
	assert_true(pump_until(&connecting.closed, 1, 3000));
	assert_int_equal(connecting.reason, PLX_LINK_PROTOCOL);
	assert_has(connecting.why, ": it barks");
	assert_true(pump_until(&connecting.opened, 2, 3000));
}

TEST_MET(released_it_settles_and_closes_without_its_owner)
{
	connecting.settles_later = true;
	plx_connector_release(session);
	assert_true(plx_session_any_closing());
	assert_int_equal(plx_link_send(session->link, "last", 4), 0);
	plx_connector_settled(session);
	assert_true(pump_until(&connecting.freed, 1, 3000));
	connector.events = NULL;
	assert_int_equal(connecting.closed, 0);
	assert_int_equal(accepting.messages, 1);
	assert_false(plx_session_any_closing());
}

TEST(released_while_it_waits_it_is_freed_at_once)
{
	session_connect_in_vain(PLX_NS_PER_S, 2 * PLX_NS_PER_S, 1);
	plx_connector_release(session);
	assert_int_equal(connecting.freed, 1);
	connector.events = NULL;
}

/* Its memory may be freed at once. */
TEST_MET(ended_for_good_its_link_closes_without_it)
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
	assert_null(session->current);
}

TEST(a_name_is_looked_up_meanwhile)
{
	connect_by_name("localhost");
	assert_true(pump_until(&connecting.opened, 2, 30000));
}

TEST(closed_while_a_name_is_looked_up_it_is_told_from_the_loop)
{
	connect_by_name("Localhost");
	plx_connector_close(session);
	assert_int_equal(connecting.closed, 1);
	assert_true(pump_until(&connecting.closed, 2, 5000));
	assert_int_equal(session->state, PLX_CONNECTOR_IDLE);
	pump_ms(10);
	assert_int_equal(connecting.opened, 1);
}

TEST(released_while_a_name_is_looked_up_it_is_freed_at_once)
{
	connect_by_name("LOCALHOST");
	plx_connector_release(session);
	assert_int_equal(connecting.freed, 1);
	connector.events = NULL;
	pump_ms(10);
}

PLX_TEST(bad_values_are_refused)
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
