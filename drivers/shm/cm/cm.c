/* SPDX-License-Identifier: BSD-3-Clause */
/* A connection, as both sides have it: how it begins once each has the other's half, how it is
 * accepted, told of, and lost. From where both halves are there the socket carries nothing but
 * bytes that wake, and its end says that the peer is gone. */
#include "../shm.h"

#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

static struct shm_ep *ep_of(struct fid_ep *fid)
{
	return (struct shm_ep *)fid;
}

/* Both halves ------------------------------------------------------------------------------ */

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
	int rc = wire_send(ep->source.fd, kind, &half, data, length);

	if (rc)
		return rc;
	close(ep->segment_fd);
	ep->segment_fd = -1;
	return 0;
}

static int watch(struct shm_ep *ep)
{
	int rc = eq_watch(ep->base.eq, &ep->source, EPOLLRDHUP);

	rc = rc ? rc : cq_watch(rx_cq_of(ep), ep);
	if (rc == 0 && tx_cq_of(ep) != rx_cq_of(ep))
		rc = cq_watch(tx_cq_of(ep), ep);
	return rc;
}

static void unwatch(struct shm_ep *ep)
{
	eq_unwatch(ep->base.eq, &ep->source);
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
		/* Release: nothing goes with it but the peer's right to use it. */
		atomic_store_explicit(&ep->reader.segment.control->can_read, 1,
				      memory_order_release);
	ring_writer_init(&ep->writer, &offer->segment);
	ep->peer_bell = offer->bell;
	ep->peer_bell_bit = offer->bell_bit;
	if (!ep->base.peer.ss_family)
		ep->base.peer = offer->address;
	*offer = (struct shm_offer){0};
	ep->base.state = EP_CONNECTED;
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
	if (ep->peer_pidfd >= 0)
		close(ep->peer_pidfd);
	ep->peer_pidfd = -1;
	/* A child of this process may still have it. */
	shutdown(ep->source.fd, SHUT_RDWR);
	close(ep->source.fd);
	ep->source.fd = -1;
}

/* Accepting -------------------------------------------------------------------------------- */

/* Past the answer there is no way back: what fails then ends the connection. */
static int answer(struct shm_ep *ep, const void *data, size_t length)
{
	struct shm_request *request = (struct shm_request *)ep->base.request;
	int rc;

	ep->source.fd = request->base.source.fd;
	request->base.source.fd = -1;
	rc = ep_send_half(ep, WIRE_ACCEPT, data, length);
	rc = rc ? rc : ep_take_offer(ep, &request->offer);
	prov_request_free(&request->base);
	ep->base.request = NULL;
	if (rc == 0) {
		prov_ep_tell(&ep->base, FI_CONNECTED, NULL, 0);
		return 0;
	}
	ep_disconnect(ep);
	ep->base.state = EP_DEAD;
	return rc == -FI_ENOTCONN ? -FI_ECONNABORTED : rc;
}

static int ep_accept(struct fid_ep *fid, const void *data, size_t length)
{
	struct shm_ep *ep = ep_of(fid);
	int rc = prov_ep_check_accept(&ep->base, length);

	rc = rc ? rc : ep_enable(&ep->base);
	return rc ? rc : answer(ep, data, length);
}

/* Ending it -------------------------------------------------------------------------------- */

/* Of a connected one, the event queue hears of its end alone. */
void ep_incoming(struct shm_ep *ep)
{
	if (ep->later) {
		ep_retry(ep);
	} else if (ep->base.state == EP_CONNECTING) {
		ep_answered(ep);
	} else {
		unwatch(ep);
		progress_hang_up(ep);
	}
}

static int ep_shutdown(struct fid_ep *fid, uint64_t flags)
{
	struct shm_ep *ep = ep_of(fid);

	if (flags)
		return -FI_EBADFLAGS;
	if (ep->base.state < EP_CONNECTED)
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

	if (ep->base.state != EP_IDLE || ep->base.request)
		return -FI_EOPBADSTATE;
	return prov_address_take(address, bytes, &ep->base.local);
}

struct fi_ops_cm shm_ep_cm_ops = {
	.size = sizeof(struct fi_ops_cm),
	.setname = ep_setname,
	.getname = prov_ep_getname,
	.getpeer = prov_ep_getpeer,
	.connect = shm_ep_connect,
	.listen = prov_no_listen,
	.accept = ep_accept,
	.reject = prov_no_reject,
	.shutdown = ep_shutdown,
};
