/* SPDX-License-Identifier: BSD-3-Clause */
/* What endpoints are asked and told besides what they are for: options, default flags of
 * operations, room in their queues. */
#include "shm.h"

#define DIRECTION (FI_TRANSMIT | FI_RECV)

static struct shm_ep *ep_of(struct fid *fid)
{
	return (struct shm_ep *)fid;
}

int ep_get_op_flags(const struct shm_ep *ep, uint64_t *flags)
{
	switch (*flags & DIRECTION) {
	case FI_TRANSMIT:
		*flags = ep->tx_flags;
		return 0;
	case FI_RECV:
		*flags = ep->rx_flags;
		return 0;
	default:
		return -FI_EINVAL;
	}
}

int ep_set_op_flags(struct shm_ep *ep, uint64_t flags)
{
	uint64_t wanted = flags & ~DIRECTION;

	switch (flags & DIRECTION) {
	case FI_TRANSMIT:
		if (wanted & ~shm_info_most.tx_attr->op_flags)
			return -FI_EBADFLAGS;
		ep->tx_flags = wanted;
		return 0;
	case FI_RECV:
		if (wanted & ~shm_info_most.rx_attr->op_flags)
			return -FI_EBADFLAGS;
		ep->rx_flags = wanted;
		return 0;
	default:
		return -FI_EINVAL;
	}
}

static ssize_t ep_cancel(fid_t fid, void *context)
{
	struct shm_ep *ep = ep_of(fid);

	return ep->enabled ? receive_cancel(ep, context) : -FI_EOPBADSTATE;
}

int shm_getopt(fid_t fid, int level, int name, void *value, size_t *bytes)
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

int shm_setopt(fid_t fid, int level, int name, const void *value, size_t bytes)
{
	return -FI_ENOPROTOOPT;
}

static int no_tx_context(struct fid_ep *fid, int index, struct fi_tx_attr *attr,
			 struct fid_ep **out, void *context)
{
	return -FI_ENOSYS;
}

static int no_rx_context(struct fid_ep *fid, int index, struct fi_rx_attr *attr,
			 struct fid_ep **out, void *context)
{
	return -FI_ENOSYS;
}

static ssize_t ep_rx_left(struct fid_ep *fid)
{
	const struct shm_ep *ep = ep_of(&fid->fid);

	return ep->enabled ? (ssize_t)(ep->rx_size - (ep->rx_tail - ep->rx_head)) : -FI_EOPBADSTATE;
}

static ssize_t ep_tx_left(struct fid_ep *fid)
{
	const struct shm_ep *ep = ep_of(&fid->fid);

	return ep->enabled ? (ssize_t)(ep->tx_size - (ep->tx_tail - ep->tx_head)) : -FI_EOPBADSTATE;
}

struct fi_ops_ep shm_ep_ops = {
	.size = sizeof(struct fi_ops_ep),
	.cancel = ep_cancel,
	.getopt = shm_getopt,
	.setopt = shm_setopt,
	.tx_ctx = no_tx_context,
	.rx_ctx = no_rx_context,
	.rx_size_left = ep_rx_left,
	.tx_size_left = ep_tx_left,
};
