/* SPDX-License-Identifier: BSD-3-Clause */
/* Fabrics, domains and registrations: what may be opened, what is in use, and that missing calls
 * refuse instead of crashing. */
#include "plx_test.h"
#include "tested.h"

#include <rdma/fi_ext.h>
#include <stdlib.h>

struct fixture {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
};

static int set_up(void **state)
{
	static struct fixture f;

	if (prov_getinfo(tested, FI_VERSION(1, 14), NULL, NULL, 0, NULL, &f.info) ||
	    prov_fabric_open(tested, f.info->fabric_attr, &f.fabric, &f) ||
	    fi_domain(f.fabric, f.info, &f.domain, &f))
		return -1;
	*state = &f;
	return 0;
}

/* Closing objects in use is refused, which fails the test. */
static int tear_down(void **state)
{
	struct fixture *f = *state;
	int rc = fi_close(&f->domain->fid);

	rc = rc ? rc : fi_close(&f->fabric->fid);
	fi_freeinfo(f->info);
	return rc;
}

static struct fid_cq *open_cq(struct fixture *f, enum fi_wait_obj wait)
{
	struct fi_cq_attr attr = {.wait_obj = wait, .format = FI_CQ_FORMAT_MSG};
	struct fid_cq *cq;

	assert_int_equal(fi_cq_open(f->domain, &attr, &cq, NULL), 0);
	return cq;
}

static struct fid_eq *open_eq(struct fixture *f)
{
	struct fi_eq_attr attr = {.wait_obj = FI_WAIT_FD, .flags = FI_WRITE};
	struct fid_eq *eq;

	assert_int_equal(fi_eq_open(f->fabric, &attr, &eq, NULL), 0);
	return eq;
}

#define TEST(name) PLX_TEST_WITH(name, set_up, tear_down)

/* Opening and closing ------------------------------------------------------------------------ */

TEST(objects_know_their_class_and_context)
{
	struct fixture *f = *state;

	assert_int_equal(f->fabric->fid.fclass, FI_CLASS_FABRIC);
	assert_ptr_equal(f->fabric->fid.context, f);
	assert_int_equal(f->fabric->api_version, FI_VERSION(1, 14));
	assert_int_equal(f->domain->fid.fclass, FI_CLASS_DOMAIN);
	assert_ptr_equal(f->domain->fid.context, f);
}

TEST(fabric_of_another_name_is_refused)
{
	struct fi_fabric_attr attr = {.name = (char *)"127.0.0.0/8"};
	struct fid_fabric *fabric;

	assert_int_equal(prov_fabric_open(tested, &attr, &fabric, NULL), -FI_EINVAL);
	attr.name = NULL;
	assert_int_equal(prov_fabric_open(tested, &attr, &fabric, NULL), -FI_EINVAL);
	assert_int_equal(prov_fabric_open(tested, NULL, &fabric, NULL), -FI_EINVAL);
}

TEST(domain_that_cannot_be_had_is_refused)
{
	struct fixture *f = *state;
	struct fid_domain *domain;

	f->info->domain_attr->threading = FI_THREAD_SAFE;
	assert_int_equal(fi_domain(f->fabric, f->info, &domain, NULL), -FI_EINVAL);
	assert_int_equal(fi_domain(f->fabric, NULL, &domain, NULL), -FI_EINVAL);
}

TEST(fabric_in_use_is_not_closed)
{
	struct fixture *f = *state;
	struct fid_eq *eq;

	assert_int_equal(fi_close(&f->fabric->fid), -FI_EBUSY);
	assert_int_equal(fi_close(&f->domain->fid), 0);
	eq = open_eq(f);
	assert_int_equal(fi_close(&f->fabric->fid), -FI_EBUSY);
	assert_int_equal(fi_close(&eq->fid), 0);
	assert_int_equal(fi_domain(f->fabric, f->info, &f->domain, NULL), 0);
}

TEST(domain_in_use_is_not_closed)
{
	struct fixture *f = *state;
	struct fid_cq *cq = open_cq(f, FI_WAIT_NONE);
	struct fid_mr *mr;

	assert_int_equal(fi_close(&f->domain->fid), -FI_EBUSY);
	assert_int_equal(fi_close(&cq->fid), 0);
	assert_int_equal(fi_mr_reg(f->domain, f, sizeof(*f), FI_SEND, 0, 1, 0, &mr, NULL), 0);
	assert_int_equal(fi_close(&f->domain->fid), -FI_EBUSY);
	assert_int_equal(fi_close(&mr->fid), 0);
}

TEST(open_objects_are_good_as_hints)
{
	struct fixture *f = *state;
	struct fi_info *info;

	f->info->fabric_attr->fabric = f->fabric;
	f->info->domain_attr->domain = f->domain;
	assert_int_equal(prov_getinfo(tested, FI_VERSION(1, 14), NULL, NULL, 0, f->info, &info), 0);
	assert_ptr_equal(info->fabric_attr->fabric, f->fabric);
	assert_ptr_equal(info->domain_attr->domain, f->domain);
	fi_freeinfo(info);
}

/* Missing calls ------------------------------------------------------------------------------ */

TEST(fabric_refuses_what_it_has_not)
{
	struct fixture *f = *state;
	struct fi_wait_attr attr = {.wait_obj = FI_WAIT_FD};
	struct fid_domain *domain;
	struct fid_wait *wait;
	void *ops;

	assert_int_equal(compat_wait_open(f->fabric, &attr, &wait), -FI_ENOSYS);
	assert_int_equal(fi_domain2(f->fabric, f->info, &domain, FI_PEER, NULL), -FI_ENOSYS);
	assert_int_equal(fi_open_ops(&f->fabric->fid, "any", 0, &ops, NULL), -FI_ENOSYS);
	assert_int_equal(fi_set_ops(&f->fabric->fid, "any", 0, NULL, NULL), -FI_ENOSYS);
	assert_int_equal(fi_control(&f->fabric->fid, FI_GETWAIT, NULL), -FI_ENOSYS);
}

TEST(domain_refuses_what_it_has_not)
{
	struct fixture *f = *state;
	struct fid_domain *domain = f->domain;
	struct fid_ep *ep;
	void *out;

	assert_int_equal(fi_av_open(domain, NULL, (struct fid_av **)&out, NULL), -FI_ENOSYS);
	assert_int_equal(fi_cntr_open(domain, NULL, (struct fid_cntr **)&out, NULL), -FI_ENOSYS);
	assert_int_equal(domain->ops->poll_open(domain, NULL, (struct fid_poll **)&out),
			 -FI_ENOSYS);
	assert_int_equal(fi_stx_context(domain, NULL, (struct fid_stx **)&out, NULL), -FI_ENOSYS);
	assert_int_equal(fi_srx_context(domain, NULL, &ep, NULL), -FI_ENOSYS);
	assert_int_equal(fi_scalable_ep(domain, f->info, &ep, NULL), -FI_ENOSYS);
	assert_int_equal(fi_domain_bind(domain, &domain->fid, 0), -FI_ENOSYS);
	assert_int_equal(fi_mr_unmap_key(domain, 1), -FI_ENOSYS);
	assert_int_equal(fi_open_ops(&domain->fid, "any", 0, &out, NULL), -FI_ENOSYS);
}

/* Waiting ------------------------------------------------------------------------------------ */

TEST(waiting_is_prepared_by_each_queue)
{
	struct fixture *f = *state;
	struct fid_cq *cq = open_cq(f, FI_WAIT_FD);
	struct fid_eq *eq = open_eq(f);
	struct fid *both[] = {&cq->fid, &eq->fid};
	struct fi_eq_entry entry = {.context = f};

	assert_int_equal(fi_trywait(f->fabric, both, 0), 0);
	assert_int_equal(fi_trywait(f->fabric, both, 2), 0);
	assert_int_equal(fi_eq_write(eq, FI_NOTIFY, &entry, sizeof(entry), 0), sizeof(entry));
	assert_int_equal(fi_trywait(f->fabric, both, 1), 0);
	assert_int_equal(fi_trywait(f->fabric, both, 2), -FI_EAGAIN);
	assert_int_equal(fi_close(&cq->fid), 0);
	assert_int_equal(fi_close(&eq->fid), 0);
}

TEST(other_objects_cannot_be_waited_for)
{
	struct fixture *f = *state;
	struct fid *domain = &f->domain->fid;

	assert_int_equal(fi_trywait(f->fabric, &domain, 1), -FI_EINVAL);
}

TEST(queues_of_another_fabric_cannot_be_waited_for)
{
	struct fixture *f = *state;
	struct fid_cq *cq = open_cq(f, FI_WAIT_FD);
	struct fid_eq *eq = open_eq(f);
	struct fid *fids[] = {&cq->fid, &eq->fid};
	struct fid_fabric *other;

	assert_int_equal(prov_fabric_open(tested, f->info->fabric_attr, &other, NULL), 0);
	assert_int_equal(fi_trywait(other, &fids[0], 1), -FI_EINVAL);
	assert_int_equal(fi_trywait(other, &fids[1], 1), -FI_EINVAL);
	assert_int_equal(fi_close(&cq->fid), 0);
	assert_int_equal(fi_close(&eq->fid), 0);
	assert_int_equal(fi_close(&other->fid), 0);
}

/* Registration ------------------------------------------------------------------------------- */

static int reg(struct fid_domain *domain, uint64_t key, struct fid_mr **mr_out)
{
	static char buf[64];

	return fi_mr_reg(domain, buf, sizeof(buf), FI_SEND | FI_RECV, 0, key, 0, mr_out, NULL);
}

TEST(each_region_has_the_key_that_was_asked_for)
{
	struct fixture *f = *state;
	struct fid_mr *first, *second, *third;

	assert_int_equal(reg(f->domain, 7, &first), 0);
	assert_int_equal(reg(f->domain, UINT64_MAX, &second), 0);
	assert_int_equal(fi_mr_key(first), 7);
	assert_int_equal(fi_mr_key(second), UINT64_MAX);
	assert_int_equal(first->fid.fclass, FI_CLASS_MR);

	assert_int_equal(reg(f->domain, 7, &third), -FI_ENOKEY);
	assert_int_equal(fi_close(&first->fid), 0);
	assert_int_equal(reg(f->domain, 7, &third), 0);
	assert_int_equal(fi_close(&third->fid), 0);
	assert_int_equal(fi_close(&second->fid), 0);
}

TEST(keys_are_chosen_for_basic_registration)
{
	struct fixture *f = *state;
	struct fid_domain *domain;
	struct fid_mr *first, *second;

	f->info->domain_attr->mr_mode = COMPAT_MR_BASIC;
	assert_int_equal(fi_domain(f->fabric, f->info, &domain, NULL), 0);
	assert_int_equal(reg(domain, 0, &first), 0);
	assert_int_equal(reg(domain, 0, &second), 0);
	assert_int_not_equal(fi_mr_key(first), fi_mr_key(second));
	assert_int_equal(fi_close(&first->fid), 0);
	assert_int_equal(fi_close(&second->fid), 0);
	assert_int_equal(fi_close(&domain->fid), 0);
}

TEST(all_ways_of_registration_do_the_same)
{
	struct fixture *f = *state;
	size_t most = tested->most->domain_attr->mr_iov_limit;
	struct iovec iov[PROV_IOV_MAX + 1] = {{.iov_base = f, .iov_len = sizeof(*f)}};
	struct fi_mr_attr attr = {
		.mr_iov = iov, .iov_count = 1, .access = FI_RECV, .requested_key = 2, .context = f};
	struct fid_mr *mr;

	assert_int_equal(fi_mr_regattr(f->domain, &attr, 0, &mr), 0);
	assert_ptr_equal(mr->fid.context, f);
	assert_int_equal(fi_mr_key(mr), 2);
	assert_int_equal(fi_mr_bind(mr, &f->domain->fid, 0), -FI_ENOSYS);
	assert_int_equal(fi_mr_enable(mr), -FI_ENOSYS);
	assert_int_equal(fi_close(&mr->fid), 0);
	assert_int_equal(fi_mr_regv(f->domain, iov, most, FI_RECV, 0, 3, 0, &mr, NULL), 0);
	assert_int_equal(fi_mr_key(mr), 3);
	assert_int_equal(fi_close(&mr->fid), 0);
}

TEST(registration_beyond_what_is_offered_is_refused)
{
	struct fixture *f = *state;
	size_t most = tested->most->domain_attr->mr_iov_limit;
	struct iovec iov[PROV_IOV_MAX + 1] = {{.iov_base = f, .iov_len = sizeof(*f)}};
	struct fid_mr *mr;

	assert_int_equal(fi_mr_regv(f->domain, iov, most + 1, FI_RECV, 0, 3, 0, &mr, NULL),
			 -FI_EINVAL);
	assert_int_equal(
		fi_mr_reg(f->domain, f, sizeof(*f), FI_RECV, 0, 3, FI_RMA_EVENT, &mr, NULL),
		-FI_EBADFLAGS);
}

TESTED_MAIN()
