/* SPDX-License-Identifier: BSD-3-Clause */
/* Endpoints: ending and closing. */
#include "tcp.h"

#include <linux/sockios.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/ioctl.h>

#define LINGER_NS       PLX_NS_PER_S /* that a domain waits for closing endpoints, in every ... */
#define LINGER_EVERY_NS (10 * PLX_NS_PER_S)
#define LINGER_PAUSE_MS 1 /* after a write that took nothing */

static void posted(struct prov_ep *base)
{
	base->starved = false;
	poll_wait((struct tcp_ep *)base);
}

static uint64_t in_flight(const struct prov_ep *base)
{
	int queued = 0, unsent = 0;

	/* Bytes: one segment may be a heartbeat, or 64 KiB. */
	ioctl(base->source.fd, SIOCOUTQ, &queued);
	ioctl(base->source.fd, SIOCOUTQNSD, &unsent);
	return queued > unsent ? (uint64_t)(queued - unsent) : 0;
}

/* Ending --------------------------------------------------------------------------------------- */

/* Until when a closing endpoint may wait. However many close, the thread continues soon. */
static uint64_t linger_end_ns(struct tcp_domain *domain)
{
	uint64_t now_ns = queue_now_ns();

	if (!domain->lingered_ns || now_ns - domain->lingered_ns >= LINGER_EVERY_NS)
		domain->lingered_ns = now_ns;
	return domain->lingered_ns + LINGER_NS;
}

/* Until the socket has taken everything. Without memory the kernel takes nothing, although poll(2)
 * may report room. */
static void linger(struct tcp_ep *ep)
{
	struct pollfd pollfd = {.fd = ep->base.source.fd, .events = POLLOUT};
	uint64_t end_ns = linger_end_ns(domain_of(ep));
	uint64_t before = 0;
	int left_ms;

	while (ep->queued_bytes && !ep->send_failed && (left_ms = queue_left_ms(end_ns)) > 0) {
		if (ep->queued_bytes == before)
			poll(NULL, 0, LINGER_PAUSE_MS);
		before = ep->queued_bytes;
		poll(&pollfd, 1, left_ms);
		tcp_send_queued(ep);
	}
}

/* What has completed is in the kernel, which sends it after the socket is closed. Sends in flight
 * are cancelled. */
void tcp_ep_send_rest(struct tcp_ep *ep)
{
	if (ep->queued_bytes && !ep->is_blocked)
		tcp_send_queued(ep);
	if (ep->queued_bytes && ep->has_injected && !domain_of(ep)->gathers)
		linger(ep);
}

/* Received bytes left unread would reset the connection when its socket is closed, and the peer
 * might lose what the kernel has not sent yet. This drops them without a copy. */
static void drop_unread(struct tcp_ep *ep)
{
	if (ep->base.source.fd >= 0 && !domain_of(ep)->gathers)
		tcp_sys.recv(ep->base.source.fd, NULL, INT32_MAX, MSG_DONTWAIT | MSG_TRUNC);
}

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

	if (base->state == EP_CONNECTED)
		tcp_ep_send_rest(ep);
	drop_unread(ep);
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
	.is_in_parts = tcp_receive_is_in_parts,
	.in_flight = in_flight,
	.connect = tcp_ep_connect,
	.accept = tcp_ep_accept,
	.shutdown = tcp_ep_shutdown,
	.disconnect = tcp_ep_disconnect,
	.close = ep_close,
};
