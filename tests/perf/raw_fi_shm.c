/* SPDX-License-Identifier: BSD-3-Clause */
/* Round trips over libfabric's own shared-memory provider (FI_EP_RDM), as a reference: how fast two
 * processes of one host can be. The client says hello with its name and the size of its messages,
 * and ends with a message of no bytes, for the provider tells of no peer that goes.
 *
 * Every endpoint is closed on every way out: one that is not leaves 16 MiB in /dev/shm. */
#include "raw_common.h"

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define API_VERSION FI_VERSION(1, 17)
#define CQ_ENTRIES  64
#define SMALL_BYTES 4096
#define SMALL_POST  8
#define LARGE_POST  2
#define NAME_BYTES  128
#define HELLO       SMALL_POST /* the place of the receive that is for a hello */

struct hello {
	uint64_t size;
	char name[NAME_BYTES];
};

struct side {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	fi_addr_t peer;
	struct hello hello;
	uint8_t *buffers[SMALL_POST];
	struct fi_context contexts[SMALL_POST + 1];
	unsigned posted;
	size_t size;
	bool inject;
};

static int failed(ssize_t rc, const char *what)
{
	return plx_fail(rc > -FI_ERRNO_OFFSET ? (int)-rc : EIO, "%s: %s", what,
			fi_strerror((int)-rc));
}

/* Setting up ------------------------------------------------------------------------------- */

/* In the form "fi_ns://" the provider takes names as they are, without adding user and number. */
static void full_name(const struct raw_options *options, bool server, char *out, size_t size)
{
	if (server)
		snprintf(out, size, "fi_ns://%.100s", options->host);
	else /* names are one per host, so a client makes up its own */
		snprintf(out, size, "fi_ns://%.100s.%d", options->host, (int)getpid());
}

static int find(const struct raw_options *options, struct fi_info **info_out)
{
	struct fi_info *hints = fi_allocinfo();
	char name[NAME_BYTES];

	full_name(options, options->listen, name, sizeof(name));
	hints->caps = FI_MSG;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->fabric_attr->prov_name = strdup("shm");
	int rc = fi_getinfo(API_VERSION, name, NULL, FI_SOURCE, hints, info_out);
	fi_freeinfo(hints);
	return rc ? failed(rc, "provider shm has no FI_EP_RDM endpoint") : 0;
}

static int open_endpoint(const struct raw_options *options, struct side *side)
{
	struct fi_cq_attr cq_attr = {.size = CQ_ENTRIES, .format = FI_CQ_FORMAT_MSG};
	struct fi_av_attr av_attr = {.type = FI_AV_TABLE};
	int rc = strchr(options->host, '/') || strlen(options->host) > 100
		       ? plx_fail(EINVAL, "%s: give a name of at most 100 characters without '/'",
				  options->host)
		       : find(options, &side->info);

	if (rc)
		return rc;
	rc = fi_fabric(side->info->fabric_attr, &side->fabric, NULL);
	if (!rc)
		rc = fi_domain(side->fabric, side->info, &side->domain, NULL);
	if (!rc)
		rc = fi_cq_open(side->domain, &cq_attr, &side->cq, NULL);
	if (!rc)
		rc = fi_av_open(side->domain, &av_attr, &side->av, NULL);
	if (!rc)
		rc = fi_endpoint(side->domain, side->info, &side->ep, NULL);
	if (!rc)
		rc = fi_ep_bind(side->ep, &side->av->fid, 0);
	if (!rc)
		rc = fi_ep_bind(side->ep, &side->cq->fid, FI_TRANSMIT | FI_SELECTIVE_COMPLETION);
	if (!rc)
		rc = fi_ep_bind(side->ep, &side->cq->fid, FI_RECV);
	if (!rc)
		rc = fi_enable(side->ep);
	raw_catch_signals();
	if (rc == -FI_EBUSY)
		return plx_fail(EADDRINUSE, "the name %s is taken", options->host);
	return rc ? failed(rc, "cannot make an endpoint") : 0;
}

static int post(struct side *side, unsigned index)
{
	bool hello = index == HELLO;
	ssize_t rc = fi_recv(side->ep, hello ? (void *)&side->hello : side->buffers[index],
			     hello ? sizeof(side->hello) : side->size, NULL, FI_ADDR_UNSPEC,
			     &side->contexts[index]);

	return rc ? failed(rc, "cannot post a receive") : 0;
}

static int post_all(struct side *side, size_t size)
{
	int rc = 0;

	side->size = size;
	side->inject = size <= side->info->tx_attr->inject_size;
	side->posted = size <= SMALL_BYTES ? SMALL_POST : LARGE_POST;
	for (unsigned i = 0; i < side->posted && !rc; i++) {
		side->buffers[i] = raw_buffer(size);
		rc = side->buffers[i] ? post(side, i) : -ENOMEM;
	}
	return rc;
}

static int insert(struct side *side, const char *name)
{
	return fi_av_insert(side->av, name, 1, &side->peer, 0, NULL) == 1
		     ? 0
		     : plx_fail(EINVAL, "the name %s is not one of provider shm", name);
}

static int close_fid(struct fid *fid)
{
	return fid ? fi_close(fid) : 0;
}

static void close_side(struct side *side)
{
	close_fid(side->ep ? &side->ep->fid : NULL);
	close_fid(side->av ? &side->av->fid : NULL);
	close_fid(side->cq ? &side->cq->fid : NULL);
	close_fid(side->domain ? &side->domain->fid : NULL);
	close_fid(side->fabric ? &side->fabric->fid : NULL);
	fi_freeinfo(side->info);
	for (unsigned i = 0; i < side->posted; i++)
		free(side->buffers[i]);
}

/* Exchanging ------------------------------------------------------------------------------- */

struct received {
	unsigned index;
	size_t size;
};

/* Spin until a message is there. Return: 0; -errno. */
static int receive(struct side *side, uint64_t limit_ns, const char *what,
		   struct received *received)
{
	struct fi_cq_msg_entry entry;
	struct fi_cq_err_entry error = {0};
	struct raw_wait wait = {0};

	for (;;) {
		ssize_t n = fi_cq_read(side->cq, &entry, 1);

		if (plx_likely(n == 1)) {
			received->index = (unsigned)((struct fi_context *)entry.op_context -
						     side->contexts);
			received->size = entry.len;
			return 0;
		}
		if (n == -FI_EAVAIL) {
			fi_cq_readerr(side->cq, &error, 0);
			return failed(-error.err, "a message failed");
		}
		if (n != -FI_EAGAIN)
			return failed(n, "cannot read the completion queue");
		int rc = raw_wait_over(&wait, limit_ns, what);
		if (rc)
			return rc;
	}
}

static ssize_t try_transmit(struct side *side, const void *message, size_t size, bool inject)
{
	return inject ? fi_inject(side->ep, message, size, side->peer)
		      : fi_send(side->ep, message, size, NULL, side->peer, NULL);
}

/* No room, or a peer that has not looked at its region yet: progress is made by reading the queue,
 * and reading no entries leaves those that may be there. */
static int transmit_slowly(struct side *side, const void *message, size_t size, bool inject)
{
	struct raw_wait wait = {.spins = RAW_SPINS_CHECK - 1};
	ssize_t sent;

	do {
		int rc = raw_wait_over(&wait, RAW_PEER_NS, "the peer to take a message");
		if (rc)
			return rc;
		fi_cq_read(side->cq, NULL, 0);
		sent = try_transmit(side, message, size, inject);
	} while (sent == -FI_EAGAIN || sent == -FI_ENOENT);
	return sent ? failed(sent, "cannot send") : 0;
}

static inline int transmit(struct side *side, const void *message, size_t size, bool inject)
{
	ssize_t rc = try_transmit(side, message, size, inject);

	if (plx_likely(rc == 0))
		return 0;
	return rc == -FI_EAGAIN || rc == -FI_ENOENT ? transmit_slowly(side, message, size, inject)
						    : failed(rc, "cannot send");
}

/* Server ----------------------------------------------------------------------------------- */

static int meet_client(const struct raw_options *options, struct side *side)
{
	struct received received;
	int rc = post(side, HELLO);

	if (!rc)
		rc = receive(side, options->wait_ns, "a client", &received);
	if (rc)
		return rc;
	side->hello.name[sizeof(side->hello.name) - 1] = '\0';
	if (received.size != sizeof(side->hello) || !side->hello.size ||
	    side->hello.size > RAW_SIZE_MAX)
		return plx_fail(EPROTO, "what came first (%zu B) is no hello", received.size);
	rc = insert(side, side->hello.name);
	if (!rc)
		rc = post_all(side, side->hello.size);
	return rc ? rc : transmit(side, "", 0, true);
}

static int echo(struct side *side)
{
	struct received received;
	int last = -1;

	for (;;) {
		int rc = receive(side, RAW_PEER_NS, "a message from the client", &received);
		if (plx_unlikely(rc))
			return rc;
		if (plx_unlikely(received.size != side->size))
			return received.size == 0
				     ? 0
				     : plx_fail(EPROTO, "a message of %zu B came, not %zu",
						received.size, side->size);
		rc = transmit(side, side->buffers[received.index], side->size, side->inject);
		if (!rc && last >= 0)
			rc = post(side, (unsigned)last);
		if (plx_unlikely(rc))
			return rc;
		last = (int)received.index;
	}
}

static int serve(const struct raw_options *options)
{
	struct side side = {0};
	int rc = open_endpoint(options, &side);

	if (!rc) {
		raw_say_listening(options->host, "");
		rc = meet_client(options, &side);
	}
	if (!rc)
		rc = echo(&side);
	close_side(&side);
	return rc;
}

/* Client ----------------------------------------------------------------------------------- */

static int meet_server(const struct raw_options *options, struct side *side)
{
	struct hello hello = {.size = options->size};
	size_t length = sizeof(hello.name);
	struct received received;
	char server[NAME_BYTES];
	int rc = fi_getname(&side->ep->fid, hello.name, &length);

	if (rc)
		return failed(rc, "cannot tell the address");
	full_name(options, true, server, sizeof(server));
	rc = insert(side, server);
	if (!rc)
		rc = post(side, HELLO);
	if (!rc)
		rc = transmit(side, &hello, sizeof(hello), true);
	if (!rc)
		rc = receive(side, RAW_PEER_NS, "the server", &received);
	if (!rc)
		rc = post_all(side, options->size);
	return rc;
}

/* The receive of the trip before is posted anew while this one's message is on its way. */
static int trips(struct side *side, const uint8_t *message, struct raw_run *run)
{
	struct received received = {0};
	bool first = true, more;

	do {
		uint64_t sent = plx_tsc();
		int rc = transmit(side, message, side->size, side->inject);
		if (!rc && !first)
			rc = post(side, received.index);
		if (plx_likely(!rc))
			rc = receive(side, RAW_PEER_NS, "an answer from the server", &received);
		uint64_t seen = plx_tsc();
		if (plx_unlikely(rc))
			return rc;
		if (plx_unlikely(received.size != side->size))
			return plx_fail(EPROTO, "an answer of %zu B came, not %zu", received.size,
					side->size);
		first = false;
		more = raw_run_add(run, sent, seen);
	} while (more);
	return raw_check_echo(message, side->buffers[received.index], side->size);
}

static int ping(const struct raw_options *options, struct raw_run *run)
{
	uint8_t *message = raw_buffer(options->size);
	struct side side = {0};

	if (!message)
		return -ENOMEM;
	int rc = open_endpoint(options, &side);
	if (!rc)
		rc = meet_server(options, &side);
	if (!rc) {
		rc = trips(&side, message, run);
		transmit(&side, "", 0, true); /* the server ends by itself without it, later */
	}
	close_side(&side);
	free(message);
	return rc;
}

int main(int argc, char **argv)
{
	static const struct raw_program program = {
		.name = "raw-fi-shm",
		.provider = "shm",
		.idle = "poll",
		.address = "NAME",
		.address_is_a_name = true,
		.serve = serve,
		.ping = ping,
	};

	return raw_main(argc, argv, &program);
}
