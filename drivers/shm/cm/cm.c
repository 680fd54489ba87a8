/* SPDX-License-Identifier: BSD-3-Clause */
/* A connection, seen from either side: starting once each has the other's half, accepting,
 * reporting, and losing it. Once both halves have arrived, the socket carries only wake-up bytes,
 * and its closure says that the peer has left. */
#include "../shm.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

int ep_send_half(struct shm_ep *ep, enum wire_kind kind, const void *data, size_t length)
{
	struct wire_half half = {
		.ring_bytes = ep->reader.segment.ring_bytes,
		.bell_bit = ep->slot,
		.probe_address = (uintptr_t)&ep->probe,
		.probe_value = ep->probe,
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

static int watch(struct shm_ep *ep)
{
	int rc = eq_watch(ep->base.eq, &ep->base.source, EPOLLRDHUP);

	rc = rc ? rc : cq_watch(rx_cq_of(ep), ep);
	if (rc == 0 && tx_cq_of(ep) != rx_cq_of(ep))
		rc = cq_watch(tx_cq_of(ep), ep);
	return rc;
}

static void unwatch(struct shm_ep *ep)
{
	eq_unwatch(ep->base.eq, &ep->base.source);
	cq_unwatch(rx_cq_of(ep), ep);
	if (tx_cq_of(ep) != rx_cq_of(ep))
		cq_unwatch(tx_cq_of(ep), ep);
}

int ep_take_offer(struct shm_ep *ep, struct shm_offer *offer)
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

	later_free(ep);
	if (ep->base.source.fd < 0)
		return;
	unwatch(ep);
	if (ep->peer_pidfd >= 0)
		close(ep->peer_pidfd);
	ep->peer_pidfd = -1;
	/* A forked child may still hold the socket. */
	shutdown(ep->base.source.fd, SHUT_RDWR);
	close(ep->base.source.fd);
	ep->base.source.fd = -1;
}

int shm_ep_accept(struct prov_ep *base, const void *data, size_t length)
{
	struct shm_request *request = (struct shm_request *)base->request;
	struct shm_ep *ep = (struct shm_ep *)base;
	int rc = ep_send_half(ep, WIRE_ACCEPT, data, length);

	rc = rc ? rc : ep_take_offer(ep, &request->offer);
	return rc == -FI_ENOTCONN ? -FI_ECONNABORTED : rc;
}

/* The event queue of a connected endpoint sees only its closure. */
void ep_incoming(struct prov_source *source)
{
	struct shm_ep *ep = plx_container_of(source, struct shm_ep, base.source);

	if (ep->base.state == EP_CONNECTING) {
		ep_answered(ep);
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
