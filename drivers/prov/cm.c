/* SPDX-License-Identifier: BSD-3-Clause */
/* Connection management for endpoints of every provider, and the events that it reports. */
#include "prov.h"

#include <stdlib.h>

/* Events ----------------------------------------------------------------------------------- */

/* The place of the next event. Each state is entered once, so there are never more. */
static struct prov_event *next_event(struct prov_ep *ep, uint32_t number, bool is_error)
{
	struct prov_event *event = &ep->events[ep->told++];

	assert(ep->told <= PLX_ARRAY_LEN(ep->events));
	*event = (struct prov_event){.event = number, .is_error = is_error, .is_lent = true};
	return event;
}

void prov_ep_tell(struct prov_ep *ep, uint32_t event, const void *data, uint32_t length)
{
	eq_push(ep->eq, next_event(ep, event, false), &ep->fid.fid, data, length);
}

void prov_ep_fail(struct prov_ep *ep, int err, const void *data, uint32_t length)
{
	eq_push(ep->eq, next_event(ep, (uint32_t)err, true), &ep->fid.fid, data, length);
	prov_ep_ops(ep)->disconnect(ep);
	ep->state = EP_DEAD;
	receives_flush(ep, FI_ECANCELED);
}

/* Dialling ---------------------------------------------------------------------------------- */

int prov_dial_begin(struct prov_ep *ep, size_t bytes,
		    void (*passed)(struct prov_deadline *deadline), const void *data, size_t length)
{
	ep->dial = calloc(1, bytes);
	if (!ep->dial)
		return -FI_ENOMEM;
	ep->dial->deadline.passed = passed;
	ep->dial->ep = ep;
	ep->dial->length = (uint32_t)length;
	if (length)
		memcpy(ep->dial->data, data, length);
	return 0;
}

void prov_dial_end(struct prov_ep *ep)
{
	if (ep->dial)
		eq_clear_deadline(ep->eq, &ep->dial->deadline);
	free(ep->dial);
	ep->dial = NULL;
}

/* Connecting ------------------------------------------------------------------------------- */

static int check_connect(const struct prov_ep *ep, size_t length)
{
	if (ep->state == EP_CONNECTING)
		return -FI_EALREADY;
	if (ep->state == EP_CONNECTED)
		return -FI_EISCONN;
	if (ep->state != EP_IDLE)
		return -FI_EOPBADSTATE;
	return ep->request || length > PROV_CM_DATA_MAX ? -FI_EINVAL : 0;
}

static int ep_connect(struct fid_ep *fid, const void *address, const void *data, size_t length)
{
	struct prov_ep *ep = prov_ep_of(&fid->fid);
	const struct sockaddr *peer = address ? address : ep->info->dest_addr;
	int rc = check_connect(ep, length);

	rc = rc ? rc : prov_address_take(peer, peer ? address_bytes(peer) : 0, &ep->peer);
	rc = rc ? rc : prov_ep_enable(ep);
	if (rc)
		return rc;
	rc = prov_ep_ops(ep)->connect(ep, data, length);
	if (rc)
		prov_ep_ops(ep)->disconnect(ep);
	else
		ep->state = EP_CONNECTING;
	return rc;
}

/* Once the answer is sent there is no way back: a later failure ends the connection. */
static int ep_accept(struct fid_ep *fid, const void *data, size_t length)
{
	struct prov_ep *ep = prov_ep_of(&fid->fid);
	int rc;

	if (ep->state != EP_IDLE)
		return -FI_EOPBADSTATE;
	if (!ep->request || length > PROV_CM_DATA_MAX)
		return -FI_EINVAL;
	rc = prov_ep_enable(ep);
	if (rc)
		return rc;
	ep->source.fd = ep->request->source.fd;
	ep->request->source.fd = -1;
	rc = prov_ep_ops(ep)->accept(ep, data, length);
	prov_request_free(ep->request);
	ep->request = NULL;
	if (rc) {
		prov_ep_ops(ep)->disconnect(ep);
		ep->state = EP_DEAD;
		return rc;
	}
	prov_ep_tell(ep, FI_CONNECTED, NULL, 0);
	return 0;
}

static int ep_shutdown(struct fid_ep *fid, uint64_t flags)
{
	struct prov_ep *ep = prov_ep_of(&fid->fid);

	if (flags)
		return -FI_EBADFLAGS;
	if (ep->state < EP_CONNECTED)
		return -FI_ENOTCONN;
	if (ep->state != EP_DEAD)
		prov_ep_ops(ep)->shutdown(ep);
	return 0;
}

/* Names ------------------------------------------------------------------------------------ */

static int ep_setname(fid_t fid, void *address, size_t bytes)
{
	struct prov_ep *ep = prov_ep_of(fid);

	if (ep->state != EP_IDLE || ep->request)
		return -FI_EOPBADSTATE;
	return prov_address_take(address, bytes, &ep->local);
}

static int ep_getname(fid_t fid, void *address, size_t *bytes)
{
	const struct prov_ep *ep = prov_ep_of(fid);

	return ep->local.ss_family ? prov_address_give(&ep->local, address, bytes)
				   : -FI_EADDRNOTAVAIL;
}

static int ep_getpeer(struct fid_ep *fid, void *address, size_t *bytes)
{
	const struct prov_ep *ep = prov_ep_of(&fid->fid);

	return ep->state < EP_CONNECTED ? -FI_ENOTCONN
					: prov_address_give(&ep->peer, address, bytes);
}

struct fi_ops_cm prov_ep_cm_ops = {
	.size = sizeof(struct fi_ops_cm),
	.setname = ep_setname,
	.getname = ep_getname,
	.getpeer = ep_getpeer,
	.connect = ep_connect,
	.listen = PROV_REFUSED,
	.accept = ep_accept,
	.reject = PROV_REFUSED,
	.shutdown = ep_shutdown,
};
