/* SPDX-License-Identifier: BSD-3-Clause */
#include "fixture.h"
#include "misuse.h"

static struct plx_listener *listener;

static void set_up(void)
{
	fixture_start("tcp", false);
	listener = fixture_listen(here("0"), NULL);
	fixture_connect(listener, NULL);
}

static void send_copy(void)
{
	plx_link_send(client.link, "x", 1);
}

static void send_buffer(void)
{
	plx_link_send_buf(client.link, plx_buf_alloc(1), NULL, NULL);
}

static void ask_for_buffer(void)
{
	plx_link_buf(client.link, 1);
}

static void ask_for_credit(void)
{
	plx_link_credit(client.link);
}

static void close_link(void)
{
	plx_link_close(client.link);
}

static void abort_link(void)
{
	plx_link_abort(client.link);
}

static void close_listener(void)
{
	plx_listener_close(listener);
}

PLX_TEST(links_and_listeners_are_used_on_their_lcore)
{
	static const struct misuse misuses[] = {
		{send_copy, "plx_link_send"},           {send_buffer, "plx_link_send_buf"},
		{ask_for_buffer, "plx_link_buf"},       {ask_for_credit, "plx_link_credit"},
		{close_link, "plx_link_close"},         {abort_link, "plx_link_abort"},
		{close_listener, "plx_listener_close"},
	};

	assert_misuses(set_up, misuses, PLX_ARRAY_LEN(misuses));
}

PLX_TEST_MAIN()
