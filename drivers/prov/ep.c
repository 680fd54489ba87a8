/* SPDX-License-Identifier: BSD-3-Clause */
/* Endpoints of every provider: opening, binding, enabling and closing. */
#include "prov.h"

#include <stdlib.h>

#define DIRECTION (FI_TRANSMIT | FI_RECV)

/* Binding ---------------------------------------------------------------------------------- */

static int check_cq(const struct prov_ep *ep, const struct prov_cq *cq, uint64_t flags)
{
	if (flags & ~(DIRECTION | FI_SELECTIVE_COMPLETION) || !(flags & DIRECTION))
		return -FI_EBADFLAGS;
	if (cq->domain != ep->domain)
		return -FI_EDOMAIN;
	if ((flags & FI_TRANSMIT && ep->tx_cq) || (flags & FI_RECV && ep->rx_cq))
		return -FI_EINVAL;
	return 0;
}

/* All posted operations may fail at once. */
static int bind_cq(struct prov_ep *ep, struct prov_cq *cq, uint64_t flags)
{
	bool selective = flags & FI_SELECTIVE_COMPLETION;
	uint32_t room = (flags & FI_TRANSMIT ? ep->tx_size : 0) +
			(flags & FI_RECV ? ep->rx.size : 0);
	int rc = check_cq(ep, cq, flags);

	rc = rc ? rc : cq_reserve(cq, room);
	if (rc)
		return rc;
	if (flags & FI_TRANSMIT) {
		ep->tx_cq = cq;
		ep->tx_selective = selective;
		cq->refs++;
	}
	if (flags & FI_RECV) {
		ep->rx_cq = cq;
		ep->rx_selective = selective;
		cq->refs++;
	}
	return 0;
}

static int ep_bind(struct fid *fid, struct fid *bound, uint64_t flags)
{
	struct prov_ep *ep = prov_ep_of(fid);
	struct prov_eq *eq = (struct prov_eq *)bound;

	if (ep->enabled)
		return -FI_EOPBADSTATE;
	if (bound->fclass == FI_CLASS_CQ)
		return bind_cq(ep, (struct prov_cq *)bound, flags);
	if (bound->fclass != FI_CLASS_EQ || ep->eq || eq->fabric != ep->domain->fabric)
		return -FI_EINVAL;
	if (flags)
		return -FI_EBADFLAGS;
	ep->eq = eq;
	eq->refs++;
	return 0;
}

static void unbind(struct prov_ep *ep)
{
	if (ep->tx_cq) {
		cq_unreserve(ep->tx_cq, ep->tx_size);
		ep->tx_cq->refs--;
	}
	if (ep->rx_cq) {
		cq_unreserve(ep->rx_cq, ep->rx.size);
		ep->rx_cq->refs--;
	}
	if (ep->eq) {
		for (uint32_t i = 0; i < ep->told; i++)
			eq_take_back(ep->eq, &ep->events[i]);
		ep->eq->refs--;
	}
}

/* Enabling --------------------------------------------------------------------------------- */

static int check_enable(const struct prov_ep *ep)
{
	if (ep->state == EP_DRAINING || ep->state == EP_DEAD)
		return -FI_EOPBADSTATE;
	if (!ep->eq)
		return -FI_ENOEQ;
	return ep->rx_cq && ep->tx_cq ? 0 : -FI_ENOCQ;
}

int prov_ep_enable(struct prov_ep *ep)
{
	int rc = check_enable(ep);

	if (rc || ep->enabled)
		return rc;
	rc = receives_init(&ep->rx);
	if (rc == 0 && prov_ep_ops(ep)->enable)
		rc = prov_ep_ops(ep)->enable(ep);
	if (rc)
		receives_fini(&ep->rx);
	ep->enabled = rc == 0;
	return rc;
}

/* Default flags of operations ---------------------------------------------------------------- */

/* *flags names a direction. FI_GETOPSFLAG returns its flags there; FI_SETOPSFLAG sets them to the
 * other bits. */
static int op_flags(struct prov_ep *ep, int command, uint64_t *flags)
{
	const struct fi_info *most = ep->domain->fabric->prov->most;
	uint64_t direction = *flags & DIRECTION, wanted = *flags & ~DIRECTION;
	bool is_tx = direction == FI_TRANSMIT;
	uint64_t *kept = is_tx ? &ep->tx_flags : &ep->rx_flags;

	if (!is_tx && direction != FI_RECV)
		return -FI_EINVAL;
	if (command == FI_GETOPSFLAG)
		*flags = *kept;
	else if (wanted & ~(is_tx ? most->tx_attr->op_flags : most->rx_attr->op_flags))
		return -FI_EBADFLAGS;
	else
		*kept = wanted;
	return 0;
}

static int ep_control(struct fid *fid, int command, void *arg)
{
	struct prov_ep *ep = prov_ep_of(fid);

	switch (command) {
	case FI_ENABLE:
		return prov_ep_enable(ep);
	case FI_GETOPSFLAG:
	case FI_SETOPSFLAG:
		return op_flags(ep, command, arg);
	default:
		return -FI_ENOSYS;
	}
}

/* Options, and room in its queues ------------------------------------------------------------ */

static ssize_t ep_cancel(fid_t fid, void *context)
{
	struct prov_ep *ep = prov_ep_of(fid);

	return ep->enabled ? receives_cancel(ep, context) : -FI_EOPBADSTATE;
}

int prov_getopt(fid_t fid, int level, int name, void *value, size_t *bytes)
{
	if (level != FI_OPT_ENDPOINT || name != FI_OPT_CM_DATA_SIZE)
		return -FI_ENOPROTOOPT;
	if (*bytes < sizeof(size_t)) {
		*bytes = sizeof(size_t);
		return -FI_ETOOSMALL;
	}
	*(size_t *)value = PROV_CM_DATA_MAX;
	*bytes = sizeof(size_t);
	return 0;
}

int prov_setopt(fid_t fid, int level, int name, const void *value, size_t bytes)
{
	return -FI_ENOPROTOOPT;
}

static ssize_t ep_rx_left(struct fid_ep *fid)
{
	const struct prov_ep *ep = prov_ep_of(&fid->fid);

	return ep->enabled ? (ssize_t)(ep->rx.size - (ep->rx.tail - ep->rx.head)) : -FI_EOPBADSTATE;
}

static ssize_t ep_tx_left(struct fid_ep *fid)
{
	const struct prov_ep *ep = prov_ep_of(&fid->fid);
	uint32_t used = ep->tx_tail - ep->tx_head;

	if (!ep->enabled)
		return -FI_EOPBADSTATE;
	return used < ep->tx_size ? ep->tx_size - used : 0; /* a provider may add sends on top */
}

static struct fi_ops_ep ep_calls = {
	.size = sizeof(struct fi_ops_ep),
	.cancel = ep_cancel,
	.getopt = prov_getopt,
	.setopt = prov_setopt,
	.tx_ctx = PROV_REFUSED,
	.rx_ctx = PROV_REFUSED,
	.rx_size_left = ep_rx_left,
	.tx_size_left = ep_tx_left,
};

/* Lists of its receiving queue ---------------------------------------------------------------- */

void ep_list(struct prov_ep *ep, enum prov_listed listed)
{
	struct prov_cq *cq = ep->rx_cq;

	cq->hot_count -= ep->listed == LISTED_HOT;
	if (ep->listed)
		TAILQ_REMOVE(ep->listed == LISTED_HOT ? &cq->hot : &cq->aside, ep, link);
	cq->hot_count += listed == LISTED_HOT;
	if (listed)
		TAILQ_INSERT_TAIL(listed == LISTED_HOT ? &cq->hot : &cq->aside, ep, link);
	ep->listed = (uint8_t)listed;
}

/* Opening and closing ----------------------------------------------------------------------- */

static void take_attr(struct prov_ep *ep, const struct fi_info *info)
{
	const struct fi_tx_attr *tx = info->tx_attr;
	const struct fi_rx_attr *rx = info->rx_attr;

	ep->tx_size = tx && tx->size ? (uint32_t)tx->size : PROV_EP_SIZE;
	ep->rx.size = rx && rx->size ? (uint32_t)rx->size : PROV_EP_SIZE;
	ep->tx_flags = tx ? tx->op_flags : 0;
	ep->rx_flags = rx ? rx->op_flags : 0;
}

/* Sources of an endpoint: a request becomes its property; a passive endpoint lends its address. */
static int take_handle(struct prov_ep *ep, struct fid *handle)
{
	struct prov_request *request = (struct prov_request *)handle;

	if (handle && handle->fclass == FI_CLASS_PEP)
		ep->local = ((struct prov_pep *)handle)->address;
	if (!handle || handle->fclass == FI_CLASS_PEP)
		return 0;
	if (handle->fclass != FI_CLASS_CONNREQ || !request->pep) /* taken by another endpoint */
		return -FI_EINVAL;
	ep->local = request->pep->address;
	ep->peer = request->peer;
	prov_request_take(request);
	ep->request = request;
	return 0;
}

static void ep_free(struct prov_ep *ep)
{
	if (ep->request)
		prov_request_free(ep->request);
	prov_mr_orphan_all(ep);
	unbind(ep);
	receives_fini(&ep->rx);
	ep->domain->refs--;
	fi_freeinfo(ep->info);
	free(ep);
}

static int ep_close(struct fid *fid)
{
	struct prov_ep *ep = prov_ep_of(fid);

	prov_ep_ops(ep)->close(ep);
	ep_free(ep);
	return 0;
}

static void look_at_arrival(const struct fid_ep *fid, struct plx_arrival *out)
{
	const struct prov_ep *ep = (const struct prov_ep *)fid;

	*out = (struct plx_arrival){.bytes = ep->part_bytes, .begin = ep->part_bytes};
	if (prov_ep_ops(ep)->is_in_parts(ep, &out->is_held))
		out->begin = ep->part_begin;
}

static uint64_t ep_in_flight(const struct fid_ep *fid)
{
	const struct prov_ep *ep = (const struct prov_ep *)fid;
	const struct prov_ep_ops *ops = prov_ep_ops(ep);

	return ops->in_flight && ep->state == EP_CONNECTED ? ops->in_flight(ep) : 0;
}

static int ep_open_ops(struct fid *fid, const char *name, uint64_t flags, void **ops, void *context)
{
	static const struct plx_arrival_ops arrival_ops = {look_at_arrival, ep_in_flight};

	if (flags || strcmp(name, PLX_ARRIVAL_OPS) != 0)
		return -FI_ENOSYS;
	*ops = (void *)&arrival_ops;
	return 0;
}

static struct fi_ops ep_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = ep_close,
	.bind = ep_bind,
	.control = ep_control,
	.ops_open = ep_open_ops,
};

static int init(struct prov_ep *ep, struct prov_domain *domain, const struct fi_info *info,
		void *context)
{
	const struct prov_ep_ops *ops = domain->fabric->prov->ep_ops;
	int rc = 0;

	ep->domain = domain;
	domain->refs++;
	ep->source.fd = -1;
	fid_init(&ep->fid.fid, FI_CLASS_EP, context, &ep_fid_ops);
	ep->fid.ops = &ep_calls;
	ep->fid.cm = &prov_ep_cm_ops;
	ep->fid.msg = ops->msg;
	ep->fid.rma = ops->rma;
	ep->fid.tagged = &prov_no_tagged.tagged;
	ep->fid.atomic = &prov_no_atomic.atomic;
	ep->fid.collective = &prov_no_collective.collective;
	take_attr(ep, info);
	ep->info = fi_dupinfo(info);
	if (!ep->info)
		return -FI_ENOMEM;
	if (info->src_addr)
		rc = prov_address_take(info->src_addr, info->src_addrlen, &ep->local);
	return rc ? rc : take_handle(ep, info->handle);
}

int prov_ep_open(struct fid_domain *fid, struct fi_info *info, struct fid_ep **ep_out,
		 void *context)
{
	struct prov_domain *domain = (struct prov_domain *)fid;
	const struct prov *prov = domain->fabric->prov;
	struct prov_ep *ep;
	int rc;

	if (!info || !prov_hints_fit(prov, info))
		return -FI_EINVAL;
	ep = calloc(1, prov->ep_ops->bytes);
	if (!ep)
		return -FI_ENOMEM;
	rc = init(ep, domain, info, context);
	if (rc) {
		ep_free(ep);
		return rc;
	}
	if (prov->ep_ops->init)
		prov->ep_ops->init(ep);
	*ep_out = &ep->fid;
	return 0;
}
