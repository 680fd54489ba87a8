/* SPDX-License-Identifier: BSD-3-Clause */
/* A listening side and connecting ones, each with a separate fabric, in one process. */
#ifndef PROV_TEST_CM_H
#define PROV_TEST_CM_H

#include "count.h"
#include "events.h"

#include <sys/socket.h>

struct party {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_eq *eq;
	struct fid_cq *cq;
};

/* size: of the queues of an endpoint; 0: the default. */
static inline struct fi_info *cm_info_of_size(const char *host, const char *port, uint64_t flags,
					      size_t size)
{
	return pair_info(host, port, flags, &(struct pair_attr){.tx_size = size, .rx_size = size});
}

static inline struct fi_info *cm_info(const char *host, const char *port, uint64_t flags)
{
	return cm_info_of_size(host, port, flags, 16);
}

/* The party takes over info. */
static inline void party_open(struct party *party, struct fi_info *info)
{
	struct fi_eq_attr eq_attr = {.wait_obj = FI_WAIT_FD};
	struct fi_cq_attr cq_attr = {.wait_obj = FI_WAIT_FD, .format = FI_CQ_FORMAT_DATA};

	*party = (struct party){.info = info};
	party->fabric = tested_fabric(info);
	assert_int_equal(fi_domain(party->fabric, info, &party->domain, NULL), 0);
	assert_int_equal(fi_eq_open(party->fabric, &eq_attr, &party->eq, NULL), 0);
	assert_int_equal(fi_cq_open(party->domain, &cq_attr, &party->cq, NULL), 0);
}

static inline void party_close(struct party *party)
{
	assert_int_equal(fi_close(&party->cq->fid), 0);
	assert_int_equal(fi_close(&party->eq->fid), 0);
	assert_int_equal(fi_close(&party->domain->fid), 0);
	assert_int_equal(fi_close(&party->fabric->fid), 0);
	fi_freeinfo(party->info);
}

static inline struct fid_ep *party_ep(struct party *party, struct fi_info *info)
{
	struct fid_ep *ep;

	assert_int_equal(fi_endpoint(party->domain, info, &ep, &party->info), 0);
	assert_int_equal(fi_ep_bind(ep, &party->eq->fid, 0), 0);
	assert_int_equal(fi_ep_bind(ep, &party->cq->fid, FI_TRANSMIT | FI_RECV), 0);
	return ep;
}

/* A passive endpoint that does not listen yet. */
static inline struct fid_pep *party_pep(struct party *party)
{
	struct fid_pep *pep;

	assert_int_equal(fi_passive_ep(party->fabric, party->info, &pep, NULL), 0);
	assert_int_equal(fi_pep_bind(pep, &party->eq->fid, 0), 0);
	return pep;
}

/* Incoming connections that were not answered. */
static inline uint32_t cm_requests(const struct fid_pep *fid)
{
	const struct prov_pep *pep = (const struct prov_pep *)fid;

	return pep->silent_count + pep->told_count;
}

static inline struct sockaddr_storage cm_name(struct fid *fid)
{
	struct sockaddr_storage name = {0};
	size_t bytes = sizeof(name);

	assert_int_equal(fi_getname(fid, &name, &bytes), 0);
	assert_int_equal(bytes, address_bytes((struct sockaddr *)&name));
	return name;
}

#endif
