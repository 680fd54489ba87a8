/* SPDX-License-Identifier: BSD-3-Clause */
/* Listeners, and what becomes of a connection request: the listener's lcore reads it and asks where
 * the link shall live; that lcore opens an endpoint for it in its own domain, and accepts. Only the
 * listener's lcore may touch the passive endpoint, so a refusal goes back there. */
#include "fabric_priv.h"

#include <stdio.h>
#include <stdlib.h>

/* Counters ------------------------------------------------------------------------------------ */

static struct listener_shared *shared_create(void)
{
	struct listener_shared *shared = calloc(1, sizeof(*shared));

	if (!shared)
		return NULL;
	pthread_mutex_init(&shared->lock, NULL);
	atomic_init(&shared->refs, 1);
	return shared;
}

static void shared_ref(struct listener_shared *shared)
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
	pthread_mutex_destroy(&shared->lock);
	free(shared);
}

/* Relaxed throughout: each counter stands for itself. */
static void count(_Atomic uint64_t *counter)
{
	atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

void listener_opened(struct listener_shared *shared)
{
	count(&shared->opened);
}

/* A link of that listener ended before it was open: nobody but the log and the counters hears. */
void listener_failed(struct listener_shared *shared, struct plx_set *set, const char *peer,
		     const char *text)
{
	count(&shared->failed);
	pthread_mutex_lock(&shared->lock);
	snprintf(shared->last_failure, sizeof(shared->last_failure), "%s", text);
	pthread_mutex_unlock(&shared->lock);
	if (plx_log_allowed(&set->log_limit, plx_loop_now_ns()))
		plx_log(&fabric_log, PLX_LOG_WARNING, "connection from %s dropped: %s", peer, text);
}

void plx_listener_stats(const struct plx_listener *listener, struct plx_listener_stats *stats_out)
{
	struct listener_shared *shared = listener->shared;

	stats_out->requests = atomic_load_explicit(&shared->requests, memory_order_relaxed);
	stats_out->opened = atomic_load_explicit(&shared->opened, memory_order_relaxed);
	stats_out->refused = atomic_load_explicit(&shared->refused, memory_order_relaxed);
	stats_out->failed = atomic_load_explicit(&shared->failed, memory_order_relaxed);
	pthread_mutex_lock(&shared->lock);
	memcpy(stats_out->last_failure, shared->last_failure, sizeof(stats_out->last_failure));
	pthread_mutex_unlock(&shared->lock);
}

/* Requests ------------------------------------------------------------------------------------ */

/* A request on its way to the lcore that its link shall live on, and back if it cannot. */
struct request {
	struct plx_listener *listener;
	uint32_t home, target;
	const struct plx_fabric_driver *driver;
	char provider[32];
	struct plx_link_attr attr;
	struct listener_shared *shared;
	struct fi_info *info;
	uint16_t port;
};

static void refuse(struct plx_listener *listener, struct fi_info *info, const char *why)
{
	char peer[PLX_ADDRESS_MAX];

	address_format(info->dest_addr, peer, sizeof(peer));
	count(&listener->shared->refused);
	if (info->handle) /* else an endpoint took it, and closing that dropped it */
		fi_reject(listener->pep, info->handle, NULL, 0);
	if (plx_log_allowed(&listener->set->log_limit, plx_loop_now_ns()))
		plx_log(&fabric_log, PLX_LOG_WARNING, "connection from %s refused: %s", peer, why);
}

static void release(struct plx_listener *listener)
{
	if (--listener->handed_over == 0 && listener->closed)
		listener_free(listener);
}

/* On the listener's lcore: another lcore has taken the request over, or could not. */
static void request_answered(void *arg)
{
	struct request *request = arg;

	if (request->info) {
		refuse(request->listener, request->info, "no memory or descriptors for it");
		fi_freeinfo(request->info);
	}
	release(request->listener);
	free(request);
}

static void on_answer_blocked(void *arg);

/* Tell the listener's lcore. Its queue may be full: then this lcore tries again each turn. */
static void answer(struct request *request)
{
	if (plx_lcore_send(request->home, request_answered, request) == -EAGAIN)
		plx_lcore_send(request->target, on_answer_blocked, request);
}

static void on_answer_blocked(void *arg)
{
	answer(arg);
}

static int accept_link(struct plx_link *link)
{
	int rc = fi_accept(link->ep, NULL, 0);

	if (rc)
		return plx_fail(EIO, "accepting %s failed: %s", link->peer, fi_strerror(-rc));
	return plx_timer_start(&link->timer, link->attr.connect_timeout_ns);
}

/* Open an endpoint for the request here and accept. Return: 0; -errno while the request can still
 * be refused; a failure past that point ends the link by itself. */
static int take_request(const struct request *request)
{
	struct plx_fabric_lcore *here = fabric_here();
	struct plx_set *set = here ? set_get(here, request->driver, request->provider,
					     request->info)
				   : NULL;
	struct plx_link *link;

	if (!set)
		return -ENOMEM;

	int rc = link_create(set, &request->attr, request->info, &link);
	if (rc)
		return rc;
	address_format(request->info->dest_addr, link->peer, sizeof(link->peer));
	shared_ref(request->shared);
	link->from = request->shared;
	hygiene_close_on_exec_port(request->port);
	if (accept_link(link) != 0)
		link_end(link, PLX_LINK_LOCAL, "%s", plx_error());
	return 0;
}

static void on_request(void *arg)
{
	struct request *request = arg;

	if (take_request(request) == 0) {
		fi_freeinfo(request->info);
		request->info = NULL;
	}
	answer(request);
}

static struct request *make_request(struct plx_listener *listener, uint32_t target,
				    struct fi_info *info)
{
	struct request *request = malloc(sizeof(*request));

	if (!request)
		return NULL;
	*request = (struct request){
		.listener = listener,
		.home = listener->set->home->id,
		.target = target,
		.driver = listener->set->driver,
		.attr = listener->attr.link,
		.shared = listener->shared,
		.info = info,
		.port = listener->port,
	};
	memcpy(request->provider, listener->set->provider, sizeof(request->provider));
	return request;
}

static void hand_over(struct plx_listener *listener, uint32_t target, struct fi_info *info)
{
	struct request *request = make_request(listener, target, info);
	int rc = request ? plx_lcore_send(target, on_request, request) : -ENOMEM;

	if (rc == 0) {
		listener->handed_over++;
		return;
	}
	refuse(listener, info,
	       rc == -ENOENT ? "placed on an lcore that does not exist"
			     : "the lcore it was placed on is too busy");
	fi_freeinfo(info);
	free(request);
}

/* FI_CONNREQ. info is ours. */
void listen_request(struct plx_listener *listener, struct fi_info *info)
{
	uint32_t here = listener->set->home->id;
	uint32_t target = here;

	count(&listener->shared->requests);
	listener->handed_over++; /* so that the listener outlives its own callback */
	if (listener->attr.spread == PLX_SPREAD_CALLBACK && !listener->closed) {
		char peer[PLX_ADDRESS_MAX];

		address_format(info->dest_addr, peer, sizeof(peer));
		target = listener->attr.place(listener, peer, listener->attr.place_arg);
	}
	if (listener->closed) {
		refuse(listener, info, "the listener is closed");
		fi_freeinfo(info);
	} else if (target != here) {
		hand_over(listener, target, info);
	} else {
		struct request *request = make_request(listener, here, info);

		if (!request || take_request(request) != 0)
			refuse(listener, info, request ? plx_error() : "out of memory");
		fi_freeinfo(info);
		free(request);
	}
	release(listener);
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
	default:
		return plx_fail(EIO, "listen on %s: %s", address, fi_strerror(-rc));
	}
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
	rc = fi_pep_bind(listener->pep, &listener->set->fids.eq->fid, 0);
	rc = rc ? rc : fi_listen(listener->pep);
	rc = rc ? rc : fi_getname(&listener->pep->fid, &name, &len);
	if (rc)
		return listen_failed(address, rc);
	address_format((struct sockaddr *)&name, listener->address, sizeof(listener->address));
	listener->port = address_port((struct sockaddr *)&name);
	hygiene_close_on_exec_port(listener->port);
	return 0;
}

static int listen_with(struct plx_set *set, const char *address, struct fi_info *info,
		       const struct plx_listen_attr *attr, struct plx_listener **listener_out)
{
	struct plx_listener *listener = calloc(1, sizeof(*listener));
	int rc;

	if (!listener)
		return plx_fail(ENOMEM, "out of memory");
	listener->kind = FID_LISTENER;
	listener->set = set;
	listener->attr = *attr;
	listener->shared = shared_create();
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

static int listen_on(struct plx_fabric_lcore *home, const char *address, const char *host,
		     const char *port, const struct plx_listen_attr *attr,
		     struct plx_listener **listener_out)
{
	const struct plx_fabric_driver *driver;
	const char *provider;
	struct fi_info *info;
	int rc = driver_find("provider", attr->link.provider, &driver, &provider);

	if (rc)
		return rc;
	rc = driver_getinfo(driver, provider, host, port, FI_SOURCE, &info);
	if (rc)
		return rc;

	struct plx_set *set = set_get(home, driver, provider, info);

	rc = set ? listen_with(set, address, info, attr, listener_out) : -EIO;
	fi_freeinfo(info);
	return rc;
}

int plx_link_listen(const char *address, const struct plx_listen_attr *attr,
		    struct plx_listener **listener_out)
{
	struct plx_fabric_lcore *home = fabric_here();
	char host[PLX_ADDRESS_MAX], port[PLX_ADDRESS_MAX];
	struct plx_listen_attr checked = *attr;

	if (!home)
		return fabric_missing();

	int rc = link_check_attr(&attr->link, &checked.link);
	if (rc)
		return rc;
	rc = address_split("listen on", address, host, port);
	if (rc)
		return rc;
	if (host[0] != '\0')
		return listen_on(home, address, host, port, &checked, listener_out);
	/* Every address: IPv6's takes IPv4 as well; a host without IPv6 has only the other. */
	rc = listen_on(home, address, "::", port, &checked, listener_out);
	if (rc && rc != -EADDRINUSE && rc != -EACCES)
		rc = listen_on(home, address, "0.0.0.0", port, &checked, listener_out);
	return rc;
}

const char *plx_listener_address(const struct plx_listener *listener)
{
	return listener->address;
}

void listener_free(struct plx_listener *listener)
{
	if (listener->pep)
		fi_close(&listener->pep->fid);
	listener_unref(listener->shared);
	free(listener);
}

void plx_listener_close(struct plx_listener *listener)
{
	if (!listener)
		return;
	for (struct plx_listener **at = &listener->set->home->listeners; *at; at = &(*at)->next) {
		if (*at == listener) {
			*at = listener->next;
			break;
		}
	}
	listener->set->listeners--;
	listener->closed = true;
	if (listener->handed_over == 0)
		listener_free(listener);
}
