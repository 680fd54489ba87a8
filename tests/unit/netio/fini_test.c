/* SPDX-License-Identifier: BSD-3-Clause */
/* netio_fini that fails late loses nothing, and may be called again. */
#include "plx_eal.h"
#include "socket_fixture.h"

static unsigned failures; /* of plx_eal_fini, from now on */

int __real_plx_eal_fini(void);
int __wrap_plx_eal_fini(void);

int __wrap_plx_eal_fini(void)
{
	if (failures == 0)
		return __real_plx_eal_fini();
	failures--;
	return plx_fail(ETIMEDOUT, "lcore 1 has not returned");
}

static int end_twice(void **state)
{
	failures = 0;
	return netio_down(state);
}

PLX_TEST_WITH(netio_fini_may_be_called_again_after_it_has_failed, netio_up, end_twice)
{
	static struct netio_send_socket sender;

	listen_with(NULL);
	assert_works(netio_send_socket_init(&ctx.evloop, &sender, NULL));
	connect_to_listening(&sender);
	TURN_UNTIL(heard.established == 1);
	failures = 2;
	for (unsigned i = 0; i < 2; i++) {
		assert_fails(netio_fini(&ctx), -ETIMEDOUT, "lcore 1 has not returned");
		assert_int_equal(plx_lcore_count(), 1);
		/* Its sockets have ended, and there will be no others. */
		assert_fails(netio_connect(&sender, test_host(), heard.port), -EINVAL,
			     "the socket is not set up");
		netio_send_socket_fini(&sender);
		assert_fails(netio_send_socket_init(&ctx.evloop, &sender, NULL), -ESHUTDOWN,
			     "netio_send_socket_init: netio_fini is ending this loop");
		netio_terminate(&ctx.evloop);
	}
	assert_int_equal(netio_fini(&ctx), 0);
	assert_int_equal(plx_lcore_count(), 0);
	hear_no_more(&heard);

	netio_up_with("");
}

PLX_TEST_MAIN()
