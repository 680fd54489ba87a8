/* SPDX-License-Identifier: BSD-3-Clause */
/* Two ends of a connection in one process and one thread, each with a fabric of its own, as two
 * processes would have. Nothing here looks behind libfabric's interface. */
#ifndef PAIR_H
#define PAIR_H

#include "tested.h"

#include <stdio.h>
#include <stdlib.h>

#define PAIR_LOOKS 200000

struct side {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_eq *eq;
	struct fid_cq *rx_cq, *tx_cq; /* the same one unless asked for two */
	struct fid_ep *ep;
};

struct pair_attr {
	size_t cq_size, tx_size, rx_size; /* 0: default */
	bool two_cqs, rx_selective, tx_selective;
	enum fi_wait_obj wait_obj; /* of the CQs; 0: FI_WAIT_NONE */
	uint64_t op_flags;
};

struct pair {
	struct pair_attr attr;
	struct fid_pep *pep;
	struct side a, b; /* a connects, b accepts */
};

static inline struct fi_info *pair_info(const char *node, const char *service, uint64_t flags,
					const struct pair_attr *attr)
{
	struct fi_info *hints = fi_allocinfo(), *info = NULL;

	hints->caps = FI_MSG;
	hints->ep_attr->type = FI_EP_MSG;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->tx_attr->size = attr->tx_size;
	hints->rx_attr->size = attr->rx_size;
	hints->tx_attr->op_flags = attr->op_flags;
	assert_int_equal(
		prov_getinfo(tested, FI_VERSION(1, 17), node, service, flags, hints, &info), 0);
	fi_freeinfo(hints);
	assert_non_null(info);
	return info;
}

static inline void side_open_fabric(struct side *side)
{
	struct fi_eq_attr eq_attr = {.wait_obj = FI_WAIT_FD};

	assert_int_equal(prov_fabric_open(tested, side->info->fabric_attr, &side->fabric, NULL), 0);
	side->fabric->api_version = FI_VERSION(1, 17); /* as fi_fabric does */
	assert_int_equal(fi_eq_open(side->fabric, &eq_attr, &side->eq, NULL), 0);
}

static inline void side_open_ep(struct side *side, struct fi_info *info,
				const struct pair_attr *attr)
{
	struct fi_cq_attr cq_attr = {
		.size = attr->cq_size,
		.format = FI_CQ_FORMAT_DATA,
		.wait_obj = attr->wait_obj ? attr->wait_obj : FI_WAIT_NONE,
	};
	uint64_t rx_flags = FI_RECV | (attr->rx_selective ? FI_SELECTIVE_COMPLETION : 0);
	uint64_t tx_flags = FI_TRANSMIT | (attr->tx_selective ? FI_SELECTIVE_COMPLETION : 0);

	assert_int_equal(fi_domain(side->fabric, info, &side->domain, NULL), 0);
	assert_int_equal(fi_cq_open(side->domain, &cq_attr, &side->rx_cq, NULL), 0);
	side->tx_cq = side->rx_cq;
	if (attr->two_cqs)
		assert_int_equal(fi_cq_open(side->domain, &cq_attr, &side->tx_cq, NULL), 0);
	assert_int_equal(fi_endpoint(side->domain, info, &side->ep, side), 0);
	assert_int_equal(fi_ep_bind(side->ep, &side->eq->fid, 0), 0);
	assert_int_equal(fi_ep_bind(side->ep, &side->rx_cq->fid, rx_flags), 0);
	assert_int_equal(fi_ep_bind(side->ep, &side->tx_cq->fid, tx_flags), 0);
	assert_int_equal(fi_enable(side->ep), 0);
}

/* Wait for one event. */
static inline ssize_t side_event(struct side *side, uint32_t wanted, void *entry, size_t size)
{
	for (int i = 0; i < PAIR_LOOKS; i++) {
		uint32_t event;
		ssize_t got;

		tested_progress();
		got = fi_eq_read(side->eq, &event, entry, size, 0);

		if (got == -FI_EAGAIN)
			continue;
		assert_true(got > 0);
		assert_int_equal(event, wanted);
		return got;
	}
	fail_msg("no event %u", wanted);
	return -1;
}

static inline void pair_listen(struct pair *pair, char *port_out)
{
	struct sockaddr_in name;
	size_t size = sizeof(name);

	pair->b.info = pair_info("127.0.0.1", "0", FI_SOURCE, &pair->attr);
	side_open_fabric(&pair->b);
	assert_int_equal(fi_passive_ep(pair->b.fabric, pair->b.info, &pair->pep, NULL), 0);
	assert_int_equal(fi_pep_bind(pair->pep, &pair->b.eq->fid, 0), 0);
	assert_int_equal(fi_listen(pair->pep), 0);
	assert_int_equal(fi_getname(&pair->pep->fid, &name, &size), 0);
	sprintf(port_out, "%u", ntohs(name.sin_port));
}

static inline void pair_open(struct pair *pair, const struct pair_attr *attr)
{
	uint8_t buf[sizeof(struct fi_eq_cm_entry) + 256];
	struct fi_eq_cm_entry *entry = (struct fi_eq_cm_entry *)buf;
	char port[8];

	*pair = (struct pair){.attr = *attr};
	pair_listen(pair, port);
	pair->a.info = pair_info("127.0.0.1", port, 0, attr);
	side_open_fabric(&pair->a);
	tested_eqs[0] = pair->a.eq;
	tested_eqs[1] = pair->b.eq;
	side_open_ep(&pair->a, pair->a.info, attr);
	assert_int_equal(fi_connect(pair->a.ep, pair->a.info->dest_addr, NULL, 0), 0);
	side_event(&pair->b, FI_CONNREQ, entry, sizeof(buf));
	side_open_ep(&pair->b, entry->info, attr);
	fi_freeinfo(entry->info);
	assert_int_equal(fi_accept(pair->b.ep, NULL, 0), 0);
	side_event(&pair->b, FI_CONNECTED, entry, sizeof(buf));
	side_event(&pair->a, FI_CONNECTED, entry, sizeof(buf));
}

static inline void side_close_ep(struct side *side)
{
	if (side->ep)
		assert_int_equal(fi_close(&side->ep->fid), 0);
	side->ep = NULL;
}

static inline void side_close(struct side *side)
{
	side_close_ep(side);
	if (side->tx_cq != side->rx_cq)
		assert_int_equal(fi_close(&side->tx_cq->fid), 0);
	if (side->rx_cq)
		assert_int_equal(fi_close(&side->rx_cq->fid), 0);
	if (side->domain)
		assert_int_equal(fi_close(&side->domain->fid), 0);
	assert_int_equal(fi_close(&side->eq->fid), 0);
	assert_int_equal(fi_close(&side->fabric->fid), 0);
	fi_freeinfo(side->info);
}

static inline void pair_close(struct pair *pair)
{
	tested_eqs[0] = tested_eqs[1] = NULL;
	side_close(&pair->a);
	if (pair->pep)
		assert_int_equal(fi_close(&pair->pep->fid), 0);
	side_close(&pair->b);
}

/* Wait for one completion of this queue, while the other side goes on too. */
static inline struct fi_cq_data_entry cq_wait(struct fid_cq *cq, struct fid_cq *other)
{
	struct fi_cq_data_entry entry = {0};

	for (int i = 0; i < PAIR_LOOKS; i++) {
		ssize_t got = fi_cq_read(cq, &entry, 1);

		if (got == 1)
			return entry;
		assert_int_equal(got, -FI_EAGAIN);
		if (other)
			fi_cq_read(other, NULL, 0);
	}
	fail_msg("no completion");
	return entry;
}

/* The same for a failed one. */
static inline struct fi_cq_err_entry cq_wait_error(struct fid_cq *cq, struct fid_cq *other)
{
	struct fi_cq_err_entry error = {0};
	struct fi_cq_data_entry entry;

	for (int i = 0; i < PAIR_LOOKS; i++) {
		ssize_t got = fi_cq_read(cq, &entry, 1);

		if (got == -FI_EAVAIL) {
			assert_int_equal(fi_cq_readerr(cq, &error, 0), 1);
			return error;
		}
		assert_int_equal(got, -FI_EAGAIN);
		if (other)
			fi_cq_read(other, NULL, 0);
	}
	fail_msg("no error");
	return error;
}

static inline void assert_empty(struct fid_cq *cq)
{
	struct fi_cq_data_entry entry;

	assert_int_equal(fi_cq_read(cq, &entry, 1), -FI_EAGAIN);
}

#endif
