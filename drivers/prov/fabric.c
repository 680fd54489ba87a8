/* SPDX-License-Identifier: BSD-3-Clause */
/* Fabrics: a name for what event queues and passive endpoints belong to; and domains. */
#include "prov.h"

#include <stdlib.h>

void prov_start_libfabric(void)
{
	struct fi_param *params = NULL;
	int count;

	if (fi_getparams(&params, &count) == 0 && params)
		fi_freeparams(params);
}

void prov_no_cleanup(void)
{
}

static int no_wait_set(struct fid_fabric *fid, struct fi_wait_attr *attr, struct fid_wait **out)
{
	return -FI_ENOSYS;
}

/* Queues of another fabric are not looked after by the caller's thread. */
static int arm(struct fid_fabric *fabric, struct fid *fid)
{
	struct prov_cq *cq = (struct prov_cq *)fid;
	struct prov_eq *eq = (struct prov_eq *)fid;

	if (fid->fclass == FI_CLASS_CQ && &cq->fabric->fid == fabric)
		return cq_arm(cq);
	if (fid->fclass == FI_CLASS_EQ && &eq->fabric->fid == fabric)
		return eq_arm(eq);
	return -FI_EINVAL;
}

static int fabric_trywait(struct fid_fabric *fid, struct fid **fids, int count)
{
	int rc = 0;

	for (int i = 0; i < count && rc == 0; i++)
		rc = arm(fid, fids[i]);
	return rc;
}

static int fabric_close(struct fid *fid)
{
	struct prov_fabric *fabric = (struct prov_fabric *)fid;

	if (atomic_load_explicit(&fabric->refs, memory_order_relaxed))
		return -FI_EBUSY;
	free(fabric);
	return 0;
}

static struct fi_ops fabric_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = fabric_close,
	.bind = prov_no_bind,
	.control = prov_no_control,
	.ops_open = prov_no_ops_open,
};

static int open_domain(struct fid_fabric *fid, struct fi_info *info, struct fid_domain **domain_out,
		       void *context)
{
	return ((struct prov_fabric *)fid)->prov->domain_open(fid, info, domain_out, context);
}

static int open_pep(struct fid_fabric *fid, struct fi_info *info, struct fid_pep **pep_out,
		    void *context)
{
	return ((struct prov_fabric *)fid)->prov->passive_ep(fid, info, pep_out, context);
}

static struct fi_ops_fabric fabric_ops = {
	.size = sizeof(struct fi_ops_fabric),
	.domain = open_domain,
	.passive_ep = open_pep,
	.eq_open = prov_eq_open,
	.wait_open = no_wait_set,
	.trywait = fabric_trywait,
};

bool prov_is_fabric(const struct prov *prov, const struct fid_fabric *fid)
{
	return fid->ops == &fabric_ops && ((const struct prov_fabric *)fid)->prov == prov;
}

int prov_fabric_open(const struct prov *prov, const struct fi_fabric_attr *attr,
		     struct fid_fabric **fabric_out, void *context)
{
	struct prov_fabric *fabric;

	prov->begin();
	if (!attr || !attr->name || strcmp(attr->name, prov->libfabric->name) != 0)
		return -FI_EINVAL;
	fabric = calloc(1, sizeof(*fabric));
	if (!fabric)
		return -FI_ENOMEM;
	fabric->fid.fid.fclass = FI_CLASS_FABRIC;
	fabric->fid.fid.context = context;
	fabric->fid.fid.ops = &fabric_fid_ops;
	fabric->fid.ops = &fabric_ops;
	fabric->fid.api_version = attr->api_version;
	fabric->prov = prov;
	*fabric_out = &fabric->fid;
	return 0;
}

/* Domains ------------------------------------------------------------------------------------ */

int prov_domain_init(struct prov_domain *domain, struct fid_fabric *fid, const struct fi_info *info,
		     void *context)
{
	struct prov_fabric *fabric = (struct prov_fabric *)fid;

	if (!info || !info->domain_attr || !prov_domain_attr_fits(fabric->prov, info->domain_attr))
		return -FI_EINVAL;
	domain->fid.fid.fclass = FI_CLASS_DOMAIN;
	domain->fid.fid.context = context;
	domain->fid.ops = (struct fi_ops_domain *)fabric->prov->domain_ops;
	domain->fid.mr = &prov_mr_ops;
	domain->chooses_keys = info->domain_attr->mr_mode & (COMPAT_MR_BASIC | FI_MR_PROV_KEY);
	domain->by_address = info->domain_attr->mr_mode & (COMPAT_MR_BASIC | FI_MR_VIRT_ADDR);
	domain->fabric = fabric;
	fabric_ref(fabric);
	return 0;
}

bool prov_domain_fini(struct prov_domain *domain)
{
	if (domain->refs)
		return false;
	fabric_unref(domain->fabric);
	return true;
}
