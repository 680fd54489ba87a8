/* SPDX-License-Identifier: BSD-3-Clause */
/* A client of a service: it sets the limit of the thermometer, then reads the temperature.
 * Run it:  service_client --connect 127.0.0.1:7000 --limit 42
 *          with service in another terminal */
#include <plx_app.h>
#include <plx_lcore.h>
#include <plx_rpc.h>
#include <stdio.h>
#include <string.h>

static const char *address;
static uint64_t limit = 60;
static const struct plx_option options[] = {
	PLX_ADDRESS("connect", &address, "host:port of the service", .required = true),
	PLX_UINT("limit", "N", &limit, 0, 1000, "degrees, 0 to 100 (default 60)"),
	PLX_OPTIONS_END,
};
static const struct plx_app app = {
	.name = "service_client",
	.summary = "Set the limit of the thermometer, then read the temperature.",
	.options = options};

enum { READ = 1, SET_LIMIT = 2 }; /* the same numbers in service.c */

struct reader {
	struct plx_rpc_client *client;
	bool is_done;
};

/* With PLX_RPC_ERROR the reply is the service's text; without a reply the client may know why. */
static void fail(struct reader *reader, const char *what, const struct plx_rpc_result *result)
{
	const char *trouble = plx_rpc_client_trouble(reader->client);

	fprintf(stderr, "service_client: %s: %s: %.*s\n", what, plx_rpc_status_name(result->status),
		(int)(result->length ? result->length : strlen(trouble)),
		result->length ? (const char *)result->data : trouble);
	plx_loop_quit();
}

static void on_read(const struct plx_rpc_result *result, void *arg)
{
	struct reader *reader = arg;
	double degrees;

	if (result->status != PLX_RPC_OK || result->length != sizeof(degrees)) {
		fail(reader, "read", result);
		return;
	}
	memcpy(&degrees, result->data, sizeof(degrees));
	plx_app_say("%.1f degrees", degrees);
	reader->is_done = true;
	plx_loop_quit();
}

static void on_limit_set(const struct plx_rpc_result *result, void *arg)
{
	/* Reading twice does no harm, so send it again if the link ends before the reply. */
	const struct plx_rpc_call read = {
		.method = READ, .retry = true, .done = on_read, .arg = arg};
	struct reader *reader = arg;

	if (result->status != PLX_RPC_OK) {
		fail(reader, "set_limit", result);
	} else if (plx_rpc_call_start(reader->client, &read, NULL, 0, NULL) != 0) {
		plx_app_fail(&app);
		plx_loop_quit();
	}
}

/* A call returns at once. Its `done` runs once, from the loop, by the deadline at the latest. */
static int start(struct reader *reader)
{
	const struct plx_rpc_client_attr attr = {.deadline_ns = 5 * PLX_NS_PER_S};
	const char *const addresses[] = {address, NULL};
	const struct plx_rpc_call set_limit = {
		.method = SET_LIMIT,
		.done = on_limit_set,
		.arg = reader,
	};
	const double to = (double)limit;
	int rc = plx_rpc_client_create(addresses, &attr, &reader->client);

	return rc ? rc : plx_rpc_call_start(reader->client, &set_limit, &to, sizeof(to), NULL);
}

int main(int argc, char **argv)
{
	struct reader reader = {0};
	int status = plx_app_start(argc, argv, &app), rc;

	if (status != PLX_APP_RUN)
		return status;
	rc = start(&reader);
	rc = rc ? rc : plx_loop_run();
	if (rc != 0)
		plx_app_fail(&app);
	plx_rpc_client_destroy(reader.client);
	return plx_app_finish(&app, rc != 0 || !reader.is_done);
}
