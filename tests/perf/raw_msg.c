/* SPDX-License-Identifier: BSD-3-Clause */
#include "raw_msg.h"

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
	int rc = fi_getinfo(RAW_API_VERSION, *options->host ? options->host : NULL, options->port,
			    options->listen ? FI_SOURCE : 0, hints, info_out);
	fi_freeinfo(hints);
	return rc ? not_found(options, rc) : check_device(options, *info_out);
}

static int open_fabric(const struct raw_options *options, struct raw_msg *msg)
{
	struct fi_eq_attr eq_attr = {.wait_obj = FI_WAIT_FD};
	int rc = find(options, msg->at.may_rdma, &msg->at.info);

	if (rc)
		return rc;
	msg->at.rdma = msg->at.info->domain_attr->mr_mode & FI_MR_LOCAL;
	rc = fi_fabric(msg->at.info->fabric_attr, &msg->at.fabric, NULL);
	rc = rc ? rc : fi_eq_open(msg->at.fabric, &eq_attr, &msg->eq, NULL);
	return rc ? raw_failed(rc, "cannot open the fabric") : 0;
}

static int open_endpoint(const struct raw_options *options, struct raw_msg *msg,
			 struct fi_info *info)
{
	msg->at.cq_wait = options->cq_cannot_sleep ? FI_WAIT_NONE : FI_WAIT_FD;
	int rc = raw_endpoint_open_domain(&msg->at, info);

	return rc ? rc : raw_endpoint_open(&msg->at, info, &msg->eq->fid);
}

void raw_msg_close(struct raw_msg *msg)
{
	if (msg->at.ep)
		fi_shutdown(msg->at.ep, 0);
	raw_close_fid(msg->at.ep ? &msg->at.ep->fid : NULL);
	raw_close_fid(msg->pep ? &msg->pep->fid : NULL);
	raw_close_fid(msg->eq ? &msg->eq->fid : NULL);
	raw_endpoint_close(&msg->at);
}

union event {
	struct fi_eq_cm_entry entry;
	uint8_t room[sizeof(struct fi_eq_cm_entry) + CM_DATA_BYTES];
};

static int event_error(struct raw_msg *msg)
{
	struct fi_eq_err_entry error = {0};

	fi_eq_readerr(msg->eq, &error, 0);
	return plx_fail(error.err > 0 ? error.err : EIO, "connection failed: %s",
			fi_strerror(error.err));
}

/* Wait for that event; returns the bytes of data that came with it. On tcp, reading the queue also
 * sends the answer to an accept. */
static ssize_t wait_event(struct raw_msg *msg, uint32_t wanted, uint64_t limit_ns, const char *what,
			  union event *event)
{
	uint64_t deadline_ns = plx_now_ns() + limit_ns;
	uint32_t got = 0;

	do {
		ssize_t n = fi_eq_read(msg->eq, &got, event, sizeof(*event), 0);
		if (n == -FI_EAVAIL)
			return event_error(msg);
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

static int say_where(struct raw_msg *msg)
{
	struct sockaddr_storage address = {0};
	size_t length = sizeof(address);
	char host[INET6_ADDRSTRLEN] = "", port[16];
	unsigned number;
	int rc = fi_getname(&msg->pep->fid, &address, &length);

	if (rc)
		return raw_failed(rc, "cannot tell the address");
	to_words(&address, host, sizeof(host), &number);
	snprintf(port, sizeof(port), "%u", number);
	raw_say_listening(host, port);
	return 0;
}

static int start_listening(const struct raw_options *options, struct raw_msg *msg)
{
	int rc = open_fabric(options, msg);

	if (rc)
		return rc;
	rc = fi_passive_ep(msg->at.fabric, msg->at.info, &msg->pep, NULL);
	rc = rc ? rc : fi_pep_bind(msg->pep, &msg->eq->fid, 0);
	rc = rc ? rc : fi_listen(msg->pep);
	if (rc)
		return plx_fail(rc > -FI_ERRNO_OFFSET ? -rc : EIO, "cannot listen on %s: %s",
				options->address, fi_strerror(-rc));
	raw_catch_signals();
	return say_where(msg);
}

int raw_msg_listen(const struct raw_options *options, struct raw_msg *msg, uint64_t *size_out)
{
	union event event;
	int rc = start_listening(options, msg);

	if (rc)
		return rc;
	ssize_t n = wait_event(msg, FI_CONNREQ, options->wait_ns, "a client", &event);
	if (n < 0)
		return (int)n;
	*size_out = 0;
	if (n >= (ssize_t)sizeof(*size_out))
		memcpy(size_out, event.entry.data, sizeof(*size_out));
	rc = *size_out && *size_out <= RAW_SIZE_MAX
		   ? open_endpoint(options, msg, event.entry.info)
		   : plx_fail(EPROTO, "the client asks for messages of %llu B",
			      (unsigned long long)*size_out);
	fi_freeinfo(event.entry.info);
	return rc;
}

int raw_msg_accept(struct raw_msg *msg)
{
	union event event;
	int rc = fi_accept(msg->at.ep, NULL, 0);

	if (rc)
		return raw_failed(rc, "cannot accept");
	ssize_t n = wait_event(msg, FI_CONNECTED, RAW_PEER_NS, "the connection", &event);
	return n < 0 ? (int)n : 0;
}

static int connect_once(const struct raw_options *options, struct raw_msg *msg)
{
	union event event;
	int rc = open_fabric(options, msg);

	rc = rc ? rc : open_endpoint(options, msg, msg->at.info);
	if (rc)
		return rc;
	rc = fi_connect(msg->at.ep, msg->at.info->dest_addr, &options->size, sizeof(options->size));
	if (rc)
		return raw_failed(rc, "cannot connect");
	ssize_t n = wait_event(msg, FI_CONNECTED, RAW_CONNECT_NS, "the server", &event);
	return n < 0 ? (int)n : 0;
}

int raw_msg_connect(const struct raw_options *options, struct raw_msg *msg)
{
	uint64_t deadline_ns = plx_now_ns() + RAW_CONNECT_NS;
	struct raw_msg fresh = *msg;
	int rc = connect_once(options, msg);

	while (rc == -ECONNREFUSED && plx_now_ns() < deadline_ns) {
		raw_msg_close(msg);
		usleep(RETRY_US);
		*msg = fresh;
		rc = connect_once(options, msg);
	}
	return rc ? plx_fail_in(rc, "%s: ", options->address) : 0;
}

int raw_msg_gone(struct raw_msg *msg)
{
	union event event;
	uint32_t got = 0;
	ssize_t n = msg->at.rdma ? fi_eq_read(msg->eq, &got, &event, sizeof(event), 0) : -FI_EAGAIN;

	if (n == -FI_EAVAIL)
		return event_error(msg);
	return n >= 0 && got == FI_SHUTDOWN ? plx_fail(EPIPE, "the peer is gone") : 0;
}
