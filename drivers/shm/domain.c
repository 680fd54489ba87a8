/* SPDX-License-Identifier: BSD-3-Clause */
/* Domains: what one thread at a time works with. */
#include "shm.h"

#include <stdlib.h>

static int no_av(struct fid_domain *fid, struct fi_av_attr *attr, struct fid_av **out,
		 void *context)
{
	return -FI_ENOSYS;
}

static int no_scalable_ep(struct fid_domain *fid, struct fi_info *info, struct fid_ep **out,
			  void *context)
{
	return -FI_ENOSYS;
}

static int no_counter(struct fid_domain *fid, struct fi_cntr_attr *attr, struct fid_cntr **out,
		      void *context)
{
	return -FI_ENOSYS;
}

static int no_poll_set(struct fid_domain *fid, struct fi_poll_attr *attr, struct fid_poll **out)
{
	return -FI_ENOSYS;
}

static int no_shared_tx(struct fid_domain *fid, struct fi_tx_attr *attr, struct fid_stx **out,
			void *context)
{
	return -FI_ENOSYS;
}

static int no_shared_rx(struct fid_domain *fid, struct fi_rx_attr *attr, struct fid_ep **out,
			void *context)
{
	return -FI_ENOSYS;
}

static int domain_close(struct fid *fid)
{
	struct shm_domain *domain = (struct shm_domain *)fid;

	if (domain->refs)
		return -FI_EBUSY;
	fabric_unref(domain->fabric);
	free(domain);
	return 0;
}

static struct fi_ops domain_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = domain_close,
	.bind = shm_no_bind,
	.control = shm_no_control,
	.ops_open = shm_no_ops_open,
};

static struct fi_ops_domain domain_ops = {
	.size = sizeof(struct fi_ops_domain),
	.av_open = no_av,
	.cq_open = shm_cq_open,
	.endpoint = shm_ep_open,
	.scalable_ep = no_scalable_ep,
	.cntr_open = no_counter,
	.poll_open = no_poll_set,
	.stx_ctx = no_shared_tx,
	.srx_ctx = no_shared_rx,
};

static struct shm_watch **find_watch(struct shm_domain *domain, const struct shm_eq *eq)
{
	struct shm_watch **at = &domain->watches;

	while (*at && (*at)->eq != eq)
		at = &(*at)->next;
	return at;
}

int domain_watch(struct shm_domain *domain, struct shm_eq *eq)
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

void domain_unwatch(struct shm_domain *domain, struct shm_eq *eq)
{
	struct shm_watch **at = find_watch(domain, eq);
	struct shm_watch *watch = *at;

	if (!watch || --watch->endpoints)
		return;
	*at = watch->next;
	free(watch);
}

bool shm_is_domain(const struct fid_domain *fid)
{
	return fid->ops == &domain_ops;
}

int shm_domain_open(struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **domain_out,
		    void *context)
{
	struct shm_domain *domain;

	if (!info || !info->domain_attr || !shm_domain_attr_fits(info->domain_attr))
		return -FI_EINVAL;
	domain = calloc(1, sizeof(*domain));
	if (!domain)
		return -FI_ENOMEM;
	domain->fid.fid.fclass = FI_CLASS_DOMAIN;
	domain->fid.fid.context = context;
	domain->fid.fid.ops = &domain_fid_ops;
	domain->fid.ops = &domain_ops;
	domain->fid.mr = &shm_mr_ops;
	domain->chooses_keys = info->domain_attr->mr_mode == COMPAT_MR_BASIC;
	list_init(&domain->sending);
	list_init(&domain->cqs);
	domain->fabric = (struct shm_fabric *)fabric;
	fabric_ref(domain->fabric);
	*domain_out = &domain->fid;
	return 0;
}
