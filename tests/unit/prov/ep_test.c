/* SPDX-License-Identifier: BSD-3-Clause */
/* Misused endpoints, their attributes, and unsupported calls: libfabric's inline functions call
 * table entries without checking. */
#include "count.h"
#include "pair.h"

#include <rdma/fi_atomic.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

static struct side party, other;
static struct fid_pep *pep;
static struct fid_ep *ep; /* bound to everything it needs */
static struct sockaddr_storage address;
static int descriptors, mappings;

static int setup(void **state)
{
	descriptors = count_descriptors();
	mappings = count_mappings();
	side_open(&party, side_info("127.0.0.1", NULL, FI_SOURCE));
	side_open(&other, side_info("127.0.0.1", NULL, FI_SOURCE));
	pep = side_pep(&party);
	assert_int_equal(fi_listen(pep), 0);
	address = name_of(&pep->fid);
	ep = side_ep(&party, party.info);
	return 0;
}

/* In any state. */
static int teardown(void **state)
{
	assert_int_equal(fi_close(&ep->fid), 0);
	assert_int_equal(fi_close(&pep->fid), 0);
	side_close(&party);
	side_close(&other);
	assert_int_equal(count_descriptors(), descriptors);
	assert_int_equal(count_mappings(), mappings);
	return 0;
}

static struct fid_ep *make_bare(void)
{
	struct fid_ep *bare;

	assert_int_equal(fi_endpoint(party.domain, party.info, &bare, NULL), 0);
	return bare;
}

/* Connect ep to pep. Return: the info of the request. */
static struct fi_info *request(void)
{
	union cm_event event;

	assert_int_equal(fi_connect(ep, &address, NULL, 0), 0);
	cm_wait(party.eq, FI_CONNREQ, &event);
	return event.cm.info;
}

#define TEST(name) PLX_TEST_WITH(name, setup, teardown)

/* Binding ------------------------------------------------------------------------------------- */

TEST(an_endpoint_needs_its_queues)
{
	struct fid_ep *bare = make_bare();

	assert_int_equal(fi_enable(bare), -FI_ENOEQ);
	assert_int_equal(fi_connect(bare, &address, NULL, 0), -FI_ENOEQ);
	assert_int_equal(fi_ep_bind(bare, &party.eq->fid, 0), 0);
	assert_int_equal(fi_enable(bare), -FI_ENOCQ);
	assert_int_equal(fi_ep_bind(bare, &party.rx_cq->fid, FI_TRANSMIT), 0);
	assert_int_equal(fi_enable(bare), -FI_ENOCQ);
	assert_int_equal(fi_ep_bind(bare, &party.rx_cq->fid, FI_RECV | FI_SELECTIVE_COMPLETION), 0);
	assert_int_equal(fi_enable(bare), 0);
	assert_int_equal(fi_ep_bind(bare, &party.eq->fid, 0), -FI_EOPBADSTATE);
	assert_int_equal(fi_close(&party.rx_cq->fid), -FI_EBUSY);
	assert_int_equal(fi_close(&party.eq->fid), -FI_EBUSY);
	assert_int_equal(fi_close(&party.domain->fid), -FI_EBUSY);
	assert_int_equal(fi_close(&bare->fid), 0);
}

TEST(invalid_bindings_are_refused)
{
	struct fid_ep *bare = make_bare();
	struct fid counter = {.fclass = FI_CLASS_CNTR}, table = {.fclass = FI_CLASS_AV};

	assert_int_equal(fi_ep_bind(bare, &counter, FI_SEND), -FI_EINVAL);
	assert_int_equal(fi_ep_bind(bare, &table, 0), -FI_EINVAL);
	assert_int_equal(fi_ep_bind(bare, &party.rx_cq->fid, 0), -FI_EBADFLAGS);
	assert_int_equal(fi_ep_bind(bare, &party.rx_cq->fid, FI_SELECTIVE_COMPLETION),
			 -FI_EBADFLAGS);
	assert_int_equal(fi_ep_bind(bare, &party.rx_cq->fid, FI_RECV | FI_READ), -FI_EBADFLAGS);
	assert_int_equal(fi_ep_bind(bare, &other.rx_cq->fid, FI_RECV), -FI_EDOMAIN);
	assert_int_equal(fi_ep_bind(bare, &other.eq->fid, 0), -FI_EINVAL);
	assert_int_equal(fi_ep_bind(bare, &party.eq->fid, 0), 0);
	assert_int_equal(fi_ep_bind(bare, &party.eq->fid, 0), -FI_EINVAL);
	assert_int_equal(fi_ep_bind(bare, &party.rx_cq->fid, FI_RECV), 0);
	assert_int_equal(fi_ep_bind(bare, &party.rx_cq->fid, FI_RECV | FI_TRANSMIT), -FI_EINVAL);
	assert_int_equal(fi_close(&bare->fid), 0);
}

TEST(a_passive_endpoint_needs_its_queue)
{
	struct fid_pep *bare;

	assert_int_equal(fi_passive_ep(party.fabric, party.info, &bare, NULL), 0);
	assert_int_equal(fi_listen(bare), -FI_ENOEQ);
	assert_int_equal(fi_pep_bind(bare, &party.rx_cq->fid, 0), -FI_EINVAL);
	assert_int_equal(fi_pep_bind(bare, &other.eq->fid, 0), -FI_EINVAL);
	assert_int_equal(fi_pep_bind(bare, &party.eq->fid, FI_RECV), -FI_EBADFLAGS);
	assert_int_equal(fi_pep_bind(bare, &party.eq->fid, 0), 0);
	assert_int_equal(fi_pep_bind(bare, &party.eq->fid, 0), -FI_EINVAL);
	assert_int_equal(fi_listen(bare), 0);
	assert_int_equal(fi_listen(bare), -FI_EOPBADSTATE);
	assert_int_equal(fi_close(&bare->fid), 0);
}

/* Attributes ---------------------------------------------------------------------------------- */

TEST(invalid_attributes_are_refused)
{
	struct fi_info *info = fi_dupinfo(party.info);
	struct sockaddr_storage name;
	struct fid_ep *none;

	info->tx_attr->size = tested->most->tx_attr->size + 1;
	assert_int_equal(fi_endpoint(party.domain, info, &none, NULL), -FI_EINVAL);
	info->tx_attr->size = 0;
	info->rx_attr->size = tested->most->rx_attr->size + 1;
	assert_int_equal(fi_endpoint(party.domain, info, &none, NULL), -FI_EINVAL);
	info->rx_attr->size = 0;
	info->ep_attr->type = FI_EP_RDM;
	assert_int_equal(fi_endpoint(party.domain, info, &none, NULL), -FI_EINVAL);
	info->ep_attr->type = FI_EP_MSG;
	info->tx_attr->op_flags = FI_COMMIT_COMPLETE;
	assert_int_equal(fi_endpoint(party.domain, info, &none, NULL), -FI_EINVAL);
	info->tx_attr->op_flags = 0;
	info->handle = &party.domain->fid;
	assert_int_equal(fi_endpoint(party.domain, info, &none, NULL), -FI_EINVAL);
	info->handle = &pep->fid; /* its name is taken over */
	assert_int_equal(fi_endpoint(party.domain, info, &none, NULL), 0);
	name = name_of(&none->fid);
	assert_memory_equal(&name, &address, address_bytes((struct sockaddr *)&address));
	assert_int_equal(fi_close(&none->fid), 0);
	fi_freeinfo(info);
}

TEST(options_and_operation_flags_can_be_queried)
{
	uint64_t flags = FI_TRANSMIT | FI_COMPLETION;
	size_t value = 0, bytes = sizeof(value) - 1;
	struct fid *fid = &ep->fid;

	assert_int_equal(fi_control(&ep->fid, FI_SETOPSFLAG, &flags), 0);
	flags = FI_RECV;
	assert_int_equal(fi_control(&ep->fid, FI_GETOPSFLAG, &flags), 0);
	assert_int_equal(flags, 0);
	flags = FI_TRANSMIT;
	assert_int_equal(fi_control(&ep->fid, FI_GETOPSFLAG, &flags), 0);
	assert_int_equal(flags, FI_COMPLETION);
	flags = FI_TRANSMIT | FI_RECV;
	assert_int_equal(fi_control(&ep->fid, FI_GETOPSFLAG, &flags), -FI_EINVAL);
	assert_int_equal(fi_control(&ep->fid, FI_SETOPSFLAG, &flags), -FI_EINVAL);
	flags = FI_TRANSMIT | FI_COMMIT_COMPLETE;
	assert_int_equal(fi_control(&ep->fid, FI_SETOPSFLAG, &flags), -FI_EBADFLAGS);
	assert_int_equal(fi_getopt(fid, FI_OPT_ENDPOINT, FI_OPT_CM_DATA_SIZE, &value, &bytes),
			 -FI_ETOOSMALL);
	assert_int_equal(fi_getopt(fid, FI_OPT_ENDPOINT, FI_OPT_CM_DATA_SIZE, &value, &bytes), 0);
	assert_int_equal(value, PROV_CM_DATA_MAX);
	assert_int_equal(fi_setopt(fid, FI_OPT_ENDPOINT, FI_OPT_CM_DATA_SIZE, &value, bytes),
			 -FI_ENOPROTOOPT);
	assert_int_equal(fi_getopt(fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &value, &bytes),
			 -FI_ENOPROTOOPT);
	assert_int_equal(fi_enable(ep), 0);
	assert_int_equal(ep->ops->rx_size_left(ep), 16);
	assert_int_equal(ep->ops->tx_size_left(ep), 16);
}

/* States -------------------------------------------------------------------------------------- */

TEST(an_unconnected_endpoint_has_no_peer)
{
	struct sockaddr_storage name;
	size_t bytes = sizeof(name);

	assert_int_equal(fi_getpeer(ep, &name, &bytes), -FI_ENOTCONN);
	assert_int_equal(fi_shutdown(ep, 0), -FI_ENOTCONN);
	assert_int_equal(fi_accept(ep, NULL, 0), -FI_EINVAL);
	assert_int_equal(fi_connect(ep, NULL, NULL, 0), -FI_EINVAL); /* nor does info have one */
	assert_int_equal(fi_connect(ep, &address, NULL, 0), 0);
	assert_int_equal(fi_shutdown(ep, 0), -FI_ENOTCONN);
}

TEST(an_endpoint_connects_once)
{
	struct fi_info *info = request();

	assert_int_equal(fi_connect(ep, &address, NULL, 0), -FI_EALREADY);
	assert_int_equal(fi_accept(ep, NULL, 0), -FI_EOPBADSTATE);
	assert_int_equal(fi_setname(&ep->fid, &address, sizeof(address)), -FI_EOPBADSTATE);
	assert_int_equal(fi_reject(pep, info->handle, NULL, 0), 0);
	fi_freeinfo(info);
	assert_ptr_equal(cm_wait_error(party.eq).fid, &ep->fid);
	assert_int_equal(fi_connect(ep, &address, NULL, 0), -FI_EOPBADSTATE);
	assert_int_equal(fi_enable(ep), -FI_EOPBADSTATE);
	assert_int_equal(fi_shutdown(ep, 0), 0);
}

TEST(a_request_cannot_be_answered_twice)
{
	struct fi_info *info = request();
	size_t size = info->rx_attr->size;
	struct fid_ep *one, *none;

	info->rx_attr->size = tested->most->rx_attr->size + 1;
	assert_int_equal(fi_endpoint(party.domain, info, &none, NULL), -FI_EINVAL);
	info->rx_attr->size = size; /* it survives that failure */
	assert_int_equal(fi_reject(pep, NULL, NULL, 0), -FI_EINVAL);
	assert_int_equal(fi_reject(pep, &pep->fid, NULL, 0), -FI_EINVAL);
	one = side_ep(&party, info);
	assert_int_equal(fi_endpoint(party.domain, info, &none, NULL), -FI_EINVAL);
	assert_int_equal(fi_reject(pep, info->handle, NULL, 0), -FI_EINVAL);
	assert_int_equal(fi_connect(one, &address, NULL, 0), -FI_EINVAL);
	assert_int_equal(fi_accept(one, NULL, 0), 0);
	assert_int_equal(fi_accept(one, NULL, 0), -FI_EOPBADSTATE);
	fi_freeinfo(info);
	assert_int_equal(fi_close(&one->fid), 0);
}

/* Unsupported calls --------------------------------------------------------------------------- */

/* Every entry of a table, which is its size, then function pointers: a function, or the one that
 * refuses. */
static void expect_entries(const void *table, size_t bytes, bool are_refused)
{
	ssize_t (*entry)(void);
	size_t size;

	memcpy(&size, table, sizeof(size));
	assert_true(size >= bytes);
	for (size_t at = sizeof(size); at < bytes; at += sizeof(entry)) {
		memcpy(&entry, (const char *)table + at, sizeof(entry));
		if (!entry || (are_refused && entry != prov_refuse))
			fail_msg("entry %zu of %zu", at / sizeof(entry), bytes / sizeof(entry));
	}
}

#define IS_FULL(table)    expect_entries(table, sizeof(*(table)), false)
#define IS_REFUSED(table) expect_entries(table, sizeof(*(table)), true)

TEST(calls_that_do_not_exist_are_refused_instead_of_crashing)
{
	struct fid *fids[] = {&party.fabric->fid, &party.domain->fid, &party.rx_cq->fid,
			      &party.eq->fid,     &pep->fid,          &ep->fid};
	char bytes[8] = "";
	void *ops;

	IS_FULL(ep->msg);
	IS_FULL(ep->rma);
	IS_FULL(ep->ops);
	IS_FULL(party.rx_cq->ops);
	IS_FULL(party.eq->ops);
	IS_FULL(party.domain->mr);
	/* libfabric itself checks the entries after these. */
	expect_entries(party.domain->ops, offsetof(struct fi_ops_domain, query_atomic), false);
	expect_entries(party.fabric->ops, offsetof(struct fi_ops_fabric, domain2), false);
	IS_REFUSED(ep->tagged);
	IS_REFUSED(ep->atomic);
	IS_REFUSED(ep->collective);
	if (!tested_has_rma())
		IS_REFUSED(ep->rma);
	for (size_t i = 0; i < PLX_ARRAY_LEN(fids); i++) {
		assert_int_equal(fi_open_ops(fids[i], "more", 0, &ops, NULL), -FI_ENOSYS);
		assert_int_equal(fi_control(fids[i], FI_QUEUE_WORK, bytes), -FI_ENOSYS);
	}
	assert_int_equal(fi_tsend(ep, bytes, 8, NULL, 0, 0, NULL), -FI_ENOSYS);
	assert_int_equal(fi_cancel(&pep->fid, NULL), -FI_ENOSYS);
}

TESTED_MAIN()
