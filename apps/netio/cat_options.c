/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line of netio-cat. A tag is one, a range, or a mask. */
#include "cat.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define IN(mode) (1u << CAT_##mode)
#define SENDS    (IN(PUBLISH) | IN(SEND) | IN(PUSH))
#define RECEIVES (IN(SUBSCRIBE) | IN(RECV))
#define NUMBERS  "decimal or, with 0x, hexadecimal, 0 to 0xffffffffffffffff"

static const char *const encodings[] = {"text", "hex", "raw", NULL};
static const char *const policies[] = NETIO_POLICY_NAMES;
static const char *const modes[] = {"publish", "subscribe", "send", "push", "recv", NULL};

struct cat_conf cat_conf = {.block_bytes = 65536, .subscribers = 1};

static struct plx_app_list tags, connect_to;
static const char *listen_at; /* NULL: not given */
static bool block_given, slow_given;

static const struct plx_option options[] = {
	PLX_ADDRESS("listen", &listen_at,
		    "publish, recv: listen on host:port; *:port is every address, port 0 a free "
		    "one, printed",
		    .required = true, .modes = IN(PUBLISH) | IN(RECV)),
	PLX_LIST("connect", "ADDR", &connect_to,
		 "send: connect to host:port; subscribe: to a publisher, push: to a receiver, may "
		 "be repeated",
		 .required = true, .modes = IN(SUBSCRIBE) | IN(SEND) | IN(PUSH)),
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

/* Tags ---------------------------------------------------------------------------------------- */

/* Return: 0; -EINVAL not a number; -ERANGE more than 64 bits. */
static int read_number(const char *text, const char **end_out, uint64_t *out)
{
	int base = text[0] == '0' && (text[1] == 'x' || text[1] == 'X') ? 16 : 10;
	const char *digits = base == 16 ? text + 2 : text;
	char *end;

	if (base == 16 ? !isxdigit((unsigned char)*digits) : !isdigit((unsigned char)*digits))
		return -EINVAL;
	errno = 0;
	*out = strtoull(digits, &end, base);
	*end_out = end;
	return errno ? -ERANGE : 0;
}

static int check_range(const char *text, uint64_t first, uint64_t last,
		       struct netio_subscription *out)
{
	if (last < first)
		return plx_fail(EINVAL,
				"--tag %s: the range ends before it begins; give the "
				"lesser tag first",
				text);
	out->tag = first;
	out->last = last == first ? 0 : last;
	return 0;
}

/* NetIO has no empty mask; use the range of all tags instead. */
static int check_mask(const char *text, uint64_t bits, uint64_t mask,
		      struct netio_subscription *out)
{
	if (bits & ~mask)
		return plx_fail(EINVAL,
				"--tag %s: no tag can match, as the mask leaves out bits 0x%" PRIx64
				"; give 0x%" PRIx64 "/0x%" PRIx64,
				text, bits & ~mask, bits & mask, mask);
	if (mask == 0)
		return check_range(text, 0, UINT64_MAX, out);
	out->tag = bits;
	out->mask = mask;
	return 0;
}

static int parse(const char *text, struct netio_subscription *out)
{
	const char *at;
	uint64_t first = 0, second = 0;
	char kind;
	int rc;

	if (strcmp(text, "all") == 0)
		return check_range(text, 0, UINT64_MAX, out);
	rc = read_number(text, &at, &first);
	*out = (struct netio_subscription){.tag = first};
	if (rc == 0 && *at == '\0')
		return 0;
	kind = rc == 0 ? *at : '\0';
	if (kind == '-' || kind == '/')
		rc = read_number(at + 1, &at, &second);
	if (rc == -ERANGE)
		return plx_fail(EINVAL, "--tag %s: more than 64 bits; give " NUMBERS, text);
	if (rc || (kind != '-' && kind != '/') || *at)
		return plx_fail(EINVAL,
				"--tag %s: not a tag; give one as 7, a range as 7-9, a mask as "
				"0x10/0xf0, or all: " NUMBERS,
				text);
	return kind == '-' ? check_range(text, first, second, out)
			   : check_mask(text, first, second, out);
}

static int add_tag(const char *text)
{
	struct netio_subscription *tag = &cat_conf.tags[cat_conf.tag_count];

	if (parse(text, tag) != 0)
		return -EINVAL;
	if (cat_conf.mode != CAT_SUBSCRIBE && (tag->last || tag->mask))
		return plx_fail(EINVAL,
				"--tag %s: %s takes one tag; ranges, masks and all are "
				"for subscribe",
				text, modes[cat_conf.mode]);
	if (cat_conf.at_once)
		tag->delivery = NETIO_DELIVERY_AT_ONCE;
	tag->policy = (enum netio_policy)cat_conf.policy;
	tag->backlog_bytes = cat_conf.backlog_bytes;
	for (unsigned i = 0; i < cat_conf.tag_count; i++)
		if (memcmp(tag, &cat_conf.tags[i], sizeof(*tag)) == 0)
			return plx_fail(EINVAL, "--tag %s: given twice; give it once", text);
	cat_conf.tag_count++;
	return 0;
}

static int take_tags(void)
{
	for (unsigned i = 0; i < tags.count; i++)
		if (add_tag(tags.at[i]) != 0)
			return -EINVAL;
	if (cat_conf.mode == CAT_SUBSCRIBE && cat_conf.tag_count == 0)
		return plx_fail(EINVAL, "-t TAG is missing: what to subscribe to; for everything "
					"give -t all");
	if (cat_conf.mode != CAT_SUBSCRIBE && cat_conf.tag_count > 1)
		return plx_fail(EINVAL, "--tag %s: %s takes one; give it once", tags.at[1],
				modes[cat_conf.mode]);
	return 0;
}

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
	if (cat_conf.address_count > 1 && cat_conf.mode != CAT_PUSH &&
	    cat_conf.mode != CAT_SUBSCRIBE)
		return plx_fail(EINVAL, "%s takes one address; give it once", modes[cat_conf.mode]);
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
	return rc ?: take_tags();
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
	.modes = modes,
	.mode = &cat_conf.mode,
};
