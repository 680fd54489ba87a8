/* SPDX-License-Identifier: BSD-3-Clause */
#include "serve.h"

#include "app.h"
#include "journal.h"
#include "methods.h"
#include "plx_lcore.h"
#include "publish.h"

#include <errno.h>
#include <inttypes.h>

#define DRAIN_NS (5 * PLX_NS_PER_S)
#define LAST_NS  (2 * PLX_NS_PER_S)

static struct store *store;
static struct journal *journal;
static struct plx_rpc_service *service;

static int start_service(const struct serve_conf *conf)
{
	struct plx_rpc_service_attr attr = {.request_max = 4096};
	int rc = plx_rpc_service_create(&attr, &service);

	rc = rc ? rc : methods_add(service, store, journal);
	return rc ? rc : plx_rpc_service_listen(service, conf->listen, NULL);
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

/* Durable changes are still answered. Late answers from the disk are also sent. */
static void finish(struct journal_stats *stats_out)
{
	bool is_late = plx_rpc_service_finish(service, DRAIN_NS) != 0;

	journal_close(journal, stats_out);
	if (is_late)
		plx_rpc_service_finish(service, LAST_NS);
	say_end(stats_out);
}

int serve(const struct serve_conf *conf)
{
	struct journal_stats stats = {0};
	int rc = store_create(&store);

	rc = rc ? rc : journal_open(conf->path, store, &journal);
	rc = rc ? rc : publish_start(conf->listen, conf->publish_port);
	rc = rc ? rc : journal_start(journal, conf->others);
	rc = rc ? rc : start_service(conf);
	if (rc == 0) {
		plx_app_say("%" PRIu32 " parameter%s in %s", store_count(store),
			    s(store_count(store)), conf->path);
		plx_app_say("listening on %s", plx_rpc_service_address(service, 0));
		plx_loop_run();
		finish(&stats);
	} else {
		journal_close(journal, NULL);
	}
	publish_stop();
	plx_rpc_service_destroy(service);
	store_destroy(store);
	if (stats.lost)
		return plx_fail(EIO, "%s: %" PRIu64 " change%s not in it", conf->path, stats.lost,
				stats.lost == 1 ? " is" : "s are");
	if (stats.is_moved)
		return plx_fail(ESTALE,
				"%s: it, or its -wal, was moved, removed or replaced while this "
				"process had it",
				conf->path);
	return rc;
}
