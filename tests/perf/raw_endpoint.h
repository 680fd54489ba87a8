/* SPDX-License-Identifier: BSD-3-Clause */
/* What the baselines over libfabric share: an endpoint, its one completion queue, and receives
 * posted ahead. How two of them meet is for raw_msg.h and raw_rdm.h. */
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
#define RAW_RDMA_QUEUE  64 /* sends, and receives, under way; the provider has longer queues */
#define RAW_MR_MAX      2  /* what is received in, and what is sent from */

struct raw_endpoint {
	struct fi_info *info; /* that it was found by */
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_cq *cq;
	struct fid_ep *ep;
	enum fi_wait_obj cq_wait; /* set before it is opened; so are cq_entries and may_rdma */
	size_t cq_entries;        /* 0: RAW_CQ_ENTRIES */
	bool may_rdma;            /* the program registers what it sends */
	bool rdma;      /* verbs: it has to, and no completion tells that the peer is gone */
	fi_addr_t peer; /* of FI_EP_RDM; FI_EP_MSG does not look at it */
	size_t inject_size;
	size_t rx_size;
	size_t receive_bytes; /* of each posted receive */
	uint8_t *memory;      /* of all buffers */
	void *desc;           /* their memory's; NULL where nothing is registered */
	struct fid_mr *mrs[RAW_MR_MAX];
	unsigned mr_count;
	uint8_t *buffers[RAW_POSTED_MAX];
	struct fi_context contexts[RAW_POSTED_MAX]; /* the receive's index is its place here */
};

/* Record libfabric's error behind that text. Returns -errno. */
int raw_failed(ssize_t rc, const char *what);

/* Open domain and completion queue; then an endpoint of that info on them and on `bound`, an EQ or
 * an AV. Return: 0; -errno. */
int raw_endpoint_open_domain(struct raw_endpoint *at, struct fi_info *info);
int raw_endpoint_open(struct raw_endpoint *at, struct fi_info *info, struct fid *bound);

/* Register memory to send from and to receive in, where the provider asks for that, until the
 * endpoint is closed: RAW_MR_MAX times. *desc_out: NULL where it does not. Return: 0; -errno. */
int raw_endpoint_register(struct raw_endpoint *at, void *memory, size_t bytes, void **desc_out);

/* Post that many receives of so many bytes, into buffers of their own. Return: 0; -errno. */
int raw_endpoint_post_all(struct raw_endpoint *at, unsigned count, size_t bytes);

/* Those of a ping-pong: few, so that they stay in the cache as one buffer would. */
int raw_endpoint_post_few(struct raw_endpoint *at, size_t bytes);

void raw_endpoint_close(struct raw_endpoint *at);
void raw_close_fid(struct fid *fid); /* NULL is none */

/* Post one of them again. Return: 0; -errno. */
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

/* Why a read of the queue gave no entry: -EPIPE where the peer is gone, which shows as cancelled
 * receives. Return: -errno. */
int raw_endpoint_error(struct raw_endpoint *at, ssize_t rc);

#endif
