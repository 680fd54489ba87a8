/* SPDX-License-Identifier: BSD-3-Clause */
/* Fabrics: a name for what event queues and passive endpoints belong to. And what any object
 * answers where it has nothing to offer. */
#include "shm.h"

#include <stdlib.h>

int shm_no_bind(struct fid *fid, struct fid *bound, uint64_t flags)
{
	return -FI_ENOSYS;
}

int shm_no_control(struct fid *fid, int command, void *arg)
{
	return -FI_ENOSYS;
}

int shm_no_ops_open(struct fid *fid, const char *name, uint64_t flags, void **ops_out,
		    void *context)
{
	return -FI_ENOSYS;
}

static int no_wait_set(struct fid_fabric *fid, struct fi_wait_attr *attr, struct fid_wait **out)
{
	return -FI_ENOSYS;
}

/* Queues of another fabric are not looked after by the caller's thread. */
static int arm(struct fid_fabric *fabric, struct fid *fid)
{
	struct shm_cq *cq = (struct shm_cq *)fid;
	struct shm_eq *eq = (struct shm_eq *)fid;

	if (fid->fclass == FI_CLASS_CQ && &cq->domain->fabric->fid == fabric)
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
	struct shm_fabric *fabric = (struct shm_fabric *)fid;

	if (atomic_load_explicit(&fabric->refs, memory_order_relaxed))
		return -FI_EBUSY;
	free(fabric);
	return 0;
}

static struct fi_ops fabric_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = fabric_close,
	.bind = shm_no_bind,
	.control = shm_no_control,
	.ops_open = shm_no_ops_open,
};

static struct fi_ops_fabric fabric_ops = {
	.size = sizeof(struct fi_ops_fabric),
	.domain = shm_domain_open,
	.passive_ep = shm_pep_open,
	.eq_open = shm_eq_open,
	.wait_open = no_wait_set,
	.trywait = fabric_trywait,
};

bool shm_is_fabric(const struct fid_fabric *fid)
{
	return fid->ops == &fabric_ops;
}

int shm_fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **fabric_out, void *context)
{
	struct shm_fabric *fabric;

	shm_begin();
	if (!attr || !attr->name || strcmp(attr->name, SHM_NAME) != 0)
		return -FI_EINVAL;
	fabric = calloc(1, sizeof(*fabric));
	if (!fabric)
		return -FI_ENOMEM;
	fabric->fid.fid.fclass = FI_CLASS_FABRIC;
	fabric->fid.fid.context = context;
	fabric->fid.fid.ops = &fabric_fid_ops;
	fabric->fid.ops = &fabric_ops;
	fabric->fid.api_version = attr->api_version;
	*fabric_out = &fabric->fid;
	return 0;
}
