/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line of netio-cat. */
#include "cat.h"

#include <string.h>

#define IN(mode) (1u << CAT_##mode)
#define SENDS    (IN(PUBLISH) | IN(SEND) | IN(PUSH))
#define RECEIVES (IN(SUBSCRIBE) | IN(RECV))

static const char *const encodings[] = {"text", "hex", "raw", NULL};
static const char *const policies[] = NETIO_POLICY_NAMES;
const char *const cat_mode_names[] = {"publish", "subscribe", "send", "push", "recv", NULL};

struct cat_conf cat_conf = {.block_bytes = 65536, .subscribers = 1};

static struct plx_app_list tags, connect_to;
static const char *listen_at; /* NULL: not given */
static bool block_given, slow_given;

static const struct plx_option options[] = {
	PLX_ADDRESS("listen", &listen_at,
		    "publish, recv: listen on host:port; *:port is every address, port 0 a free "
		    "one, printed",
		    .modes = IN(PUBLISH) | IN(RECV)),
	PLX_LIST("connect", "ADDR", &connect_to,
		 "send: connect to host:port; subscribe: to a publisher, push: to a receiver, may "
		 "be repeated",
		 .modes = IN(SUBSCRIBE) | IN(SEND) | IN(PUSH)),
	PLX_LIST(
		"tag", "TAG", &tags,
		"publish, send, push: tag of all messages (default 0); subscribe: TAG, FIRST-LAST, "
		"BITS/MASK or all, may be repeated",
		.letter = 't', .modes = SENDS | IN(SUBSCRIBE)),
	PLX_CHOICE("encoding", "text|hex|raw", &cat_conf.encoding, encodings,
		   "text: a message is a line; hex: a line of pairs of digits; raw: bytes (default "
		   "text)",
		   .letter = 'e'),
	PLX_SIZE("block", "SIZE", &cat_conf.block_bytes, 1, CAT_MESSAGE_MAX,
		 "publish, send, push with -e raw: longest message (default 64K)",
		 .given = &block_given, .modes = SENDS),
	PLX_FLAG("unbuffered", &cat_conf.unbuffered,
		 "publish, send: one message per frame, no pages", .modes = IN(PUBLISH) | IN(SEND)),
	PLX_UINT("rate", "R", &cat_conf.rate, 1, 1000000,
		 "publish, send, push: most messages per second", .modes = SENDS),
	PLX_FLAG("at-most-once", &cat_conf.at_most_once,
		 "push: do not resend what a lost receiver had not finished", .modes = IN(PUSH)),
	PLX_UINT("count", "N", &cat_conf.count, 1, 0, "stop after N messages"),
	PLX_UINT("subscribers", "N", &cat_conf.subscribers, 0, 1000000,
		 "publish: start when N have subscribed (default 1)", .modes = IN(PUBLISH)),
	PLX_FLAG("at-once", &cat_conf.at_once,
		 "subscribe: one message per frame, even from a publisher that uses pages",
		 .modes = IN(SUBSCRIBE)),
	PLX_CHOICE("slow", "POLICY", &cat_conf.policy, policies,
		   "policy for slow subscribers: block, disconnect, drop-old, drop-new, conflate "
		   "(keep the newest of each tag). subscribe: for these subscriptions (default "
		   "drop-old; default: the publisher's); publish: for those that choose none "
		   "(default block)",
		   .given = &slow_given, .modes = IN(PUBLISH) | IN(SUBSCRIBE)),
	PLX_SIZE("backlog", "SIZE", &cat_conf.backlog_bytes, 1, 1 << 30,
		 "publish, subscribe: bytes that may wait before the policy applies (default: the "
		 "publisher's pages, 2M)",
		 .modes = IN(PUBLISH) | IN(SUBSCRIBE)),
	PLX_FLAG("show-tag", &cat_conf.show_tag,
		 "subscribe, recv: print the tag before each message", .modes = RECEIVES),
	PLX_FLAG("show-publisher", &cat_conf.show_publisher,
		 "subscribe: print the publisher before each message, also if there is only one",
		 .modes = IN(SUBSCRIBE)),
	PLX_FLAG("show-time", &cat_conf.show_time,
		 "subscribe, recv: print when each message was received: seconds since 1970, UTC",
		 .modes = RECEIVES),
	PLX_FLAG(
		"stats", &cat_conf.stats,
		"subscribe, recv: print messages/s, bytes/s and gaps each second on standard error",
		.modes = RECEIVES),
	PLX_OPTIONS_END,
};

/* Checks -------------------------------------------------------------------------------------- */

static bool listens(void)
{
	return cat_conf.mode == CAT_PUBLISH || cat_conf.mode == CAT_RECV;
}

static int add_address(const char *text)
{
	const char *option = listens() ? "--listen" : "--connect";
	struct cat_address *address = &cat_conf.addresses[cat_conf.address_count];

	if (plx_address_split(option, text, address->host, &address->port) != 0)
		return -EINVAL;
	if (!listens() && strcmp(address->host, "*") == 0)
		return plx_fail(EINVAL, "--connect %s: give a host, such as 192.0.2.1:7000", text);
	if (!listens() && address->port == 0)
		return plx_fail(EINVAL, "--connect %s: port 0; give 1 to 65535", text);
	for (unsigned i = 0; i < cat_conf.address_count; i++)
		if (address->port == cat_conf.addresses[i].port &&
		    strcmp(address->host, cat_conf.addresses[i].host) == 0)
			return plx_fail(EINVAL, "%s %s: given twice; give it once", option, text);
	cat_conf.address_count++;
	return 0;
}

static int take_addresses(const struct plx_app_list *texts)
{
	for (unsigned i = 0; i < texts->count; i++)
		if (add_address(texts->at[i]) != 0)
			return -EINVAL;
	if (cat_conf.address_count == 0)
		return plx_fail(EINVAL, "%s ADDR is missing, such as 192.0.2.1:7000",
				listens() ? "--listen" : "--connect");
	if (cat_conf.address_count > 1 && cat_conf.mode != CAT_PUSH &&
	    cat_conf.mode != CAT_SUBSCRIBE)
		return plx_fail(EINVAL, "%s takes one address; give it once",
				cat_mode_names[cat_conf.mode]);
	return 0;
}

/* With -e raw nothing stands between messages. */
static int check_raw(void)
{
	const char *shown = cat_conf.show_tag       ? "--show-tag"
			  : cat_conf.show_publisher ? "--show-publisher"
			  : cat_conf.show_time      ? "--show-time"
						    : NULL;

	if (cat_conf.encoding != CAT_RAW)
		return 0;
	if (shown)
		return plx_fail(EINVAL,
				"%s: not with -e raw, which puts nothing between messages; "
				"give -e text or -e hex",
				shown);
	if (cat_conf.mode == CAT_SUBSCRIBE && cat_conf.address_count > 1)
		return plx_fail(EINVAL, "-e raw: does not show which publisher a message is of; "
					"give one --connect, or -e text or -e hex");
	return 0;
}

static int check(void)
{
	int rc;

	if (block_given && cat_conf.encoding != CAT_RAW)
		return plx_fail(EINVAL, "--block: for -e raw; with -e %s a message is a line",
				encodings[cat_conf.encoding]);
	/* Its reader may be a person with a pager, who must not stop a publisher. */
	if (cat_conf.mode == CAT_SUBSCRIBE && !slow_given)
		cat_conf.policy = NETIO_POLICY_DROP_OLD;
	if (listen_at)
		connect_to = (struct plx_app_list){.at = {listen_at}, .count = 1};
	rc = take_addresses(&connect_to) ?: check_raw();
	if (cat_conf.mode == CAT_SUBSCRIBE && cat_conf.address_count > 1)
		cat_conf.show_publisher = true;
	return rc ?: cat_take_tags(&tags);
}

const struct plx_app cat_app = {
	.name = "netio-cat",
	.summary = "Publish, subscribe, send, push and receive with NetIO on standard input and "
		   "output.",
	.usage = "  netio-cat publish   [EAL options] -- --listen ADDR [-t TAG]\n"
		 "            [-e text|hex|raw] [--block SIZE] [--unbuffered] [--rate R]\n"
		 "            [--count N] [--subscribers N] [--slow POLICY] [--backlog SIZE]\n"
		 "  netio-cat subscribe [EAL options] -- --connect ADDR...\n"
		 "            -t TAG|FIRST-LAST|BITS/MASK|all... [-e text|hex|raw] [--count N]\n"
		 "            [--at-once] [--slow POLICY] [--backlog SIZE] [--show-time]\n"
		 "            [--show-publisher] [--show-tag] [--stats]\n"
		 "  netio-cat send      [EAL options] -- --connect ADDR [-t TAG]\n"
		 "            [-e text|hex|raw] [--block SIZE] [--unbuffered] [--rate R]\n"
		 "            [--count N]\n"
		 "  netio-cat push      [EAL options] -- --connect ADDR... [-t TAG]\n"
		 "            [-e text|hex|raw] [--block SIZE] [--rate R] [--count N]\n"
		 "            [--at-most-once]\n"
		 "  netio-cat recv      [EAL options] -- --listen ADDR [-e text|hex|raw]\n"
		 "            [--count N] [--show-time] [--show-tag] [--stats]\n"
		 "  -t is --tag, -e is --encoding",
	.examples = "  netio-cat subscribe --connect 127.0.0.1:12345 -t 0-255 --show-tag\n"
		    "  netio-cat publish --listen 127.0.0.1:12345 -t 5 <FILE",
	.more = "man netio-cat, or doc/apps/netio-cat.md",
	.options = options,
	.check = check,
	.modes = cat_mode_names,
	.mode = &cat_conf.mode,
};
