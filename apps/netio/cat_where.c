/* SPDX-License-Identifier: BSD-3-Clause */
/* What the command line of netio-cat says of where messages go: addresses and tags. */
#include "cat.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int add_receiver(const char *text)
{
	struct cat_receiver *receiver = &cat_conf.receivers[cat_conf.receiver_count];
	const char *colon;
	int rc = plx_address_check("--to", text);

	if (rc)
		return rc;
	colon = strrchr(text, ':');
	snprintf(receiver->host, sizeof(receiver->host), "%.*s", (int)(colon - text), text);
	receiver->port = (unsigned)strtoul(colon + 1, NULL, 10);
	if (receiver->host[0] == '\0' || strcmp(receiver->host, "*") == 0)
		return plx_fail(EINVAL,
				"--to %s: give the host of a receiver, such as 192.0.2.1:7000",
				text);
	if (receiver->port == 0)
		return plx_fail(EINVAL, "--to %s: port 0; give 1 to 65535", text);
	for (unsigned i = 0; i < cat_conf.receiver_count; i++)
		if (receiver->port == cat_conf.receivers[i].port &&
		    strcmp(receiver->host, cat_conf.receivers[i].host) == 0)
			return plx_fail(EINVAL, "--to %s: given twice; give it once", text);
	cat_conf.receiver_count++;
	return 0;
}

int cat_where_receivers(const struct plx_app_list *texts)
{
	for (unsigned i = 0; i < texts->count; i++) {
		int rc = add_receiver(texts->at[i]);

		if (rc)
			return rc;
	}
	return cat_conf.receiver_count
		     ? 0
		     : plx_fail(EINVAL, "--to HOST:PORT is missing: whom to push to; it may be "
					"repeated");
}

int cat_where_address(bool port_given)
{
	char address[PLX_ADDRESS_MAX];
	bool is_ipv6;

	if (!cat_conf.host)
		return plx_fail(EINVAL, "--host HOST is missing");
	if (!port_given)
		return plx_fail(EINVAL, "-p PORT is missing");
	is_ipv6 = strchr(cat_conf.host, ':') && cat_conf.host[0] != '[' &&
		  !strstr(cat_conf.host, "://");
	if (snprintf(address, sizeof(address), is_ipv6 ? "[%s]:%u" : "%s:%u", cat_conf.host,
		     (unsigned)cat_conf.port) >= (int)sizeof(address))
		return plx_fail(EINVAL, "--host: longer than %d; give a number or a name",
				PLX_ADDRESS_MAX - 8);
	return plx_address_check("--host, --port", address);
}

static bool is_same(const struct netio_subscription *one, const struct netio_subscription *other)
{
	return one->tag == other->tag && one->last == other->last && one->mask == other->mask;
}

static int add_tag(const char *text)
{
	struct netio_subscription *tag = &cat_conf.tags[cat_conf.tag_count];
	int rc = cat_tag_parse(text, tag);

	if (rc)
		return rc;
	if (cat_conf.mode != CAT_SUBSCRIBE && (tag->last || tag->mask))
		return plx_fail(EINVAL,
				"--tag %s: %s takes one tag; ranges and masks are for "
				"subscribe",
				text, cat_mode_names[cat_conf.mode]);
	if (cat_conf.at_once)
		tag->delivery = NETIO_DELIVERY_AT_ONCE;
	tag->policy = (enum netio_policy)cat_conf.policy;
	tag->backlog_bytes = cat_conf.backlog_bytes;
	for (unsigned i = 0; i < cat_conf.tag_count; i++)
		if (is_same(tag, &cat_conf.tags[i]))
			return plx_fail(EINVAL, "--tag %s: given twice; give it once", text);
	cat_conf.tag_count++;
	return 0;
}

int cat_where_tags(const struct plx_app_list *texts)
{
	const char *mode = cat_mode_names[cat_conf.mode];

	for (unsigned i = 0; i < texts->count; i++) {
		int rc = add_tag(texts->at[i]);

		if (rc)
			return rc;
	}
	if (cat_conf.mode == CAT_SUBSCRIBE && cat_conf.tag_count == 0)
		return plx_fail(EINVAL, "-t TAG is missing: what to subscribe to; for everything "
					"give -t 0/0");
	if (cat_conf.mode != CAT_SUBSCRIBE && cat_conf.tag_count > 1)
		return plx_fail(EINVAL, "--tag %s: %s takes one; give it once", texts->at[1], mode);
	return 0;
}
