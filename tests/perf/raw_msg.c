/* SPDX-License-Identifier: BSD-3-Clause */
/* Two connected endpoints (FI_EP_MSG). */
#include "raw_endpoint.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#define CM_DATA_BYTES 64
#define RETRY_US      20000
#define EQ_NAP_US     100

static void to_words(const void *address, char *host, size_t size, unsigned *port_out)
{
	const struct sockaddr_in *in = address;
	const struct sockaddr_in6 *in6 = address;
	bool six = in->sin_family == AF_INET6;

	inet_ntop(in->sin_family, six ? (const void *)&in6->sin6_addr : (const void *)&in->sin_addr,
		  host, (socklen_t)size);
	*port_out = ntohs(six ? in6->sin6_port : in->sin_port);
}

static int not_found(const struct raw_options *options, int rc)
{
	bool verbs = strcmp(options->provider, "verbs") == 0;

	return plx_fail(rc == -FI_ENODATA ? ENODEV : EIO,
			"provider %s has no FI_EP_MSG endpoint for %s: %s%s", options->provider,
			options->address, fi_strerror(-rc),
			verbs ? "; an address of an RDMA device is needed, as plx-info shows them, "
				"and to listen a free port"
			      : "");
}

/* If no device has the requested address, verbs listens elsewhere. */
static int check_device(const struct raw_options *options, const struct fi_info *info)
{
	char host[INET6_ADDRSTRLEN] = "", node[sizeof(struct in6_addr)];
	unsigned port;

	if (!options->listen || !info->src_addr || !(info->domain_attr->mr_mode & FI_MR_LOCAL) ||
	    (inet_pton(AF_INET, options->host, node) != 1 &&
	     inet_pton(AF_INET6, options->host, node) != 1))
		return 0;
	to_words(info->src_addr, host, sizeof(host), &port);
	return strcmp(host, options->host) ? not_found(options, -FI_ENODATA) : 0;
}

static int find(const struct raw_options *options, bool may_rdma, struct fi_info **info_out)
{
	struct fi_info *hints = fi_allocinfo();

	hints->caps = FI_MSG;
	hints->ep_attr->type = FI_EP_MSG;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	if (may_rdma) {
		hints->mode = FI_RX_CQ_DATA;
		hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED |
					      FI_MR_PROV_KEY;
	}
	hints->fabric_attr->prov_name = strdup(options->provider);
	int rc = fi_getinfo(RAW_API_VERSION, options->host, options->port,
			    options->listen ? FI_SOURCE : 0, hints, info_out);
	fi_freeinfo(hints);
	return rc ? not_found(options, rc) : check_device(options, *info_out);
}

static int open_fabric(const struct raw_options *options, struct raw_endpoint *at)
{
	struct fi_eq_attr eq_attr = {.wait_obj = FI_WAIT_FD};
	int rc = find(options, at->may_rdma, &at->info);

	if (rc)
		return rc;
	at->rdma = at->info->domain_attr->mr_mode & FI_MR_LOCAL;
	rc = fi_fabric(at->info->fabric_attr, &at->fabric, NULL);
	rc = rc ? rc : fi_eq_open(at->fabric, &eq_attr, &at->eq, NULL);
	return rc ? raw_failed(rc, "cannot open the fabric") : 0;
}

static int open_endpoint(const struct raw_options *options, struct raw_endpoint *at,
			 struct fi_info *info)
{
	at->cq_wait = options->cq_cannot_sleep ? FI_WAIT_NONE : FI_WAIT_FD;
	int rc = raw_endpoint_open_domain(at, info);

	return rc ? rc : raw_endpoint_open(at, info, &at->eq->fid);
}

union event {
	struct fi_eq_cm_entry entry;
	uint8_t room[sizeof(struct fi_eq_cm_entry) + CM_DATA_BYTES];
};

static int event_error(struct raw_endpoint *at)
{
	struct fi_eq_err_entry error = {0};

	fi_eq_readerr(at->eq, &error, 0);
	return plx_fail(error.err > 0 ? error.err : EIO, "connection failed: %s",
			fi_strerror(error.err));
}

/* Wait for that event; returns the bytes of data that came with it. On tcp, reading the queue also
 * sends the answer to an accept. */
static ssize_t wait_event(struct raw_endpoint *at, uint32_t wanted, uint64_t limit_ns,
			  const char *what, union event *event)
{
	uint64_t deadline_ns = plx_now_ns() + limit_ns;
	uint32_t got = 0;

	do {
		ssize_t n = fi_eq_read(at->eq, &got, event, sizeof(*event), 0);
		if (n == -FI_EAVAIL)
			return event_error(at);
		if (n >= 0)
			return got == wanted
				     ? n - (ssize_t)sizeof(event->entry)
				     : plx_fail(EPROTO, "event %u came instead of %s", got, what);
		if (n != -FI_EAGAIN)
			return raw_failed(n, "cannot read the event queue");
		usleep(EQ_NAP_US);
		/* Relaxed: see raw_run_add. */
		if (atomic_load_explicit(&raw_stop, memory_order_relaxed))
			return plx_fail(EINTR, "stopped while waiting for %s", what);
	} while (plx_now_ns() < deadline_ns);
	return plx_fail(ETIMEDOUT, "waited %.0f s in vain for %s",
			(double)limit_ns / (double)PLX_NS_PER_S, what);
}

static int say_where(struct raw_endpoint *at)
{
	struct sockaddr_storage address = {0};
	size_t length = sizeof(address);
	char host[INET6_ADDRSTRLEN] = "";
	unsigned port;
	int rc = fi_getname(&at->pep->fid, &address, &length);

	if (rc)
		return raw_failed(rc, "cannot tell the address");
	to_words(&address, host, sizeof(host), &port);
	plx_app_say(strchr(host, ':') ? "listening on [%s]:%u" : "listening on %s:%u", host, port);
	return 0;
}

static int start_listening(const struct raw_options *options, struct raw_endpoint *at)
{
	int rc = open_fabric(options, at);

	if (rc)
		return rc;
	rc = fi_passive_ep(at->fabric, at->info, &at->pep, NULL);
	rc = rc ? rc : fi_pep_bind(at->pep, &at->eq->fid, 0);
	rc = rc ? rc : fi_listen(at->pep);
	if (rc)
		return plx_fail(rc > -FI_ERRNO_OFFSET ? -rc : EIO, "cannot listen on %s: %s",
				options->address, fi_strerror(-rc));
	raw_catch_signals();
	return say_where(at);
}

static int listen_for_one(const struct raw_options *options, struct raw_endpoint *at,
			  uint64_t *size_out)
{
	union event event;
	int rc = start_listening(options, at);

	if (rc)
		return rc;
	ssize_t n = wait_event(at, FI_CONNREQ, options->wait_ns, "a client", &event);
	if (n < 0)
		return (int)n;
	*size_out = 0;
	if (n >= (ssize_t)sizeof(*size_out))
		memcpy(size_out, event.entry.data, sizeof(*size_out));
	rc = *size_out && *size_out <= RAW_SIZE_MAX
		   ? open_endpoint(options, at, event.entry.info)
		   : plx_fail(EPROTO, "the client asks for messages of %llu B",
			      (unsigned long long)*size_out);
	fi_freeinfo(event.entry.info);
	return rc;
}

static int accept_it(struct raw_endpoint *at)
{
	union event event;
	int rc = fi_accept(at->ep, NULL, 0);

	if (rc)
		return raw_failed(rc, "cannot accept");
	ssize_t n = wait_event(at, FI_CONNECTED, RAW_PEER_NS, "the connection", &event);
	return n < 0 ? (int)n : 0;
}

static int connect_once(const struct raw_options *options, struct raw_endpoint *at)
{
	union event event;
	int rc = open_fabric(options, at);

	rc = rc ? rc : open_endpoint(options, at, at->info);
	if (rc)
		return rc;
	rc = fi_connect(at->ep, at->info->dest_addr, &options->size, sizeof(options->size));
	if (rc)
		return raw_failed(rc, "cannot connect");
	ssize_t n = wait_event(at, FI_CONNECTED, RAW_CONNECT_NS, "the server", &event);
	return n < 0 ? (int)n : 0;
}

static int connect_to(const struct raw_options *options, struct raw_endpoint *at)
{
	uint64_t deadline_ns = plx_now_ns() + RAW_CONNECT_NS;
	struct raw_endpoint fresh = *at;
	int rc = connect_once(options, at);

	while (rc == -ECONNREFUSED && plx_now_ns() < deadline_ns) {
		raw_endpoint_close(at);
		usleep(RETRY_US);
		*at = fresh;
		rc = connect_once(options, at);
	}
	return rc ? plx_fail_in(rc, "%s: ", options->address) : 0;
}

static int look_for_end(struct raw_endpoint *at)
{
	union event event;
	uint32_t got = 0;
	ssize_t n = at->rdma ? fi_eq_read(at->eq, &got, &event, sizeof(event), 0) : -FI_EAGAIN;

	if (n == -FI_EAVAIL)
		return event_error(at);
	return n >= 0 && got == FI_SHUTDOWN ? plx_fail(EPIPE, "the peer is gone") : 0;
}

const struct raw_kind raw_msg = {listen_for_one, accept_it, connect_to, look_for_end};
