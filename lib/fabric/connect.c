/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric_priv.h"

#include <stdio.h>

static int start(struct plx_link *link, struct fi_info *info)
{
	int rc = fi_connect(link->ep, info->dest_addr, NULL, 0);

	if (rc)
		return plx_fail(EHOSTUNREACH, "connecting to %s failed: %s", link->peer,
				fi_strerror(-rc));
	return plx_timer_start(&link->timer, link->attr.connect_timeout_ns);
}

static int connect_with(struct plx_fabric_lcore *home, const struct plx_fabric_driver *driver,
			const char *provider, struct fi_info *info,
			const struct plx_link_attr *attr, struct plx_link **link_out)
{
	struct plx_set *set = set_get(home, driver, provider, info);
	struct plx_link *link;

	if (!set)
		return -EIO;

	int rc = link_create(set, attr, info, &link);
	if (rc)
		return rc;
	link->connector = true;
	address_format(info->dest_addr, link->peer, sizeof(link->peer));
	rc = start(link, info);
	if (rc) { /* the caller gets the error, so nobody is told of the end */
		link_end(link, PLX_LINK_UNREACHABLE, "%s", plx_error());
		return rc;
	}
	link->told = true;
	*link_out = link;
	return 0;
}

int plx_link_connect(const char *address, const struct plx_link_attr *attr,
		     struct plx_link **link_out)
{
	struct plx_fabric_lcore *home = fabric_here();
	char host[PLX_ADDRESS_MAX], port[PLX_ADDRESS_MAX];
	const struct plx_fabric_driver *driver;
	const char *provider;
	struct plx_link_attr checked;
	struct fi_info *info;

	if (!home)
		return fabric_missing();

	int rc = link_check_attr(attr, &checked);
	if (rc)
		return rc;
	rc = address_split("connect to", address, host, port);
	if (rc)
		return rc;
	if (host[0] == '\0')
		return plx_fail(EINVAL, "connect to %s: a host is needed; give HOST:PORT", address);
	if (strcmp(port, "0") == 0)
		return plx_fail(EINVAL, "connect to %s: port 0 is nobody's; give 1 to 65535",
				address);
	rc = driver_find("provider", checked.provider, &driver, &provider);
	if (rc)
		return rc;
	rc = driver_getinfo(driver, provider, host, port, 0, &info);
	if (rc)
		return rc;

	struct fd_mark *mark = hygiene_mark();

	rc = connect_with(home, driver, provider, info, &checked, link_out);
	hygiene_close_on_exec_since(mark);
	fi_freeinfo(info);
	return rc;
}
