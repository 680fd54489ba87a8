/* SPDX-License-Identifier: BSD-3-Clause */
/* Unsupported calls are refused, whatever is called: libfabric's inline functions call table
 * entries without checking. */
#include "cm.h"

#include <rdma/fi_atomic.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

static struct party party;
static struct fid_pep *pep;
static struct fid_ep *ep;

static int setup(void **state)
{
	party_open(&party, cm_info("127.0.0.1", NULL, FI_SOURCE));
	pep = party_pep(&party);
	ep = party_ep(&party, party.info);
	return 0;
}

static int teardown(void **state)
{
	assert_int_equal(fi_close(&ep->fid), 0);
	assert_int_equal(fi_close(&pep->fid), 0);
	party_close(&party);
	return 0;
}

#define refuses(call) assert_int_equal(call, -FI_ENOSYS)

/* Every entry of a table, which is its size, then function pointers. */
static void is_full(const void *table, size_t bytes)
{
	size_t size;
	void *entry;

	memcpy(&size, table, sizeof(size));
	assert_int_equal(size, bytes);
	for (size_t at = sizeof(size); at < bytes; at += sizeof(entry)) {
		memcpy(&entry, (const char *)table + at, sizeof(entry));
		if (!entry)
			fail_msg("entry %zu is missing", at / sizeof(entry));
	}
}

#define IS_FULL(table) is_full(table, sizeof(*(table)))

#define TEST(name)     PLX_TEST_WITH(name, setup, teardown)

TEST(tables_of_operations_have_no_gaps)
{
	IS_FULL(ep->msg);
	IS_FULL(ep->rma);
	IS_FULL(ep->tagged);
	IS_FULL(ep->atomic);
	IS_FULL(ep->collective);
	IS_FULL(ep->ops);
	IS_FULL(party.cq->ops);
	IS_FULL(party.eq->ops);
	IS_FULL(party.domain->mr);
}

TEST(memory_of_others_is_left_alone_by_those_who_have_no_rma)
{
	struct fi_msg_rma msg = {0};
	char bytes[8] = "";

	if (tested_has_rma())
		return;
	refuses(fi_read(ep, bytes, 8, NULL, 0, 0, 0, NULL));
	refuses(fi_readv(ep, NULL, NULL, 0, 0, 0, 0, NULL));
	refuses(fi_readmsg(ep, &msg, 0));
	refuses(fi_write(ep, bytes, 8, NULL, 0, 0, 0, NULL));
	refuses(fi_writev(ep, NULL, NULL, 0, 0, 0, 0, NULL));
	refuses(fi_writemsg(ep, &msg, 0));
	refuses(fi_inject_write(ep, bytes, 8, 0, 0, 0));
	refuses(fi_writedata(ep, bytes, 8, NULL, 0, 0, 0, 0, NULL));
	refuses(fi_inject_writedata(ep, bytes, 8, 0, 0, 0, 0));
}

TEST(there_are_no_tags)
{
	struct fi_msg_tagged msg = {0};
	char bytes[8] = "";

	refuses(fi_trecv(ep, bytes, 8, NULL, 0, 0, 0, NULL));
	refuses(fi_trecvv(ep, NULL, NULL, 0, 0, 0, 0, NULL));
	refuses(fi_trecvmsg(ep, &msg, 0));
	refuses(fi_tsend(ep, bytes, 8, NULL, 0, 0, NULL));
	refuses(fi_tsendv(ep, NULL, NULL, 0, 0, 0, NULL));
	refuses(fi_tsendmsg(ep, &msg, 0));
	refuses(fi_tinject(ep, bytes, 8, 0, 0));
	refuses(fi_tsenddata(ep, bytes, 8, NULL, 0, 0, 0, NULL));
	refuses(fi_tinjectdata(ep, bytes, 8, 0, 0, 0));
}

TEST(there_are_no_atomic_operations)
{
	struct fi_msg_atomic msg = {0};
	struct fi_ioc ioc = {0};
	size_t count = 0;
	char bytes[8] = "";

	refuses(fi_atomic(ep, bytes, 1, NULL, 0, 0, 0, FI_INT8, FI_SUM, NULL));
	refuses(fi_atomicv(ep, &ioc, NULL, 1, 0, 0, 0, FI_INT8, FI_SUM, NULL));
	refuses(fi_atomicmsg(ep, &msg, 0));
	refuses(fi_inject_atomic(ep, bytes, 1, 0, 0, 0, FI_INT8, FI_SUM));
	refuses(fi_fetch_atomic(ep, bytes, 1, NULL, bytes, NULL, 0, 0, 0, FI_INT8, FI_SUM, NULL));
	refuses(fi_fetch_atomicv(ep, &ioc, NULL, 1, &ioc, NULL, 1, 0, 0, 0, FI_INT8, FI_SUM, NULL));
	refuses(fi_fetch_atomicmsg(ep, &msg, &ioc, NULL, 1, 0));
	refuses(fi_compare_atomic(ep, bytes, 1, NULL, bytes, NULL, bytes, NULL, 0, 0, 0, FI_INT8,
				  FI_CSWAP, NULL));
	refuses(fi_compare_atomicv(ep, &ioc, NULL, 1, &ioc, NULL, 1, &ioc, NULL, 1, 0, 0, 0,
				   FI_INT8, FI_CSWAP, NULL));
	refuses(fi_compare_atomicmsg(ep, &msg, &ioc, NULL, 1, &ioc, NULL, 1, 0));
	refuses(fi_atomicvalid(ep, FI_INT8, FI_SUM, &count));
	refuses(fi_fetch_atomicvalid(ep, FI_INT8, FI_SUM, &count));
	refuses(fi_compare_atomicvalid(ep, FI_INT8, FI_CSWAP, &count));
	refuses(fi_query_atomic(party.domain, FI_INT8, FI_SUM, NULL, 0));
}

TEST(there_are_no_groups)
{
	struct fid_mc *group;
	char bytes[8] = "";

	refuses(fi_join(ep, bytes, 0, &group, NULL));
	refuses(fi_barrier(ep, 0, NULL));
	refuses(fi_barrier2(ep, 0, 0, NULL));
	refuses(fi_broadcast(ep, bytes, 1, NULL, 0, 0, FI_INT8, 0, NULL));
	refuses(fi_alltoall(ep, bytes, 1, NULL, bytes, NULL, 0, FI_INT8, 0, NULL));
	refuses(fi_allreduce(ep, bytes, 1, NULL, bytes, NULL, 0, FI_INT8, FI_SUM, 0, NULL));
	refuses(fi_allgather(ep, bytes, 1, NULL, bytes, NULL, 0, FI_INT8, 0, NULL));
	refuses(fi_reduce_scatter(ep, bytes, 1, NULL, bytes, NULL, 0, FI_INT8, FI_SUM, 0, NULL));
	refuses(fi_reduce(ep, bytes, 1, NULL, bytes, NULL, 0, 0, FI_INT8, FI_SUM, 0, NULL));
	refuses(fi_scatter(ep, bytes, 1, NULL, bytes, NULL, 0, 0, FI_INT8, 0, NULL));
	refuses(fi_gather(ep, bytes, 1, NULL, bytes, NULL, 0, 0, FI_INT8, 0, NULL));
	refuses(fi_query_collective(party.domain, FI_BARRIER, NULL, 0));
}

TEST(domains_have_no_other_objects)
{
	struct fid_domain *domain;
	struct fid_wait *wait;
	struct fid_poll *poll;
	struct fid_cntr *counter;
	struct fid_stx *shared;
	struct fid_ep *other;
	struct fid_av *av;

	refuses(fi_domain2(party.fabric, party.info, &domain, FI_PEER, NULL));
	refuses(compat_wait_open(party.fabric, NULL, &wait));
	refuses(party.domain->ops->poll_open(party.domain, NULL, &poll));
	refuses(fi_cntr_open(party.domain, NULL, &counter, NULL));
	refuses(fi_av_open(party.domain, NULL, &av, NULL));
	refuses(fi_stx_context(party.domain, NULL, &shared, NULL));
	refuses(fi_srx_context(party.domain, NULL, &other, NULL));
	refuses(fi_scalable_ep(party.domain, party.info, &other, NULL));
	refuses(fi_endpoint2(party.domain, party.info, &other, FI_PEER, NULL));
	refuses(fi_tx_context(ep, 0, NULL, &other, NULL));
	refuses(fi_rx_context(ep, 0, NULL, &other, NULL));
}

/* Each is called through the table that all objects start with. */
TEST(objects_refuse_what_they_cannot_do)
{
	struct fid *fids[] = {&party.fabric->fid, &party.domain->fid, &party.cq->fid,
			      &party.eq->fid,     &pep->fid,          &ep->fid};
	char bytes[8] = "";
	void *ops;

	for (size_t i = 0; i < PLX_ARRAY_LEN(fids); i++) {
		refuses(fi_open_ops(fids[i], "more", 0, &ops, NULL));
		refuses(fi_set_ops(fids[i], "more", 0, bytes, NULL));
		refuses(fi_control(fids[i], FI_QUEUE_WORK, bytes));
	}
	refuses(fi_control(&party.fabric->fid, FI_GETWAIT, NULL));
	refuses(fi_mr_unmap_key(party.domain, 1));
	refuses(fi_domain_bind(party.domain, &party.eq->fid, 0));
	refuses(fi_ep_alias(ep, &ep, 0));
	refuses(fi_cancel(&pep->fid, NULL));
}

TESTED_MAIN()
