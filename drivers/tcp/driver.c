/* SPDX-License-Identifier: BSD-3-Clause */
/* TCP sockets on any network: the provider plx_tcp, part of Pollux; see doc/design/tcp.md. */
#include "plx_fabric_driver.h"
#include "tcp.h"

#define TX_SIZE 64 /* of one link, which has at most 36 sends in flight */

extern const struct plx_fabric_driver plx_driver_tcp;

/* Peers count from 0, so a grant does not reveal addresses of this process. */
static void tcp_hints(struct fi_info *hints)
{
	hints->domain_attr->mr_mode &= ~FI_MR_VIRT_ADDR;
}

static int tcp_open_queues(struct plx_fabric_fids *fids, const struct fi_info *info)
{
	((struct tcp_domain *)fids->domain)->gathers = true;
	return plx_fabric_open_queues(fids, info);
}

/* Reads the environment first, so that it cannot override this later. */
static int tcp_configure(const char *option, const char *text, bool check)
{
	static struct tcp_params initial;
	static bool has_initial;

	if (!check) {
		prov_begin(&tcp_kind, false);
		if (!has_initial)
			initial = tcp_params;
		has_initial = true;
		tcp_params = initial;
	}
	return text ? plx_parse_settings(option, text, tcp_settings + TCP_SETTINGS_OWN, check) : 0;
}

static const char *tcp_failure(const struct fid_ep *fid, int prov_errno,
			       enum plx_link_reason *reason_out)
{
	const struct tcp_ep *ep = (const struct tcp_ep *)fid;

	*reason_out = ep->breach == TCP_BREACH_NONE      ? PLX_LINK_REFUSED
		    : ep->breach == TCP_BREACH_WITHDRAWN ? PLX_LINK_PEER_DOWN
							 : PLX_LINK_PROTOCOL;
	return ep->why;
}

static void tcp_keep_alive(struct fid_ep *fid, uint64_t unanswered_ns)
{
	tcp_set_keepalive(((struct tcp_ep *)fid)->base.source.fd,
			  (uint32_t)(unanswered_ns / PLX_NS_PER_MS));
}

static void tcp_flush(struct plx_fabric_fids *fids)
{
	poll_sends((struct tcp_cq *)fids->cq);
}

static void tcp_name_writes(struct fid_ep *fid, void *context)
{
	((struct tcp_ep *)fid)->write_context = context;
}

static bool tcp_revokes_at_once(const struct fi_info *info)
{
	return true;
}

const struct plx_fabric_driver plx_driver_tcp = {
	.name = "tcp",
	.summary = "TCP sockets, any network (plx_tcp, Pollux' own provider)",
	.provider = TCP_NAME,
	.hints = tcp_hints,
	.takes_ipv4 = true,
	.getinfo = tcp_getinfo,
	.fabric = tcp_fabric_open,
	.open_queues = tcp_open_queues,
	.flush = tcp_flush,
	.configure = tcp_configure,
	.admit = prov_pep_admit,
	.listen_failure = prov_pep_why,
	.long_private_data = true,
	.ticket = prov_request_ticket,
	.reject = prov_request_reject,
	.failure = tcp_failure,
	.keep_alive = tcp_keep_alive,
	.direct = true,
	.name_writes = tcp_name_writes,
	.revokes_at_once = tcp_revokes_at_once,
	.claim = tcp_send_claim,
	.commit = tcp_send_commit,
	.send_copy = tcp_send_copy,
	.tx_size = TX_SIZE,
	.rx_size = PROV_EP_SIZE,
	.cq_entries = PROV_CQ_SIZE,
	.signal_every = 0, /* a full endpoint refuses */
};
