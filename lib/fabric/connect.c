/* SPDX-License-Identifier: BSD-3-Clause */
/* Connecting: by the provider that was asked for, or by each that may be the best, one after the
 * other. Only those of this host are tried in vain, as they know at once that nobody offers them.
 */
#include "fabric_priv.h"

#include <stdio.h>

/* An address, taken apart. */
struct place {
	const char *host, *port;
};

/* Return: 0; -ECONNREFUSED known at once, without a text; -EACCES; else -errno. */
static int start(struct plx_link *link, struct fi_info *info)
{
	int rc = fi_connect(link->ep, info->dest_addr, NULL, 0);

	if (rc == -FI_ECONNREFUSED)
		return -ECONNREFUSED;
	if (rc == -FI_EACCES)
		return plx_fail(EACCES, "%s is of another user, with whom no memory is shared",
				link->peer);
	if (rc)
		return plx_fail(EHOSTUNREACH, "connecting to %s failed: %s", link->peer,
				fi_strerror(-rc));
	return plx_timer_start(&link->timer, link->attr.connect_timeout_ns);
}

static int create(struct plx_fabric_lcore *home, const struct driver_choice *choice,
		  struct fi_info *info, const struct plx_link_attr *attr,
		  struct plx_link **link_out)
{
	struct plx_set *set = set_get(home, choice->driver, choice->provider, info);
	int rc = set ? link_create(set, attr, info, link_out) : -EIO;

	if (rc)
		return rc;
	(*link_out)->connector = true;
	address_format(info->dest_addr, (*link_out)->peer, sizeof((*link_out)->peer));
	return 0;
}

/* is_last: no other provider comes after it, so that a refusal is told as every other end. */
static int connect_with(struct plx_fabric_lcore *home, const struct driver_choice *choice,
			bool is_last, struct fi_info *info, const struct plx_link_attr *attr,
			struct plx_link **link_out)
{
	struct plx_link *link;
	int rc = create(home, choice, info, attr, &link);

	if (rc)
		return rc;
	rc = start(link, info);
	link->told = rc == 0 || (rc == -ECONNREFUSED && is_last);
	if (rc == -ECONNREFUSED)
		close_refused(link);
	else if (rc) /* the caller gets the error, so nobody is told of the end */
		link_end(link, PLX_LINK_UNREACHABLE, "%s", plx_error());
	if (!link->told)
		return rc;
	*link_out = link;
	return 0;
}

static int try(struct plx_fabric_lcore *home, const struct driver_choice *choice, bool is_last,
	       const struct place *place, const struct plx_link_attr *attr,
	       struct plx_link **link_out)
{
	struct fd_mark *mark = NULL;
	struct fi_info *info;
	int rc = driver_getinfo(choice, place->host, place->port, 0, &info);

	if (rc)
		return rc;
	if (!choice->driver->closes_on_exec)
		mark = hygiene_mark();
	rc = connect_with(home, choice, is_last, info, attr, link_out);
	if (!choice->driver->closes_on_exec)
		hygiene_close_on_exec_since(mark);
	fi_freeinfo(info);
	return rc;
}

/* Why the next provider is taken, where one of this host was tried in vain. */
static const char *why_not(int rc)
{
	switch (rc) {
	case -EHOSTUNREACH:
		return "the peer is on another host";
	case -ECONNREFUSED:
		return "the peer is on this host, but offers nothing quicker there";
	case -EACCES:
		return "the peer is on this host, but of another user";
	default:
		return "the peer is on this host, but what is quicker failed";
	}
}

static int try_all(struct plx_fabric_lcore *home, const struct place *place,
		   const struct plx_link_attr *attr, struct plx_link **link_out)
{
	struct driver_choice choices[DRIVER_CHOICES_MAX];
	int count = driver_choose("provider", attr->provider, choices);
	const char *why = "it was asked for";
	int rc = count;

	for (int i = 0; i < count; i++) {
		bool is_last = i == count - 1;

		rc = try(home, &choices[i], is_last, place, attr, link_out);
		if (rc == 0) {
			(*link_out)->choice = is_last ? why
						      : "the peer is on this host and offers it";
			break;
		}
		why = why_not(rc);
	}
	return rc;
}

int plx_link_connect(const char *address, const struct plx_link_attr *attr,
		     struct plx_link **link_out)
{
	struct plx_fabric_lcore *home = fabric_here();
	char host[PLX_ADDRESS_MAX], port[PLX_ADDRESS_MAX];
	struct place place = {host, port};
	struct plx_link_attr checked;

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
	return try_all(home, &place, &checked, link_out);
}
