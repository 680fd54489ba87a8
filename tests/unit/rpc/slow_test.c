/* SPDX-License-Identifier: BSD-3-Clause */
/* Handlers that run for longer than slow_ns. */
#include "cpu_time.h"
#include "log_capture.h"
#include "rpc_fixture.h"

static void call_slow(bool is_away)
{
	log_capture();
	cpu_set_away(is_away);
	call_expecting(PLX_RPC_OK, SLOW, NULL, 0, &outcome);
	plx_log_set_sink(NULL, NULL);
}

TEST(a_slow_handler_is_named)
{
	call_slow(false);
	assert_int_equal(log_count("rpc:1: method 5 'slow': its handler ran "), 1);
	assert_int_equal(log_count("without its CPU"), 0);
}

TEST(a_handler_whose_cpu_was_away_is_not_blamed)
{
	call_slow(true);
	assert_int_equal(log_count("its handler ran"), 0);
	assert_int_equal(log_count("rpc:2: method 5 'slow': its handler took "), 1);
	assert_int_equal(log_count("but its thread was without its CPU for up to "), 1);
}

PLX_TEST_MAIN()
