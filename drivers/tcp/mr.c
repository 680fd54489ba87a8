/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory registration. What is sent and received needs none; what peers may read or write does, and
 * is found by its key. Once it is closed no peer reaches it: who was in the middle of that loses
 * its connection. */
#include "tcp.h"

#include <search.h>
#include <stdlib.h>

struct tcp_mr {
	struct fid_mr fid;
	struct tcp_domain *domain;
	uint8_t *base;
	size_t length;
	uint64_t address; /* of its first byte, for peers */
	uint64_t access;
};

static int compare_keys(const void *left, const void *right)
{
	uint64_t a = ((const struct tcp_mr *)left)->fid.key;
	uint64_t b = ((const struct tcp_mr *)right)->fid.key;

	return (a > b) - (a < b);
}

uint8_t *mr_find(struct tcp_domain *domain, uint64_t key, uint64_t address, uint64_t length,
		 uint64_t access, struct tcp_mr **mr_out)
{
	struct tcp_mr wanted = {.fid.key = key};
	struct tcp_mr **found = tfind(&wanted, &domain->mrs, compare_keys);
	const struct tcp_mr *mr = found ? *found : NULL;

	if (!mr || !(mr->access & access) || address < mr->address ||
	    address - mr->address > mr->length || length > mr->length - (address - mr->address))
		return NULL;
	*mr_out = *found;
	return mr->base + (address - mr->address);
}

static bool is_used_by(const struct tcp_mr *mr, const struct tcp_ep *ep)
{
	if (ep->into == mr)
		return true;
	for (uint32_t i = ep->base.tx_head; ep->answers && i != ep->base.tx_tail; i++) {
		if (ep->sends[i & ep->sends_mask].mr == mr)
			return true;
	}
	return false;
}

static int mr_close(struct fid *fid)
{
	struct tcp_mr *mr = (struct tcp_mr *)fid;
	struct prov_list *eps = &mr->domain->eps;

	for (struct prov_list *link = eps->next, *next; link != eps; link = next) {
		struct tcp_ep *ep = plx_container_of(link, struct tcp_ep, domain_link);

		next = link->next;
		if (is_used_by(mr, ep)) {
			tcp_ep_break(ep, "it uses memory whose registration is closed");
			tcp_ep_finish(ep);
		}
	}
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
static int enter(struct tcp_mr *mr, uint64_t requested_key)
{
	struct tcp_domain *domain = mr->domain;
	struct tcp_mr **place;

	mr->fid.key = domain->chooses_keys ? plx_random_id() : requested_key;
	place = tsearch(mr, &domain->mrs, compare_keys);
	if (!place)
		return -FI_ENOMEM;
	return *place == mr ? 0 : -FI_ENOKEY;
}

static int mr_open(struct fid *fid, const struct iovec *iov, size_t iov_count, uint64_t access,
		   uint64_t requested_key, uint64_t flags, struct fid_mr **mr_out, void *context)
{
	struct tcp_domain *domain = (struct tcp_domain *)fid;
	struct tcp_mr *mr;
	int rc;

	if (flags)
		return -FI_EBADFLAGS;
	if (fid->fclass != FI_CLASS_DOMAIN || iov_count != 1)
		return -FI_EINVAL;
	mr = calloc(1, sizeof(*mr));
	if (!mr)
		return -FI_ENOMEM;
	mr->domain = domain;
	mr->base = iov->iov_base;
	mr->length = iov->iov_len;
	mr->address = domain->by_address ? (uintptr_t)iov->iov_base : 0;
	mr->access = access;
	rc = enter(mr, requested_key);
	if (rc) {
		free(mr);
		return rc;
	}
	mr->fid.fid.fclass = FI_CLASS_MR;
	mr->fid.fid.context = context;
	mr->fid.fid.ops = &mr_fid_ops;
	mr->fid.mem_desc = mr; /* not used, and not NULL */
	domain->base.refs++;
	*mr_out = &mr->fid;
	return 0;
}

static int mr_reg(struct fid *fid, const void *buf, size_t length, uint64_t access, uint64_t offset,
		  uint64_t requested_key, uint64_t flags, struct fid_mr **mr_out, void *context)
{
	struct iovec iov = {(void *)(uintptr_t)buf, length};

	return mr_open(fid, &iov, 1, access, requested_key, flags, mr_out, context);
}

static int mr_regv(struct fid *fid, const struct iovec *iov, size_t count, uint64_t access,
		   uint64_t offset, uint64_t requested_key, uint64_t flags, struct fid_mr **mr_out,
		   void *context)
{
	return mr_open(fid, iov, count, access, requested_key, flags, mr_out, context);
}

/* attr->iface is for those who have FI_HMEM. */
static int mr_regattr(struct fid *fid, const struct fi_mr_attr *attr, uint64_t flags,
		      struct fid_mr **mr_out)
{
	return mr_open(fid, attr->mr_iov, attr->iov_count, attr->access, attr->requested_key, flags,
		       mr_out, attr->context);
}

struct fi_ops_mr tcp_mr_ops = {
	.size = sizeof(struct fi_ops_mr),
	.reg = mr_reg,
	.regv = mr_regv,
	.regattr = mr_regattr,
};
