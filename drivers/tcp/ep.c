/* SPDX-License-Identifier: BSD-3-Clause */
/* Endpoints: how they are made, enabled, ended and closed. */
#include "tcp.h"

#include <stdlib.h>

static struct tcp_ep *ep_of(struct fid *fid)
{
	return (struct tcp_ep *)fid;
}

int tcp_ep_enable(struct prov_ep *base)
{
	int rc = prov_ep_check_enable(base);

	if (rc || base->enabled)
		return rc;
	rc = receives_init(&base->rx, base->rx.size);
	base->enabled = rc == 0;
	return rc;
}

void tcp_ep_posted(struct prov_ep *base)
{
	base->starved = false;
	poll_wait((struct tcp_ep *)base);
}

/* Ending --------------------------------------------------------------------------------------- */

static void flush(struct tcp_ep *ep)
{
	block_put(&domain_of(ep)->blocks, ep->unread);
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

void tcp_ep_break(struct tcp_ep *ep, const char *why)
{
	char peer[PROV_ADDRESS_MAX];

	if (ep->is_broken)
		return;
	ep->is_broken = true;
	if (plx_log_allowed(&domain_of(ep)->log_limit, queue_now_ns()))
		tcp_log(FI_LOG_WARN, "the connection with %s is ended: %s",
			prov_address_format(&ep->base.peer, peer), why);
	tcp_sys.shutdown(ep->source.fd, SHUT_RDWR);
}

/* Making and closing ----------------------------------------------------------------------- */

static int ep_close(struct fid *fid)
{
	struct tcp_ep *ep = ep_of(fid);

	dial_free(ep);
	if (ep->base.state == EP_CONNECTED && ep->queued_bytes && !ep->is_blocked)
		tcp_send_queued(ep);
	poll_end(ep);
	tcp_ep_disconnect(ep);
	if (ep->base.enabled)
		flush(ep);
	tcp_send_fini(ep);
	prov_ep_fini(&ep->base);
	free(ep);
	return 0;
}

static struct fi_ops ep_fid_ops = PROV_FID_OPS(ep_close, prov_ep_bind, prov_ep_control);

int tcp_ep_open(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep_out,
		void *context)
{
	struct tcp_ep *ep;
	int rc;

	if (!info)
		return -FI_EINVAL;
	ep = calloc(1, sizeof(*ep));
	if (!ep)
		return -FI_ENOMEM;
	ep->source.fd = -1;
	rc = prov_ep_init(&ep->base, (struct prov_domain *)domain, info, context);
	if (rc) {
		prov_ep_fini(&ep->base);
		free(ep);
		return rc;
	}
	if (ep->base.request)
		ep->base.peer = ((struct tcp_request *)ep->base.request)->peer;
	ep->base.fid.fid.ops = &ep_fid_ops;
	ep->base.fid.cm = &tcp_ep_cm_ops;
	ep->base.fid.msg = &tcp_msg_ops;
	ep->base.fid.rma = &tcp_rma_ops;
	*ep_out = &ep->base.fid;
	return 0;
}
