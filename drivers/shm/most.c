/* SPDX-License-Identifier: BSD-3-Clause */
/* What the provider has at most: see prov/attr.c. */
#include "shm.h"

#define PROTOCOL (COMPAT_PROV_SPECIFIC | UINT32_C(0x706c78)) /* "plx" */

#define TX_CAPS  (FI_MSG | FI_SEND)
#define RX_CAPS  (FI_MSG | FI_RECV)
#define TX_OP_FLAGS                                                              \
	(FI_COMPLETION | FI_INJECT | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | \
	 FI_DELIVERY_COMPLETE)

static struct fi_tx_attr tx_most = {
	.caps = TX_CAPS,
	.op_flags = TX_OP_FLAGS,
	.msg_order = FI_ORDER_SAS,
	.comp_order = COMPAT_ORDER_NONE,
	.inject_size = SHM_INJECT_MAX,
	.size = SHM_TX_SIZE_MAX,
	.iov_limit = PROV_IOV_MAX,
};

static struct fi_rx_attr rx_most = {
	.caps = RX_CAPS,
	.op_flags = FI_COMPLETION,
	.msg_order = FI_ORDER_SAS,
	.comp_order = COMPAT_ORDER_STRICT,
	.size = SHM_RX_SIZE_MAX,
	.iov_limit = PROV_IOV_MAX,
};

static struct fi_ep_attr ep_most = {
	.type = FI_EP_MSG,
	.protocol = PROTOCOL,
	.protocol_version = WIRE_VERSION,
	.max_msg_size = SHM_MESSAGE_MAX,
	.tx_ctx_cnt = 1,
	.rx_ctx_cnt = 1,
};

/* How many of each object: what works best; there may be more. */
static struct fi_domain_attr domain_most = {
	.name = (char *)SHM_NAME,
	.threading = FI_THREAD_DOMAIN,
	.control_progress = FI_PROGRESS_MANUAL,
	.data_progress = FI_PROGRESS_MANUAL,
	.resource_mgmt = FI_RM_ENABLED,
	.mr_key_size = sizeof(uint64_t),
	.cq_data_size = sizeof(uint64_t),
	.cq_cnt = BELL_BITS,
	.ep_cnt = BELL_BITS,
	.tx_ctx_cnt = BELL_BITS,
	.rx_ctx_cnt = BELL_BITS,
	.max_ep_tx_ctx = 1,
	.max_ep_rx_ctx = 1,
	.mr_iov_limit = PROV_IOV_MAX,
	.caps = FI_LOCAL_COMM,
	.max_err_data = PROV_CM_DATA_MAX,
	.mr_cnt = 65536,
};

static struct fi_fabric_attr fabric_most = {
	.name = (char *)SHM_NAME,
	.prov_name = (char *)SHM_NAME,
	.prov_version = SHM_VERSION,
};

const struct fi_info shm_info_most = {
	.caps = TX_CAPS | FI_RECV | FI_LOCAL_COMM,
	.addr_format = FI_SOCKADDR,
	.tx_attr = &tx_most,
	.rx_attr = &rx_most,
	.ep_attr = &ep_most,
	.domain_attr = &domain_most,
	.fabric_attr = &fabric_most,
};
