/* SPDX-License-Identifier: BSD-3-Clause */
/* Parameters from the environment, which a process reads once. */
#include "log_capture.h"
#include "plx_test.h"
#include "tcp.h"

#include <stdlib.h>

PLX_TEST(variables_are_used_or_refused_with_their_name)
{
	assert_int_equal(setenv("FI_PLX_TCP_HANDSHAKES_MAX", "7", 1), 0);
	assert_int_equal(setenv("FI_PLX_TCP_BUSY_POLL_US", "x", 1), 0);
	assert_int_equal(setenv("FI_PLX_TCP_CONNECT_MS", "0", 1), 0);
	log_capture();
	prov_begin(&tcp_kind, false);
	assert_int_equal(log_count("FI_PLX_TCP_BUSY_POLL_US x: "), 1);
	assert_int_equal(log_count("FI_PLX_TCP_CONNECT_MS 0: out of range; give 1 to "), 1);
	assert_int_equal(log_count("; the default is used"), 2);
	assert_int_equal(tcp_params.handshakes_max, 7);
	assert_int_equal(tcp_params.busy_poll_us, 0);
	assert_int_equal(tcp_params.connect_ms, 10000);
}

PLX_TEST_MAIN()
