/* SPDX-License-Identifier: BSD-3-Clause */
#include "misuse.h"
#include "rpc_fixture.h"

static void set_up(void)
{
	rpc_start("tcp", NULL, NULL);
}

static void call(void)
{
	plx_rpc_call(caller, &(struct plx_rpc_call){.method = ECHO}, "x", 1, NULL);
}

static void cancel(void)
{
	plx_rpc_cancel(caller, 1);
}

static void ask_whether_up(void)
{
	plx_rpc_client_is_up(caller);
}

static void destroy_client(void)
{
	plx_rpc_client_destroy(caller);
}

static void drain(void)
{
	plx_rpc_service_drain(service);
}

static void end_service(void)
{
	plx_rpc_service_destroy(service);
}

PLX_TEST(clients_and_services_are_used_on_their_lcore)
{
	static const struct misuse misuses[] = {
		{call, "plx_rpc_call"},
		{cancel, "plx_rpc_cancel"},
		{ask_whether_up, "plx_rpc_client_is_up"},
		{destroy_client, "plx_rpc_client_destroy"},
		{drain, "plx_rpc_service_drain"},
		{end_service, "plx_rpc_service_destroy"},
	};

	assert_misuses(set_up, misuses, PLX_ARRAY_LEN(misuses));
}

PLX_TEST_MAIN()
