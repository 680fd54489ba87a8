/* SPDX-License-Identifier: BSD-3-Clause */
/* A provider's entry points for libfabric, and its maximum attributes (attr.c). A process may
 * contain two copies: one is linked in, called directly and never registered; the other is the
 * module that libfabric loads. They share nothing. A provider's provider.c includes this
 * after defining
 *
 *   PROVIDER, PROVIDER_GETINFO, PROVIDER_FABRIC    names of the definitions below
 *   PROVIDER_KIND                                  of its struct prov
 *   PROVIDER_NAME, PROVIDER_VERSION                as applications see them
 *   PROVIDER_PROTOCOL, PROVIDER_PROTOCOL_VERSION   wire protocol between two of them
 *   PROVIDER_CAPS                                  of both directions
 *   PROVIDER_TX_CAPS, PROVIDER_RX_CAPS             of one direction
 *   PROVIDER_COMM_CAPS                             FI_LOCAL_COMM, FI_REMOTE_COMM
 *   PROVIDER_ORDER                                 of messages
 *   PROVIDER_OP_FLAGS                              of sends, in addition to the common ones
 *   PROVIDER_INJECT_MAX, PROVIDER_MESSAGE_MAX      bytes
 *   PROVIDER_OBJECTS                               of each sort: a supported count, no limit
 *
 * Its struct prov, which follows, has provider_most. */
#ifndef PROV_PROVIDER_H
#define PROV_PROVIDER_H

/* Maximum attributes ------------------------------------------------------------------------- */

#define HAS_RMA ((PROVIDER_CAPS & FI_RMA) != 0)

static struct fi_tx_attr tx_most = {
	.caps = PROVIDER_CAPS | PROVIDER_TX_CAPS,
	.op_flags = PROV_TX_FLAGS | PROVIDER_OP_FLAGS,
	.msg_order = PROVIDER_ORDER,
	.comp_order = COMPAT_ORDER_NONE,
	.inject_size = PROVIDER_INJECT_MAX,
	.size = PROV_EP_SIZE_MAX,
	.iov_limit = PROV_IOV_MAX,
	.rma_iov_limit = HAS_RMA,
};

static struct fi_rx_attr rx_most = {
	.caps = PROVIDER_CAPS | PROVIDER_RX_CAPS,
	.op_flags = PROV_RX_FLAGS,
	.msg_order = PROVIDER_ORDER,
	.comp_order = COMPAT_ORDER_STRICT,
	.size = PROV_EP_SIZE_MAX,
	.iov_limit = PROV_IOV_MAX,
};

static struct fi_ep_attr ep_most = {
	.type = FI_EP_MSG,
	.protocol = COMPAT_PROV_SPECIFIC | PROVIDER_PROTOCOL,
	.protocol_version = PROVIDER_PROTOCOL_VERSION,
	.max_msg_size = PROVIDER_MESSAGE_MAX,
	.max_order_waw_size = HAS_RMA ? PROVIDER_MESSAGE_MAX : 0,
	.tx_ctx_cnt = 1,
	.rx_ctx_cnt = 1,
};

static struct fi_domain_attr domain_most = {
	.name = (char *)PROVIDER_NAME,
	.threading = FI_THREAD_DOMAIN,
	.control_progress = FI_PROGRESS_MANUAL,
	.data_progress = FI_PROGRESS_MANUAL,
	.resource_mgmt = FI_RM_ENABLED,
	.mr_key_size = sizeof(uint64_t),
	.cq_data_size = sizeof(uint64_t),
	.cq_cnt = PROVIDER_OBJECTS,
	.ep_cnt = PROVIDER_OBJECTS,
	.tx_ctx_cnt = PROVIDER_OBJECTS,
	.rx_ctx_cnt = PROVIDER_OBJECTS,
	.max_ep_tx_ctx = 1,
	.max_ep_rx_ctx = 1,
	.mr_iov_limit = HAS_RMA ? 1 : PROV_IOV_MAX,
	.caps = PROVIDER_COMM_CAPS,
	.max_err_data = PROV_CM_DATA_MAX,
	.mr_cnt = 65536,
};

static struct fi_fabric_attr fabric_most = {
	.name = (char *)PROVIDER_NAME,
	.prov_version = PROVIDER_VERSION,
};

static const struct fi_info provider_most = {
	.caps = PROVIDER_CAPS | PROVIDER_TX_CAPS | PROVIDER_RX_CAPS | PROVIDER_COMM_CAPS,
	.addr_format = FI_SOCKADDR,
	.tx_attr = &tx_most,
	.rx_attr = &rx_most,
	.ep_attr = &ep_most,
	.domain_attr = &domain_most,
	.fabric_attr = &fabric_most,
};

/* Calls -------------------------------------------------------------------------------------- */

int PROVIDER_GETINFO(uint32_t version, const char *node, const char *service, uint64_t flags,
		     const struct fi_info *hints, struct fi_info **info_out)
{
	return prov_getinfo(&PROVIDER_KIND, version, node, service, flags, hints, info_out);
}

int PROVIDER_FABRIC(struct fi_fabric_attr *attr, struct fid_fabric **fabric_out, void *context)
{
	return prov_fabric_open(&PROVIDER_KIND, attr, fabric_out, context);
}

/* Without a cleanup: all state belongs to objects, which the application closes. */
struct fi_provider PROVIDER = {
	.version = PROVIDER_VERSION,
	.fi_version = FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION),
	.name = PROVIDER_NAME,
	.getinfo = PROVIDER_GETINFO,
	.fabric = PROVIDER_FABRIC,
};

/* Entry point of libplx_shm-fi.so or libplx_tcp-fi.so, which libfabric loads from FI_PROVIDER_PATH.
 * libfabric holds its lock here. meson.build defines PROVIDER_IN_MODULE for these modules only. */
#ifdef PROVIDER_IN_MODULE
PLX_EXPORT struct fi_provider *fi_prov_ini(void);

struct fi_provider *fi_prov_ini(void)
{
	prov_begin(&PROVIDER_KIND, true);
	return &PROVIDER;
}
#endif

#endif
