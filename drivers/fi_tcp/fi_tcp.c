/* SPDX-License-Identifier: BSD-3-Clause */
/* libfabric's own providers for TCP, for comparison on trusted networks only: `tcp`, and `net`, its
 * rewrite, which replaced it under the name `tcp` in libfabric 1.18. 32 bytes from anybody stall
 * them, and one header ends the process. Both speak the same wire format, which is not that of
 * plx_tcp. Figures and facts: doc/design/links.md. */
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
		return strcmp(asked, "fi:tcp") == 0 ? "tcp" : NULL; /* the driver's own name */
	if (strcmp(asked, "tcp") == 0)
		return "tcp";
	return strcmp(asked, "net") == 0 && FI_VERSION_LT(version, FI_VERSION(1, 18)) ? "net"
										      : NULL;
}

/* fi_trywait of net 1.17 never clears what it should, so that an epoll on its CQ returns at once
 * for ever after the first completion. A wait set over CQ and EQ does it right, and polls as fast.
 */
static bool needs_wait_set(const char *provider)
{
	return strcmp(provider, "net") == 0;
}

/* Also a CQ that is only polled has a descriptor: with more than a few links tcp polls such a one
 * in a fifth of the time that FI_WAIT_NONE takes (it would be a poll(2) over every socket). */
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

	if (!needs_wait_set(info->fabric_attr->prov_name))
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

/* Passive endpoints -------------------------------------------------------------------------- */

/* Descriptors that are looked at for one accepted connection: less than a millisecond at the very
 * worst. */
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

/* Both go on to use one, without counting that, when they have accepted a connection and not heard
 * all of its request. A peer that takes longer than it is kept for that is the limit of it. */
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
	.tx_size = 256, /* both are the providers' own defaults; only the second is enforced */
	.rx_size = 256,
	.cq_entries = 1024, /* they spill into a list beyond it, and never overrun */
	.signal_every =
		32, /* with the local window, at most 1 024 frames pile up for a silent peer */
	.eq_every_turns = 256,
	.eq_pending_turns = 16, /* an accept's answer leaves when the EQ is read */
};
