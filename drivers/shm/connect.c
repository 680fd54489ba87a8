/* SPDX-License-Identifier: BSD-3-Clause */
/* How an endpoint comes to a connection and loses it.
 *
 * The connector sends its half on a socket to the listener and waits for the other's; the acceptor
 * has both once fi_accept sent its own. From there on the socket carries nothing but bytes that
 * wake, and its end says that the peer is gone. */
#include "shm.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#define RETRY_MS 2 /* between two tries of a listener whose backlog is full */

/* What is sent once the listener has room. */
struct shm_later {
	uint32_t length;
	uint8_t data[SHM_CM_DATA_MAX];
};

static struct shm_ep *ep_of(struct fid_ep *fid)
{
	return (struct shm_ep *)fid;
}

/* Addresses -------------------------------------------------------------------------------- */

int address_give(const struct sockaddr_storage *address, void *out, size_t *bytes)
{
	size_t needed = shm_address_bytes((const struct sockaddr *)address);
	size_t room = *bytes;

	*bytes = needed;
	if (room)
		memcpy(out, address, room < needed ? room : needed);
	return room < needed ? -FI_ETOOSMALL : 0;
}

int address_take(const void *address, size_t bytes, struct sockaddr_storage *out)
{
	const struct sockaddr *from = address;

	if (!from || bytes < sizeof(from->sa_family) ||
	    (from->sa_family != AF_INET && from->sa_family != AF_INET6) ||
	    bytes < shm_address_bytes(from))
		return -FI_EINVAL;
	memset(out, 0, sizeof(*out));
	memcpy(out, from, shm_address_bytes(from));
	return 0;
}

/* One that was never said, or the wildcard. */
static bool is_open_address(const struct sockaddr_storage *address)
{
	switch (address->ss_family) {
	case AF_INET:
		return ((const struct sockaddr_in *)address)->sin_addr.s_addr == INADDR_ANY;
	case AF_INET6:
		return IN6_IS_ADDR_UNSPECIFIED(&((const struct sockaddr_in6 *)address)->sin6_addr);
	default:
		return true;
	}
}

/* From a host to itself, both sides have the same address. */
static void choose_local(struct shm_ep *ep)
{
	uint16_t port = ep->local.ss_family ? shm_address_port((struct sockaddr *)&ep->local) : 0;

	if (!is_open_address(&ep->local))
		return;
	ep->local = ep->peer;
	shm_address_set_port((struct sockaddr *)&ep->local, port);
}

/* Both halves ------------------------------------------------------------------------------ */

static int send_half(struct shm_ep *ep, enum wire_kind kind, const void *data, size_t length)
{
	struct wire_half half = {
		.ring_bytes = ep->reader.segment.ring_bytes,
		.bell_bit = ep->slot,
		.probe_address = (uintptr_t)&ep->probe,
		.probe_value = ep->probe,
		.address = ep->local,
		.segment_fd = ep->segment_fd,
		.bell_fd = ep->rx_cq->bell_fd,
	};
	int rc = wire_send(ep->source.fd, kind, &half, data, length);

	if (rc)
		return rc;
	close(ep->segment_fd);
	ep->segment_fd = -1;
	return 0;
}

/* See whether the peer's memory can be read: if so, the word is there that it told. */
static bool can_read_memory(const struct shm_offer *offer)
{
	uint64_t value;
	struct iovec local = {&value, sizeof(value)};
	struct iovec remote = {(void *)(uintptr_t)offer->probe_address, sizeof(value)};

	return shm_params.cma && offer->pid > 0 &&
	       process_vm_readv(offer->pid, &local, 1, &remote, 1, 0) == sizeof(value) &&
	       value == offer->probe_value;
}

static int watch(struct shm_ep *ep)
{
	int rc = eq_watch(ep->eq, &ep->source, EPOLLRDHUP);

	rc = rc ? rc : cq_watch(ep->rx_cq, ep);
	if (rc == 0 && ep->tx_cq != ep->rx_cq)
		rc = cq_watch(ep->tx_cq, ep);
	return rc;
}

static void unwatch(struct shm_ep *ep)
{
	eq_unwatch(ep->eq, &ep->source);
	cq_unwatch(ep->rx_cq, ep);
	if (ep->tx_cq != ep->rx_cq)
		cq_unwatch(ep->tx_cq, ep);
}

int ep_take_offer(struct shm_ep *ep, struct shm_offer *offer)
{
	int rc = watch(ep);

	if (rc)
		return rc;
	if (can_read_memory(offer))
		/* Release: nothing goes with it but the peer's right to use it. */
		atomic_store_explicit(&ep->reader.segment.control->can_read, 1,
				      memory_order_release);
	ring_writer_init(&ep->writer, &offer->segment);
	ep->peer_bell = offer->bell;
	ep->peer_bell_bit = offer->bell_bit;
	ep->peer_pid = offer->pid;
	if (!ep->peer.ss_family)
		ep->peer = offer->address;
	*offer = (struct shm_offer){0};
	ep->state = EP_CONNECTED;
	progress_begin(ep);
	return 0;
}

void ep_disconnect(struct shm_ep *ep)
{
	free(ep->later);
	ep->later = NULL;
	if (ep->source.fd < 0)
		return;
	unwatch(ep);
	/* A child of this process may still have it. */
	shutdown(ep->source.fd, SHUT_RDWR);
	close(ep->source.fd);
	ep->source.fd = -1;
}

/* Connecting ------------------------------------------------------------------------------- */

/* Return: a socket; -FI_ECONNREFUSED nobody listens; -FI_EAGAIN its backlog is full; -FI_EACCES it
 * is another user's; -errno. */
static int dial_name(const struct sockaddr_un *name, socklen_t bytes)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int rc = 0;
	pid_t pid;

	if (fd < 0)
		return -errno;
	if (connect(fd, (const struct sockaddr *)name, bytes))
		rc = -errno;
	else if (!wire_peer_allowed(fd, &pid))
		rc = -FI_EACCES;
	if (rc == 0)
		return fd;
	close(fd);
	return rc;
}

/* The same of an address, which several names may stand for. */
static int dial(const struct sockaddr_storage *address)
{
	struct sockaddr_un names[3];
	socklen_t lengths[3];
	int count = shm_address_names((const struct sockaddr *)address, names, lengths);
	int rc = -FI_ECONNREFUSED;

	for (int i = 0; i < count; i++) {
		int fd = dial_name(&names[i], lengths[i]);

		if (fd != -FI_ECONNREFUSED && fd != -FI_EACCES)
			return fd;
		if (fd == -FI_EACCES)
			rc = fd;
	}
	return rc;
}

/* The socket becomes the endpoint's, or is closed. */
static int introduce(struct shm_ep *ep, int fd, const void *data, size_t length)
{
	int rc;

	ep->source.fd = fd;
	rc = eq_watch(ep->eq, &ep->source, EPOLLIN | EPOLLRDHUP);
	rc = rc ? rc : send_half(ep, WIRE_CONNECT, data, length);
	if (rc) {
		ep_disconnect(ep);
		return rc == -FI_ENOTCONN ? -FI_ECONNREFUSED : rc;
	}
	ep->state = EP_CONNECTING;
	return 0;
}

/* The kernel does not tell when a UNIX socket's backlog has room again. */
static int connect_later(struct shm_ep *ep, const void *data, size_t length)
{
	struct itimerspec every = {
		.it_interval.tv_nsec = RETRY_MS * 1000000,
		.it_value.tv_nsec = RETRY_MS * 1000000,
	};
	int rc;

	ep->later = calloc(1, sizeof(*ep->later));
	if (!ep->later)
		return -FI_ENOMEM;
	ep->later->length = (uint32_t)length;
	if (length)
		memcpy(ep->later->data, data, length);
	ep->source.fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (ep->source.fd < 0 || timerfd_settime(ep->source.fd, 0, &every, NULL))
		rc = -errno;
	else
		rc = eq_watch(ep->eq, &ep->source, EPOLLIN);
	if (rc)
		ep_disconnect(ep);
	else
		ep->state = EP_CONNECTING;
	return rc;
}

static int check_connect(const struct shm_ep *ep, size_t length)
{
	if (ep->state == EP_CONNECTING)
		return -FI_EALREADY;
	if (ep->state == EP_CONNECTED)
		return -FI_EISCONN;
	if (ep->state != EP_IDLE)
		return -FI_EOPBADSTATE;
	return ep->request || length > SHM_CM_DATA_MAX ? -FI_EINVAL : 0;
}

static int take_peer(struct shm_ep *ep, const void *address)
{
	const struct sockaddr *peer = address ? address : ep->info->dest_addr;

	return address_take(peer, peer ? shm_address_bytes(peer) : 0, &ep->peer);
}

static int ep_connect(struct fid_ep *fid, const void *address, const void *data, size_t length)
{
	struct shm_ep *ep = ep_of(fid);
	int rc = check_connect(ep, length);
	int fd;

	rc = rc ? rc : take_peer(ep, address);
	rc = rc ? rc : ep_enable(ep);
	if (rc)
		return rc;
	choose_local(ep);
	fd = dial(&ep->peer);
	if (fd == -FI_EAGAIN)
		return connect_later(ep, data, length);
	return fd < 0 ? fd : introduce(ep, fd, data, length);
}

/* What comes of it ------------------------------------------------------------------------- */

static void fail(struct shm_ep *ep, int err, const void *data, uint32_t length)
{
	ep_disconnect(ep);
	ep->state = EP_DEAD;
	receive_flush(ep, FI_ECANCELED);
	eq_push_error(ep->eq, &ep->fid.fid, err, data, length);
}

static void retry(struct shm_ep *ep)
{
	struct shm_later later = *ep->later;
	uint64_t expired;
	int fd;

	if (read(ep->source.fd, &expired, sizeof(expired)) < 0)
		return;
	fd = dial(&ep->peer);
	if (fd == -FI_EAGAIN)
		return;
	ep_disconnect(ep);
	if (fd >= 0)
		fd = introduce(ep, fd, later.data, later.length);
	if (fd < 0)
		fail(ep, -fd, NULL, 0);
}

static void accepted(struct shm_ep *ep, struct shm_offer *offer, const void *data, uint32_t length)
{
	int rc = ep_take_offer(ep, offer);

	if (rc) {
		offer_release(offer);
		fail(ep, -rc, NULL, 0);
		return;
	}
	eq_push(ep->eq, FI_CONNECTED, &ep->fid.fid, NULL, data, length);
}

static void answered(struct shm_ep *ep)
{
	uint8_t data[SHM_CM_DATA_MAX];
	struct shm_offer offer;
	enum wire_kind kind;
	uint32_t length;
	int rc = wire_receive(ep->source.fd, &kind, &offer, data, &length);

	if (rc == -FI_EAGAIN)
		return;
	if (rc) /* who hangs up without an answer refuses too */
		fail(ep, rc == -FI_ENOTCONN ? FI_ECONNREFUSED : -rc, NULL, 0);
	else if (kind == WIRE_ACCEPT)
		accepted(ep, &offer, data, length);
	else if (kind == WIRE_REJECT)
		fail(ep, FI_ECONNREFUSED, data, length);
	else {
		offer_release(&offer);
		fail(ep, FI_ECONNABORTED, NULL, 0);
	}
}

/* Of a connected one, the event queue hears of its end alone. */
void ep_incoming(struct shm_ep *ep)
{
	if (ep->later) {
		retry(ep);
	} else if (ep->state == EP_CONNECTING) {
		answered(ep);
	} else {
		unwatch(ep);
		progress_hang_up(ep);
	}
}

/* Accepting -------------------------------------------------------------------------------- */

static int check_accept(const struct shm_ep *ep, size_t length)
{
	if (ep->state != EP_IDLE)
		return -FI_EOPBADSTATE;
	return !ep->request || length > SHM_CM_DATA_MAX ? -FI_EINVAL : 0;
}

/* Past the answer there is no way back: what fails then ends the connection. */
static int answer(struct shm_ep *ep, const void *data, size_t length)
{
	struct shm_request *request = ep->request;
	int rc;

	ep->source.fd = request->source.fd;
	request->source.fd = -1;
	rc = send_half(ep, WIRE_ACCEPT, data, length);
	rc = rc ? rc : ep_take_offer(ep, &request->offer);
	rc = rc ? rc : eq_push(ep->eq, FI_CONNECTED, &ep->fid.fid, NULL, NULL, 0);
	request_free(request);
	ep->request = NULL;
	if (rc == 0)
		return 0;
	ep_disconnect(ep);
	ep->state = EP_DEAD;
	return rc == -FI_ENOTCONN ? -FI_ECONNABORTED : rc;
}

static int ep_accept(struct fid_ep *fid, const void *data, size_t length)
{
	struct shm_ep *ep = ep_of(fid);
	int rc = check_accept(ep, length);

	rc = rc ? rc : ep_enable(ep);
	return rc ? rc : answer(ep, data, length);
}

/* Ending it -------------------------------------------------------------------------------- */

static int ep_shutdown(struct fid_ep *fid, uint64_t flags)
{
	struct shm_ep *ep = ep_of(fid);

	if (flags)
		return -FI_EBADFLAGS;
	if (ep->state < EP_CONNECTED)
		return -FI_ENOTCONN;
	ep->shut_down = true;
	shutdown(ep->source.fd, SHUT_RDWR);
	unwatch(ep);
	progress_hang_up(ep);
	return 0;
}

/* Names ------------------------------------------------------------------------------------ */

static int ep_setname(fid_t fid, void *address, size_t bytes)
{
	struct shm_ep *ep = (struct shm_ep *)fid;

	if (ep->state != EP_IDLE || ep->request)
		return -FI_EOPBADSTATE;
	return address_take(address, bytes, &ep->local);
}

static int ep_getname(fid_t fid, void *address, size_t *bytes)
{
	const struct shm_ep *ep = (struct shm_ep *)fid;

	return ep->local.ss_family ? address_give(&ep->local, address, bytes) : -FI_EADDRNOTAVAIL;
}

static int ep_getpeer(struct fid_ep *fid, void *address, size_t *bytes)
{
	const struct shm_ep *ep = ep_of(fid);

	return ep->state < EP_CONNECTED ? -FI_ENOTCONN : address_give(&ep->peer, address, bytes);
}

static int no_listen(struct fid_pep *pep)
{
	return -FI_ENOSYS;
}

static int no_reject(struct fid_pep *pep, fid_t handle, const void *data, size_t length)
{
	return -FI_ENOSYS;
}

struct fi_ops_cm shm_ep_cm_ops = {
	.size = sizeof(struct fi_ops_cm),
	.setname = ep_setname,
	.getname = ep_getname,
	.getpeer = ep_getpeer,
	.connect = ep_connect,
	.listen = no_listen,
	.accept = ep_accept,
	.reject = no_reject,
	.shutdown = ep_shutdown,
};
