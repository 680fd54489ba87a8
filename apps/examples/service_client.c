/* SPDX-License-Identifier: BSD-3-Clause */
/* A client of a service: it sets the limit of the thermometer, then reads the temperature.
 * Run it:  service_client 127.0.0.1:7000 42      with service in another terminal */
#include <plx_eal.h>
#include <plx_lcore.h>
#include <plx_rpc.h>
#include <stdio.h>
#include <string.h>

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
	printf("%.1f degrees\n", degrees);
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
		fprintf(stderr, "service_client: %s\n", plx_error());
		plx_loop_quit();
	}
}

/* A call returns at once. Its `done` runs once, from the loop, by the deadline at the latest. */
static int start(const char *address, double limit, struct reader *reader)
{
	const struct plx_rpc_client_attr attr = {.deadline_ns = 5 * PLX_NS_PER_S};
	const char *const addresses[] = {address, NULL};
	const struct plx_rpc_call set_limit = {
		.method = SET_LIMIT,
		.done = on_limit_set,
		.arg = reader,
	};
	int rc = plx_rpc_client_create(addresses, &attr, &reader->client);

	return rc ? rc
		  : plx_rpc_call_start(reader->client, &set_limit, &limit, sizeof(limit), NULL);
}

int main(int argc, char **argv)
{
	struct reader reader = {0};
	struct plx_eal_conf conf = {0};
	int used = plx_eal_parse(argc, argv, &conf), rc;
	uint64_t limit;

	if (used < 0)
		fprintf(stderr, "service_client: %s\n", plx_error());
	if (used < 0 || argc - used != 3 ||
	    plx_parse_uint("LIMIT", argv[2 + used], 0, 1000, &limit) != 0) {
		fprintf(stderr, "usage: service_client [EAL options] ADDRESS LIMIT\n");
		plx_eal_conf_fini(&conf);
		return 2;
	}
	rc = plx_eal_init(&conf);
	if (rc == 0)
		rc = start(argv[1 + used], (double)limit, &reader);
	if (rc == 0)
		rc = plx_loop_run();
	if (rc != 0)
		fprintf(stderr, "service_client: %s\n", plx_error());
	plx_rpc_client_destroy(reader.client);
	plx_eal_conf_fini(&conf);
	return plx_eal_fini() != 0 || rc != 0 || !reader.is_done;
}
