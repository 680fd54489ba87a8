/* SPDX-License-Identifier: BSD-3-Clause */
/* Connecting: by the provider that was asked for, or by each that may be the best, one after the
 * other. Those of this host know at once that nobody offers them. With RDMA it takes a moment, so
 * a link goes over to the next provider by itself then, before it was ever open. */
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
	struct plx_set *set = set_get(home, choice->driver, choice->provider, info, attr);
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

/* Descriptors that are opened from here on, and are to be closed on exec. */
static struct fd_mark *mark_for(const struct driver_choice *choice)
{
	return choice->driver->closes_on_exec ? NULL : hygiene_mark();
}

static void close_on_exec_since(struct fd_mark *mark)
{
	if (mark)
		hygiene_close_on_exec_since(mark);
}

static int try(struct plx_fabric_lcore *home, const struct driver_choice *choice, bool is_last,
	       const struct place *place, const struct plx_link_attr *attr,
	       struct plx_link **link_out)
{
	struct fd_mark *mark;
	struct fi_info *info;
	int rc = driver_getinfo(choice, place->host, place->port, 0, &info);

	if (rc)
		return rc;
	mark = mark_for(choice);
	rc = connect_with(home, choice, is_last, info, attr, link_out);
	close_on_exec_since(mark);
	fi_freeinfo(info);
	return rc;
}

/* Which provider it was, and why. */
static const char *why_it(const struct driver_choice *choice)
{
	if (choice->asked)
		return "it was asked for";
	return choice->driver->rdma ? "an RDMA device routes to the peer"
				    : "the peer is on this host and offers it";
}

/* Why the next provider is taken, where one before it was tried in vain. */
static const char *why_not(const struct driver_choice *choice, int rc)
{
	if (choice->driver->rdma)
		return rc == -EHOSTUNREACH ? "no RDMA device routes to the peer"
					   : "RDMA failed here";
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

/* Where the link goes if it is refused, or not answered. That there is no such way is no error. */
static void note_next(struct plx_link *link, const struct driver_choice *next,
		      const struct place *place)
{
	if (driver_getinfo(next, place->host, place->port, 0, &link->next_info) == 0)
		link->next_choice = *next;
	else
		link->next_info = NULL;
}

static int try_all(struct plx_fabric_lcore *home, const struct place *place,
		   const struct plx_link_attr *attr, struct plx_link **link_out)
{
	struct driver_choice choices[DRIVER_CHOICES_MAX];
	int count = driver_choose_for(attr, choices);
	const char *why = NULL;
	int rc = count;

	if (attr->direct && count > 0 && !choices[0].asked)
		why = "it has the remote memory that is asked for";

	for (int i = 0; i < count; i++) {
		bool is_last = i == count - 1;

		rc = try(home, &choices[i], is_last, place, attr, link_out);
		if (rc == 0) {
			bool is_left = is_last && why && !choices[i].driver->rdma;

			(*link_out)->choice = is_left ? why : why_it(&choices[i]);
			if (choices[i].driver->rdma && !is_last)
				note_next(*link_out, &choices[i + 1], place);
			break;
		}
		why = why_not(&choices[i], rc);
	}
	return rc;
}

static int move(struct plx_link *link, struct plx_set *set, struct fi_info *info)
{
	struct fd_mark *mark = mark_for(&link->next_choice);
	int rc = link_move(link, set, info);

	rc = rc ? rc : start(link, info);
	close_on_exec_since(mark);
	return rc;
}

static bool is_in_vain(const struct plx_link *link)
{
	return !link->connected && !link->home->draining &&
	       (link->reason == PLX_LINK_REFUSED || link->reason == PLX_LINK_UNREACHABLE ||
		link->reason == PLX_LINK_LOCAL);
}

/* A link that was refused, or not answered, has been buried: it goes on by the provider that comes
 * next, if there is one. Return: whether it does. */
bool connect_otherwise(struct plx_link *link)
{
	const struct driver_choice *next = &link->next_choice;
	struct fi_info *info = link->next_info;
	struct plx_set *set = is_in_vain(link) ? set_get(link->home, next->driver, next->provider,
							 info, &link->attr)
					       : NULL;
	int rc;

	link->next_info = NULL;
	if (!set) {
		fi_freeinfo(info);
		return false;
	}
	plx_log(&fabric_log, PLX_LOG_INFO, "link to %s by %s: %s; now by %s", link->peer,
		link->driver->name, link->text, next->driver->name);
	link->choice = "the peer did not answer by RDMA";
	rc = move(link, set, info);
	fi_freeinfo(info);
	if (rc == -ECONNREFUSED)
		close_refused(link);
	else if (rc)
		link_end(link, rc == -EHOSTUNREACH ? PLX_LINK_UNREACHABLE : PLX_LINK_LOCAL, "%s",
			 plx_error());
	return true;
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
