/* SPDX-License-Identifier: BSD-3-Clause */
#include "params.h"

#include "netio.h"
#include "plx_eal.h"
#include "wire.h"

#include <inttypes.h>

#define DRAIN_NS   (5 * PLX_NS_PER_S)
#define LAST_NS    (2 * PLX_NS_PER_S)
#define PUBLISH_NS (100 * PLX_NS_PER_US) /* a partly filled page is sent then */

static struct store *store;
static struct journal *journal;
static struct plx_rpc_service *service;

/* Publishing: a NetIO publish socket whose tags are parameter ids ----------------------------- */

static struct netio_context context;
static struct netio_publish_socket publisher;

static int publish_start(const char *address, unsigned port)
{
	const struct netio_publish_attr attr = {
		.policy = NETIO_POLICY_CONFLATE,
		.timeout_ns = PUBLISH_NS,
	};
	char host[PLX_ADDRESS_MAX];
	unsigned of_address;
	int rc = plx_address_split("--listen", address, host, &of_address);

	rc = rc ? rc : netio_init(&context);
	rc = rc ? rc : netio_publish_socket_init(&context.evloop, &publisher, &attr);
	return rc ? rc : netio_publish_listen(&publisher, host, port);
}

void publish_change(const struct param *param)
{
	uint8_t record[WIRE_RECORD_MAX];

	/* Delivery is between the subscribers and the socket; subscribers get gap reports. */
	netio_buffered_publish(&publisher, param->id, record, record_write(param, record), 0, NULL);
}

unsigned publish_port(void)
{
	return netio_publish_socket_port(&publisher);
}

/* The service --------------------------------------------------------------------------------- */

/* The disk's thread must not use the lcore's CPU if there is another one. */
static int open_journal(const char *path)
{
	const struct plx_cpuset *allowed = plx_topo_allowed(plx_eal_topo());
	unsigned own = plx_lcore_cpu(plx_lcore_id());
	cpu_set_t others;

	CPU_ZERO(&others);
	PLX_CPUSET_FOREACH (cpu, allowed)
		if (cpu != own && cpu < CPU_SETSIZE)
			CPU_SET(cpu, &others);
	return journal_open(path, CPU_COUNT(&others) ? &others : NULL, store, methods_answer,
			    &journal);
}

static int start_service(const struct params_conf *conf)
{
	struct plx_rpc_service_attr attr = {.request_max = 4096};
	int rc = plx_rpc_service_create(&attr, &service);

	rc = rc ? rc : methods_add(service, store, journal);
	return rc ? rc : plx_rpc_service_listen(service, conf->listen, NULL);
}

static void destroy_all(void)
{
	if (context.evloop.ready) {
		netio_publish_socket_fini(&publisher);
		netio_fini(&context);
	}
	plx_rpc_service_destroy(service);
	store_destroy(store);
	journal = NULL;
	service = NULL;
	store = NULL;
}

int serve_begin(const struct params_conf *conf)
{
	struct journal_stats stats;
	int rc = store_create(&store);

	rc = rc ? rc : open_journal(conf->serve);
	rc = rc ? rc : publish_start(conf->listen, (unsigned)conf->publish_port);
	rc = rc ? rc : start_service(conf);
	if (rc) {
		journal_close(journal, &stats);
		destroy_all();
	}
	return rc;
}

const char *serve_address(void)
{
	return plx_rpc_service_address(service, 0);
}

static const char *s(uint64_t count)
{
	return count == 1 ? "" : "s";
}

static void say_end(const struct journal_stats *stats)
{
	plx_app_say("%" PRIu64 " change%s %s written in %" PRIu64 " commit%s", stats->changes,
		    s(stats->changes), stats->changes == 1 ? "was" : "were", stats->commits,
		    s(stats->commits));
	if (stats->lost)
		plx_app_say("%" PRIu64 " change%s lost", stats->lost,
			    stats->lost == 1 ? " is" : "s are");
}

/* Durable changes are still answered, and late answers are also sent. */
int serve_end(const struct params_conf *conf)
{
	struct journal_stats stats;
	bool is_late = plx_rpc_service_finish(service, DRAIN_NS) != 0;

	journal_close(journal, &stats);
	if (is_late)
		plx_rpc_service_finish(service, LAST_NS);
	destroy_all();
	say_end(&stats);
	if (stats.lost)
		return plx_fail(EIO, "%s: %" PRIu64 " change%s not in it", conf->serve, stats.lost,
				stats.lost == 1 ? " is" : "s are");
	if (stats.is_moved)
		return plx_fail(ESTALE,
				"%s: it, or its -wal, was moved, removed or replaced while this "
				"process had it",
				conf->serve);
	return 0;
}

int serve(const struct params_conf *conf)
{
	int rc = serve_begin(conf);

	if (rc)
		return rc;
	plx_app_say("%" PRIu32 " parameter%s in %s", store_count(store), s(store_count(store)),
		    conf->serve);
	plx_app_say("listening on %s", serve_address());
	plx_loop_run();
	return serve_end(conf);
}
