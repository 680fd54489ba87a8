/* SPDX-License-Identifier: BSD-3-Clause */
/* What the provider has, whether that is enough for an application's hints, and what of it is
 * answered (fi_getinfo.3). All is compared with shm_info_most, so that the two cannot differ. */
#include "shm.h"

#include <strings.h>

#define PROTOCOL (COMPAT_PROV_SPECIFIC | UINT32_C(0x706c78)) /* "plx" */

#define TX_CAPS  (FI_MSG | FI_SEND)
#define RX_CAPS  (FI_MSG | FI_RECV)
#define TX_OP_FLAGS                                                              \
	(FI_COMPLETION | FI_INJECT | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | \
	 FI_DELIVERY_COMPLETE)

/* Capabilities of one direction say nothing in the attributes of the other. */
#define TX_ONLY_CAPS (FI_SEND | FI_READ | FI_WRITE | FI_FENCE | FI_MULTICAST | FI_NAMED_RX_CTX)
#define RX_ONLY_CAPS                                                                              \
	(FI_RECV | FI_REMOTE_READ | FI_REMOTE_WRITE | FI_MULTI_RECV | FI_SOURCE | FI_SOURCE_ERR | \
	 FI_DIRECTED_RECV | FI_VARIABLE_MSG | FI_RMA_EVENT)

static struct fi_tx_attr tx_most = {
	.caps = TX_CAPS,
	.op_flags = TX_OP_FLAGS,
	.msg_order = FI_ORDER_SAS,
	.comp_order = COMPAT_ORDER_NONE,
	.inject_size = SHM_INJECT_MAX,
	.size = SHM_TX_SIZE_MAX,
	.iov_limit = SHM_IOV_MAX,
};

static struct fi_rx_attr rx_most = {
	.caps = RX_CAPS,
	.op_flags = FI_COMPLETION,
	.msg_order = FI_ORDER_SAS,
	.comp_order = COMPAT_ORDER_STRICT,
	.size = SHM_RX_SIZE_MAX,
	.iov_limit = SHM_IOV_MAX,
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
	.mr_iov_limit = SHM_IOV_MAX,
	.caps = FI_LOCAL_COMM,
	.max_err_data = SHM_CM_DATA_MAX,
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

/* Whether it is enough ----------------------------------------------------------------------- */

static bool fits(const char *what, bool good)
{
	if (!good)
		shm_log(FI_LOG_INFO, "asked for %s that is not to be had", what);
	return good;
}

static bool bits_fit(const char *what, uint64_t asked, uint64_t most)
{
	if ((asked & ~most) == 0)
		return true;
	shm_log(FI_LOG_INFO, "asked for %s 0x%llx of which there is 0x%llx", what,
		(unsigned long long)asked, (unsigned long long)(asked & most));
	return false;
}

static bool size_fits(const char *what, uint64_t asked, uint64_t most)
{
	if (asked <= most)
		return true;
	shm_log(FI_LOG_INFO, "asked for %s %llu where %llu is the most", what,
		(unsigned long long)asked, (unsigned long long)most);
	return false;
}

static bool ep_fits(const struct fi_ep_attr *attr)
{
	return fits("an endpoint type", attr->type == FI_EP_UNSPEC || attr->type == ep_most.type) &&
	       fits("a protocol",
		    attr->protocol == FI_PROTO_UNSPEC || attr->protocol == ep_most.protocol) &&
	       size_fits("protocol_version", attr->protocol_version, ep_most.protocol_version) &&
	       size_fits("max_msg_size", attr->max_msg_size, ep_most.max_msg_size) &&
	       size_fits("tx_ctx_cnt", attr->tx_ctx_cnt, ep_most.tx_ctx_cnt) &&
	       size_fits("rx_ctx_cnt", attr->rx_ctx_cnt, ep_most.rx_ctx_cnt) &&
	       size_fits("auth_key_size", attr->auth_key_size, ep_most.auth_key_size);
}

static bool tx_fits(const struct fi_tx_attr *attr, uint64_t caps)
{
	return bits_fit("tx_attr caps", attr->caps & ~RX_ONLY_CAPS, caps & tx_most.caps) &&
	       bits_fit("tx_attr op_flags", attr->op_flags, tx_most.op_flags) &&
	       bits_fit("tx_attr msg_order", attr->msg_order, tx_most.msg_order) &&
	       bits_fit("tx_attr comp_order", attr->comp_order, tx_most.comp_order) &&
	       size_fits("inject_size", attr->inject_size, tx_most.inject_size) &&
	       size_fits("tx_attr size", attr->size, tx_most.size) &&
	       size_fits("tx_attr iov_limit", attr->iov_limit, tx_most.iov_limit) &&
	       size_fits("rma_iov_limit", attr->rma_iov_limit, tx_most.rma_iov_limit);
}

/* total_buffered_recv is only an advice. */
static bool rx_fits(const struct fi_rx_attr *attr, uint64_t caps)
{
	return bits_fit("rx_attr caps", attr->caps & ~TX_ONLY_CAPS, caps & rx_most.caps) &&
	       bits_fit("rx_attr op_flags", attr->op_flags, rx_most.op_flags) &&
	       bits_fit("rx_attr msg_order", attr->msg_order, rx_most.msg_order) &&
	       bits_fit("rx_attr comp_order", attr->comp_order, rx_most.comp_order) &&
	       size_fits("rx_attr size", attr->size, rx_most.size) &&
	       size_fits("rx_attr iov_limit", attr->iov_limit, rx_most.iov_limit);
}

/* The bits are what the application is ready to do, and nothing is needed. The two values of old
 * stand alone. */
static bool mr_mode_fits(int mode)
{
	return mode == COMPAT_MR_BASIC || mode == COMPAT_MR_SCALABLE ||
	       (mode & (COMPAT_MR_BASIC | COMPAT_MR_SCALABLE)) == 0;
}

static bool progress_fits(enum fi_progress progress)
{
	return progress == FI_PROGRESS_UNSPEC || progress == FI_PROGRESS_MANUAL;
}

/* How many of each object may be opened is not compared: there is no limit to it. */
bool shm_domain_attr_fits(const struct fi_domain_attr *attr)
{
	return fits("a domain", !attr->domain || shm_is_domain(attr->domain)) &&
	       fits("a domain's name", !attr->name || strcmp(attr->name, domain_most.name) == 0) &&
	       fits("a threading model other than FI_THREAD_DOMAIN",
		    attr->threading == FI_THREAD_UNSPEC || attr->threading == FI_THREAD_DOMAIN) &&
	       fits("progress other than FI_PROGRESS_MANUAL",
		    progress_fits(attr->control_progress) && progress_fits(attr->data_progress)) &&
	       fits("a memory registration mode", mr_mode_fits(attr->mr_mode)) &&
	       size_fits("mr_key_size", attr->mr_key_size, domain_most.mr_key_size) &&
	       size_fits("cq_data_size", attr->cq_data_size, domain_most.cq_data_size) &&
	       size_fits("max_ep_tx_ctx", attr->max_ep_tx_ctx, domain_most.max_ep_tx_ctx) &&
	       size_fits("max_ep_rx_ctx", attr->max_ep_rx_ctx, domain_most.max_ep_rx_ctx) &&
	       size_fits("max_ep_stx_ctx", attr->max_ep_stx_ctx, domain_most.max_ep_stx_ctx) &&
	       size_fits("max_ep_srx_ctx", attr->max_ep_srx_ctx, domain_most.max_ep_srx_ctx) &&
	       size_fits("cntr_cnt", attr->cntr_cnt, domain_most.cntr_cnt) &&
	       size_fits("mr_iov_limit", attr->mr_iov_limit, domain_most.mr_iov_limit) &&
	       bits_fit("domain_attr caps", attr->caps, domain_most.caps) &&
	       size_fits("auth_key_size", attr->auth_key_size, domain_most.auth_key_size) &&
	       size_fits("max_err_data", attr->max_err_data, domain_most.max_err_data);
}

/* Names are separated by ';', and "^name" leaves one out. Nothing is layered over this provider. */
static bool provider_fits(const char *names)
{
	while (*names) {
		size_t length = strcspn(names, ";");
		bool out = *names == '^';
		bool ours = length - out == strlen(SHM_NAME) &&
			    strncasecmp(names + out, SHM_NAME, length - out) == 0;

		if (ours == out)
			return false;
		names += length + (names[length] == ';');
	}
	return true;
}

static bool fabric_fits(const struct fi_fabric_attr *attr)
{
	return fits("a fabric", !attr->fabric || shm_is_fabric(attr->fabric)) &&
	       fits("a fabric's name", !attr->name || strcmp(attr->name, fabric_most.name) == 0) &&
	       fits("a provider", !attr->prov_name || provider_fits(attr->prov_name)) &&
	       size_fits("prov_version", attr->prov_version, fabric_most.prov_version);
}

/* FI_MSG stands for both directions, unless one is named. Nothing asked: all that there is. */
static uint64_t granted_caps(uint64_t asked)
{
	if (asked & FI_MSG && !(asked & (FI_SEND | FI_RECV)))
		asked |= FI_SEND | FI_RECV;
	return asked ? asked | FI_LOCAL_COMM : shm_info_most.caps;
}

static bool format_fits(uint32_t format)
{
	return format == FI_FORMAT_UNSPEC || format == FI_SOCKADDR || format == FI_SOCKADDR_IN ||
	       format == FI_SOCKADDR_IN6;
}

/* Mode bits are what the application is ready to do: nothing is needed. */
bool shm_hints_fit(const struct fi_info *hints)
{
	uint64_t caps = granted_caps(hints->caps);

	return bits_fit("caps", hints->caps, shm_info_most.caps) &&
	       fits("an address format", format_fits(hints->addr_format)) &&
	       (!hints->fabric_attr || fabric_fits(hints->fabric_attr)) &&
	       (!hints->domain_attr || shm_domain_attr_fits(hints->domain_attr)) &&
	       (!hints->ep_attr || ep_fits(hints->ep_attr)) &&
	       (!hints->tx_attr || tx_fits(hints->tx_attr, caps)) &&
	       (!hints->rx_attr || rx_fits(hints->rx_attr, caps));
}

/* What is answered --------------------------------------------------------------------------- */

static void narrow_tx(struct fi_tx_attr *attr, const struct fi_tx_attr *hints, uint64_t caps)
{
	attr->caps = hints && hints->caps ? hints->caps & tx_most.caps : caps & tx_most.caps;
	attr->op_flags = hints ? hints->op_flags : 0;
	attr->size = hints && hints->size ? hints->size : SHM_TX_SIZE;
}

static void narrow_rx(struct fi_rx_attr *attr, const struct fi_rx_attr *hints, uint64_t caps)
{
	attr->caps = hints && hints->caps ? hints->caps & rx_most.caps : caps & rx_most.caps;
	attr->op_flags = hints ? hints->op_flags : 0;
	attr->size = hints && hints->size ? hints->size : SHM_RX_SIZE;
}

static void narrow_domain(struct fi_domain_attr *attr, const struct fi_domain_attr *hints)
{
	attr->domain = hints->domain;
	attr->mr_mode = hints->mr_mode & (COMPAT_MR_BASIC | COMPAT_MR_SCALABLE);
	attr->av_type = hints->av_type;
}

void shm_info_narrow(struct fi_info *info, const struct fi_info *hints)
{
	info->caps = granted_caps(hints ? hints->caps : 0);
	narrow_tx(info->tx_attr, hints ? hints->tx_attr : NULL, info->caps);
	narrow_rx(info->rx_attr, hints ? hints->rx_attr : NULL, info->caps);
	if (!hints)
		return;
	if (hints->domain_attr)
		narrow_domain(info->domain_attr, hints->domain_attr);
	if (hints->fabric_attr)
		info->fabric_attr->fabric = hints->fabric_attr->fabric;
	if (hints->handle && hints->handle->fclass == FI_CLASS_PEP)
		info->handle = hints->handle;
}
