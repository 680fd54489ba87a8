/* SPDX-License-Identifier: BSD-3-Clause */
#include "raw_endpoint.h"

#include <stdlib.h>

#define SMALL_BYTES  4096
#define SMALL_POSTED 8
#define LARGE_POSTED 2
#define RDMA_POSTED  3 /* large ones: on iWARP a message without a receive ends the connection */
#define PAGE_BYTES   4096

int raw_failed(ssize_t rc, const char *what)
{
	return plx_fail(rc > -FI_ERRNO_OFFSET ? (int)-rc : EIO, "%s: %s", what,
			fi_strerror((int)-rc));
}

/* Every verbs send has an entry in the completion queue, which must not overrun. */
static void size_queues(struct raw_endpoint *at, struct fi_info *info)
{
	if (!at->rdma)
		return;
	info->tx_attr->size = info->rx_attr->size = RAW_RDMA_QUEUE;
	if (at->cq_entries < 2 * RAW_RDMA_QUEUE)
		at->cq_entries = 2 * RAW_RDMA_QUEUE;
}

int raw_endpoint_open_domain(struct raw_endpoint *at, struct fi_info *info)
{
	size_queues(at, info);

	struct fi_cq_attr cq_attr = {
		.size = at->cq_entries ? at->cq_entries : RAW_CQ_ENTRIES,
		.format = FI_CQ_FORMAT_MSG,
		.wait_obj = at->cq_wait,
	};
	int rc = fi_domain(at->fabric, info, &at->domain, NULL);

	rc = rc ? rc : fi_cq_open(at->domain, &cq_attr, &at->cq, NULL);
	return rc ? raw_failed(rc, "cannot open a completion queue") : 0;
}

int raw_endpoint_open(struct raw_endpoint *at, struct fi_info *info, struct fid *bound)
{
	int rc = fi_endpoint(at->domain, info, &at->ep, NULL);

	rc = rc ? rc : fi_ep_bind(at->ep, bound, 0);
	rc = rc ? rc : fi_ep_bind(at->ep, &at->cq->fid, FI_TRANSMIT | FI_SELECTIVE_COMPLETION);
	rc = rc ? rc : fi_ep_bind(at->ep, &at->cq->fid, FI_RECV);
	rc = rc ? rc : fi_enable(at->ep);
	at->inject_size = info->tx_attr->inject_size;
	at->rx_size = info->rx_attr->size;
	raw_catch_signals();
	return rc ? raw_failed(rc, "cannot make an endpoint") : 0;
}

int raw_endpoint_register(struct raw_endpoint *at, void *memory, size_t bytes, void **desc_out)
{
	struct fid_mr *mr;

	*desc_out = NULL;
	if (!at->rdma)
		return 0;
	int rc = fi_mr_reg(at->domain, memory, bytes, FI_SEND | FI_RECV, 0, 0, 0, &mr, NULL);
	if (rc)
		return raw_failed(rc, "cannot register memory (is ulimit -l large enough?)");
	at->mrs[at->mr_count++] = mr;
	*desc_out = fi_mr_desc(mr);
	return 0;
}

int raw_endpoint_post_all(struct raw_endpoint *at, unsigned count, size_t bytes)
{
	size_t most = at->rx_size < RAW_POSTED_MAX ? at->rx_size : RAW_POSTED_MAX;
	size_t stride = (bytes + PAGE_BYTES) / PAGE_BYTES * PAGE_BYTES;

	count = count < most ? count : (unsigned)most;
	at->memory = raw_buffer(count * stride);
	int rc = at->memory ? raw_endpoint_register(at, at->memory, count * stride, &at->desc)
			    : -ENOMEM;

	at->receive_bytes = bytes;
	for (unsigned i = 0; i < count && !rc; i++) {
		at->buffers[i] = at->memory + i * stride;
		rc = raw_endpoint_post(at, i);
	}
	return rc;
}

int raw_endpoint_post_few(struct raw_endpoint *at, size_t bytes)
{
	unsigned large = at->rdma ? RDMA_POSTED : LARGE_POSTED;

	return raw_endpoint_post_all(at, bytes <= SMALL_BYTES ? SMALL_POSTED : large, bytes);
}

int raw_endpoint_error(struct raw_endpoint *at, ssize_t rc)
{
	struct fi_cq_err_entry error = {0};

	if (rc != -FI_EAVAIL)
		return raw_failed(rc, "cannot read the completion queue");
	fi_cq_readerr(at->cq, &error, 0);
	if (error.err == FI_ECANCELED || error.err == FI_ENOTCONN)
		return plx_fail(EPIPE, "the peer is gone");
	return plx_fail(EIO, "a message failed: %s",
			at->rdma ? fi_cq_strerror(at->cq, error.prov_errno, NULL, NULL, 0)
				 : fi_strerror(error.err));
}

/* No room, or the peer has not mapped its region yet. Reading the queue makes progress, and reading
 * zero entries keeps those that may be there. */
int raw_endpoint_send_slowly(struct raw_endpoint *at, const void *message, size_t size, void *desc)
{
	struct raw_wait wait = {.spins = RAW_SPINS_CHECK - 1};
	ssize_t rc;

	while ((rc = raw_endpoint_try(at, message, size, desc)) == -FI_EAGAIN || rc == -FI_ENOENT) {
		int over = raw_wait_over(&wait, RAW_PEER_NS, "the peer to take a message");
		if (over)
			return over;
		fi_cq_read(at->cq, NULL, 0);
	}
	return rc ? raw_failed(rc, "cannot send") : 0;
}

static void close_fid(struct fid *fid)
{
	if (fid)
		fi_close(fid);
}

void raw_endpoint_close(struct raw_endpoint *at)
{
	if (at->ep && at->eq)
		fi_shutdown(at->ep, 0);
	close_fid(at->ep ? &at->ep->fid : NULL);
	close_fid(at->pep ? &at->pep->fid : NULL);
	close_fid(at->eq ? &at->eq->fid : NULL);
	close_fid(at->av ? &at->av->fid : NULL);
	for (unsigned i = 0; i < at->mr_count; i++)
		close_fid(&at->mrs[i]->fid);
	close_fid(at->cq ? &at->cq->fid : NULL);
	close_fid(at->domain ? &at->domain->fid : NULL);
	close_fid(at->fabric ? &at->fabric->fid : NULL);
	fi_freeinfo(at->info);
	free(at->memory);
}
