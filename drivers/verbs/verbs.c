/* SPDX-License-Identifier: BSD-3-Clause */
/* RDMA through libfabric's verbs provider: InfiniBand, RoCE and iWARP, with rdma_cm connections.
 * Facts and figures: doc/design/verbs.md. */
#include "plx_fabric_driver.h"
#include "plx_topo.h"

#include <infiniband/verbs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <rdma/fi_errno.h>
#include <sockaddr.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define CQ_ENTRIES       4096 /* 256 KiB; shorter if the device allows less */
#define CQ_ENTRIES_LEAST 1024

/* siw's library mistakes a mapping at page 144 of its device for a failure (rdma-core 44, kernel
 * 6.1: SIW_INVAL_UOBJ_KEY). A first queue of this length covers that page. */
#define CQ_ENTRIES_IWARP 32768

extern const struct plx_fabric_driver plx_driver_verbs;

/* Kernels before 5.12 do not copy registered memory for a forked child. The parent's pages would
 * move at its next write, away from the registration. Call before anything is opened; an existing
 * setting stays. */
static void be_fork_safe(void)
{
	if (ibv_is_fork_initialized() != IBV_FORK_DISABLED)
		return;
	setenv("RDMAV_HUGEPAGES_SAFE", "1", 0);
	ibv_fork_init();
}

/* Addresses ------------------------------------------------------------------------------------ */

/* If no device has the requested address, the provider listens elsewhere. */
static bool is_at(const struct fi_info *info, const char *node)
{
	struct in6_addr wanted = address_host(info->src_addr);
	struct addrinfo *addresses;
	bool found = false;

	if (!info->src_addr || getaddrinfo(node, NULL, NULL, &addresses) != 0)
		return false;
	for (struct addrinfo *each = addresses; each && !found; each = each->ai_next) {
		struct in6_addr host = address_host(each->ai_addr);

		found = IN6_ARE_ADDR_EQUAL(&host, &wanted);
	}
	freeaddrinfo(addresses);
	return found;
}

/* A listener at every address takes connections of all devices, so its info must not require
 * anything specific to one device. For some ports libfabric's info does; version 1.17 then names a
 * fabric that it cannot find when a connection arrives. Ownership: *info is replaced. Return: 0;
 * -FI_ENOMEM. */
static int make_deviceless(struct fi_info **info, const struct fi_info *hints, uint32_t version)
{
	struct fi_info *free_one = fi_dupinfo(hints);

	if (!free_one)
		return -FI_ENOMEM;
	free_one->src_addr = (*info)->src_addr;
	free_one->src_addrlen = (*info)->src_addrlen;
	free_one->addr_format = (*info)->addr_format;
	(*info)->src_addr = NULL;
	fi_freeinfo(*info);
	*info = free_one;
	free_one->fabric_attr->api_version = version;
	free_one->domain_attr->name = strdup("verbs_any_domain"); /* libfabric's name for it */
	return free_one->domain_attr->name ? 0 : -FI_ENOMEM;
}

/* The provider finds a route to this host's loopback, but no device for it. */
static bool is_loopback(const struct fi_info *info)
{
	struct in6_addr host = address_host(info->dest_addr);

	return IN6_IS_ADDR_LOOPBACK(&host) ||
	       (IN6_IS_ADDR_V4MAPPED(&host) && host.s6_addr[12] == 127);
}

/* The provider binds the port to find the device and hides the error, which listening reports. */
static int getinfo_of_port_in_use(uint32_t version, const char *node, const char *service,
				  const struct fi_info *hints, struct fi_info **info_out)
{
	int rc = fi_getinfo(version, node, "0", FI_SOURCE, hints, info_out);
	struct sockaddr *address = rc ? NULL : (*info_out)->src_addr;

	if (address)
		address_set_port(address, (uint16_t)atoi(service));
	return rc;
}

static int verbs_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
			 const struct fi_info *hints, struct fi_info **info_out)
{
	struct fi_info *info;
	int rc;

	/* At its first call libfabric's verbs provider reads all of /proc/kallsyms, in 0.1 s. */
	if (plx_rdma_devices(NULL, NULL, 0) == 0)
		return -FI_ENODATA;
	if (!node) /* the initial query without an address */
		be_fork_safe();
	rc = fi_getinfo(version, node, service, flags, hints, &info);
	if (rc && node && strcmp(node, "::") == 0) /* as on a host without IPv6 */
		rc = fi_getinfo(version, node = "0.0.0.0", service, flags, hints, &info);
	if (rc && node && flags & FI_SOURCE)
		rc = getinfo_of_port_in_use(version, node, service, hints, &info);
	if (rc)
		return rc;
	if (node && (strcmp(node, "::") == 0 || strcmp(node, "0.0.0.0") == 0))
		rc = make_deviceless(&info, hints, version);
	else if (node && (flags & FI_SOURCE ? !is_at(info, node) : is_loopback(info)))
		rc = -FI_ENODATA;
	if (rc)
		fi_freeinfo(info);
	else
		*info_out = info;
	return rc;
}

/* A message without a receive ends the connection (RFC 5041: "no buffer available"); InfiniBand
 * would retry. The peer writes the data of a read, like any other write (RFC 5040, 3.1). */
static bool is_iwarp(const struct fi_info *info)
{
	return info->ep_attr->protocol == FI_PROTO_IWARP;
}

/* Linux's soft iWARP, once it has started an answer, keeps sending memory after its deregistration
 * (6.1). Other iWARP devices were not tested. */
static bool verbs_revokes_at_once(const struct fi_info *info)
{
	return !is_iwarp(info);
}

static const char *verbs_device(const struct fi_info *info)
{
	return info->fabric_attr->name ? info->domain_attr->name : NULL;
}

/* The device limits the length of a queue, and libfabric does not report the limit. Its descriptor
 * costs nothing while polling. */
static int verbs_open_queues(struct plx_fabric_fids *fids, const struct fi_info *info)
{
	if (is_iwarp(info))
		fids->cq_entries = CQ_ENTRIES_IWARP;
	for (;;) {
		int rc = plx_fabric_open_queues(fids, info);

		if (rc == 0 || fids->cq || fids->cq_entries <= CQ_ENTRIES_LEAST)
			return rc;
		fids->cq_entries /= 2;
	}
}

/* text NULL: that of the library. */
static const struct {
	int status;
	enum plx_link_reason reason;
	const char *text;
} failures[] = {
	{IBV_WC_RETRY_EXC_ERR, PLX_LINK_PEER_DOWN,
	 "the peer, or the way to it, is gone: it acknowledged nothing, however often it was sent"},
	{IBV_WC_RNR_RETRY_EXC_ERR, PLX_LINK_PEER_DOWN,
	 "the peer had no receive for what was sent, however often it was"},
	{IBV_WC_REM_OP_ERR, PLX_LINK_PEER_DOWN, "the peer's device failed"},
	{IBV_WC_REM_ABORT_ERR, PLX_LINK_PEER_DOWN, "the peer's device failed"},
	{IBV_WC_LOC_LEN_ERR, PLX_LINK_PROTOCOL, "it sent a frame longer than a receive buffer"},
	{IBV_WC_REM_INV_REQ_ERR, PLX_LINK_PROTOCOL, "it has shorter receive buffers than it said"},
	{IBV_WC_REM_ACCESS_ERR, PLX_LINK_PROTOCOL, "it does not let its memory be reached there"},
	{IBV_WC_LOC_PROT_ERR, PLX_LINK_LOCAL, NULL},
	{IBV_WC_LOC_QP_OP_ERR, PLX_LINK_LOCAL, NULL},
	{IBV_WC_LOC_ACCESS_ERR, PLX_LINK_LOCAL, NULL},
	{IBV_WC_FATAL_ERR, PLX_LINK_LOCAL, NULL},
	{IBV_WC_GENERAL_ERR, PLX_LINK_LOCAL, NULL},
};

/* The first error completion reports why a connection ended; flushed ones report nothing. */
static const char *verbs_failure(const struct fid_ep *ep, int status,
				 enum plx_link_reason *reason_out)
{
	for (size_t i = 0; i < PLX_ARRAY_LEN(failures); i++) {
		if (failures[i].status != status)
			continue;
		*reason_out = failures[i].reason;
		return failures[i].text ? failures[i].text
					: ibv_wc_status_str((enum ibv_wc_status)status);
	}
	*reason_out = PLX_LINK_LOCAL;
	return NULL;
}

const struct plx_fabric_driver plx_driver_verbs = {
	.name = "verbs",
	.summary =
		"RDMA networks: InfiniBand, RoCE, iWARP (libfabric's verbs, connected by rdma_cm)",
	.provider = "verbs",
	.rdma = true,
	.getinfo = verbs_getinfo,
	.device = verbs_device,
	.is_iwarp = is_iwarp,
	.open_queues = verbs_open_queues,
	.failure = verbs_failure,
	.direct = true,
	.revokes_at_once = verbs_revokes_at_once,
	.unreachable =
		"is the address that of an RDMA device's network interface, or in its network",
	.tx_size = 64,
	.direct_tx_size = 256, /* iWARP: the frame after a put needs room where the put had it */
	.rx_size = 202,        /* the most that a link posts; each link requests what it needs */
	.cq_entries = CQ_ENTRIES,
	.cq_overruns = true,
	.signal_every = 16, /* a failed inject is not reported, and ends the connection */
	.needs_mr = true,
};
