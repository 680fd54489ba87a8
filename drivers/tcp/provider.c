/* SPDX-License-Identifier: BSD-3-Clause */
/* The provider: its parameters and its libfabric attributes. */
#include "tcp.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

struct tcp_params tcp_params = {
	.connect_ms = 10000,
	.handshake_ms = 5000,
	.handshakes_max = 256,
};

/* Parameters ------------------------------------------------------------------------------- */

const struct plx_setting tcp_settings[] = {
	{"handshakes_max", &tcp_params.handshakes_max, 1, 65536,
	 "Connections of one listener that have not sent it (default: 256)"},
	{"send_bytes", &tcp_params.send_bytes, 4096, 1u << 30,
	 "Bytes of the kernel's send buffer, SO_SNDBUF (default: the kernel chooses)"},
	{"receive_bytes", &tcp_params.receive_bytes, 4096, 1u << 30,
	 "Bytes of the kernel's receive buffer, SO_RCVBUF (default: the kernel chooses)"},
	{"user_timeout_ms", &tcp_params.user_timeout_ms, 1, 86400000,
	 "Milliseconds that what was sent may stay unacknowledged, TCP_USER_TIMEOUT (default: the "
	 "kernel's, some 15 minutes)"},
	{"busy_poll_us", &tcp_params.busy_poll_us, 1, 1000000,
	 "Microseconds that the kernel polls the device for a read, SO_BUSY_POLL (default: none)"},
	{"connect_ms", &tcp_params.connect_ms, 1, 3600000,
	 "Milliseconds to connect and to be answered (default: 10000)"},
	{"handshake_ms", &tcp_params.handshake_ms, 1, 3600000,
	 "Milliseconds that a peer may take to send its first message (default: 5000)"},
	{"dscp", &tcp_params.dscp, 0, 63,
	 "Code point of DiffServ in IP headers, unless fi_tx_attr.tclass has one (default: 0)"},
	{NULL, NULL, 0, 0, NULL},
};

static void read_params(bool loading)
{
	for (const struct plx_setting *param = tcp_settings; param->key; param++) {
		const char *text = prov_param(&tcp_prov, loading, param->key, param->help);
		char name[PROV_PARAM_NAME_MAX];
		uint64_t value;

		if (!text)
			continue;
		if (plx_parse_uint(prov_param_name(&tcp_prov, param->key, name), text, param->least,
				   param->most, &value) == 0)
			*param->value = (uint32_t)value;
		else
			tcp_log(FI_LOG_WARN, "%s; the default is used", plx_error());
	}
}

/* Provider --------------------------------------------------------------------------------- */

#define PROVIDER                  tcp_prov
#define PROVIDER_GETINFO          tcp_getinfo
#define PROVIDER_FABRIC           tcp_fabric_open
#define PROVIDER_KIND             tcp_kind
#define PROVIDER_NAME             TCP_NAME
#define PROVIDER_VERSION          FI_VERSION(0, 1)
#define PROVIDER_PROTOCOL         UINT32_C(0x706374) /* "pct" */
#define PROVIDER_PROTOCOL_VERSION WIRE_VERSION
#define PROVIDER_CAPS             (FI_MSG | FI_RMA)
#define PROVIDER_TX_CAPS          (FI_SEND | FI_READ | FI_WRITE)
#define PROVIDER_RX_CAPS          (FI_RECV | FI_REMOTE_READ | FI_REMOTE_WRITE)
#define PROVIDER_COMM_CAPS        (FI_LOCAL_COMM | FI_REMOTE_COMM)
/* Reads are not ordered before later sends. */
#define PROVIDER_ORDER (FI_ORDER_SAS | FI_ORDER_SAW | FI_ORDER_WAS | FI_ORDER_WAW)
/* A send completes when the kernel has all of it, which is both of the common levels. */
#define PROVIDER_OP_FLAGS    TCP_OP_FLAGS
#define PROVIDER_INJECT_MAX  TCP_INJECT_MAX
#define PROVIDER_MESSAGE_MAX WIRE_LENGTH_MAX
#define PROVIDER_OBJECTS     16384
#include "../prov/provider.h"

const struct prov tcp_kind = {
	.libfabric = &tcp_prov,
	.most = &provider_most,
	.read_params = read_params,
	.has_begun = &(bool){false},
	.domain_ops = &tcp_domain_ops,
	.cq_ops = &tcp_cq_ops,
	.ep_ops = &tcp_ep_ops,
	.pep_ops = &tcp_pep_ops,
};
