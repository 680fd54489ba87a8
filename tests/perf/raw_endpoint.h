/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the libfabric baselines: an endpoint, its one completion queue, and receives posted
 * ahead. raw_msg.h and raw_rdm.h connect two of them. */
#ifndef RAW_ENDPOINT_H
#define RAW_ENDPOINT_H

#include "raw_common.h"

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#define RAW_API_VERSION FI_VERSION(1, 17)
#define RAW_CQ_ENTRIES  64
#define RAW_RDMA_QUEUE  64 /* sends and receives in flight; the provider's queues are longer */
#define RAW_MR_MAX      2  /* a receive region and a send region */

struct raw_endpoint {
	struct fi_info *info; /* from which it was opened */
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_cq *cq;
	struct fid_ep *ep;
	enum fi_wait_obj cq_wait; /* set before opening, like cq_entries and may_rdma */
	size_t cq_entries;        /* 0: RAW_CQ_ENTRIES */
	bool may_rdma;            /* the program registers its send memory */
	bool rdma;      /* verbs: registration is required, and no completion reports a lost peer */
	fi_addr_t peer; /* for FI_EP_RDM; FI_EP_MSG ignores it */
	size_t inject_size;
	size_t rx_size;
	size_t receive_bytes; /* of each posted receive */
	uint8_t *memory;      /* of all buffers */
	void *desc;           /* for `memory`; NULL without registration */
	struct fid_mr *mrs[RAW_MR_MAX];
	unsigned mr_count;
	uint8_t *buffers[RAW_POSTED_MAX];
	struct fi_context contexts[RAW_POSTED_MAX]; /* a receive's index is its position here */
};

/* Set libfabric's error with that text. Returns -errno. */
int raw_failed(ssize_t rc, const char *what);

/* Open domain and completion queue; then an endpoint of that info on them and on `bound`, an EQ or
 * AV. Return: 0; -errno. */
int raw_endpoint_open_domain(struct raw_endpoint *at, struct fi_info *info);
int raw_endpoint_open(struct raw_endpoint *at, struct fi_info *info, struct fid *bound);

/* Register memory for sending and receiving, if the provider requires it, until the endpoint is
 * closed: at most RAW_MR_MAX times. *desc_out: NULL if not required. Return: 0; -errno. */
int raw_endpoint_register(struct raw_endpoint *at, void *memory, size_t bytes, void **desc_out);

/* Post that many receives of that size, into separate buffers. Return: 0; -errno. */
int raw_endpoint_post_all(struct raw_endpoint *at, unsigned count, size_t bytes);

/* For a ping-pong: few, so that they stay in the cache as one buffer would. */
int raw_endpoint_post_few(struct raw_endpoint *at, size_t bytes);

void raw_endpoint_close(struct raw_endpoint *at);
void raw_close_fid(struct fid *fid); /* accepts NULL */

/* Repost one. Return: 0; -errno. */
static inline int raw_endpoint_post(struct raw_endpoint *at, unsigned index)
{
	ssize_t rc = fi_recv(at->ep, at->buffers[index], at->receive_bytes, at->desc,
			     FI_ADDR_UNSPEC, &at->contexts[index]);

	return plx_likely(rc == 0) ? 0 : raw_failed(rc, "cannot post a receive");
}

static inline unsigned raw_endpoint_index(const struct raw_endpoint *at, const void *context)
{
	return (unsigned)((const struct fi_context *)context - at->contexts);
}

/* Why a queue read returned no entry: -EPIPE if the peer has left, which shows as cancelled
 * receives. Return: -errno. */
int raw_endpoint_error(struct raw_endpoint *at, ssize_t rc);

#endif
