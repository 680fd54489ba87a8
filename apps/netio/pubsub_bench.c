/* SPDX-License-Identifier: BSD-3-Clause */
/* netio-pubsub-bench: what it costs a publisher that N subscribers want the same. One process
 * publishes, another one is all subscribers.
 *
 * Try it:  netio-pubsub-bench --listen 127.0.0.1:12345 --subscribers 4
 *          netio-pubsub-bench --connect 127.0.0.1:12345 --subscribers 4 */
#include "pubsub.h"

struct pubsub_conf pubsub_conf = {
	.size = 64,
	.subscribers = 1,
	.tags = 1,
	.duration_ns = PLX_NS_PER_S,
	.page_bytes = 65536,
	.page_count = NETIO_PUBLISH_PAGE_COUNT_DEFAULT,
};
static bool mode_given, size_given, duration_given, page_given, pages_given;
static bool rate_given, slow_given;

const char *const pubsub_modes[] = {"buffered", "at-once", "unbuffered", NULL};

static const char *const policies[] = {"default",  "block",    "disconnect", "drop-old",
				       "drop-new", "conflate", NULL}; /* enum netio_policy */

static const struct plx_app_option options[] = {
	{.name = "listen",
	 .placeholder = "ADDR",
	 .help = "publish at host:port; port 0 takes a free one",
	 .kind = PLX_APP_STRING,
	 .value = &pubsub_conf.listen},
	{.name = "connect",
	 .placeholder = "ADDR",
	 .help = "subscribe to the netio-pubsub-bench at host:port",
	 .kind = PLX_APP_STRING,
	 .value = &pubsub_conf.connect},
	{.name = "subscribers",
	 .placeholder = "N",
	 .help = "how many: to wait for, or to be (default 1)",
	 .kind = PLX_APP_UINT,
	 .value = &pubsub_conf.subscribers,
	 .min = 1,
	 .max = 1000},
	{.name = "tags",
	 .placeholder = "N",
	 .help = "of the messages, in turn; each is a subscription (default 1)",
	 .kind = PLX_APP_UINT,
	 .value = &pubsub_conf.tags,
	 .min = 1,
	 .max = 1000000},
	{.name = "mode",
	 .placeholder = "MODE",
	 .help = "of publishing: buffered (in pages), at-once (copied, each by itself), unbuffered "
		 "(by reference); default buffered",
	 .kind = PLX_APP_CHOICE,
	 .value = &pubsub_conf.mode,
	 .choices = pubsub_modes,
	 .given = &mode_given},
	{.name = "size",
	 .placeholder = "SIZE",
	 .help = "of a message (default 64)",
	 .kind = PLX_APP_SIZE,
	 .value = &pubsub_conf.size,
	 .min = 8,
	 .max = 16 << 20,
	 .given = &size_given},
	{.name = "rate",
	 .placeholder = "N",
	 .help = "publish so many messages a second (default as fast as it goes)",
	 .kind = PLX_APP_UINT,
	 .value = &pubsub_conf.rate,
	 .min = 1,
	 .max = 1000000000,
	 .given = &rate_given},
	{.name = "slow",
	 .placeholder = "POLICY",
	 .help = "of who subscribes, where it is too slow: block, disconnect, drop-old, drop-new, "
		 "conflate (default block)",
	 .kind = PLX_APP_CHOICE,
	 .value = &pubsub_conf.policy,
	 .choices = policies,
	 .given = &slow_given},
	{.name = "duration",
	 .placeholder = "S",
	 .help = "to publish for (default 1s)",
	 .kind = PLX_APP_DURATION,
	 .value = &pubsub_conf.duration_ns,
	 .min = PLX_NS_PER_MS,
	 .max = 3600 * PLX_NS_PER_S,
	 .given = &duration_given},
	{.name = "page",
	 .placeholder = "SIZE",
	 .help = "buffered: bytes of a page; of who subscribes: of its buffers (default 64K)",
	 .kind = PLX_APP_SIZE,
	 .value = &pubsub_conf.page_bytes,
	 .min = NETIO_PAGE_BYTES_MIN,
	 .max = NETIO_PAGE_BYTES_MAX,
	 .given = &page_given},
	{.name = "pages",
	 .placeholder = "N",
	 .help = "buffered: of each subscriber (default 32)",
	 .kind = PLX_APP_UINT,
	 .value = &pubsub_conf.page_count,
	 .min = 2,
	 .max = NETIO_PAGE_COUNT_MAX,
	 .given = &pages_given},
	{.name = "json",
	 .placeholder = "FILE",
	 .help = "write what was measured there, too",
	 .kind = PLX_APP_STRING,
	 .value = &pubsub_conf.json_path},
	{.name = NULL},
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
		return plx_fail(EINVAL, "--slow: for who subscribes; leave it out with --listen");
	if ((page_given || pages_given) && pubsub_conf.listen &&
	    pubsub_conf.mode == PUBSUB_UNBUFFERED)
		return plx_fail(EINVAL, "--page and --pages are for --mode buffered and at-once; "
					"leave them out with --mode unbuffered");
	return pubsub_conf.listen ? plx_address_check("--listen", pubsub_conf.listen)
				  : plx_address_check("--connect", pubsub_conf.connect);
}

static const struct plx_app app = {
	.name = "netio-pubsub-bench",
	.summary = "Measure what subscribers cost a publisher.",
	.usage = "  netio-pubsub-bench [EAL options] -- --listen ADDR [--subscribers N]\n"
		 "           [--mode MODE] [--size SIZE] [--tags N] [--duration S]\n"
		 "           [--rate N] [--page SIZE] [--pages N] [--json FILE]\n"
		 "  netio-pubsub-bench [EAL options] -- --connect ADDR [--subscribers N]\n"
		 "           [--tags N] [--page SIZE] [--slow POLICY] [--json FILE]",
	.options = options,
	.check = check,
};

int main(int argc, char **argv)
{
	int status = plx_app_start(argc, argv, &app);

	if (status != PLX_APP_RUN)
		return status;
	return plx_app_finish(&app, pubsub_conf.listen ? pubsub_publish() : pubsub_subscribe());
}
