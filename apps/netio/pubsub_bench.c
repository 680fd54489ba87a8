/* SPDX-License-Identifier: BSD-3-Clause */
/* netio-pubsub-bench: a publisher's cost for N subscribers to the same messages. One process
 * publishes, another is all subscribers.
 *
 * Try it:  netio-pubsub-bench --listen 127.0.0.1:12345 --subscribers 4
 *          netio-pubsub-bench --connect 127.0.0.1:12345 --subscribers 4 */
#include "pubsub.h"

#include <inttypes.h>

struct pubsub_conf pubsub_conf = {
	.size = 64,
	.subscribers = 1,
	.tags = 1,
	.run = {.duration_ns = PLX_NS_PER_S},
	.page_bytes = 65536,
	.page_count = NETIO_PUBLISH_PAGE_COUNT_DEFAULT,
};
static bool mode_given, size_given, duration_given, page_given, pages_given;
static bool rate_given, slow_given;

static const char *const modes[] = {"buffered", "at-once", "unbuffered", NULL};

static const char *const policies[] = NETIO_POLICY_NAMES;

static const struct plx_option options[] = {
	PLX_ADDRESS("listen", &pubsub_conf.listen, "publish at host:port; port 0 takes a free one"),
	PLX_ADDRESS("connect", &pubsub_conf.connect,
		    "subscribe to the netio-pubsub-bench at host:port"),
	PLX_UINT("subscribers", "N", &pubsub_conf.subscribers, 1, 1000,
		 "number of subscribers, the same on both sides (default 1)"),
	PLX_UINT("tags", "N", &pubsub_conf.tags, 1, 1000000,
		 "tags used in turn, a subscription each (default 1)"),
	PLX_CHOICE("mode", "MODE", &pubsub_conf.mode, modes,
		   "buffered (in pages), at-once (copied, one per frame), unbuffered (by "
		   "reference); default buffered",
		   .given = &mode_given),
	PLX_SIZE("size", "SIZE", &pubsub_conf.size, 8, 16 << 20, "bytes per message (default 64)",
		 .given = &size_given),
	PLX_UINT("rate", "R", &pubsub_conf.run.rate, 1, 1000000000,
		 "publish R messages per second (default: unlimited)", .given = &rate_given),
	PLX_CHOICE("slow", "POLICY", &pubsub_conf.policy, policies,
		   "policy of slow subscribers: block, disconnect, drop-old, drop-new, conflate "
		   "(default block)",
		   .given = &slow_given),
	PLX_TIME("duration", "TIME", &pubsub_conf.run.duration_ns, PLX_NS_PER_MS,
		 3600 * PLX_NS_PER_S, "publish for that long (default 1s)",
		 .given = &duration_given),
	PLX_SIZE("page", "SIZE", &pubsub_conf.page_bytes, NETIO_PAGE_BYTES_MIN,
		 NETIO_PAGE_BYTES_MAX,
		 "buffered: bytes per page; subscribers: per receive buffer (default 64K)",
		 .given = &page_given),
	PLX_UINT("pages", "N", &pubsub_conf.page_count, 2, NETIO_PAGE_COUNT_MAX,
		 "buffered: pages per subscriber (default 32)", .given = &pages_given),
	PLX_TEXT("json", "FILE", &pubsub_conf.json_path, "also write the result to FILE"),
	PLX_OPTIONS_END,
};

static int check(void)
{
	if (!pubsub_conf.listen == !pubsub_conf.connect)
		return plx_fail(EINVAL,
				"give --listen ADDR, to publish, or --connect ADDR, to subscribe");
	if (pubsub_conf.connect &&
	    (mode_given || size_given || duration_given || pages_given || rate_given))
		return plx_fail(EINVAL, "--mode, --size, --duration, --rate and --pages are for "
					"who publishes; leave them out with --connect");
	if (slow_given && pubsub_conf.listen)
		return plx_fail(EINVAL, "--slow: for subscribers; omit it with --listen");
	if ((page_given || pages_given) && pubsub_conf.listen &&
	    pubsub_conf.mode == PUBSUB_UNBUFFERED)
		return plx_fail(EINVAL, "--page and --pages are for --mode buffered and at-once; "
					"leave them out with --mode unbuffered");
	return plx_app_check_file("--json", pubsub_conf.json_path);
}

static const struct plx_app app = {
	.name = "netio-pubsub-bench",
	.summary = "Measure what subscribers cost a publisher.",
	.usage = "  netio-pubsub-bench [EAL options] -- --listen ADDR [--subscribers N]\n"
		 "           [--mode MODE] [--size SIZE] [--tags N] [--duration TIME]\n"
		 "           [--rate R] [--page SIZE] [--pages N] [--json FILE]\n"
		 "  netio-pubsub-bench [EAL options] -- --connect ADDR [--subscribers N]\n"
		 "           [--tags N] [--page SIZE] [--slow POLICY] [--json FILE]",
	.examples = "  netio-pubsub-bench --listen 127.0.0.1:12345 --subscribers 4\n"
		    "  netio-pubsub-bench --connect 127.0.0.1:12345 --subscribers 4",
	.more = "man netio-pubsub-bench, or doc/apps/netio-pubsub-bench.md",
	.options = options,
	.check = check,
};

int pubsub_write(json_t *object)
{
	int rc = pubsub_conf.json_path ? plx_app_write_json(pubsub_conf.json_path, object) : 0;

	json_decref(object);
	if (rc)
		fprintf(stderr, "netio-pubsub-bench: %s\n", plx_error());
	return rc;
}

int pubsub_report(uint64_t messages, uint64_t copies, double seconds, double cycles)
{
	double copies_per_s = (double)copies / seconds;
	double gbit_per_s = copies_per_s * (double)pubsub_conf.size * 8 / 1e9;
	double cycles_per_copy = cycles / (double)copies;
	uint64_t rate = pubsub_conf.run.rate;

	plx_app_say("%4" PRIu64 " subscribers %8" PRIu64 " B %10.3f Mcopies/s %8.2f Gbit/s %8.0f "
		    "cycles/copy",
		    pubsub_conf.subscribers, pubsub_conf.size, copies_per_s / 1e6, gbit_per_s,
		    cycles_per_copy);
	return pubsub_write(json_pack(
		"{s:s, s:I, s:I, s:I, s:I, s:f, s:o, s:f, s:f, s:f}", "mode",
		modes[pubsub_conf.mode], "size_bytes", (json_int_t)pubsub_conf.size, "subscribers",
		(json_int_t)pubsub_conf.subscribers, "messages", (json_int_t)messages, "copies",
		(json_int_t)copies, "messages_per_s", (double)messages / seconds, "rate_asked",
		rate ? json_integer((json_int_t)rate) : json_null(), "mmsg_per_s",
		copies_per_s / 1e6, "gbit_per_s", gbit_per_s, "cycles_per_copy", cycles_per_copy));
}

int main(int argc, char **argv)
{
	int status = plx_app_start(argc, argv, &app);

	if (status != PLX_APP_RUN)
		return status;
	return plx_app_finish(&app, pubsub_conf.listen ? pubsub_publish() : pubsub_subscribe());
}
