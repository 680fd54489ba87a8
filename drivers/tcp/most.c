/* SPDX-License-Identifier: BSD-3-Clause */
/* What the provider has at most: see prov/attr.c. */
#include "tcp.h"

#define PROTOCOL (COMPAT_PROV_SPECIFIC | UINT32_C(0x706374)) /* "pct" */

#define BOTH     (FI_MSG | FI_RMA)
#define TX_ALONE (FI_SEND | FI_READ | FI_WRITE)
#define RX_ALONE (FI_RECV | FI_REMOTE_READ | FI_REMOTE_WRITE)
#define ORDER    (FI_ORDER_SAS | FI_ORDER_SAW | FI_ORDER_WAS | FI_ORDER_WAW)

/* Complete: the kernel has all of it, or this side a copy. What is read comes later than what is
 * sent after it. */
static struct fi_tx_attr tx_most = {
	.caps = BOTH | TX_ALONE,
	.op_flags = FI_COMPLETION | FI_INJECT | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE,
	.msg_order = ORDER,
	.comp_order = COMPAT_ORDER_NONE,
	.inject_size = TCP_INJECT_MAX,
	.size = TCP_TX_SIZE_MAX,
	.iov_limit = PROV_IOV_MAX,
	.rma_iov_limit = 1,
};

static struct fi_rx_attr rx_most = {
	.caps = BOTH | RX_ALONE,
	.op_flags = FI_COMPLETION,
	.msg_order = ORDER,
	.comp_order = COMPAT_ORDER_STRICT,
	.size = TCP_RX_SIZE_MAX,
	.iov_limit = PROV_IOV_MAX,
};

static struct fi_ep_attr ep_most = {
	.type = FI_EP_MSG,
	.protocol = PROTOCOL,
	.protocol_version = WIRE_VERSION,
	.max_msg_size = WIRE_LENGTH_MAX,
	.max_order_waw_size = WIRE_LENGTH_MAX,
	.tx_ctx_cnt = 1,
	.rx_ctx_cnt = 1,
};

/* Numbers of objects: libfabric wants some; there is no limit. */
static struct fi_domain_attr domain_most = {
	.name = (char *)TCP_NAME,
	.threading = FI_THREAD_DOMAIN,
	.control_progress = FI_PROGRESS_MANUAL,
	.data_progress = FI_PROGRESS_MANUAL,
	.resource_mgmt = FI_RM_ENABLED,
	.mr_key_size = sizeof(uint64_t),
	.cq_data_size = sizeof(uint64_t),
	.cq_cnt = 16384,
	.ep_cnt = 16384,
	.tx_ctx_cnt = 16384,
	.rx_ctx_cnt = 16384,
	.max_ep_tx_ctx = 1,
	.max_ep_rx_ctx = 1,
	.mr_iov_limit = 1,
	.caps = FI_LOCAL_COMM | FI_REMOTE_COMM,
	.max_err_data = PROV_CM_DATA_MAX,
	.mr_cnt = 65536,
};

static struct fi_fabric_attr fabric_most = {
	.name = (char *)TCP_NAME,
	.prov_name = (char *)TCP_NAME,
	.prov_version = TCP_VERSION,
};

const struct fi_info tcp_info_most = {
	.caps = BOTH | TX_ALONE | RX_ALONE | FI_LOCAL_COMM | FI_REMOTE_COMM,
	.addr_format = FI_SOCKADDR,
	.tx_attr = &tx_most,
	.rx_attr = &rx_most,
	.ep_attr = &ep_most,
	.domain_attr = &domain_most,
	.fabric_attr = &fabric_most,
};
