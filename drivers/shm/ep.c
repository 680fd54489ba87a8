/* SPDX-License-Identifier: BSD-3-Clause */
/* Endpoints: how they are made, bound, enabled and closed. */
#include "shm.h"

#include <stdlib.h>
#include <unistd.h>

static struct shm_ep *ep_of(struct fid *fid)
{
	return (struct shm_ep *)fid;
}

/* Binding ---------------------------------------------------------------------------------- */

/* What its event queue watches moves with the queues of its domain (progress.c). */
static int ep_bind(struct fid *fid, struct fid *bound, uint64_t flags)
{
	struct shm_ep *ep = ep_of(fid);
	int rc = prov_ep_bind(fid, bound, flags);

	if (rc || bound->fclass != FI_CLASS_EQ)
		return rc;
	rc = domain_watch(domain_of(ep), ep->base.eq);
	if (rc) {
		ep->base.eq->refs--;
		ep->base.eq = NULL;
	}
	return rc;
}

/* Enabling --------------------------------------------------------------------------------- */

/* The ring that it receives by. Nobody but who can read our memory may know what the probe is. */
static int make_ring(struct shm_ep *ep)
{
	struct segment segment;
	int rc;

	ep->probe = plx_random_id();
	rc = segment_create(shm_params.ring_bytes, &segment, &ep->segment_fd);
	if (rc == 0)
		ring_reader_init(&ep->reader, &segment);
	return rc;
}

static void drop_rings(struct shm_ep *ep)
{
	segment_unmap(&ep->reader.segment);
	segment_unmap(&ep->writer.segment);
	peer_bell_release(ep->peer_bell);
	if (ep->segment_fd >= 0)
		close(ep->segment_fd);
	ep->segment_fd = -1;
}

static int make_queues(struct shm_ep *ep)
{
	int rc = receives_init(&ep->base.rx, ep->base.rx.size);

	if (rc)
		return rc;
	rc = send_init(ep);
	if (rc)
		receives_fini(&ep->base.rx);
	return rc;
}

int ep_enable(struct prov_ep *base)
{
	struct shm_ep *ep = (struct shm_ep *)base;
	int rc = prov_ep_check_enable(base);

	if (rc || base->enabled)
		return rc;
	rc = make_ring(ep);
	rc = rc ? rc : make_queues(ep);
	if (rc) {
		drop_rings(ep);
		return rc;
	}
	cq_attach(rx_cq_of(ep), ep);
	base->enabled = true;
	return 0;
}

/* Making and closing ----------------------------------------------------------------------- */

static void disable(struct shm_ep *ep)
{
	progress_end(ep);
	receives_flush(&ep->base, FI_ECANCELED);
	send_flush(ep, FI_ECANCELED);
	send_fini(ep);
}

static void ep_free(struct shm_ep *ep)
{
	if (ep->base.eq)
		domain_unwatch(domain_of(ep), ep->base.eq);
	drop_rings(ep);
	prov_ep_fini(&ep->base);
	free(ep);
}

static int ep_close(struct fid *fid)
{
	struct shm_ep *ep = ep_of(fid);

	ep_disconnect(ep);
	if (ep->base.enabled)
		disable(ep);
	ep_free(ep);
	return 0;
}

static struct fi_ops ep_fid_ops = PROV_FID_OPS(ep_close, ep_bind, prov_ep_control);

static void ep_ready(struct prov_source *source)
{
	ep_incoming(plx_container_of(source, struct shm_ep, source));
}

int shm_ep_open(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep_out,
		void *context)
{
	struct shm_ep *ep;
	int rc;

	if (!info)
		return -FI_EINVAL;
	ep = calloc(1, sizeof(*ep));
	if (!ep)
		return -FI_ENOMEM;
	ep->segment_fd = ep->peer_pidfd = -1;
	ep->source = (struct prov_source){.fd = -1, .ready = ep_ready};
	rc = prov_ep_init(&ep->base, (struct prov_domain *)domain, info, context);
	if (rc) {
		ep_free(ep);
		return rc;
	}
	ep->base.fid.fid.ops = &ep_fid_ops;
	ep->base.fid.cm = &shm_ep_cm_ops;
	ep->base.fid.msg = &shm_msg_ops;
	*ep_out = &ep->base.fid;
	return 0;
}
