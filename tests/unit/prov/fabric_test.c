/* SPDX-License-Identifier: BSD-3-Clause */
/* Fabrics, domains and registrations: what may be opened, what is in use, and that missing calls
 * refuse instead of crashing. */
#include "plx_test.h"
#include "tested.h"

#include <rdma/fi_ext.h>

static struct fi_info *info;
static struct fid_fabric *fabric;
static struct fid_domain *domain;
static char bytes[64]; /* to register; its address is the context of all */

static int set_up(void **state)
{
	return prov_getinfo(tested, FI_VERSION(1, 14), NULL, NULL, 0, NULL, &info) ||
	       prov_fabric_open(tested, info->fabric_attr, &fabric, bytes) ||
	       fi_domain(fabric, info, &domain, bytes);
}

/* Closing objects in use is refused, which fails the test. */
static int tear_down(void **state)
{
	int rc = fi_close(&domain->fid);

	rc = rc ? rc : fi_close(&fabric->fid);
	fi_freeinfo(info);
	return rc;
}

static struct fid_cq *open_cq(enum fi_wait_obj wait)
{
	struct fi_cq_attr attr = {.wait_obj = wait, .format = FI_CQ_FORMAT_MSG};
	struct fid_cq *cq;

	assert_int_equal(fi_cq_open(domain, &attr, &cq, NULL), 0);
	return cq;
}

static struct fid_eq *open_eq(void)
{
	struct fi_eq_attr attr = {.wait_obj = FI_WAIT_FD, .flags = FI_WRITE};
	struct fid_eq *eq;

	assert_int_equal(fi_eq_open(fabric, &attr, &eq, NULL), 0);
	return eq;
}

#define TEST(name) PLX_TEST_WITH(name, set_up, tear_down)

/* Opening and closing ------------------------------------------------------------------------ */

TEST(a_fabric_with_another_name_is_refused)
{
	struct fi_fabric_attr attr = {.name = (char *)"127.0.0.0/8"};
	struct fid_fabric *none;

	assert_int_equal(prov_fabric_open(tested, &attr, &none, NULL), -FI_EINVAL);
	attr.name = NULL;
	assert_int_equal(prov_fabric_open(tested, &attr, &none, NULL), -FI_EINVAL);
	assert_int_equal(prov_fabric_open(tested, NULL, &none, NULL), -FI_EINVAL);
}

TEST(an_unsupported_domain_is_refused)
{
	struct fid_domain *none;

	info->domain_attr->threading = FI_THREAD_SAFE;
	assert_int_equal(fi_domain(fabric, info, &none, NULL), -FI_EINVAL);
	assert_int_equal(fi_domain(fabric, NULL, &none, NULL), -FI_EINVAL);
}

TEST(objects_in_use_cannot_be_closed)
{
	struct fid_cq *cq = open_cq(FI_WAIT_NONE);
	struct fid_eq *eq;

	assert_int_equal(fi_close(&domain->fid), -FI_EBUSY);
	assert_int_equal(fi_close(&cq->fid), 0);
	assert_int_equal(fi_close(&fabric->fid), -FI_EBUSY);
	assert_int_equal(fi_close(&domain->fid), 0);
	eq = open_eq();
	assert_int_equal(fi_close(&fabric->fid), -FI_EBUSY);
	assert_int_equal(fi_close(&eq->fid), 0);
	assert_int_equal(fi_domain(fabric, info, &domain, NULL), 0);
}

/* Waiting ------------------------------------------------------------------------------------ */

TEST(fi_trywait_prepares_the_queues_of_its_fabric)
{
	struct fid_cq *cq = open_cq(FI_WAIT_FD);
	struct fid_eq *eq = open_eq();
	struct fid *both[] = {&cq->fid, &eq->fid}, *none = &domain->fid;
	struct fid_fabric *other;
	struct fi_eq_entry entry = {.context = bytes};

	assert_int_equal(fi_trywait(fabric, both, 0), 0);
	assert_int_equal(fi_trywait(fabric, both, 2), 0);
	assert_int_equal(fi_eq_write(eq, FI_NOTIFY, &entry, sizeof(entry), 0), sizeof(entry));
	assert_int_equal(fi_trywait(fabric, both, 1), 0);
	assert_int_equal(fi_trywait(fabric, both, 2), -FI_EAGAIN);
	assert_int_equal(fi_trywait(fabric, &none, 1), -FI_EINVAL);
	assert_int_equal(prov_fabric_open(tested, info->fabric_attr, &other, NULL), 0);
	assert_int_equal(fi_trywait(other, &both[0], 1), -FI_EINVAL);
	assert_int_equal(fi_trywait(other, &both[1], 1), -FI_EINVAL);
	assert_int_equal(fi_close(&other->fid), 0);
	assert_int_equal(fi_close(&cq->fid), 0);
	assert_int_equal(fi_close(&eq->fid), 0);
}

/* Registration ------------------------------------------------------------------------------- */

static int reg(struct fid_domain *in, uint64_t key, struct fid_mr **mr_out)
{
	return fi_mr_reg(in, bytes, sizeof(bytes), FI_SEND | FI_RECV, 0, key, 0, mr_out, NULL);
}

TEST(each_region_has_the_requested_key_or_a_unique_one)
{
	struct fid_mr *first, *second, *third;
	struct fid_domain *basic;

	assert_int_equal(reg(domain, 7, &first), 0);
	assert_int_equal(reg(domain, UINT64_MAX, &second), 0);
	assert_int_equal(fi_mr_key(first), 7);
	assert_int_equal(fi_mr_key(second), UINT64_MAX);
	assert_int_equal(fi_close(&domain->fid), -FI_EBUSY);
	assert_int_equal(reg(domain, 7, &third), -FI_ENOKEY);
	assert_int_equal(fi_close(&first->fid), 0);
	assert_int_equal(reg(domain, 7, &third), 0);
	assert_int_equal(fi_close(&third->fid), 0);
	assert_int_equal(fi_close(&second->fid), 0);

	info->domain_attr->mr_mode = COMPAT_MR_BASIC;
	assert_int_equal(fi_domain(fabric, info, &basic, NULL), 0);
	assert_int_equal(reg(basic, 0, &first), 0);
	assert_int_equal(reg(basic, 0, &second), 0);
	assert_int_not_equal(fi_mr_key(first), fi_mr_key(second));
	assert_int_equal(fi_close(&first->fid), 0);
	assert_int_equal(fi_close(&second->fid), 0);
	assert_int_equal(fi_close(&basic->fid), 0);
}

TEST(all_registration_calls_do_the_same)
{
	size_t most = tested->most->domain_attr->mr_iov_limit;
	struct iovec iov[PROV_IOV_MAX + 1] = {{.iov_base = bytes, .iov_len = sizeof(bytes)}};
	struct fi_mr_attr attr = {.mr_iov = iov,
				  .iov_count = 1,
				  .access = FI_RECV,
				  .requested_key = 2,
				  .context = bytes};
	struct fid_mr *mr;

	assert_int_equal(fi_mr_regattr(domain, &attr, 0, &mr), 0);
	assert_ptr_equal(mr->fid.context, bytes);
	assert_int_equal(fi_mr_key(mr), 2);
	assert_int_equal(fi_mr_bind(mr, &domain->fid, 0), -FI_EINVAL); /* only an endpoint */
	assert_int_equal(fi_mr_enable(mr), -FI_ENOSYS);
	assert_int_equal(fi_close(&mr->fid), 0);
	assert_int_equal(fi_mr_regv(domain, iov, most, FI_RECV, 0, 3, 0, &mr, NULL), 0);
	assert_int_equal(fi_mr_key(mr), 3);
	assert_int_equal(fi_close(&mr->fid), 0);
	assert_int_equal(fi_mr_regv(domain, iov, most + 1, FI_RECV, 0, 3, 0, &mr, NULL),
			 -FI_EINVAL);
	assert_int_equal(fi_mr_regattr(domain, &attr, FI_RMA_EVENT, &mr), -FI_EBADFLAGS);
}

TESTED_MAIN()
