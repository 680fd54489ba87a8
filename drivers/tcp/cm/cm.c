/* SPDX-License-Identifier: BSD-3-Clause */
/* A connection, as both sides have it: how it is accepted, shut down, and closed. */
#include "../tcp.h"

#include <errno.h>

static struct tcp_ep *ep_of(struct fid_ep *fid)
{
	return (struct tcp_ep *)fid;
}

void tcp_ep_disconnect(struct tcp_ep *ep)
{
	if (ep->source.fd < 0)
		return;
	/* A child of this process may still have it. */
	tcp_sys.shutdown(ep->source.fd, SHUT_RDWR);
	tcp_sys.close(ep->source.fd);
	ep->source.fd = -1;
}

/* Accepting -------------------------------------------------------------------------------- */

/* A new socket has room for all of it. */
static int send_accept(struct tcp_ep *ep, const void *data, size_t length)
{
	uint8_t hello[WIRE_HELLO_MOST];
	size_t bytes = wire_write_hello(hello, WIRE_ACCEPT, data, length);
	ssize_t sent = tcp_sys.send(ep->source.fd, hello, bytes, MSG_DONTWAIT | MSG_NOSIGNAL);

	return sent == (ssize_t)bytes ? 0 : -FI_ECONNABORTED;
}

/* Past the answer there is no way back: what fails then ends the connection. */
static int ep_accept(struct fid_ep *fid, const void *data, size_t length)
{
	struct tcp_ep *ep = ep_of(fid);
	int rc = prov_ep_check_accept(&ep->base, length);

	rc = rc ? rc : tcp_ep_enable(&ep->base);
	if (rc)
		return rc;
	ep->source.fd = ep->base.request->source.fd;
	ep->base.request->source.fd = -1;
	prov_request_free(ep->base.request);
	ep->base.request = NULL;
	rc = send_accept(ep, data, length);
	rc = rc ? rc : poll_begin(ep);
	if (rc) {
		tcp_ep_disconnect(ep);
		ep->base.state = EP_DEAD;
		return rc;
	}
	ep->base.state = EP_CONNECTED;
	prov_ep_tell(&ep->base, FI_CONNECTED, NULL, 0);
	return 0;
}

/* Ending it -------------------------------------------------------------------------------- */

static int ep_shutdown(struct fid_ep *fid, uint64_t flags)
{
	struct tcp_ep *ep = ep_of(fid);

	if (flags)
		return -FI_EBADFLAGS;
	if (ep->base.state < EP_CONNECTED)
		return -FI_ENOTCONN;
	if (ep->base.state == EP_DEAD)
		return 0;
	if (ep->queued_bytes && !ep->is_blocked)
		tcp_send_queued(ep);
	tcp_sys.shutdown(ep->source.fd, SHUT_RDWR);
	tcp_ep_finish(ep);
	return 0;
}

/* Names ------------------------------------------------------------------------------------ */

static int ep_setname(fid_t fid, void *address, size_t bytes)
{
	struct tcp_ep *ep = (struct tcp_ep *)fid;

	if (ep->base.state != EP_IDLE || ep->base.request)
		return -FI_EOPBADSTATE;
	return prov_address_take(address, bytes, &ep->base.local);
}

/* Of one that is, or was, connected: the kernel knows which address it has. */
static int ep_getname(fid_t fid, void *address, size_t *bytes)
{
	struct tcp_ep *ep = (struct tcp_ep *)fid;
	struct sockaddr_storage local;
	socklen_t length = sizeof(local);

	if (ep->base.state >= EP_CONNECTED && ep->source.fd >= 0 &&
	    getsockname(ep->source.fd, (struct sockaddr *)&local, &length) == 0)
		prov_address_plain_copy((struct sockaddr *)&local, &ep->base.local);
	return prov_ep_getname(fid, address, bytes);
}

struct fi_ops_cm tcp_ep_cm_ops = {
	.size = sizeof(struct fi_ops_cm),
	.setname = ep_setname,
	.getname = ep_getname,
	.getpeer = prov_ep_getpeer,
	.connect = tcp_ep_connect,
	.listen = prov_no_listen,
	.accept = ep_accept,
	.reject = prov_no_reject,
	.shutdown = ep_shutdown,
};
