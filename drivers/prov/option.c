/* SPDX-License-Identifier: BSD-3-Clause */
/* What endpoints are asked and told besides what they are for: options, room in their queues. */
#include "prov.h"

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
	return used < ep->tx_size ? ep->tx_size - used : 0; /* a provider may have some on top */
}

struct fi_ops_ep prov_ep_calls = {
	.size = sizeof(struct fi_ops_ep),
	.cancel = ep_cancel,
	.getopt = prov_getopt,
	.setopt = prov_setopt,
	.tx_ctx = PROV_REFUSED,
	.rx_ctx = PROV_REFUSED,
	.rx_size_left = ep_rx_left,
	.tx_size_left = ep_tx_left,
};
