/* SPDX-License-Identifier: BSD-3-Clause */
/* Domains: what one thread at a time works with. */
#include "tcp.h"

#include <stdlib.h>

static int domain_close(struct fid *fid)
{
	struct tcp_domain *domain = (struct tcp_domain *)fid;

	if (!prov_domain_fini(&domain->base))
		return -FI_EBUSY;
	block_pool_fini(&domain->blocks);
	free(domain);
	return 0;
}

static struct fi_ops domain_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = domain_close,
	.bind = prov_no_bind,
	.control = prov_no_control,
	.ops_open = prov_no_ops_open,
};

const struct fi_ops_domain tcp_domain_ops = {
	.size = sizeof(struct fi_ops_domain),
	.av_open = prov_no_av,
	.cq_open = tcp_cq_open,
	.endpoint = tcp_ep_open,
	.scalable_ep = prov_no_scalable_ep,
	.cntr_open = prov_no_counter,
	.poll_open = prov_no_poll_set,
	.stx_ctx = prov_no_shared_tx,
	.srx_ctx = prov_no_shared_rx,
};

int tcp_domain_open(struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **domain_out,
		    void *context)
{
	struct tcp_domain *domain = calloc(1, sizeof(*domain));
	int rc;

	if (!domain)
		return -FI_ENOMEM;
	rc = prov_domain_init(&domain->base, fabric, info, context);
	if (rc) {
		free(domain);
		return rc;
	}
	domain->base.fid.fid.ops = &domain_fid_ops;
	list_init(&domain->queued);
	list_init(&domain->cqs);
	list_init(&domain->eps);
	*domain_out = &domain->base.fid;
	return 0;
}
