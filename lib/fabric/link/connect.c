/* SPDX-License-Identifier: BSD-3-Clause */
/* Connects to each address of a name, and to each address by the requested provider or by the best
 * candidates, one after the other. Providers for the same host fail at once if nobody listens.
 * Others take a moment: then the link moves on to the next candidate automatically, before it ever
 * opened. */
#include "fabric_address.h"
#include "fabric_link.h"

#include <stdio.h>
#include <stdlib.h>

/* The candidates, and the current one. */
struct plan {
	struct plx_fabric_lcore *home;
	struct plx_link_attr attr;
	struct address_list addresses;
	char port[PLX_ADDRESS_MAX];
	struct driver_choice choices[DRIVER_CHOICES_MAX];
	unsigned choice_count;
	unsigned address, choice;
	/* Why the choice before it was not used; of the first: NULL or the requested provider. */
	const char *why_first, *why;
	bool refused_here; /* fi_connect failed at once: nobody listens there */
	char tried[160];   /* earlier addresses and their errors */
};

static const struct driver_choice *plan_choice(const struct plan *plan)
{
	return &plan->choices[plan->choice];
}

static const char *plan_host(const struct plan *plan)
{
	return plan->addresses.hosts[plan->address];
}

static bool plan_is_last(const struct plan *plan)
{
	return plan->choice + 1 == plan->choice_count && plan->address + 1 == plan->addresses.count;
}

/* Advance to the next candidate. same: allow another provider at the same address. what, why: what
 * is wrong with this one, of the address and of the provider. Return: whether there is one. */
static bool plan_go_on(struct plan *plan, bool same, const char *what, const char *why)
{
	size_t used = strlen(plan->tried);

	plan->refused_here = false;
	if (same && plan->choice + 1 < plan->choice_count) {
		plan->choice++;
		plan->why = why;
		return true;
	}
	snprintf(plan->tried + used, sizeof(plan->tried) - used, "%s%s: %s", used ? ", " : "",
		 plan_host(plan), what);
	plan->choice = 0;
	plan->why = plan->why_first;
	return ++plan->address < plan->addresses.count;
}

/* Return: 0; -errno with a text. */
static int plan_make(struct plan *plan, const char *address)
{
	char host[PLX_ADDRESS_MAX];
	int rc = address_split("connect to", address, host, plan->port);

	if (rc)
		return rc;
	if (host[0] == '\0')
		return plx_fail(EINVAL, "connect to %s: a host is needed; give HOST:PORT", address);
	if (strcmp(plan->port, "0") == 0)
		return plx_fail(EINVAL, "connect to %s: port 0 is nobody's; give 1 to 65535",
				address);
	rc = driver_choose(&plan->attr, plan->choices);
	if (rc < 1)
		return rc;
	plan->choice_count = (unsigned)rc;
	if (plan->attr.direct && !plan->choices[0].asked)
		plan->why = plan->why_first = "it has the remote memory that is asked for";
	return address_resolve("connect to", address, host, &plan->addresses);
}

/* One of them ---------------------------------------------------------------------------------- */

/* Return: 0; -ECONNREFUSED at once, without a text; -EACCES; else -errno. */
static int start(struct plx_link *link, struct fi_info *info)
{
	uint8_t hello[HELLO_BYTES_MAX];
	int rc = fi_connect(link->ep, info->dest_addr, hello, handshake_write(link, 0, hello));

	if (rc == -FI_ECONNREFUSED)
		return rc;
	if (rc == -FI_EACCES)
		return plx_fail(EACCES, "%s is of another user, with whom no memory is shared",
				link->peer);
	if (rc)
		return plx_fail(EHOSTUNREACH, "connecting to %s failed: %s", link->peer,
				fi_strerror(-rc));
	return plx_timer_start(&link->timer, link->attr.connect_timeout_ns);
}

/* Return: 0; -errno with a text: this candidate fails. */
static int find_set(const struct plan *plan, struct fi_info **info_out, struct plx_set **set_out)
{
	const struct driver_choice *choice = plan_choice(plan);
	int rc = driver_getinfo(choice, plan_host(plan), plan->port, 0, info_out);

	if (rc)
		return rc;
	*set_out = set_get(plan->home, choice, *info_out, &plan->attr);
	if (*set_out)
		return 0;
	fi_freeinfo(*info_out);
	return -EIO;
}

static int connect_on(struct plx_set *set, const struct plan *plan, struct fi_info *info,
		      struct plx_link **link_out)
{
	struct plx_link *link;
	int rc = link_create(set, &plan->attr, info, &link);

	if (rc)
		return rc;
	link->connector = true;
	address_format(info->dest_addr, link->peer, sizeof(link->peer));
	rc = link_start(link, info);
	rc = rc ? rc : start(link, info);
	/* A refusal leads to on_close if no other candidate follows. */
	link->close_due = rc == 0 || (rc == -ECONNREFUSED && plan_is_last(plan));
	if (rc == -ECONNREFUSED)
		close_refused(link);
	else if (rc) /* the caller gets the error, and no on_close */
		close_now(link, PLX_LINK_UNREACHABLE, "%s", plx_error());
	if (!link->close_due)
		return rc;
	*link_out = link;
	return 0;
}

static int try(const struct plan *plan, struct plx_link **link_out)
{
	struct fi_info *info;
	struct plx_set *set;
	int rc = find_set(plan, &info, &set);

	if (rc)
		return rc;
	rc = connect_on(set, plan, info, link_out);
	fi_freeinfo(info);
	return rc;
}

/* Why the next provider is used if this one failed. */
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

/* Why this provider is used. */
static const char *why_it(const struct plan *plan)
{
	const struct driver_choice *choice = plan_choice(plan);

	if (plan->why && plan->choice + 1 == plan->choice_count && !choice->driver->rdma)
		return plan->why;
	if (choice->asked)
		return "it was asked for";
	return choice->driver->rdma ? "an RDMA device routes to the peer"
				    : "the peer is on this host and offers it";
}

static const char *trouble_of(int rc)
{
	return rc == -ECONNREFUSED ? "refused" : rc == -EACCES ? "of another user" : "unreachable";
}

/* All candidates, until one may succeed -------------------------------------------------------- */

/* Ownership: the link takes the plan if another candidate is left. */
static int try_all(struct plan *plan, const char *address, struct plx_link **link_out)
{
	static _Atomic bool noted;
	int rc;

	while ((rc = try(plan, link_out)) != 0) {
		/* A misconfiguration of this host keeps links from a faster provider: log it once.
		 * Relaxed: only the exchange counts. */
		if (rc == -EIO && plan->choice + 1 < plan->choice_count &&
		    !atomic_exchange_explicit(&noted, true, memory_order_relaxed))
			log_notice("%s is not used for links: %s", plan_choice(plan)->driver->name,
				   plx_error());
		if (plan_go_on(plan, true, trouble_of(rc), why_not(plan_choice(plan), rc)))
			continue;
		if (plan->addresses.count == 1)
			return rc;
		return plx_fail(-rc, "connect to %s: none of its addresses can be connected to: %s",
				address, plan->tried);
	}
	(*link_out)->choice = why_it(plan);
	if (plan_is_last(plan) && plan->addresses.count == 1)
		free(plan);
	else
		(*link_out)->plan = plan;
	return 0;
}

int plx_link_connect(const char *address, const struct plx_link_attr *attr,
		     struct plx_link **link_out)
{
	struct plan *plan = calloc(1, sizeof(*plan));
	int rc;

	if (!plan)
		return plx_fail(ENOMEM, "out of memory");
	rc = fabric_here("plx_link_connect", &plan->home);
	rc = rc ? rc : link_check_attr(attr, &plan->attr);
	rc = rc ? rc : plan_make(plan, address);
	rc = rc ? rc : try_all(plan, address, link_out);
	if (rc)
		free(plan);
	return rc;
}

/* The next candidate --------------------------------------------------------------------------- */

static void move(struct plx_link *link, struct plx_set *set, struct fi_info *info)
{
	struct plan *plan = link->plan;
	int rc;

	address_format(info->dest_addr, link->peer, sizeof(link->peer));
	log_info("%s; now to %s by %s", link->text, link->peer, set->driver->name);
	link->choice = why_it(plan);
	link->busy_ns = 0;
	rc = link_move(link, set, info);
	rc = rc ? rc : start(link, info);
	plan->refused_here = rc == -ECONNREFUSED;
	if (rc == -ECONNREFUSED)
		close_refused(link);
	else if (rc)
		close_now(link, rc == -EHOSTUNREACH ? PLX_LINK_UNREACHABLE : PLX_LINK_LOCAL, "%s",
			  plx_error());
}

/* A link that was refused, or not answered, has been reaped. Move it to the next candidate, if any.
 * Return: whether it continues. */
bool connect_next(struct plx_link *link)
{
	struct plan *plan = link->plan;
	bool by_rdma = plan_choice(plan)->driver->rdma;
	/* A process may offer shared memory that it then cannot use. */
	/* A listener has one limit for all providers. */
	bool same = !link->busy_ns &&
		    (by_rdma || plan->refused_here || plan_choice(plan)->driver->same_host);
	const char *text = plx_link_without_peer(link, link->text);
	bool is_drivers = text > link->text && text[-2] == ':'; /* "peer: it ..." */
	const char *what = is_drivers ? text : plx_link_reason_name(link->reason);
	const char *why = by_rdma ? "the peer did not answer by RDMA"
				  : why_not(plan_choice(plan),
					    plan->refused_here ? -ECONNREFUSED : -EIO);
	struct plx_set *set;
	struct fi_info *info;

	if (link->home->draining ||
	    (link->reason != PLX_LINK_REFUSED && link->reason != PLX_LINK_UNREACHABLE &&
	     link->reason != PLX_LINK_LOCAL))
		return false;
	while (plan_go_on(plan, same, what, why)) {
		int rc = find_set(plan, &info, &set);

		if (rc == 0) {
			move(link, set, info);
			fi_freeinfo(info);
			return true;
		}
		same = true;
		what = trouble_of(rc);
		why = why_not(plan_choice(plan), rc);
	}
	if (plan->addresses.count > 1)
		snprintf(link->text, sizeof(link->text), "none of its addresses answers: %s",
			 plan->tried);
	return false;
}
