/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory registration: regions of a domain, by key, and perhaps bound to an endpoint. Sends and
 * receives need no registration. */
#include "prov.h"

#include <search.h>
#include <stdlib.h>

static int compare_keys(const void *left, const void *right)
{
	uint64_t a = ((const struct prov_mr *)left)->fid.key;
	uint64_t b = ((const struct prov_mr *)right)->fid.key;

	return (a > b) - (a < b);
}

struct prov_mr *prov_mr_find(const struct prov_domain *domain, uint64_t key)
{
	struct prov_mr wanted = {.fid.key = key};
	struct prov_mr **found = tfind(&wanted, &domain->mrs, compare_keys);

	return found ? *found : NULL;
}

static int mr_close(struct fid *fid)
{
	struct prov_mr *mr = (struct prov_mr *)fid;
	struct prov_domain *domain = mr->domain;
	const struct prov_domain_ops *ops = domain->fabric->prov->domain_ops;

	if (ops->mr_closing)
		ops->mr_closing(mr);
	if (mr->ep)
		LIST_REMOVE(mr, of_ep);
	tdelete(mr, &domain->mrs, compare_keys);
	domain->refs--;
	free(mr);
	return 0;
}

static int mr_bind(struct fid *fid, struct fid *bound, uint64_t flags)
{
	struct prov_mr *mr = (struct prov_mr *)fid;
	struct prov_ep *ep = (struct prov_ep *)bound;

	if (bound->fclass != FI_CLASS_EP || ep->domain != mr->domain || mr->ep)
		return -FI_EINVAL;
	mr->ep = ep;
	LIST_INSERT_HEAD(&ep->mrs, mr, of_ep);
	return 0;
}

void prov_mr_orphan_all(struct prov_ep *ep)
{
	struct prov_mr *mr, *next;

	LIST_FOREACH_SAFE (mr, &ep->mrs, of_ep, next) {
		mr->ep = NULL;
		mr->access = 0;
	}
}

static struct fi_ops mr_fid_ops = PROV_FID_OPS(mr_close, mr_bind, PROV_REFUSED);

/* Assign the key and insert the region. */
static int enter(struct prov_mr *mr, uint64_t requested_key)
{
	struct prov_domain *domain = mr->domain;
	struct prov_mr **place;

	mr->fid.key = domain->chooses_keys ? plx_random_id() : requested_key;
	place = tsearch(mr, &domain->mrs, compare_keys);
	if (!place)
		return -FI_ENOMEM;
	return *place == mr ? 0 : -FI_ENOKEY;
}

static int check(const struct fid *fid, size_t iov_count, uint64_t flags)
{
	const struct prov_domain *domain = (const struct prov_domain *)fid;

	if (flags)
		return -FI_EBADFLAGS;
	if (fid->fclass != FI_CLASS_DOMAIN ||
	    iov_count > domain->fabric->prov->most->domain_attr->mr_iov_limit)
		return -FI_EINVAL;
	return 0;
}

/* Remote access allows one piece only. attr->iface is for callers with FI_HMEM. */
static int mr_regattr(struct fid *fid, const struct fi_mr_attr *attr, uint64_t flags,
		      struct fid_mr **mr_out)
{
	struct prov_mr *mr;
	int rc = check(fid, attr->iov_count, flags);

	if (rc)
		return rc;
	mr = calloc(1, sizeof(*mr));
	if (!mr)
		return -FI_ENOMEM;
	mr->domain = (struct prov_domain *)fid;
	mr->access = attr->access;
	if (attr->iov_count)
		mr->memory = attr->mr_iov[0];
	mr->address = mr->domain->by_address ? (uintptr_t)mr->memory.iov_base : 0;
	rc = enter(mr, attr->requested_key);
	if (rc) {
		free(mr);
		return rc;
	}
	fid_init(&mr->fid.fid, FI_CLASS_MR, attr->context, &mr_fid_ops);
	mr->fid.mem_desc = mr; /* unused, but not NULL */
	mr->domain->refs++;
	*mr_out = &mr->fid;
	return 0;
}

static int mr_regv(struct fid *fid, const struct iovec *iov, size_t count, uint64_t access,
		   uint64_t offset, uint64_t requested_key, uint64_t flags, struct fid_mr **mr_out,
		   void *context)
{
	struct fi_mr_attr attr = {
		.mr_iov = iov,
		.iov_count = count,
		.access = access,
		.requested_key = requested_key,
		.context = context,
	};

	return mr_regattr(fid, &attr, flags, mr_out);
}

static int mr_reg(struct fid *fid, const void *buf, size_t length, uint64_t access, uint64_t offset,
		  uint64_t requested_key, uint64_t flags, struct fid_mr **mr_out, void *context)
{
	struct iovec iov = {(void *)(uintptr_t)buf, length};

	return mr_regv(fid, &iov, 1, access, offset, requested_key, flags, mr_out, context);
}

struct fi_ops_mr prov_mr_ops = {
	.size = sizeof(struct fi_ops_mr),
	.reg = mr_reg,
	.regv = mr_regv,
	.regattr = mr_regattr,
};
