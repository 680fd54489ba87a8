/* SPDX-License-Identifier: BSD-3-Clause */
/* Domains: what one thread at a time works with. */
#include "shm.h"

#include <stdlib.h>

static int domain_close(struct fid *fid)
{
	struct shm_domain *domain = (struct shm_domain *)fid;

	if (!prov_domain_fini(&domain->base))
		return -FI_EBUSY;
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

static struct shm_watch **find_watch(struct shm_domain *domain, const struct prov_eq *eq)
{
	struct shm_watch **at = &domain->watches;

	while (*at && (*at)->eq != eq)
		at = &(*at)->next;
	return at;
}

int domain_watch(struct shm_domain *domain, struct prov_eq *eq)
{
	struct shm_watch **at = find_watch(domain, eq);

	if (!*at)
		*at = calloc(1, sizeof(**at));
	if (!*at)
		return -FI_ENOMEM;
	(*at)->eq = eq;
	(*at)->endpoints++;
	return 0;
}

void domain_unwatch(struct shm_domain *domain, struct prov_eq *eq)
{
	struct shm_watch **at = find_watch(domain, eq);
	struct shm_watch *watch = *at;

	if (!watch || --watch->endpoints)
		return;
	*at = watch->next;
	free(watch);
}

const struct fi_ops_domain shm_domain_ops = {
	.size = sizeof(struct fi_ops_domain),
	.av_open = prov_no_av,
	.cq_open = shm_cq_open,
	.endpoint = shm_ep_open,
	.scalable_ep = prov_no_scalable_ep,
	.cntr_open = prov_no_counter,
	.poll_open = prov_no_poll_set,
	.stx_ctx = prov_no_shared_tx,
	.srx_ctx = prov_no_shared_rx,
};

int shm_domain_open(struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **domain_out,
		    void *context)
{
	struct shm_domain *domain = calloc(1, sizeof(*domain));
	int rc;

	if (!domain)
		return -FI_ENOMEM;
	rc = prov_domain_init(&domain->base, fabric, info, context);
	if (rc) {
		free(domain);
		return rc;
	}
	domain->base.fid.fid.ops = &domain_fid_ops;
	list_init(&domain->sending);
	list_init(&domain->cqs);
	*domain_out = &domain->base.fid;
	return 0;
}
