/* SPDX-License-Identifier: BSD-3-Clause */
/* The shortest service: its method "echo" replies with the request, and is counted.
 * Run it:  service_echo 127.0.0.1:7000      and in another terminal
 *          plx-call --connect 127.0.0.1:7000 --method echo --data hello */
#include <inttypes.h>
#include <plx_eal.h>
#include <plx_lcore.h>
#include <plx_rpc.h>
#include <stdio.h>

/* If the reply fails, the library tells the client why, or the client has disconnected. */
static void on_echo(struct plx_rpc_request *request, const void *data, uint32_t length, void *arg)
{
	plx_rpc_reply(request, data, length);
}

static int start(const char *address, struct plx_rpc_service **service_out)
{
	static const struct plx_rpc_method echo = {.id = 1, .name = "echo", .handler = on_echo};
	/* Each request is answered before its handler returns: no limit is needed. */
	const struct plx_rpc_service_attr attr = {.open_max = PLX_NO_LIMIT,
						  .open_total = PLX_NO_LIMIT};
	int rc = plx_rpc_service_create(&attr, service_out);

	rc = rc ? rc : plx_rpc_service_add(*service_out, &echo);
	return rc ? rc : plx_rpc_service_listen(*service_out, address, NULL);
}

static void report(const struct plx_rpc_service *service)
{
	struct plx_rpc_method_stats stats;

	if (plx_rpc_method_stats(service, 0, &stats) == 0 && stats.requests)
		printf("method %s: %" PRIu64 " requests, handler %.0f ns on average\n", stats.name,
		       stats.requests, (double)stats.handler_ns / (double)stats.requests);
}

int main(int argc, char **argv)
{
	struct plx_rpc_service *service = NULL;
	struct plx_eal_conf conf = {0};
	int used = plx_eal_parse(argc, argv, &conf), rc;

	if (used < 0)
		fprintf(stderr, "service_echo: %s\n", plx_error());
	if (used < 0 || argc - used != 2) {
		fprintf(stderr, "usage: service_echo [EAL options] ADDRESS\n");
		plx_eal_conf_fini(&conf);
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	rc = plx_eal_init(&conf);
	plx_stop_on_signals();
	if (rc == 0)
		rc = start(argv[1 + used], &service);
	if (rc == 0) {
		printf("listening on %s\n", plx_rpc_service_address(service, 0));
		plx_loop_run(); /* until SIGINT or SIGTERM */
		rc = plx_rpc_service_finish(service, 500 * PLX_NS_PER_MS);
		report(service);
	}
	if (rc != 0)
		fprintf(stderr, "service_echo: %s\n", plx_error());
	plx_rpc_service_destroy(service);
	if (plx_eal_fini() != 0)
		rc = -1;
	plx_eal_conf_fini(&conf);
	return rc != 0;
}
