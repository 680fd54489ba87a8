/* SPDX-License-Identifier: BSD-3-Clause */
/* Endpoints: enabling and closing. */
#include "shm.h"

#include <unistd.h>

/* Enabling --------------------------------------------------------------------------------- */

/* Create the receiving ring. Only processes that can read our memory may know the probe value. */
static int make_ring(struct shm_ep *ep)
{
	struct segment segment;
	int rc;

	ep->probe = plx_random_id();
	rc = segment_create(shm_params.ring_bytes, &segment, &ep->segment_fd);
	if (rc == 0)
		ring_reader_init(&ep->reader, &segment);
	return rc;
}

static void drop_rings(struct shm_ep *ep)
{
	segment_unmap(&ep->reader.segment);
	segment_unmap(&ep->writer.segment);
	peer_bell_release(ep->peer_bell);
	if (ep->segment_fd >= 0)
		close(ep->segment_fd);
	ep->segment_fd = -1;
}

/* The sockets of its event queue progress with its domain's queues (progress.c). */
static int enable(struct prov_ep *base)
{
	struct shm_ep *ep = (struct shm_ep *)base;
	int rc = make_ring(ep);

	rc = rc ? rc : send_init(ep);
	rc = rc ? rc : domain_watch(domain_of(ep), base->eq);
	if (rc) {
		send_fini(ep);
		drop_rings(ep);
		return rc;
	}
	cq_attach(rx_cq_of(ep), ep);
	return 0;
}

/* Opening and closing ---------------------------------------------------------------------- */

static void init(struct prov_ep *base)
{
	struct shm_ep *ep = (struct shm_ep *)base;

	ep->segment_fd = ep->peer_pidfd = -1;
	base->source.ready = ep_incoming;
}

static void disable(struct shm_ep *ep)
{
	progress_end(ep);
	receives_flush(&ep->base, FI_ECANCELED);
	send_flush(ep, FI_ECANCELED);
	send_fini(ep);
	domain_unwatch(domain_of(ep), ep->base.eq);
	drop_rings(ep);
}

static void ep_close(struct prov_ep *base)
{
	shm_ep_disconnect(base);
	if (base->enabled)
		disable((struct shm_ep *)base);
}

const struct prov_ep_ops shm_ep_ops = {
	.bytes = sizeof(struct shm_ep),
	.msg = &shm_msg_ops,
	.rma = &prov_no_rma.rma,
	.init = init,
	.enable = enable,
	.posted = progress_posted,
	.connect = shm_ep_connect,
	.accept = shm_ep_accept,
	.shutdown = shm_ep_shutdown,
	.disconnect = shm_ep_disconnect,
	.close = ep_close,
};
