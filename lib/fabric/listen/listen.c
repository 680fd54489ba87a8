/* SPDX-License-Identifier: BSD-3-Clause */
/* Listens on the addresses of a name, with each possible driver. Requests go to handover.c. */
#include "fabric_link.h"
#include "fabric_listen.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static int listen_failed(const char *address, int rc)
{
	static const struct {
		int error; /* libfabric's number, and the kernel's */
		const char *text;
	} known[] = {
		{FI_EADDRINUSE, "the port is in use; give another, or 0 for a free one"},
		{FI_EADDRNOTAVAIL, "that address is not this host's; give one of its addresses, or "
				   "* for all"},
		{FI_EACCES, "not permitted; ports below 1024 need privileges"},
		{FI_EOPNOTSUPP, "this process cannot share memory; check that seccomp allows "
				"memfd_create and fstatfs, and that enough memory is free"},
	};

	for (size_t i = 0; i < PLX_ARRAY_LEN(known); i++) {
		if (rc == -known[i].error)
			return plx_fail(-rc, "listen on %s: %s", address, known[i].text);
	}
	return plx_fail(EIO, "listen on %s: %s", address, descriptors_strerror(rc));
}

static int open_passive(struct plx_listener *listener, const char *address, struct fi_info *info)
{
	const struct plx_fabric_driver *driver = listener->set->driver;
	struct sockaddr_storage name;
	size_t len = sizeof(name);
	const char *why;
	int rc = fi_passive_ep(listener->set->fids.fabric, info, &listener->pep, listener);

	if (rc) {
		listener->pep = NULL;
		return listen_failed(address, rc);
	}
	admit_offer(listener);
	rc = fi_pep_bind(listener->pep, &listener->set->fids.eq->fid, 0);
	rc = rc ? rc : fi_listen(listener->pep);
	rc = rc ? rc : fi_getname(&listener->pep->fid, &name, &len);
	why = rc && driver->listen_failure ? driver->listen_failure(listener->pep) : NULL;
	if (why)
		return plx_fail(-rc, "listen on %s: %s", address, why);
	if (rc)
		return listen_failed(address, rc);
	address_format((struct sockaddr *)&name, listener->address, sizeof(listener->address));
	listener->port = address_port((struct sockaddr *)&name);
	return 0;
}

/* The arguments, and the listener so far. */
struct listening {
	struct plx_fabric_lcore *home;
	const char *address;     /* from the user */
	const char *host, *port; /* one of its addresses */
	const struct plx_listen_attr *attr;
	struct driver_choice choices[DRIVER_CHOICES_MAX];
	int choice_count;
	struct plx_listener *front; /* the user's; NULL: none yet */
};

static int listen_with(struct listening *l, struct plx_set *set, struct fi_info *info)
{
	struct plx_listener *listener = calloc(1, sizeof(*listener)), *front = l->front;
	int rc;

	if (!listener)
		return plx_fail(ENOMEM, "out of memory");
	listener->kind = FID_LISTENER;
	listener->home = set->home;
	listener->set = set;
	listener->front = front ? front : listener;
	listener->shared = front ? front->shared : listener_shared_create(l->attr);
	if (front)
		listener_ref(front->shared);
	rc = listener->shared ? open_passive(listener, l->address, info)
			      : plx_fail(ENOMEM, "out of memory");
	if (rc) {
		listener_free(listener);
		return rc;
	}
	listener->shared->offers_same_host |= set->driver->same_host;
	LIST_INSERT_HEAD(&set->home->listeners, listener, of_home);
	set->listeners++;
	if (front)
		LIST_INSERT_HEAD(&front->also, listener, of_front);
	else
		l->front = listener;
	return 0;
}

/* Listen at one address with one driver. Listeners of one user's listener share its port. */
static int listen_by(struct listening *l, const struct driver_choice *choice)
{
	char port[8] = "";
	struct fi_info *info;
	struct plx_set *set;
	int rc;

	if (l->front)
		snprintf(port, sizeof(port), "%u", l->front->port);
	rc = driver_getinfo(choice, l->host, l->front ? port : l->port, FI_SOURCE, &info);
	if (rc)
		return rc;
	set = set_get(l->home, choice, info, NULL);
	rc = set ? listen_with(l, set, info) : -EIO;
	fi_freeinfo(info);
	return rc;
}

/* The last choice must succeed. Those before it are same-host drivers and RDMA, which may fail.
 * also_ipv4: after "::", with drivers whose listeners there do not take IPv4. Return: 0; -errno. */
static int listen_on(struct listening *l, bool also_ipv4)
{
	for (int i = l->choice_count - 1; i >= 0; i--) {
		const struct plx_fabric_driver *driver = l->choices[i].driver;
		int rc = also_ipv4 && driver->takes_ipv4 ? 0 : listen_by(l, &l->choices[i]);

		if (rc && i == l->choice_count - 1)
			return rc;
		if (rc)
			log_notice("%s is not offered%s: %s", driver->name,
				   also_ipv4 ? " to IPv4" : "", plx_error());
	}
	return 0;
}

/* The setting of net.ipv6.bindv6only, read from a new socket. */
static bool is_ipv6_without_ipv4(void)
{
	int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0), v6_only = 0;
	socklen_t bytes = sizeof(v6_only);

	if (fd < 0)
		return false;
	getsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &v6_only, &bytes);
	close(fd);
	return v6_only;
}

/* Every address: IPv6 also accepts IPv4, or a second listener does; IPv4 only if there is no
 * IPv6. */
static int listen_everywhere(struct listening *l)
{
	int rc;

	l->host = "::";
	rc = listen_on(l, false);
	if (rc == -EADDRINUSE || rc == -EACCES)
		return rc;
	l->host = "0.0.0.0";
	if (rc)
		return listen_on(l, false);
	assert(l->front && "it listens");
	return is_ipv6_without_ipv4() ? listen_on(l, true) : 0;
}

/* Listen on each address of a name. Addresses that this host lacks, such as ::1 without IPv6, are
 * skipped unless all are missing. */
static int listen_on_all(struct listening *l, const struct address_list *addresses)
{
	int rc = 0;

	for (unsigned i = 0; i < addresses->count; i++) {
		l->host = addresses->hosts[i];
		rc = listen_on(l, false);
		if (rc == 0 && i > 0)
			log_info("listening on %s: on %s too", l->address, l->host);
		if (rc == -EADDRINUSE || rc == -EACCES)
			break;
	}
	return l->front && rc != -EADDRINUSE ? 0 : rc;
}

/* A port that is free at one address may be taken at another. */
#define FREE_PORT_TRIES 16

/* host: "": every address. */
static int listen_at(struct listening *l, const char *host)
{
	struct address_list addresses;
	int rc = *host ? address_resolve("listen on", l->address, host, &addresses) : 0;

	if (rc)
		return rc;
	for (unsigned i = 0; i < FREE_PORT_TRIES; i++) {
		rc = *host ? listen_on_all(l, &addresses) : listen_everywhere(l);
		if (rc) {
			plx_listener_close(l->front);
			l->front = NULL;
		}
		if (rc != -EADDRINUSE || strcmp(l->port, "0") != 0)
			break;
	}
	l->host = NULL; /* it points into `addresses` */
	return rc;
}

int plx_link_listen(const char *address, const struct plx_listen_attr *attr,
		    struct plx_listener **listener_out)
{
	char host[PLX_ADDRESS_MAX], port[PLX_ADDRESS_MAX];
	struct plx_listen_attr checked = *attr;
	struct listening l = {.address = address, .port = port, .attr = &checked};
	int rc = fabric_here("plx_link_listen", &l.home);

	rc = rc ? rc : link_check_attr(&attr->link, &checked.link);
	rc = rc ? rc : admission_check(&attr->admission, &checked.admission);
	rc = rc ? rc : spread_check(&checked);
	rc = rc ? rc : address_split("listen on", address, host, port);
	if (rc)
		return rc;
	l.choice_count = driver_choose(&checked.link, l.choices);
	rc = l.choice_count < 1 ? l.choice_count : listen_at(&l, host);
	if (rc == 0)
		*listener_out = l.front;
	return rc;
}
