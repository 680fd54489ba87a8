/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory registration. Nothing needs it: messages go to and from any memory, and no peer reads or
 * writes by key. Applications that register all the same find it works, with a key of its own for
 * each region of a domain. */
#include "shm.h"

#include <search.h>
#include <stdlib.h>

struct shm_mr {
	struct fid_mr fid;
	struct shm_domain *domain;
};

static int compare_keys(const void *left, const void *right)
{
	uint64_t a = ((const struct shm_mr *)left)->fid.key;
	uint64_t b = ((const struct shm_mr *)right)->fid.key;

	return (a > b) - (a < b);
}

static int mr_close(struct fid *fid)
{
	struct shm_mr *mr = (struct shm_mr *)fid;

	tdelete(mr, &mr->domain->mrs, compare_keys);
	mr->domain->base.refs--;
	free(mr);
	return 0;
}

static struct fi_ops mr_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = mr_close,
	.bind = prov_no_bind,
	.control = prov_no_control,
	.ops_open = prov_no_ops_open,
};

/* Give it its key. */
static int enter(struct shm_mr *mr, uint64_t requested_key)
{
	struct shm_domain *domain = mr->domain;
	struct shm_mr **place;

	mr->fid.key = domain->chooses_keys ? domain->next_key++ : requested_key;
	place = tsearch(mr, &domain->mrs, compare_keys);
	if (!place)
		return -FI_ENOMEM;
	return *place == mr ? 0 : -FI_ENOKEY;
}

static int mr_open(struct fid *fid, size_t iov_count, uint64_t requested_key, uint64_t flags,
		   struct fid_mr **mr_out, void *context)
{
	struct shm_mr *mr;
	int rc;

	if (flags)
		return -FI_EBADFLAGS;
	if (fid->fclass != FI_CLASS_DOMAIN || iov_count > PROV_IOV_MAX)
		return -FI_EINVAL;
	mr = calloc(1, sizeof(*mr));
	if (!mr)
		return -FI_ENOMEM;
	mr->domain = (struct shm_domain *)fid;
	rc = enter(mr, requested_key);
	if (rc) {
		free(mr);
		return rc;
	}
	mr->fid.fid.fclass = FI_CLASS_MR;
	mr->fid.fid.context = context;
	mr->fid.fid.ops = &mr_fid_ops;
	mr->domain->base.refs++;
	*mr_out = &mr->fid;
	return 0;
}

static int mr_reg(struct fid *fid, const void *buf, size_t length, uint64_t access, uint64_t offset,
		  uint64_t requested_key, uint64_t flags, struct fid_mr **mr_out, void *context)
{
	return mr_open(fid, 1, requested_key, flags, mr_out, context);
}

static int mr_regv(struct fid *fid, const struct iovec *iov, size_t count, uint64_t access,
		   uint64_t offset, uint64_t requested_key, uint64_t flags, struct fid_mr **mr_out,
		   void *context)
{
	return mr_open(fid, count, requested_key, flags, mr_out, context);
}

/* attr->iface is for those who have FI_HMEM. */
static int mr_regattr(struct fid *fid, const struct fi_mr_attr *attr, uint64_t flags,
		      struct fid_mr **mr_out)
{
	return mr_open(fid, attr->iov_count, attr->requested_key, flags, mr_out, attr->context);
}

struct fi_ops_mr shm_mr_ops = {
	.size = sizeof(struct fi_ops_mr),
	.reg = mr_reg,
	.regv = mr_regv,
	.regattr = mr_regattr,
};
