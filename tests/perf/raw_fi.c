/* SPDX-License-Identifier: BSD-3-Clause */
/* The leanest ping-pong on a connected endpoint (FI_EP_MSG) of libfabric: one completion queue that
 * is read in a spin, receives posted ahead, sends injected or without completion, nothing else. It
 * is the floor of every link on the same provider.
 *
 * A buffer that was sent without completion is free again when the next message of the other side
 * is there, for that side answers only what it has got in full. */
#include "raw_common.h"

#include <arpa/inet.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define API_VERSION   FI_VERSION(1, 17)
#define CM_DATA_BYTES 64
#define RETRY_US      20000
#define EQ_NAP_US     100
#define CQ_ENTRIES    64
#define SMALL_BYTES   4096
#define SMALL_POSTED  8
#define LARGE_POSTED  2 /* few, so that they stay in the cache as one buffer would */

struct side {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_eq *eq;
	struct fid_pep *pep;
	struct fid_domain *domain;
	struct fid_cq *cq;
	struct fid_ep *ep;
	uint8_t *buffers[SMALL_POSTED];
	struct fi_context contexts[SMALL_POSTED]; /* the receive's index is its place here */
	unsigned posted;
	size_t size;
	bool inject;
	bool cq_cannot_sleep;
};

static int failed(ssize_t rc, const char *what)
{
	return plx_fail(rc > -FI_ERRNO_OFFSET ? (int)-rc : EIO, "%s: %s", what,
			fi_strerror((int)-rc));
}

/* Setting up ------------------------------------------------------------------------------- */

static int find(const struct raw_options *options, struct fi_info **info_out)
{
	struct fi_info *hints = fi_allocinfo();

	hints->caps = FI_MSG;
	hints->ep_attr->type = FI_EP_MSG;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->fabric_attr->prov_name = strdup(options->provider);
	int rc = fi_getinfo(API_VERSION, *options->host ? options->host : NULL, options->port,
			    options->listen ? FI_SOURCE : 0, hints, info_out);
	fi_freeinfo(hints);
	if (rc)
		return plx_fail(rc == -FI_ENODATA ? ENODEV : EIO,
				"provider %s has no FI_EP_MSG endpoint for %s: %s",
				options->provider, options->address, fi_strerror(-rc));
	return 0;
}

static int open_fabric(const struct raw_options *options, struct side *side)
{
	struct fi_eq_attr eq_attr = {.wait_obj = FI_WAIT_FD};
	int rc = find(options, &side->info);

	if (rc)
		return rc;
	rc = fi_fabric(side->info->fabric_attr, &side->fabric, NULL);
	if (!rc)
		rc = fi_eq_open(side->fabric, &eq_attr, &side->eq, NULL);
	return rc ? failed(rc, "cannot open the fabric") : 0;
}

static int open_endpoint(struct side *side, struct fi_info *info)
{
	struct fi_cq_attr cq_attr = {
		.size = CQ_ENTRIES,
		.format = FI_CQ_FORMAT_MSG,
		.wait_obj = side->cq_cannot_sleep ? FI_WAIT_NONE : FI_WAIT_FD,
	};
	int rc = fi_domain(side->fabric, info, &side->domain, NULL);

	if (!rc)
		rc = fi_cq_open(side->domain, &cq_attr, &side->cq, NULL);
	if (!rc)
		rc = fi_endpoint(side->domain, info, &side->ep, NULL);
	if (!rc)
		rc = fi_ep_bind(side->ep, &side->eq->fid, 0);
	if (!rc)
		rc = fi_ep_bind(side->ep, &side->cq->fid, FI_TRANSMIT | FI_SELECTIVE_COMPLETION);
	if (!rc)
		rc = fi_ep_bind(side->ep, &side->cq->fid, FI_RECV);
	if (!rc)
		rc = fi_enable(side->ep);
	raw_catch_signals();
	return rc ? failed(rc, "cannot make an endpoint") : 0;
}

static int post(struct side *side, unsigned index)
{
	ssize_t rc = fi_recv(side->ep, side->buffers[index], side->size, NULL, 0,
			     &side->contexts[index]);

	return rc ? failed(rc, "cannot post a receive") : 0;
}

static int post_all(struct side *side, size_t size, size_t inject_size)
{
	int rc = 0;

	side->size = size;
	side->inject = size <= inject_size;
	side->posted = size <= SMALL_BYTES ? SMALL_POSTED : LARGE_POSTED;
	for (unsigned i = 0; i < side->posted && !rc; i++) {
		side->buffers[i] = raw_buffer(size);
		rc = side->buffers[i] ? post(side, i) : -ENOMEM;
	}
	return rc;
}

static void close_fid(struct fid *fid)
{
	if (fid)
		fi_close(fid);
}

static void close_side(struct side *side)
{
	if (side->ep)
		fi_shutdown(side->ep, 0);
	close_fid(side->ep ? &side->ep->fid : NULL);
	close_fid(side->cq ? &side->cq->fid : NULL);
	close_fid(side->pep ? &side->pep->fid : NULL);
	close_fid(side->domain ? &side->domain->fid : NULL);
	close_fid(side->eq ? &side->eq->fid : NULL);
	close_fid(side->fabric ? &side->fabric->fid : NULL);
	fi_freeinfo(side->info);
	for (unsigned i = 0; i < side->posted; i++)
		free(side->buffers[i]);
}

/* Connecting ------------------------------------------------------------------------------- */

union event {
	struct fi_eq_cm_entry entry;
	uint8_t room[sizeof(struct fi_eq_cm_entry) + CM_DATA_BYTES];
};

static int event_error(struct side *side)
{
	struct fi_eq_err_entry error = {0};

	fi_eq_readerr(side->eq, &error, 0);
	return plx_fail(error.err ? error.err : EIO, "connection failed: %s",
			fi_strerror(error.err));
}

/* Wait for that event; the bytes of data that came with it are returned. On tcp reading the queue
 * is also what sends the answer to an accept. */
static ssize_t wait_event(struct side *side, uint32_t wanted, uint64_t limit_ns, const char *what,
			  union event *event)
{
	uint64_t deadline_ns = plx_now_ns() + limit_ns;
	uint32_t got = 0;

	do {
		ssize_t n = fi_eq_read(side->eq, &got, event, sizeof(*event), 0);
		if (n == -FI_EAVAIL)
			return event_error(side);
		if (n >= 0)
			return got == wanted
				     ? n - (ssize_t)sizeof(event->entry)
				     : plx_fail(EPROTO, "event %u came instead of %s", got, what);
		if (n != -FI_EAGAIN)
			return failed(n, "cannot read the event queue");
		usleep(EQ_NAP_US);
		/* Relaxed: see raw_run_add. */
		if (atomic_load_explicit(&raw_stop, memory_order_relaxed))
			return plx_fail(EINTR, "stopped while waiting for %s", what);
	} while (plx_now_ns() < deadline_ns);
	return plx_fail(ETIMEDOUT, "waited %.0f s in vain for %s",
			(double)limit_ns / (double)PLX_NS_PER_S, what);
}

static int say_where(struct side *side)
{
	struct sockaddr_storage address = {0};
	size_t length = sizeof(address);
	char host[INET6_ADDRSTRLEN] = "", port[8];
	int rc = fi_getname(&side->pep->fid, &address, &length);

	if (rc)
		return failed(rc, "cannot tell the address");
	bool six = address.ss_family == AF_INET6;
	struct sockaddr_in *in = (struct sockaddr_in *)&address;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&address;
	inet_ntop(address.ss_family, six ? (void *)&in6->sin6_addr : (void *)&in->sin_addr, host,
		  sizeof(host));
	snprintf(port, sizeof(port), "%u", ntohs(six ? in6->sin6_port : in->sin_port));
	raw_say_listening(host, port);
	return 0;
}

static int start_listening(const struct raw_options *options, struct side *side)
{
	int rc = open_fabric(options, side);

	if (rc)
		return rc;
	rc = fi_passive_ep(side->fabric, side->info, &side->pep, NULL);
	if (!rc)
		rc = fi_pep_bind(side->pep, &side->eq->fid, 0);
	if (!rc)
		rc = fi_listen(side->pep);
	if (rc)
		return plx_fail(rc > -FI_ERRNO_OFFSET ? -rc : EIO, "cannot listen on %s: %s",
				options->address, fi_strerror(-rc));
	raw_catch_signals();
	return say_where(side);
}

static int accept_client(const struct raw_options *options, struct side *side)
{
	union event event;
	uint64_t size = 0;
	ssize_t n = wait_event(side, FI_CONNREQ, options->wait_ns, "a client", &event);

	if (n < 0)
		return (int)n;
	if (n >= (ssize_t)sizeof(size))
		memcpy(&size, event.entry.data, sizeof(size));
	if (!size || size > RAW_SIZE_MAX) {
		fi_freeinfo(event.entry.info);
		return plx_fail(EPROTO, "the client asks for messages of %llu B",
				(unsigned long long)size);
	}
	int rc = open_endpoint(side, event.entry.info);
	if (!rc)
		rc = post_all(side, size, event.entry.info->tx_attr->inject_size);
	fi_freeinfo(event.entry.info);
	if (rc)
		return rc;
	rc = fi_accept(side->ep, NULL, 0);
	if (rc)
		return failed(rc, "cannot accept");
	n = wait_event(side, FI_CONNECTED, RAW_PEER_NS, "the connection", &event);
	return n < 0 ? (int)n : 0;
}

static int connect_once(const struct raw_options *options, struct side *side)
{
	union event event;
	int rc = open_fabric(options, side);

	if (!rc)
		rc = open_endpoint(side, side->info);
	if (!rc)
		rc = post_all(side, options->size, side->info->tx_attr->inject_size);
	if (rc)
		return rc;
	rc = fi_connect(side->ep, side->info->dest_addr, &options->size, sizeof(options->size));
	if (rc)
		return failed(rc, "cannot connect");
	ssize_t n = wait_event(side, FI_CONNECTED, RAW_CONNECT_NS, "the server", &event);
	return n < 0 ? (int)n : 0;
}

/* Exchanging ------------------------------------------------------------------------------- */

/* Why the completion queue has an error: the peer's going shows as cancelled receives. */
static int completion_error(struct side *side)
{
	struct fi_cq_err_entry error = {0};

	fi_cq_readerr(side->cq, &error, 0);
	if (error.err == FI_ECANCELED || error.err == FI_ENOTCONN)
		return plx_fail(EPIPE, "the peer is gone");
	return plx_fail(EIO, "a message failed: %s", fi_strerror(error.err));
}

/* Spin until a message is there. Returns the index of its buffer, or -errno. */
static int receive(struct side *side)
{
	struct fi_cq_msg_entry entry;
	struct raw_wait wait = {0};

	for (;;) {
		ssize_t n = fi_cq_read(side->cq, &entry, 1);

		if (plx_likely(n == 1)) {
			struct fi_context *context = entry.op_context;

			return plx_likely(entry.len == side->size)
				     ? (int)(context - side->contexts)
				     : plx_fail(EPROTO, "a message of %zu B came, not %zu",
						entry.len, side->size);
		}
		if (n == -FI_EAVAIL)
			return completion_error(side);
		if (n != -FI_EAGAIN)
			return failed(n, "cannot read the completion queue");
		int rc = raw_wait_over(&wait, RAW_PEER_NS, "a message from the peer");
		if (rc)
			return rc;
	}
}

static inline int transmit(struct side *side, const uint8_t *message)
{
	ssize_t rc = side->inject ? fi_inject(side->ep, message, side->size, 0)
				  : fi_send(side->ep, message, side->size, NULL, 0, NULL);

	return plx_likely(rc == 0) ? 0 : failed(rc, "cannot send");
}

static int echo(struct side *side)
{
	int last = -1;

	for (;;) {
		int index = receive(side);
		if (plx_unlikely(index < 0))
			return index == -EPIPE ? 0 : index;
		int rc = transmit(side, side->buffers[index]);
		if (!rc && last >= 0)
			rc = post(side, (unsigned)last);
		if (plx_unlikely(rc))
			return rc;
		last = index;
	}
}

/* The receive of the trip before is posted anew while this one's message is on its way. */
static int trips(struct side *side, const uint8_t *message, struct raw_run *run)
{
	int last = -1;
	bool more;

	do {
		uint64_t sent = plx_tsc();
		int rc = transmit(side, message);
		if (!rc && last >= 0)
			rc = post(side, (unsigned)last);
		last = plx_likely(!rc) ? receive(side) : rc;
		uint64_t seen = plx_tsc();
		if (plx_unlikely(last < 0))
			return last;
		more = raw_run_add(run, sent, seen);
	} while (more);
	return raw_check_echo(message, side->buffers[last], side->size);
}

static int serve(const struct raw_options *options)
{
	struct side side = {.cq_cannot_sleep = options->cq_cannot_sleep};
	int rc = start_listening(options, &side);

	if (!rc)
		rc = accept_client(options, &side);
	if (!rc)
		rc = echo(&side);
	close_side(&side);
	return rc;
}

static int ping(const struct raw_options *options, struct raw_run *run)
{
	uint64_t deadline_ns = plx_now_ns() + RAW_CONNECT_NS;
	uint8_t *message = raw_buffer(options->size);
	struct side side = {.cq_cannot_sleep = options->cq_cannot_sleep};

	if (!message)
		return -ENOMEM;
	int rc = connect_once(options, &side);
	while (rc == -ECONNREFUSED && plx_now_ns() < deadline_ns) {
		close_side(&side);
		usleep(RETRY_US);
		side = (struct side){.cq_cannot_sleep = options->cq_cannot_sleep};
		rc = connect_once(options, &side);
	}
	if (rc)
		rc = plx_fail_in(rc, "%s: ", options->address);
	else
		rc = trips(&side, message, run);
	close_side(&side);
	free(message);
	return rc;
}

int main(int argc, char **argv)
{
	static const struct raw_program program = {
		.name = "raw-fi-tcp",
		.provider = "net",
		.idle = "poll",
		.address = "HOST:PORT",
		.choose_provider = true,
		.serve = serve,
		.ping = ping,
	};

	return raw_main(argc, argv, &program);
}
