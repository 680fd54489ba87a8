/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the libfabric baselines: an endpoint, its one completion queue, and receives posted
 * ahead; how two of them meet; and the loops over either kind. */
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
#define RAW_NAME_BYTES  128

/* A client's, over FI_EP_RDM. */
struct raw_hello {
	uint64_t size;
	char name[RAW_NAME_BYTES];
};

struct raw_endpoint {
	struct fi_info *info; /* from which it was opened */
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_cq *cq;
	struct fid_eq *eq;   /* FI_EP_MSG */
	struct fid_pep *pep; /* FI_EP_MSG */
	struct fid_av *av;   /* FI_EP_RDM */
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
	struct raw_hello hello; /* FI_EP_RDM: the client's, or room for the server's answer */
	struct fi_context hello_context;
};

/* How two endpoints meet. All return 0 or -errno. */
struct raw_kind {
	/* Listen, print the address, and open an endpoint for the first client. Post receives then,
	 * before the client starts sending. */
	int (*listen)(const struct raw_options *options, struct raw_endpoint *at,
		      uint64_t *size_out);
	int (*accept)(struct raw_endpoint *at);
	int (*connect)(const struct raw_options *options, struct raw_endpoint *at);
	/* -EPIPE the peer has left, if no completion reports it; a system call. May be NULL. */
	int (*gone)(struct raw_endpoint *at);
};

extern const struct raw_kind raw_msg; /* FI_EP_MSG; the client's request carries its size */
extern const struct raw_kind raw_rdm; /* FI_EP_RDM of libfabric's shared memory */

/* Round trips over the program's kind: raw_trips.c. */
int raw_trips_serve(const struct raw_options *options);
int raw_trips_ping(const struct raw_options *options, uint8_t *message, struct raw_run *run);

/* One-way messages over it, as fast as the peer takes them: raw_stream.c. */
int raw_stream_serve(const struct raw_options *options);
int raw_stream_send(const struct raw_options *options, struct raw_flow *flow);

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

/* Call it on every path: shared memory that is not closed leaves 16 MiB in /dev/shm. */
void raw_endpoint_close(struct raw_endpoint *at);

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

/* The slow path of raw_endpoint_send. */
int raw_endpoint_send_slowly(struct raw_endpoint *at, const void *message, size_t size, void *desc);

static inline ssize_t raw_endpoint_try(struct raw_endpoint *at, const void *message, size_t size,
				       void *desc)
{
	return size <= at->inject_size ? fi_inject(at->ep, message, size, at->peer)
				       : fi_send(at->ep, message, size, desc, at->peer, NULL);
}

/* Send one message. Return: 0; -errno. */
static inline int raw_endpoint_send(struct raw_endpoint *at, const void *message, size_t size,
				    void *desc)
{
	ssize_t rc = raw_endpoint_try(at, message, size, desc);

	return plx_likely(rc == 0) ? 0 : raw_endpoint_send_slowly(at, message, size, desc);
}

/* Why a queue read returned no entry: -EPIPE if the peer has left, which shows as cancelled
 * receives. Return: -errno. */
int raw_endpoint_error(struct raw_endpoint *at, ssize_t rc);

#endif
