/* SPDX-License-Identifier: BSD-3-Clause */
/* Endpoints: how they are made, bound, enabled and closed. */
#include "shm.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define DIRECTION (FI_TRANSMIT | FI_RECV)

static struct shm_ep *ep_of(struct fid *fid)
{
	return (struct shm_ep *)fid;
}

/* Binding ---------------------------------------------------------------------------------- */

static int bind_eq(struct shm_ep *ep, struct prov_eq *eq)
{
	int rc;

	if (ep->eq || eq->fabric != ep->domain->fabric)
		return -FI_EINVAL;
	rc = domain_watch(ep->domain, eq);
	if (rc)
		return rc;
	ep->eq = eq;
	eq->refs++;
	return 0;
}

static int check_cq(const struct shm_ep *ep, const struct shm_cq *cq, uint64_t flags)
{
	if (flags & ~(DIRECTION | FI_SELECTIVE_COMPLETION) || !(flags & DIRECTION))
		return -FI_EBADFLAGS;
	if (cq->domain != ep->domain)
		return -FI_EDOMAIN;
	if ((flags & FI_TRANSMIT && ep->tx_cq) || (flags & FI_RECV && ep->rx_cq))
		return -FI_EINVAL;
	return 0;
}

/* All that it can have posted may fail at once. */
static int bind_cq(struct shm_ep *ep, struct shm_cq *cq, uint64_t flags)
{
	bool selective = flags & FI_SELECTIVE_COMPLETION;
	uint32_t room = (flags & FI_TRANSMIT ? ep->tx_size : 0) +
			(flags & FI_RECV ? ep->rx_size : 0);
	int rc = check_cq(ep, cq, flags);

	rc = rc ? rc : cq_reserve(&cq->q, room);
	if (rc)
		return rc;
	if (flags & FI_TRANSMIT) {
		ep->tx_cq = cq;
		ep->tx_selective = selective;
		cq->q.refs++;
	}
	if (flags & FI_RECV) {
		ep->rx_cq = cq;
		ep->rx_selective = selective;
		cq->q.refs++;
	}
	return 0;
}

static int ep_bind(struct fid *fid, struct fid *bound, uint64_t flags)
{
	struct shm_ep *ep = ep_of(fid);

	if (ep->enabled)
		return -FI_EOPBADSTATE;
	switch (bound->fclass) {
	case FI_CLASS_EQ:
		return bind_eq(ep, (struct prov_eq *)bound);
	case FI_CLASS_CQ:
		return bind_cq(ep, (struct shm_cq *)bound, flags);
	default:
		return -FI_EINVAL;
	}
}

static void unbind(struct shm_ep *ep)
{
	if (ep->tx_cq) {
		cq_unreserve(&ep->tx_cq->q, ep->tx_size);
		ep->tx_cq->q.refs--;
	}
	if (ep->rx_cq) {
		cq_unreserve(&ep->rx_cq->q, ep->rx_size);
		ep->rx_cq->q.refs--;
	}
	if (ep->eq) {
		for (uint32_t i = 0; i < ep->told; i++)
			eq_take_back(ep->eq, &ep->events[i]);
		domain_unwatch(ep->domain, ep->eq);
		ep->eq->refs--;
	}
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
	int rc = receive_init(ep);

	if (rc)
		return rc;
	rc = send_init(ep);
	if (rc)
		receive_fini(ep);
	return rc;
}

int ep_enable(struct shm_ep *ep)
{
	int rc;

	if (ep->state == EP_DRAINING || ep->state == EP_DEAD)
		return -FI_EOPBADSTATE;
	if (ep->enabled)
		return 0;
	if (!ep->eq)
		return -FI_ENOEQ;
	if (!ep->rx_cq || !ep->tx_cq)
		return -FI_ENOCQ;
	rc = make_ring(ep);
	rc = rc ? rc : make_queues(ep);
	if (rc) {
		drop_rings(ep);
		return rc;
	}
	cq_attach(ep->rx_cq, ep);
	ep->enabled = true;
	return 0;
}

/* Making and closing ----------------------------------------------------------------------- */

static void disable(struct shm_ep *ep)
{
	progress_end(ep);
	receive_flush(ep, FI_ECANCELED);
	send_flush(ep, FI_ECANCELED);
	receive_fini(ep);
	send_fini(ep);
}

static void ep_free(struct shm_ep *ep)
{
	drop_rings(ep);
	fi_freeinfo(ep->info);
	free(ep);
}

static int ep_close(struct fid *fid)
{
	struct shm_ep *ep = ep_of(fid);

	ep_disconnect(ep);
	if (ep->request)
		request_free(ep->request);
	if (ep->enabled)
		disable(ep);
	unbind(ep);
	ep->domain->refs--;
	ep_free(ep);
	return 0;
}

static int ep_control(struct fid *fid, int command, void *arg)
{
	switch (command) {
	case FI_ENABLE:
		return ep_enable(ep_of(fid));
	case FI_GETOPSFLAG:
		return ep_get_op_flags(ep_of(fid), arg);
	case FI_SETOPSFLAG:
		return ep_set_op_flags(ep_of(fid), *(uint64_t *)arg);
	default:
		return -FI_ENOSYS;
	}
}

static struct fi_ops ep_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = ep_close,
	.bind = ep_bind,
	.control = ep_control,
	.ops_open = prov_no_ops_open,
};

static int check_attr(const struct fi_info *info)
{
	const struct fi_tx_attr *tx = info->tx_attr;
	const struct fi_rx_attr *rx = info->rx_attr;

	if (info->ep_attr && info->ep_attr->type != FI_EP_UNSPEC &&
	    info->ep_attr->type != FI_EP_MSG)
		return -FI_EINVAL;
	if (tx && (tx->size > SHM_TX_SIZE_MAX || tx->op_flags & ~shm_info_most.tx_attr->op_flags))
		return -FI_EINVAL;
	if (rx && (rx->size > SHM_RX_SIZE_MAX || rx->op_flags & ~shm_info_most.rx_attr->op_flags))
		return -FI_EINVAL;
	return 0;
}

static void take_attr(struct shm_ep *ep, const struct fi_info *info)
{
	const struct fi_tx_attr *tx = info->tx_attr;
	const struct fi_rx_attr *rx = info->rx_attr;

	ep->tx_size = tx && tx->size ? (uint32_t)tx->size : SHM_TX_SIZE;
	ep->rx_size = rx && rx->size ? (uint32_t)rx->size : SHM_RX_SIZE;
	ep->tx_flags = tx ? tx->op_flags : 0;
	ep->rx_flags = rx ? rx->op_flags : 0;
}

/* What it is made from: a request becomes its own, a passive endpoint lends its address. */
static int take_handle(struct shm_ep *ep, struct fid *handle)
{
	struct shm_request *request = (struct shm_request *)handle;

	switch (handle ? handle->fclass : FI_CLASS_UNSPEC) {
	case FI_CLASS_UNSPEC:
		return handle ? -FI_EINVAL : 0;
	case FI_CLASS_PEP:
		ep->local = ((struct shm_pep *)handle)->address;
		return 0;
	case FI_CLASS_CONNREQ:
		if (!request->pep) /* another's already */
			return -FI_EINVAL;
		ep->local = request->pep->address;
		request_take(request);
		ep->request = request;
		return 0;
	default:
		return -FI_EINVAL;
	}
}

static void ep_ready(struct prov_source *source)
{
	ep_incoming(plx_container_of(source, struct shm_ep, source));
}

static int ep_init(struct shm_ep *ep, const struct fi_info *info)
{
	int rc = 0;

	ep->segment_fd = -1;
	ep->source = (struct prov_source){.fd = -1, .ready = ep_ready};
	ep->peer_pidfd = -1;
	take_attr(ep, info);
	ep->info = fi_dupinfo(info);
	if (!ep->info)
		return -FI_ENOMEM;
	if (info->src_addr)
		rc = prov_address_take(info->src_addr, info->src_addrlen, &ep->local);
	return rc ? rc : take_handle(ep, info->handle);
}

int shm_ep_open(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep_out,
		void *context)
{
	struct shm_ep *ep;
	int rc = info ? check_attr(info) : -FI_EINVAL;

	if (rc)
		return rc;
	ep = calloc(1, sizeof(*ep));
	if (!ep)
		return -FI_ENOMEM;
	rc = ep_init(ep, info);
	if (rc) {
		ep_free(ep);
		return rc;
	}
	ep->fid.fid.fclass = FI_CLASS_EP;
	ep->fid.fid.context = context;
	ep->fid.fid.ops = &ep_fid_ops;
	ep->fid.ops = &shm_ep_ops;
	ep->fid.cm = &shm_ep_cm_ops;
	ep->fid.msg = &shm_msg_ops;
	ep->fid.rma = &prov_no_rma;
	ep->fid.tagged = &prov_no_tagged;
	ep->fid.atomic = &prov_no_atomic;
	ep->fid.collective = &prov_no_collective;
	ep->domain = (struct shm_domain *)domain;
	ep->domain->refs++;
	*ep_out = &ep->fid;
	return 0;
}
