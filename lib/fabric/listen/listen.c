/* SPDX-License-Identifier: BSD-3-Clause */
/* Listeners: passive endpoints, and what is counted of them. What comes in is handover.c's. */
#include "fabric_link.h"
#include "fabric_listen.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

/* Counters ------------------------------------------------------------------------------------ */

static struct listener_shared *shared_create(const struct plx_admission *limits)
{
	struct listener_shared *shared = calloc(1, sizeof(*shared));

	if (!shared)
		return NULL;
	pthread_mutex_init(&shared->lock, NULL);
	admission_init(&shared->admission, limits);
	atomic_init(&shared->refs, 1);
	return shared;
}

void listener_ref(struct listener_shared *shared)
{
	/* Relaxed: whoever copies a reference holds one. */
	atomic_fetch_add_explicit(&shared->refs, 1, memory_order_relaxed);
}

void listener_unref(struct listener_shared *shared)
{
	/* U1 -> U2: all uses of one holder come before the free by the last one. Each decrement is
	 * both ends of the edge. */
	if (!shared || atomic_fetch_sub_explicit(&shared->refs, 1, memory_order_acq_rel) != 1)
		return;
	admission_fini(&shared->admission);
	pthread_mutex_destroy(&shared->lock);
	free(shared);
}

/* Relaxed throughout: each counter stands for itself. */
static void count(_Atomic uint64_t *counter)
{
	atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

void listener_requested(struct listener_shared *shared)
{
	count(&shared->requests);
}

void listener_refused(struct listener_shared *shared)
{
	count(&shared->refused);
}

void listener_opened(struct listener_shared *shared)
{
	count(&shared->opened);
}

void listener_protocol_broken(struct listener_shared *shared)
{
	count(&shared->protocol_broken);
}

/* A link of that listener ended before it was open: nobody but the log and the counters hears. */
void listener_failed(const struct plx_link *link)
{
	struct listener_shared *shared = link->from;

	count(&shared->failed);
	pthread_mutex_lock(&shared->lock);
	snprintf(shared->last_failure, sizeof(shared->last_failure), "%.*s",
		 (int)sizeof(shared->last_failure) - 1, link->text);
	pthread_mutex_unlock(&shared->lock);
	/* Relaxed: what was logged need not be logged again. */
	if (atomic_load_explicit(&link->ticket->evicted, memory_order_relaxed))
		return;
	if (link->reason == PLX_LINK_HELLO)
		stranger_tell(link, "it ", plx_link_without_peer(link, link->text));
	else if (plx_log_allowed(&link->set->log_limit, plx_loop_now_ns()))
		plx_log(&fabric_log, PLX_LOG_WARNING, "connection from %s dropped: %s", link->peer,
			plx_link_without_peer(link, link->text));
}

void listener_out_of_descriptors(struct plx_set *set)
{
	plx_log(&fabric_log, PLX_LOG_WARNING,
		"lcore %u: %s: a connection cannot be accepted, as this process has used up its "
		"%" PRIu64 " descriptors; trying again in 1 s. `ulimit -n` raises the limit",
		set->home->id, set->label, hygiene_descriptor_limit());
}

void plx_listener_stats(const struct plx_listener *listener, struct plx_listener_stats *stats_out)
{
	struct listener_shared *shared = listener->shared;

	stats_out->requests = atomic_load_explicit(&shared->requests, memory_order_relaxed);
	stats_out->opened = atomic_load_explicit(&shared->opened, memory_order_relaxed);
	stats_out->refused = atomic_load_explicit(&shared->refused, memory_order_relaxed);
	stats_out->refused_links = admission_count(&shared->admission, ADMISSION_LINKS);
	stats_out->refused_host = admission_count(&shared->admission, ADMISSION_HOST);
	stats_out->refused_rate = admission_count(&shared->admission, ADMISSION_RATE);
	stats_out->evicted = admission_count(&shared->admission, ADMISSION_EVICTED);
	stats_out->failed = atomic_load_explicit(&shared->failed, memory_order_relaxed);
	stats_out->no_handshake = atomic_load_explicit(&shared->no_handshake, memory_order_relaxed);
	stats_out->protocol_broken = atomic_load_explicit(&shared->protocol_broken,
							  memory_order_relaxed);
	pthread_mutex_lock(&shared->lock);
	memcpy(stats_out->last_failure, shared->last_failure, sizeof(stats_out->last_failure));
	pthread_mutex_unlock(&shared->lock);
}

/* Listening ----------------------------------------------------------------------------------- */

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
		return plx_fail(EIO, "listen on %s: %s", address, hygiene_strerror(rc));
	}
}

static void guard(const struct plx_listener *listener)
{
	struct plx_fabric_guard guard = {
		.handshakes_max = listener->shared->admission.limits.handshakes_max,
		.refused = stranger_refused,
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
	listener->shared = front ? front->shared : shared_create(&attr->admission);
	if (front)
		listener_ref(front->shared);
	rc = listener->shared ? open_passive(listener, address, info)
			      : plx_fail(ENOMEM, "out of memory");
	if (rc) {
		listener_free(listener);
		return rc;
	}
	listener->next = set->home->listeners;
	set->home->listeners = listener;
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
	struct plx_fabric_lcore *home = fabric_here("plx_link_listen");
	char host[PLX_ADDRESS_MAX], port[PLX_ADDRESS_MAX];
	struct plx_listen_attr checked = *attr;
	struct place place = {address, host, port};
	struct plx_listener *front = NULL;

	if (!home)
		return fabric_missing();

	int rc = link_check_attr(&attr->link, &checked.link);
	if (rc == 0)
		rc = spread_check(attr);
	if (rc)
		return rc;
	rc = address_split("listen on", address, host, port);
	if (rc)
		return rc;
	rc = host[0] ? listen_at_name(home, &place, &checked, &front)
		     : listen_everywhere(home, &place, &checked, &front);
	if (rc == 0)
		*listener_out = front;
	return rc;
}

const char *plx_listener_address(const struct plx_listener *listener)
{
	return listener->address;
}

unsigned plx_listener_port(const struct plx_listener *listener)
{
	return listener ? listener->port : 0;
}

/* One that failed to listen is not in the list. */
static void delist(struct plx_listener *listener)
{
	struct plx_listener **at = &listener->set->home->listeners;

	while (*at && *at != listener)
		at = &(*at)->next;
	if (!*at)
		return;
	*at = listener->next;
	listener->set->listeners--;
}

/* The user's listener outlives those that belong to it, so that they can name it. */
static void part_from_front(struct plx_listener *listener)
{
	struct plx_listener **at = &listener->front->also;

	while (*at && *at != listener)
		at = &(*at)->also;
	if (*at)
		*at = listener->also;
}

/* But for plx_fabric_fini, which ends all of them in any order. */
static void part_from_all(struct plx_listener *front)
{
	for (struct plx_listener *also = front->also, *next; also; also = next) {
		next = also->also;
		also->also = NULL;
		also->front = also;
	}
}

/* Requests that are on their way are refused. */
void listener_free(struct plx_listener *listener)
{
	struct plx_listener *front = listener->front;

	handover_drop_all(listener);
	delist(listener);
	if (front != listener)
		part_from_front(listener);
	else
		part_from_all(listener);
	if (listener->pep)
		retire_pep(listener->set, listener->pep);
	listener_unref(listener->shared);
	free(listener);
	if (front != listener)
		listener_release(front);
}

/* Free it if it is closed, and nothing needs it any more. */
void listener_release(struct plx_listener *listener)
{
	bool named = listener->front == listener && listener->also;

	if (listener->closed && !listener->placing && !listener->requests && !named)
		listener_free(listener);
}

void plx_listener_close(struct plx_listener *listener)
{
	if (!listener || listener->closed || plx_is_forked())
		return;
	ASSERT_OWNER(listener->set->home->id);
	plx_listener_close(listener->also);
	listener->closed = true;
	listener_release(listener);
}
