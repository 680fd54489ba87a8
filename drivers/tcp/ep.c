/* SPDX-License-Identifier: BSD-3-Clause */
/* Endpoints: ending and closing. */
#include "tcp.h"

#include <stdlib.h>

static void posted(struct prov_ep *base)
{
	base->starved = false;
	poll_wait((struct tcp_ep *)base);
}

/* Ending --------------------------------------------------------------------------------------- */

static void flush(struct tcp_ep *ep)
{
	block_put(ep->base.domain, ep->unread);
	ep->unread = NULL;
	ep->is_stalled = ep->base.starved = false;
	receives_flush(&ep->base, FI_ECANCELED);
	tcp_send_flush(ep, FI_ECANCELED);
	rma_flush(ep, FI_ECANCELED);
}

void tcp_ep_finish(struct tcp_ep *ep)
{
	if (ep->base.state == EP_DEAD)
		return;
	poll_end(ep);
	ep->base.state = EP_DEAD;
	flush(ep);
	prov_ep_tell(&ep->base, FI_SHUTDOWN, NULL, 0);
}

static const char *const breaches[TCP_BREACH_COUNT] = {
	[TCP_BREACH_FRAME] = "it sent a frame of no kind that there is",
	[TCP_BREACH_WRITE] = "it wrote to memory that it may not write to",
	[TCP_BREACH_READ] = "it read memory that it may not read",
	[TCP_BREACH_READS] = "it asked for more reads at a time than there may be",
	[TCP_BREACH_UNASKED] = "it answered a read that was not asked for",
	[TCP_BREACH_ANSWER] = "it answered a read with another number of bytes",
	[TCP_BREACH_WITHDRAWN] = "it uses memory whose registration is closed",
};

void tcp_ep_break(struct tcp_ep *ep, enum tcp_breach breach)
{
	char peer[ADDRESS_TEXT_BYTES];

	if (ep->breach)
		return;
	ep->breach = (uint8_t)breach;
	ep->why = breaches[breach];
	domain_of(ep)->breaches[breach]++;
	if (plx_log_allowed(&domain_of(ep)->log_limit, queue_now_ns()))
		tcp_log(FI_LOG_WARN, "the connection with %s is ended: %s",
			address_format((const struct sockaddr *)&ep->base.peer, peer, sizeof(peer)),
			ep->why);
	tcp_sys.shutdown(ep->base.source.fd, SHUT_RDWR);
}

static void ep_close(struct prov_ep *base)
{
	struct tcp_ep *ep = (struct tcp_ep *)base;

	if (base->state == EP_CONNECTED && ep->queued_bytes && !ep->is_blocked)
		tcp_send_queued(ep);
	tcp_ep_disconnect(base);
	if (base->enabled)
		flush(ep);
	free(ep->sends);
	free(ep->said);
}

const struct prov_ep_ops tcp_ep_ops = {
	.bytes = sizeof(struct tcp_ep),
	.msg = &tcp_msg_ops,
	.rma = &tcp_rma_ops,
	.posted = posted,
	.connect = tcp_ep_connect,
	.accept = tcp_ep_accept,
	.shutdown = tcp_ep_shutdown,
	.disconnect = tcp_ep_disconnect,
	.close = ep_close,
};
