/* SPDX-License-Identifier: BSD-3-Clause */
#include "misuse.h"
#include "rpc_fixture.h"

static void set_up(void)
{
	rpc_start("tcp", NULL, NULL);
}

MISUSE(plx_rpc_call, caller, &(struct plx_rpc_call){.method = ECHO}, "x", 1, NULL)
MISUSE(plx_rpc_cancel, caller, 1)
MISUSE(plx_rpc_client_is_up, caller)
MISUSE(plx_rpc_client_destroy, caller)
MISUSE(plx_rpc_service_drain, service)
MISUSE(plx_rpc_service_destroy, service)

PLX_TEST(clients_and_services_are_used_on_their_lcore)
{
	static const struct misuse misuses[] = {
		MISUSE_ROW(plx_rpc_call),          MISUSE_ROW(plx_rpc_cancel),
		MISUSE_ROW(plx_rpc_client_is_up),  MISUSE_ROW(plx_rpc_client_destroy),
		MISUSE_ROW(plx_rpc_service_drain), MISUSE_ROW(plx_rpc_service_destroy),
	};

	assert_misuses(set_up, misuses, PLX_ARRAY_LEN(misuses));
}

PLX_TEST_MAIN()
