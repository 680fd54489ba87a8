/* SPDX-License-Identifier: BSD-3-Clause */
/* A connection, seen from either side: starting, accepting, reporting, and losing it. The
 * connecting side sends its half to the listener on a socket. The listener answers with its own
 * half or a rejection. Once both halves have arrived, the socket carries only wake-up bytes, and
 * its closure says that the peer has left. */
#include "../shm.h"

#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#define RETRY_NS (2 * PLX_NS_PER_MS) /* between two attempts at a listener with a full backlog */

/* Both sides ------------------------------------------------------------------------------- */

static int send_half(struct shm_ep *ep, enum wire_kind kind, const void *data, size_t length)
{
	struct wire_half half = {
		.ring_bytes = ep->reader.segment.ring_bytes,
		.bell_bit = ep->slot,
		.probe_address = (uintptr_t)&ep->probe,
		.probe_value = atomic_load_explicit(&ep->probe, memory_order_relaxed),
		.address = ep->base.local,
		.segment_fd = ep->segment_fd,
		.bell_fd = rx_cq_of(ep)->bell_fd,
	};
	int rc = wire_send(ep->base.source.fd, kind, &half, data, length);

	if (rc)
		return rc;
	close(ep->segment_fd);
	ep->segment_fd = -1;
	return 0;
}

/* The endpoint's socket wakes its queues from connect to hang-up. In a set that the queues share,
 * one watch serves both. */
static int watch(struct shm_ep *ep)
{
	bool shares = ep->base.eq->wait.set;
	int rc = shares ? 0 : eq_watch(ep->base.eq, &ep->base.source, EPOLLRDHUP);

	if (shares)
		eq_unwatch(ep->base.eq, &ep->base.source);
	ep->doorbell.fd = ep->base.source.fd;
	rc = rc ? rc : queue_watch(&ep->base.rx_cq->wait, &ep->doorbell, EPOLLIN | EPOLLRDHUP);
	if (rc == 0 && ep->base.tx_cq != ep->base.rx_cq)
		rc = queue_watch(&ep->base.tx_cq->wait, &ep->doorbell, EPOLLIN | EPOLLRDHUP);
	return rc;
}

static void unwatch(struct shm_ep *ep)
{
	eq_unwatch(ep->base.eq, &ep->base.source);
	cq_forget_doorbell(ep);
	queue_unwatch(&ep->base.rx_cq->wait, &ep->doorbell);
	if (ep->base.tx_cq != ep->base.rx_cq)
		queue_unwatch(&ep->base.tx_cq->wait, &ep->doorbell);
}

/* Both halves have arrived: sets up rings and bell and starts the data path. */
static int take_offer(struct shm_ep *ep, struct shm_offer *offer)
{
	int rc = watch(ep);

	if (rc)
		return rc;
	ep->peer_process = offer->peer;
	ep->may_read = peer_can_be_read(&offer->peer);
	if (ep->may_read)
		/* Release: publishes nothing but the peer's right to read our memory. */
		atomic_store_explicit(&ep->reader.segment.control->can_read, 1,
				      memory_order_release);
	ep->writer.segment = offer->segment;
	ep->peer_bell = offer->bell;
	ep->peer_bell_bit = offer->bell_bit;
	*offer = (struct shm_offer){0};
	ep->base.state = EP_CONNECTED;
	progress_begin(ep);
	return 0;
}

void shm_ep_disconnect(struct prov_ep *base)
{
	struct shm_ep *ep = (struct shm_ep *)base;

	prov_dial_end(base);
	if (ep->base.source.fd < 0)
		return;
	unwatch(ep);
	/* A forked child may still hold the socket. */
	shutdown(ep->base.source.fd, SHUT_RDWR);
	close(ep->base.source.fd);
	ep->base.source.fd = -1;
}

int shm_ep_accept(struct prov_ep *base, const void *data, size_t length)
{
	struct shm_request *request = (struct shm_request *)base->request;
	struct shm_ep *ep = (struct shm_ep *)base;
	int rc = send_half(ep, WIRE_ACCEPT, data, length);

	rc = rc ? rc : take_offer(ep, &request->offer);
	return rc == -FI_ENOTCONN ? -FI_ECONNABORTED : rc;
}

/* Connecting ------------------------------------------------------------------------------- */

/* Within one host both sides have the same address. The port only lets the peer tell our
 * connections apart: nothing connects to it and nothing reserves it, so two connections may share
 * it. Finding a port takes about 5 us. If none is free, it stays 0. */
static void choose_local(struct shm_ep *ep)
{
	uint16_t port = address_port((struct sockaddr *)&ep->base.local);

	if (!ep->base.local.ss_family || address_is_any((struct sockaddr *)&ep->base.local)) {
		ep->base.local = ep->base.peer;
		address_set_port((struct sockaddr *)&ep->base.local, port);
	}
	if (port == 0)
		prov_address_find_port(&ep->base.local);
}

/* Several names may stand for the address. Return: a socket; -FI_ECONNREFUSED no listener;
 * -FI_EAGAIN its backlog is full; -FI_EACCES it belongs to another user; -errno. */
static int connect_to(const struct sockaddr_storage *address)
{
	struct plx_unix_name names[3];
	int count = shm_address_names((const struct sockaddr *)address, names);
	int rc = -FI_ECONNREFUSED;

	for (int i = 0; i < count * SHM_NAME_STANDINS; i++) {
		struct plx_unix_name name = shm_name_standin(&names[i / SHM_NAME_STANDINS],
							     (unsigned)i % SHM_NAME_STANDINS);
		int fd = plx_unix_socket(&name, SOCK_SEQPACKET | SOCK_NONBLOCK, connect);
		struct shm_peer peer;

		if (fd >= 0 && !peer_identify(fd, &peer)) {
			close(fd);
			fd = -FI_EACCES;
		}
		if (fd == -FI_EAGAIN && shm_name_is_foreign(&name))
			fd = -FI_EACCES;
		if (fd != -FI_ECONNREFUSED && fd != -FI_EACCES)
			return fd;
		if (fd == -FI_EACCES)
			rc = fd;
	}
	return rc;
}

/* The endpoint takes over the socket. A listener without room rejects before it reads the request:
 * then the socket has its answer, or nothing, which is a rejection too. */
static int introduce(struct shm_ep *ep, int fd, const void *data, size_t length)
{
	int rc;

	ep->base.source.fd = fd;
	rc = eq_watch(ep->base.eq, &ep->base.source, EPOLLIN | EPOLLRDHUP);
	rc = rc ? rc : send_half(ep, WIRE_CONNECT, data, length);
	return rc == -FI_ENOTCONN ? 0 : rc;
}

/* The kernel does not report that a UNIX socket's backlog has room again. */
static int wait_for_room(struct prov_ep *ep)
{
	return eq_set_deadline(ep->eq, &ep->dial->deadline, queue_now_ns() + RETRY_NS);
}

static void retry(struct prov_deadline *deadline)
{
	struct prov_dial *dial = plx_container_of(deadline, struct prov_dial, deadline);
	struct prov_ep *ep = dial->ep;
	int rc = connect_to(&ep->peer);

	if (rc == -FI_EAGAIN && wait_for_room(ep) == 0)
		return;
	if (rc >= 0)
		rc = introduce((struct shm_ep *)ep, rc, dial->data, dial->length);
	if (rc)
		prov_ep_fail(ep, -rc, NULL, 0);
	else
		prov_dial_end(ep);
}

int shm_ep_connect(struct prov_ep *base, const void *data, size_t length)
{
	struct shm_ep *ep = (struct shm_ep *)base;
	int fd = connect_to(&base->peer), rc;

	if (fd < 0 && fd != -FI_EAGAIN)
		return fd;
	choose_local(ep);
	if (fd >= 0)
		return introduce(ep, fd, data, length);
	rc = prov_dial_begin(base, sizeof(struct prov_dial), retry, data, length);
	return rc ? rc : wait_for_room(base);
}

static void answered(struct shm_ep *ep)
{
	enum wire_kind kind = WIRE_REJECT; /* hanging up without an answer is a rejection too */
	uint8_t data[PROV_CM_DATA_MAX];
	struct shm_offer offer;
	uint32_t length = 0;
	int rc = wire_receive(ep->base.source.fd, &kind, &offer, data, &length);

	if (rc == -FI_EAGAIN)
		return;
	if (kind == WIRE_REJECT && (rc == 0 || rc == -FI_ENOTCONN))
		rc = -FI_ECONNREFUSED;
	else if (rc == 0)
		rc = kind == WIRE_ACCEPT ? take_offer(ep, &offer) : -FI_ECONNABORTED;
	offer_release(&offer);
	if (rc)
		prov_ep_fail(&ep->base, -rc, data, kind == WIRE_REJECT ? length : 0);
	else
		prov_ep_tell(&ep->base, FI_CONNECTED, data, length);
}

/* The event queue of a connected endpoint sees only its closure. */
void ep_incoming(struct plx_watch *socket, uint32_t events)
{
	struct shm_ep *ep = plx_container_of(socket, struct shm_ep, base.source);

	if (ep->base.state == EP_CONNECTING) {
		answered(ep);
	} else {
		unwatch(ep);
		progress_hang_up(ep);
	}
}

void shm_ep_shutdown(struct prov_ep *base)
{
	struct shm_ep *ep = (struct shm_ep *)base;

	ep->shut_down = true;
	shutdown(base->source.fd, SHUT_RDWR);
	unwatch(ep);
	progress_hang_up(ep);
}
