/* SPDX-License-Identifier: BSD-3-Clause */
/* A service with three methods: read a thermometer, set its alarm limit, and echo.
 * Run it:  service --listen 127.0.0.1:7000      and service_client in another terminal, or
 *          plx-call --connect 127.0.0.1:7000 --list */
#include <plx_app.h>
#include <plx_lcore.h>
#include <plx_rpc.h>

static const char *address;
static const struct plx_option options[] = {
	PLX_ADDRESS("listen", &address, "host:port to listen on; port 0 takes a free one",
		    .required = true),
	PLX_OPTIONS_END,
};
static const struct plx_app app = {
	.name = "service",
	.summary = "Read a thermometer, set its alarm limit, and echo.",
	.options = options,
};

enum { READ = 1, SET_LIMIT = 2, ECHO = 3 }; /* the same numbers in service_client.c */

struct thermometer {
	double degrees, limit;
};

/* If a reply fails, the library tells the client why, or the client has disconnected. */
static void on_read(struct plx_rpc_request *request, const void *data, uint32_t length, void *arg)
{
	struct thermometer *thermometer = arg;

	plx_rpc_reply(request, &thermometer->degrees, sizeof(thermometer->degrees));
}

/* A request comes from another process: check it before use. */
static void on_set_limit(struct plx_rpc_request *request, const void *data, uint32_t length,
			 void *arg)
{
	struct thermometer *thermometer = arg;
	const double *limit = data; /* aligned to 8 bytes */

	if (length != sizeof(*limit) || !(*limit >= 0 && *limit <= 100)) {
		plx_rpc_reply_error(request, EINVAL, "give 0 to 100", 13);
		return;
	}
	thermometer->limit = *limit;
	plx_app_say("limit %.1f degrees", thermometer->limit);
	plx_rpc_reply(request, NULL, 0);
}

/* To measure what a call takes: plx-call --method echo --size 64 --count 100000 */
static void on_echo(struct plx_rpc_request *request, const void *data, uint32_t length, void *arg)
{
	plx_rpc_reply(request, data, length);
}

static int start(struct thermometer *thermometer, struct plx_rpc_service **service_out)
{
	const struct plx_rpc_method methods[] = {
		{.id = READ, .name = "thermometer.read", .handler = on_read, .arg = thermometer},
		{.id = SET_LIMIT,
		 .name = "thermometer.set_limit",
		 .handler = on_set_limit,
		 .arg = thermometer},
		{.id = ECHO, .name = "echo", .handler = on_echo},
	};
	/* Each handler replies before it returns, so requests that are open need no limit. */
	const struct plx_rpc_service_attr attr = {.open_max = UINT32_MAX, .open_total = UINT32_MAX};
	int rc = plx_rpc_service_create(&attr, service_out);

	for (unsigned i = 0; rc == 0 && i < PLX_ARRAY_LEN(methods); i++)
		rc = plx_rpc_service_add(*service_out, &methods[i]);
	return rc ? rc : plx_rpc_service_listen(*service_out, address, NULL);
}

int main(int argc, char **argv)
{
	struct thermometer thermometer = {.degrees = 21.5, .limit = 60};
	struct plx_rpc_service *service = NULL;
	int status = plx_app_start(argc, argv, &app), rc;

	if (status != PLX_APP_RUN)
		return status;
	rc = start(&thermometer, &service);
	if (rc == 0) {
		plx_app_say("listening on %s", plx_rpc_service_address(service, 0));
		rc = plx_loop_run(); /* until SIGINT or SIGTERM */
	}
	if (rc == 0) /* answer what is open, and send clients elsewhere */
		rc = plx_rpc_service_finish(service, 500 * PLX_NS_PER_MS);
	status = rc ? plx_app_fail(&app) : 0;
	plx_rpc_service_destroy(service);
	return plx_app_finish(&app, status);
}
