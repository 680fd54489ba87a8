/* SPDX-License-Identifier: BSD-3-Clause */
/* The provider's attributes: checking an application's hints against them, and narrowing the answer
 * to those hints (fi_getinfo.3). Both work on the provider's maximum, so they always agree. */
#include "prov.h"

#include <strings.h>

/* Capabilities of one direction do not affect the attributes of the other. */
#define TX_ONLY_CAPS (FI_SEND | FI_READ | FI_WRITE | FI_FENCE | FI_MULTICAST | FI_NAMED_RX_CTX)
#define RX_ONLY_CAPS                                                                              \
	(FI_RECV | FI_REMOTE_READ | FI_REMOTE_WRITE | FI_MULTI_RECV | FI_SOURCE | FI_SOURCE_ERR | \
	 FI_DIRECTED_RECV | FI_VARIABLE_MSG | FI_RMA_EVENT)

/* Checking hints ----------------------------------------------------------------------------- */

static bool fits(const struct prov *prov, const char *what, bool good)
{
	if (!good)
		prov_log(prov->libfabric, FI_LOG_INFO, "asked for %s that is not to be had", what);
	return good;
}

static bool bits_fit(const struct prov *prov, const char *what, uint64_t asked, uint64_t most)
{
	if ((asked & ~most) == 0)
		return true;
	prov_log(prov->libfabric, FI_LOG_INFO, "asked for %s 0x%llx of which there is 0x%llx", what,
		 (unsigned long long)asked, (unsigned long long)(asked & most));
	return false;
}

static bool size_fits(const struct prov *prov, const char *what, uint64_t asked, uint64_t most)
{
	if (asked <= most)
		return true;
	prov_log(prov->libfabric, FI_LOG_INFO, "asked for %s %llu where %llu is the most", what,
		 (unsigned long long)asked, (unsigned long long)most);
	return false;
}

/* Compare an attribute with this name in struct fi_<part>_attr. */
#define SIZE_FITS(part, name) \
	size_fits(prov, #part "_attr " #name, attr->name, prov->most->part##_attr->name)
#define BITS_FIT(part, name) \
	bits_fit(prov, #part "_attr " #name, attr->name, prov->most->part##_attr->name)

static bool ep_fits(const struct prov *prov, const struct fi_ep_attr *attr)
{
	return fits(prov, "an endpoint type",
		    attr->type == FI_EP_UNSPEC || attr->type == prov->most->ep_attr->type) &&
	       fits(prov, "a protocol",
		    attr->protocol == FI_PROTO_UNSPEC ||
			    attr->protocol == prov->most->ep_attr->protocol) &&
	       SIZE_FITS(ep, protocol_version) && SIZE_FITS(ep, max_msg_size) &&
	       SIZE_FITS(ep, tx_ctx_cnt) && SIZE_FITS(ep, rx_ctx_cnt) &&
	       SIZE_FITS(ep, auth_key_size);
}

static bool tx_fits(const struct prov *prov, const struct fi_tx_attr *attr, uint64_t caps)
{
	return bits_fit(prov, "tx_attr caps", attr->caps & ~RX_ONLY_CAPS,
			caps & prov->most->tx_attr->caps) &&
	       BITS_FIT(tx, op_flags) && BITS_FIT(tx, msg_order) && BITS_FIT(tx, comp_order) &&
	       SIZE_FITS(tx, inject_size) && SIZE_FITS(tx, size) && SIZE_FITS(tx, iov_limit) &&
	       SIZE_FITS(tx, rma_iov_limit);
}

/* total_buffered_recv is only a hint. */
static bool rx_fits(const struct prov *prov, const struct fi_rx_attr *attr, uint64_t caps)
{
	return bits_fit(prov, "rx_attr caps", attr->caps & ~TX_ONLY_CAPS,
			caps & prov->most->rx_attr->caps) &&
	       BITS_FIT(rx, op_flags) && BITS_FIT(rx, msg_order) && BITS_FIT(rx, comp_order) &&
	       SIZE_FITS(rx, size) && SIZE_FITS(rx, iov_limit);
}

/* Mode bits say what the application is ready to do; this provider needs none of them. The two
 * legacy values exclude all others. */
static bool mr_mode_fits(int mode)
{
	return mode == COMPAT_MR_BASIC || mode == COMPAT_MR_SCALABLE ||
	       (mode & (COMPAT_MR_BASIC | COMPAT_MR_SCALABLE)) == 0;
}

static bool progress_fits(enum fi_progress progress)
{
	return progress == FI_PROGRESS_UNSPEC || progress == FI_PROGRESS_MANUAL;
}

/* Object counts are not compared, because they are unlimited. */
bool prov_domain_attr_fits(const struct prov *prov, const struct fi_domain_attr *attr)
{
	return fits(prov, "a domain", !attr->domain || prov_is_domain(prov, attr->domain)) &&
	       fits(prov, "a domain's name",
		    !attr->name || strcmp(attr->name, prov->most->domain_attr->name) == 0) &&
	       fits(prov, "a threading model other than FI_THREAD_DOMAIN",
		    attr->threading == FI_THREAD_UNSPEC || attr->threading == FI_THREAD_DOMAIN) &&
	       fits(prov, "progress other than FI_PROGRESS_MANUAL",
		    progress_fits(attr->control_progress) && progress_fits(attr->data_progress)) &&
	       fits(prov, "a memory registration mode", mr_mode_fits(attr->mr_mode)) &&
	       SIZE_FITS(domain, mr_key_size) && SIZE_FITS(domain, cq_data_size) &&
	       SIZE_FITS(domain, max_ep_tx_ctx) && SIZE_FITS(domain, max_ep_rx_ctx) &&
	       SIZE_FITS(domain, max_ep_stx_ctx) && SIZE_FITS(domain, max_ep_srx_ctx) &&
	       SIZE_FITS(domain, cntr_cnt) && SIZE_FITS(domain, mr_iov_limit) &&
	       BITS_FIT(domain, caps) && SIZE_FITS(domain, auth_key_size) &&
	       SIZE_FITS(domain, max_err_data);
}

/* Names are separated by ';'. "^name" excludes one. This provider supports no layering. */
static bool provider_fits(const struct prov *prov, const char *names)
{
	while (*names) {
		size_t length = strcspn(names, ";");
		bool out = *names == '^';
		bool ours = length - out == strlen(prov->libfabric->name) &&
			    strncasecmp(names + out, prov->libfabric->name, length - out) == 0;

		if (ours == out)
			return false;
		names += length + (names[length] == ';');
	}
	return true;
}

static bool fabric_fits(const struct prov *prov, const struct fi_fabric_attr *attr)
{
	return fits(prov, "a fabric", !attr->fabric || prov_is_fabric(prov, attr->fabric)) &&
	       fits(prov, "a fabric's name",
		    !attr->name || strcmp(attr->name, prov->most->fabric_attr->name) == 0) &&
	       fits(prov, "a provider", !attr->prov_name || provider_fits(prov, attr->prov_name)) &&
	       SIZE_FITS(fabric, prov_version);
}

/* FI_MSG means both directions unless one is named. An empty request means all capabilities. */
static uint64_t granted_caps(const struct prov *prov, uint64_t asked)
{
	if (asked & FI_MSG && !(asked & (FI_SEND | FI_RECV)))
		asked |= FI_SEND | FI_RECV;
	return asked ? asked | (prov->most->caps & (FI_LOCAL_COMM | FI_REMOTE_COMM))
		     : prov->most->caps;
}

static bool format_fits(uint32_t format)
{
	return format == FI_FORMAT_UNSPEC || format == FI_SOCKADDR || format == FI_SOCKADDR_IN ||
	       format == FI_SOCKADDR_IN6;
}

bool prov_hints_fit(const struct prov *prov, const struct fi_info *hints)
{
	uint64_t caps = granted_caps(prov, hints->caps);

	return bits_fit(prov, "caps", hints->caps, prov->most->caps) &&
	       fits(prov, "an address format", format_fits(hints->addr_format)) &&
	       (!hints->fabric_attr || fabric_fits(prov, hints->fabric_attr)) &&
	       (!hints->domain_attr || prov_domain_attr_fits(prov, hints->domain_attr)) &&
	       (!hints->ep_attr || ep_fits(prov, hints->ep_attr)) &&
	       (!hints->tx_attr || tx_fits(prov, hints->tx_attr, caps)) &&
	       (!hints->rx_attr || rx_fits(prov, hints->rx_attr, caps));
}

/* Answering ---------------------------------------------------------------------------------- */

static void narrow_tx(struct fi_tx_attr *attr, const struct fi_tx_attr *hints, uint64_t caps)
{
	attr->caps &= hints && hints->caps ? hints->caps : caps;
	attr->op_flags = hints ? hints->op_flags : 0;
	attr->size = hints && hints->size ? hints->size : PROV_EP_SIZE;
	attr->tclass = hints ? hints->tclass : FI_TC_UNSPEC;
}

static void narrow_rx(struct fi_rx_attr *attr, const struct fi_rx_attr *hints, uint64_t caps)
{
	attr->caps &= hints && hints->caps ? hints->caps : caps;
	attr->op_flags = hints ? hints->op_flags : 0;
	attr->size = hints && hints->size ? hints->size : PROV_EP_SIZE;
}

static void narrow_domain(const struct prov *prov, struct fi_domain_attr *attr,
			  const struct fi_domain_attr *hints)
{
	attr->domain = hints->domain;
	attr->mr_mode = hints->mr_mode & (COMPAT_MR_BASIC | COMPAT_MR_SCALABLE);
	if (prov->most->caps & FI_RMA)
		attr->mr_mode |= hints->mr_mode & (FI_MR_VIRT_ADDR | FI_MR_PROV_KEY);
	attr->av_type = hints->av_type;
}

void prov_info_narrow(const struct prov *prov, struct fi_info *info, const struct fi_info *hints)
{
	info->caps = granted_caps(prov, hints ? hints->caps : 0);
	narrow_tx(info->tx_attr, hints ? hints->tx_attr : NULL, info->caps);
	narrow_rx(info->rx_attr, hints ? hints->rx_attr : NULL, info->caps);
	if (!hints)
		return;
	if (hints->domain_attr)
		narrow_domain(prov, info->domain_attr, hints->domain_attr);
	if (hints->fabric_attr)
		info->fabric_attr->fabric = hints->fabric_attr->fabric;
	if (hints->handle && hints->handle->fclass == FI_CLASS_PEP)
		info->handle = hints->handle;
}
