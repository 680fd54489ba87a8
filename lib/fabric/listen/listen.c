/* SPDX-License-Identifier: BSD-3-Clause */
/* Listening on the addresses of a name, by each driver that may be asked. What comes in is
 * handover.c's. */
#include "fabric_link.h"
#include "fabric_listen.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static int listen_failed(const char *address, int rc)
{
	switch (-rc) {
	case FI_EADDRINUSE:
		return plx_fail(
			EADDRINUSE,
			"listen on %s: the port is in use; give another, or 0 for a free one",
			address);
	case FI_EADDRNOTAVAIL:
		return plx_fail(
			EADDRNOTAVAIL,
			"listen on %s: that address is not this host's; give one of its own, "
			"or * for all",
			address);
	case FI_EACCES:
		return plx_fail(EACCES,
				"listen on %s: not permitted; ports below 1024 need "
				"privileges",
				address);
	case FI_EOPNOTSUPP:
		return plx_fail(
			EOPNOTSUPP,
			"listen on %s: this process cannot share memory; check that seccomp allows "
			"memfd_create and fstatfs, and that enough memory is free",
			address);
	default:
		return plx_fail(EIO, "listen on %s: %s", address, descriptors_strerror(rc));
	}
}

static void guard(const struct plx_listener *listener)
{
	struct plx_fabric_guard guard = {
		.handshakes_max = listener->shared->admission.limits.handshakes_max,
		.refused = handshake_log_refused,
		.arg = listener->shared,
	};

	if (listener->set->driver->guard)
		listener->set->driver->guard(listener->pep, &guard);
}

static int open_passive(struct plx_listener *listener, const char *address, struct fi_info *info)
{
	struct sockaddr_storage name;
	size_t len = sizeof(name);
	int rc = fi_passive_ep(listener->set->fids.fabric, info, &listener->pep, listener);

	if (rc) {
		listener->pep = NULL;
		return listen_failed(address, rc);
	}
	guard(listener);
	rc = fi_pep_bind(listener->pep, &listener->set->fids.eq->fid, 0);
	rc = rc ? rc : fi_listen(listener->pep);
	rc = rc ? rc : fi_getname(&listener->pep->fid, &name, &len);
	if (rc)
		return listen_failed(address, rc);
	address_format((struct sockaddr *)&name, listener->address, sizeof(listener->address));
	listener->port = address_port((struct sockaddr *)&name);
	if (listener->set->driver->listens)
		listener->set->driver->listens(listener->pep);
	return 0;
}

/* front: NULL, or the listener of the user that this one belongs to. */
static int listen_with(struct plx_set *set, const char *address, struct fi_info *info,
		       const struct plx_listen_attr *attr, struct plx_listener *front,
		       struct plx_listener **listener_out)
{
	struct plx_listener *listener = calloc(1, sizeof(*listener));
	int rc;

	if (!listener)
		return plx_fail(ENOMEM, "out of memory");
	listener->kind = FID_LISTENER;
	listener->set = set;
	listener->attr = *attr;
	listener->front = front ? front : listener;
	listener->shared = front ? front->shared : listener_shared_create(&attr->admission);
	if (front)
		listener_ref(front->shared);
	rc = listener->shared ? open_passive(listener, address, info)
			      : plx_fail(ENOMEM, "out of memory");
	if (rc) {
		listener_free(listener);
		return rc;
	}
	LIST_INSERT_HEAD(&set->home->listeners, listener, of_home);
	set->listeners++;
	*listener_out = listener;
	return 0;
}

/* One address of a host, and what the user gave for it. */
struct place {
	const char *address;
	const char *host, *port;
};

static int listen_by(struct plx_fabric_lcore *home, const struct driver_choice *choice,
		     const struct place *place, const struct plx_listen_attr *attr,
		     struct plx_listener *front, struct plx_listener **listener_out)
{
	struct fi_info *info;
	int rc = driver_getinfo(choice, place->host, place->port, FI_SOURCE, &info);

	if (rc)
		return rc;

	struct plx_set *set = set_get(home, choice->driver, choice->provider, info, NULL);

	rc = set ? listen_with(set, place->address, info, attr, front, listener_out) : -EIO;
	fi_freeinfo(info);
	return rc;
}

/* One more for the user's listener: another driver, or another address, at the same port. */
static int listen_also(struct plx_fabric_lcore *home, const struct driver_choice *choice,
		       const struct place *place, struct plx_listener *front)
{
	char port[8];
	struct place same = {place->address, place->host, port};
	struct plx_listener *also = NULL;
	int rc;

	snprintf(port, sizeof(port), "%u", front->port);
	rc = listen_by(home, choice, &same, &front->attr, front, &also);
	if (rc)
		return rc;
	also->also = front->also;
	front->also = also;
	return 0;
}

/* The last choice is the one that must be; those before it are of this host, and that one of them
 * cannot be offered is no reason not to listen. front: the listener so far, or NULL. Return: 0;
 * -errno, and *front is as it was. */
static int listen_on(struct plx_fabric_lcore *home, const struct place *place,
		     const struct plx_listen_attr *attr, struct plx_listener **front)
{
	struct driver_choice choices[DRIVER_CHOICES_MAX];
	int count = driver_choose_for(&attr->link, choices);
	int rc;

	if (count < 1)
		return count;
	if (*front)
		rc = listen_also(home, &choices[count - 1], place, *front);
	else
		rc = listen_by(home, &choices[count - 1], place, attr, NULL, front);
	for (int i = 0; i < count - 1 && rc == 0; i++) {
		if (listen_also(home, &choices[i], place, *front) != 0)
			plx_log(&fabric_log, PLX_LOG_NOTICE, "%s is not offered: %s",
				choices[i].driver->name, plx_error());
	}
	return rc;
}

/* What net.ipv6.bindv6only says: each new socket has it. */
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

/* The same port of IPv4, for the drivers whose listeners at :: leave it out. */
static int listen_ipv4_also(struct plx_fabric_lcore *home, const struct place *place,
			    struct plx_listener *front)
{
	struct driver_choice choices[DRIVER_CHOICES_MAX];
	int count = driver_choose_for(&front->attr.link, choices);

	for (int i = 0; i < count; i++) {
		int rc = choices[i].driver->takes_ipv4
			       ? 0
			       : listen_also(home, &choices[i], place, front);

		if (rc && i + 1 == count)
			return rc;
		if (rc)
			plx_log(&fabric_log, PLX_LOG_NOTICE, "%s is not offered to IPv4: %s",
				choices[i].driver->name, plx_error());
	}
	return count < 1 ? count : 0;
}

static int listen_at_both(struct plx_fabric_lcore *home, struct place *place,
			  const struct plx_listen_attr *attr, struct plx_listener **front)
{
	int rc;

	place->host = "::";
	rc = listen_on(home, place, attr, front);
	if (rc == -EADDRINUSE || rc == -EACCES)
		return rc;
	place->host = "0.0.0.0";
	if (rc)
		return listen_on(home, place, attr, front);
	assert(*front && "it listens");
	if (!is_ipv6_without_ipv4())
		return 0;
	rc = listen_ipv4_also(home, place, *front);
	if (rc) {
		plx_listener_close(*front);
		*front = NULL;
	}
	return rc;
}

/* A free port at one address need not be free at another one. */
#define FREE_PORT_TRIES 16

/* Every address: IPv6 also accepts IPv4, or a second listener does; without IPv6 only IPv4 is used.
 */
static int listen_everywhere(struct plx_fabric_lcore *home, struct place *place,
			     const struct plx_listen_attr *attr, struct plx_listener **front)
{
	int rc = listen_at_both(home, place, attr, front);

	for (unsigned i = 1; i < FREE_PORT_TRIES && rc == -EADDRINUSE && *place->port == '0'; i++)
		rc = listen_at_both(home, place, attr, front);
	return rc;
}

/* Each address of a name. One that this host does not have now, as ::1 without IPv6, is left out,
 * unless it has none of them. */
static int listen_on_all(struct plx_fabric_lcore *home, struct place *place,
			 const struct address_list *addresses, const struct plx_listen_attr *attr,
			 struct plx_listener **front)
{
	int rc = 0;

	for (unsigned i = 0; i < addresses->count; i++) {
		place->host = addresses->hosts[i];
		rc = listen_on(home, place, attr, front);
		if (rc == 0 && i > 0)
			plx_log(&fabric_log, PLX_LOG_INFO, "listening on %s: on %s too",
				place->address, place->host);
		if (rc == -EADDRINUSE || rc == -EACCES)
			break;
	}
	if (*front && rc != -EADDRINUSE)
		return 0;
	plx_listener_close(*front);
	*front = NULL;
	return rc;
}

static int listen_at_name(struct plx_fabric_lcore *home, struct place *place,
			  const struct plx_listen_attr *attr, struct plx_listener **front)
{
	struct address_list addresses;
	const char *host = place->host;
	int rc = address_resolve("listen on", place->address, place->host, &addresses);

	if (rc)
		return rc;
	for (unsigned i = 0; i < FREE_PORT_TRIES; i++) {
		rc = listen_on_all(home, place, &addresses, attr, front);
		if (rc != -EADDRINUSE || strcmp(place->port, "0") != 0)
			break;
	}
	place->host = host;
	return rc;
}

int plx_link_listen(const char *address, const struct plx_listen_attr *attr,
		    struct plx_listener **listener_out)
{
	struct plx_fabric_lcore *home;
	char host[PLX_ADDRESS_MAX], port[PLX_ADDRESS_MAX];
	struct plx_listen_attr checked = *attr;
	struct place place = {address, host, port};
	struct plx_listener *front = NULL;

	int rc = fabric_here("plx_link_listen", &home);

	rc = rc ? rc : link_check_attr(&attr->link, &checked.link);
	rc = rc ? rc : spread_check(attr);
	rc = rc ? rc : address_split("listen on", address, host, port);
	if (rc)
		return rc;
	rc = host[0] ? listen_at_name(home, &place, &checked, &front)
		     : listen_everywhere(home, &place, &checked, &front);
	if (rc == 0)
		*listener_out = front;
	return rc;
}
