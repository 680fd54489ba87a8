/* SPDX-License-Identifier: BSD-3-Clause */
/* A connection, seen from either side: accepting, starting, shutting down and closing it. */
#include "../tcp.h"

void tcp_ep_disconnect(struct prov_ep *base)
{
	struct tcp_ep *ep = (struct tcp_ep *)base;

	dial_free(ep);
	poll_end(ep);
	if (base->source.fd < 0)
		return;
	/* A forked child may still hold the socket. */
	tcp_sys.shutdown(base->source.fd, SHUT_RDWR);
	tcp_sys.close(base->source.fd);
	base->source.fd = -1;
}

/* The kernel knows this side's address. */
int tcp_ep_begin(struct tcp_ep *ep)
{
	struct sockaddr_storage local;
	socklen_t length = sizeof(local);
	int rc = poll_begin(ep);

	if (rc)
		return rc;
	if (getsockname(ep->base.source.fd, (struct sockaddr *)&local, &length) == 0)
		prov_address_plain_copy((struct sockaddr *)&local, &ep->base.local);
	ep->base.state = EP_CONNECTED;
	return 0;
}

/* A new socket has room for the whole message. */
int tcp_ep_accept(struct prov_ep *base, const void *data, size_t length)
{
	uint8_t hello[WIRE_HELLO_MOST];
	size_t bytes = wire_write_hello(hello, WIRE_ACCEPT, data, length);
	ssize_t sent = tcp_sys.send(base->source.fd, hello, bytes, MSG_DONTWAIT | MSG_NOSIGNAL);

	return sent == (ssize_t)bytes ? tcp_ep_begin((struct tcp_ep *)base) : -FI_ECONNABORTED;
}

void tcp_ep_shutdown(struct prov_ep *base)
{
	struct tcp_ep *ep = (struct tcp_ep *)base;

	if (ep->queued_bytes && !ep->is_blocked)
		tcp_send_queued(ep);
	tcp_sys.shutdown(base->source.fd, SHUT_RDWR);
	tcp_ep_finish(ep);
}
