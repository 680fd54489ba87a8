/* SPDX-License-Identifier: BSD-3-Clause */
/* The echo as a service that is called, for plx-call. */
#include "rpc.h"

#include "plx_app.h"
#include "plx_rpc.h"

#include <inttypes.h>

static struct plx_rpc_service *service;

static void on_echo(struct plx_rpc_request *request, const void *data, uint32_t length, void *arg)
{
	plx_rpc_reply(request, data, length);
}

int echo_rpc_listen(const char *address, const struct plx_listen_attr *listen)
{
	static const struct plx_rpc_method echo = {.id = 1, .name = "echo", .handler = on_echo};
	/* Nothing stays open behind its handler, so nobody needs to be held up. */
	struct plx_rpc_service_attr attr = {.open_max = UINT32_MAX, .open_total = UINT32_MAX};
	int rc = plx_rpc_service_create(&attr, &service);

	rc = rc ? rc : plx_rpc_service_add(service, &echo);
	return rc ? rc : plx_rpc_service_listen(service, address, listen);
}

const char *echo_rpc_address(void)
{
	return plx_rpc_service_address(service, 0);
}

void echo_rpc_finish(uint64_t timeout_ns)
{
	plx_rpc_service_finish(service, timeout_ns); /* who does not leave is cut off */
}

void echo_rpc_report(void)
{
	struct plx_rpc_method_stats stats;

	for (uint32_t i = 0; plx_rpc_method_stats(service, i, &stats) == 0; i++) {
		if (stats.requests)
			plx_app_say("method %s: %" PRIu64 " requests, %" PRIu64
				    " replies, handler %.0f ns on average",
				    stats.name, stats.requests, stats.replies,
				    (double)stats.handler_ns / (double)stats.requests);
	}
}

void echo_rpc_end(void)
{
	plx_rpc_service_destroy(service);
	service = NULL;
}
