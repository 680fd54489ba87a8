/* SPDX-License-Identifier: BSD-3-Clause */
/* Endpoints: enabling and closing; domains: what polls check in addition to their queues. */
#include "shm.h"

#include <stdlib.h>
#include <unistd.h>

static void domain_init(struct prov_domain *domain)
{
	TAILQ_INIT(&((struct shm_domain *)domain)->sending);
}

const struct prov_domain_ops shm_domain_ops = {
	.bytes = sizeof(struct shm_domain),
	.init = domain_init,
};

static void drop(struct shm_ep *ep)
{
	free(ep->sends);
	ep->sends = NULL;
	segment_unmap(&ep->reader.segment);
	segment_unmap(&ep->writer.segment);
	peer_bell_release(ep->peer_bell);
	if (ep->segment_fd >= 0)
		close(ep->segment_fd);
	ep->segment_fd = -1;
}

static int enable(struct prov_ep *base)
{
	struct shm_ep *ep = (struct shm_ep *)base;
	int rc = segment_create(shm_params.ring_bytes, &ep->reader.segment, &ep->segment_fd);

	/* Only processes that can read our memory may know it. */
	atomic_store_explicit(&ep->probe, plx_random_id(), memory_order_relaxed);
	ep->tx_mask = power_of_two(base->tx_size) - 1;
	ep->sends = calloc(ep->tx_mask + 1, sizeof(*ep->sends));
	if (rc || !ep->sends) {
		drop(ep);
		return rc ? rc : -FI_ENOMEM;
	}
	cq_attach(rx_cq_of(ep), ep);
	return 0;
}

static void init(struct prov_ep *base)
{
	struct shm_ep *ep = (struct shm_ep *)base;

	ep->segment_fd = -1;
	base->source.ready = ep_incoming;
	ep->doorbell = (struct plx_watch){-1, cq_doorbell_rang};
}

static void ep_close(struct prov_ep *base)
{
	struct shm_ep *ep = (struct shm_ep *)base;

	shm_ep_disconnect(base);
	if (!base->enabled)
		return;
	progress_end(ep);
	receives_flush(base, FI_ECANCELED);
	send_flush(ep, FI_ECANCELED);
	drop(ep);
}

pid_t ep_peer_pid(const struct fid_ep *fid)
{
	return ((const struct shm_ep *)fid)->peer_process.pid;
}

const struct prov_ep_ops shm_ep_ops = {
	.bytes = sizeof(struct shm_ep),
	.msg = &shm_msg_ops,
	.rma = &prov_no_rma.rma,
	.init = init,
	.enable = enable,
	.posted = progress_posted,
	.is_in_parts = receive_is_in_parts,
	.connect = shm_ep_connect,
	.accept = shm_ep_accept,
	.shutdown = shm_ep_shutdown,
	.disconnect = shm_ep_disconnect,
	.close = ep_close,
};
