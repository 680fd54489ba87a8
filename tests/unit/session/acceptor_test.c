/* SPDX-License-Identifier: BSD-3-Clause */
/* The accepting side: its links, and their end. */
#include "session_fixture.h"

TEST_MET(released_it_closes_all_and_is_freed_with_the_last)
{
	session_listen_no_more();
	assert_true(plx_session_any_closing());
	assert_int_equal(accepting.failed, 1); /* nothing more is delivered */
	assert_true(pump_until(&connecting.closed, 1, 3000));
	assert_int_equal(connecting.reason, PLX_LINK_CLOSED);
	assert_true(pump_until(&accepting.freed, 1, 3000));
	assert_int_equal(accepting.closed, 0);
	assert_null(acceptor);
	assert_false(plx_session_any_closing());
}

TEST(released_without_links_it_is_freed_at_once)
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
	plx_acceptor_init(&nobody, was->owner, plx_acceptor_new_number(), plx_lcore_id());
	plx_listener_close(session_listener);
	assert_works(plx_acceptor_listen(&nobody, here("0"), &attr, &session_listener));
	plx_acceptor_fini(&nobody);
	client_connect(plx_listener_address(session_listener), NULL);
	expect_end(&client, PLX_LINK_HELLO);
	assert_has(client.text, " refused the link: the port is being closed");
}

TEST_MET(ended_from_here_it_is_told_once)
{
	plx_accepted_fail(accepted, "it barks");
	plx_accepted_fail(accepted, "and bites");
	assert_int_equal(accepting.failed, 1);
	assert_string_equal(accepted->failure, "it barks");
	assert_true(pump_until(&accepting.closed, 1, 3000));
	assert_int_equal(accepting.reason, PLX_LINK_ABORTED);
	assert_int_equal(accepting.freed, 1);
}

TEST_MET(it_closes_once_all_has_settled)
{
	accepting.settles_later = true;
	plx_accepted_close(accepted);
	plx_accepted_close(accepted); /* the same */
	assert_int_equal(accepting.settles, 1);
	assert_int_equal(plx_link_send(accepted->link, "last", 4), 0);
	pump_ms(20);
	assert_int_equal(accepting.closed, 0);
	plx_accepted_progressed(accepted);
	plx_accepted_settled(accepted);
	assert_true(pump_until(&accepting.closed, 1, 3000));
	assert_int_equal(accepting.reason, PLX_LINK_CLOSED);
	assert_int_equal(connecting.messages, 1);
}

TEST_MET(what_does_not_settle_is_not_waited_for_longer_than_2_s)
{
	accepting.settles_later = true;
	plx_accepted_close(accepted);
	assert_true(pump_until(&accepting.closed, 1, 5000));
	assert_int_equal(log_count("took nothing more for 2 s"), 1);
}

TEST_MET(what_is_not_all_is_finished_later)
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

TEST_MET(a_released_one_does_not_wait_for_what_is_not_all)
{
	accepting.holds = true;
	plx_connector_close(&connector.session);
	assert_true(pump_until(&accepting.ended, 1, 3000));
	session_listen_no_more();
	assert_int_equal(accepting.freed, 1);
	assert_null(acceptor);
}

PLX_TEST_MAIN()
