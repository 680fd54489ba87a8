/* SPDX-License-Identifier: BSD-3-Clause */
#include "raw_endpoint.h"

#include <stdlib.h>

#define SMALL_BYTES  4096
#define SMALL_POSTED 8
#define LARGE_POSTED 2

int raw_failed(ssize_t rc, const char *what)
{
	return plx_fail(rc > -FI_ERRNO_OFFSET ? (int)-rc : EIO, "%s: %s", what,
			fi_strerror((int)-rc));
}

/* Opening ---------------------------------------------------------------------------------- */

int raw_endpoint_open_domain(struct raw_endpoint *at, struct fi_info *info)
{
	struct fi_cq_attr cq_attr = {
		.size = at->cq_entries ? at->cq_entries : RAW_CQ_ENTRIES,
		.format = FI_CQ_FORMAT_MSG,
		.wait_obj = at->cq_wait,
	};
	int rc = fi_domain(at->fabric, info, &at->domain, NULL);

	if (!rc)
		rc = fi_cq_open(at->domain, &cq_attr, &at->cq, NULL);
	return rc ? raw_failed(rc, "cannot open a completion queue") : 0;
}

int raw_endpoint_open(struct raw_endpoint *at, struct fi_info *info, struct fid *bound)
{
	int rc = fi_endpoint(at->domain, info, &at->ep, NULL);

	if (!rc)
		rc = fi_ep_bind(at->ep, bound, 0);
	if (!rc)
		rc = fi_ep_bind(at->ep, &at->cq->fid, FI_TRANSMIT | FI_SELECTIVE_COMPLETION);
	if (!rc)
		rc = fi_ep_bind(at->ep, &at->cq->fid, FI_RECV);
	if (!rc)
		rc = fi_enable(at->ep);
	at->inject_size = info->tx_attr->inject_size;
	raw_catch_signals();
	return rc ? raw_failed(rc, "cannot make an endpoint") : 0;
}

/* Receives --------------------------------------------------------------------------------- */

int raw_endpoint_post_all(struct raw_endpoint *at, unsigned count, size_t bytes)
{
	size_t most = at->info->rx_attr->size < RAW_POSTED_MAX ? at->info->rx_attr->size
							       : RAW_POSTED_MAX;
	int rc = 0;

	at->receive_bytes = bytes;
	at->posted = count < most ? count : (unsigned)most;
	for (unsigned i = 0; i < at->posted && !rc; i++) {
		at->buffers[i] = raw_buffer(bytes);
		rc = at->buffers[i] ? raw_endpoint_post(at, i) : -ENOMEM;
	}
	return rc;
}

int raw_endpoint_post_few(struct raw_endpoint *at, size_t bytes)
{
	return raw_endpoint_post_all(at, bytes <= SMALL_BYTES ? SMALL_POSTED : LARGE_POSTED, bytes);
}

int raw_endpoint_error(struct raw_endpoint *at, ssize_t rc)
{
	struct fi_cq_err_entry error = {0};

	if (rc != -FI_EAVAIL)
		return raw_failed(rc, "cannot read the completion queue");
	fi_cq_readerr(at->cq, &error, 0);
	if (error.err == FI_ECANCELED || error.err == FI_ENOTCONN)
		return plx_fail(EPIPE, "the peer is gone");
	return plx_fail(EIO, "a message failed: %s", fi_strerror(error.err));
}

/* Closing ---------------------------------------------------------------------------------- */

void raw_close_fid(struct fid *fid)
{
	if (fid)
		fi_close(fid);
}

void raw_endpoint_close(struct raw_endpoint *at)
{
	raw_close_fid(at->cq ? &at->cq->fid : NULL);
	raw_close_fid(at->domain ? &at->domain->fid : NULL);
	raw_close_fid(at->fabric ? &at->fabric->fid : NULL);
	fi_freeinfo(at->info);
	for (unsigned i = 0; i < at->posted; i++)
		free(at->buffers[i]);
}
