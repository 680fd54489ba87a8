/* SPDX-License-Identifier: BSD-3-Clause */
/* libfabric's own TCP providers, for comparison on trusted networks only: `tcp`, and `net`, the
 * rewrite that replaced it under the name `tcp` in libfabric 1.18. Any client can stall them with
 * 32 bytes and end the process with one header. Both speak the same wire format, which differs from
 * that of plx_tcp. Figures and facts: doc/design/links.md. */
#include "../compat.h"
#include "plx_fabric_driver.h"
#include "sockets.h"

#include <rdma/fi_errno.h>
#include <sockaddr.h>
#include <string.h>

extern const struct plx_fabric_driver plx_driver_fi_tcp;

static const char *fi_tcp_provider(const char *asked, bool exact, uint32_t version)
{
	if (!exact)
		return strcmp(asked, "fi:tcp") == 0 ? "tcp" : NULL; /* the driver itself */
	if (strcmp(asked, "tcp") == 0)
		return "tcp";
	return strcmp(asked, "net") == 0 && FI_VERSION_LT(version, FI_VERSION(1, 18)) ? "net"
										      : NULL;
}

/* CQs that are only polled have a descriptor too. With more than a few links, tcp polls such a CQ
 * in a fifth of the time that it needs with FI_WAIT_NONE, which polls every socket. */
static int fi_tcp_open_queues(struct plx_fabric_fids *fids, const struct fi_info *info)
{
	struct fi_wait_attr wait_attr = {.wait_obj = FI_WAIT_FD};
	struct fi_cq_attr cq_attr = {
		.size = fids->cq_entries,
		.format = fids->cq_format,
		.wait_obj = FI_WAIT_SET,
	};
	struct fi_eq_attr eq_attr = {.wait_obj = FI_WAIT_SET};
	int rc;

	/* fi_trywait of net 1.17 never clears its descriptor: after the first completion an epoll
	 * on its CQ always returns at once. A wait set over CQ and EQ works, and polls as fast. */
	if (strcmp(info->fabric_attr->prov_name, "net") != 0)
		return plx_fabric_open_queues(fids, info);
	rc = compat_wait_open(fids->fabric, &wait_attr, &fids->wait);
	if (rc)
		return rc;
	cq_attr.wait_set = eq_attr.wait_set = fids->wait;
	rc = fi_cq_open(fids->domain, &cq_attr, &fids->cq, NULL);
	rc = rc ? rc : fi_eq_open(fids->fabric, &eq_attr, &fids->eq, NULL);
	return rc ? rc : fi_control(&fids->wait->fid, FI_GETWAIT, &fids->wait_fd);
}

static int fi_tcp_arm(struct plx_fabric_fids *fids)
{
	if (fids->wait)
		return compat_wait(fids->wait, 0) == -FI_ETIMEDOUT ? 0 : -FI_EAGAIN;
	return plx_fabric_arm_queues(fids);
}

/* Descriptors checked for one accepted connection: less than a millisecond in the worst case. */
#define ACCEPT_LOOKS_MAX 4096

static void fi_tcp_listens(struct fid_pep *pep)
{
	struct sockaddr_storage name;
	size_t length = sizeof(name);

	if (fi_getname(&pep->fid, &name, &length) == 0)
		sockets_close_on_exec_listener((struct sockaddr *)&name, length);
}

static int fi_tcp_requested(struct fid_pep *pep, const struct fi_info *request)
{
	struct sockaddr_storage name;
	size_t length = sizeof(name);

	if (fi_getname(&pep->fid, &name, &length) != 0)
		return -1;
	return sockets_close_on_exec_accepted(address_port((struct sockaddr *)&name),
					      request->dest_addr, request->dest_addrlen,
					      ACCEPT_LOOKS_MAX);
}

/* Both providers keep using a closed passive endpoint, without counting the reference, while they
 * wait for the rest of the request on an accepted connection. A peer that takes longer than the
 * grace period defeats this. */
static bool fi_tcp_outlives_close(struct fid_pep *pep)
{
	struct sockaddr_storage name;
	size_t length = sizeof(name);

	return fi_getname(&pep->fid, &name, &length) == 0 &&
	       sockets_give_back_port((struct sockaddr *)&name, length);
}

const struct plx_fabric_driver plx_driver_fi_tcp = {
	.name = "fi:tcp",
	.summary = "TCP by libfabric's own provider, on trusted networks only, for comparison",
	.provider = fi_tcp_provider,
	.open_queues = fi_tcp_open_queues,
	.arm = fi_tcp_arm,
	.listens = fi_tcp_listens,
	.requested = fi_tcp_requested,
	.closing = sockets_forget,
	.outlives_close = fi_tcp_outlives_close,
	.direct = true,
	.tx_size = 256, /* both are the providers' defaults; they enforce only the second */
	.rx_size = 256,
	.cq_entries = 1024, /* beyond it they spill into a list and never overrun */
	.signal_every = 32, /* with the local window, at most 1024 frames queue for a silent peer */
	.eq_every_turns = 256,
	.eq_pending_turns = 16, /* reading the EQ sends the answer of an accept */
};
