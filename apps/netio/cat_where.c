/* SPDX-License-Identifier: BSD-3-Clause */
/* netio-cat's address and tag options. */
#include "cat.h"

#include <stdio.h>
#include <string.h>

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

int cat_where_addresses(const struct plx_app_list *texts)
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
				"--tag %s: %s takes one tag; ranges, masks and all are "
				"for subscribe",
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
					"give -t all");
	if (cat_conf.mode != CAT_SUBSCRIBE && cat_conf.tag_count > 1)
		return plx_fail(EINVAL, "--tag %s: %s takes one; give it once", texts->at[1], mode);
	return 0;
}
