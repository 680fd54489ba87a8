/* SPDX-License-Identifier: BSD-3-Clause */
/* The provider as libfabric knows it, and its parameters. There may be two copies in a process: one
 * is linked in, called directly and never registered; the other is the module that libfabric loads
 * (module.c). They share nothing. */
#include "tcp.h"

#include <pthread.h>
#include <stdlib.h>

static pthread_once_t begun = PTHREAD_ONCE_INIT;

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

static void define_params(void)
{
	for (const struct plx_setting *param = tcp_settings; param->key; param++)
		fi_param_define(&tcp_prov, param->key, FI_PARAM_INT, "%s", param->help);
}

static void read_params(void)
{
	define_params();
	for (const struct plx_setting *param = tcp_settings; param->key; param++) {
		int value = 0;
		int rc = fi_param_get_int(&tcp_prov, param->key, &value);

		if (rc == -FI_ENODATA)
			continue;
		if (rc == 0 && value >= 0 && (uint32_t)value >= param->least &&
		    (uint32_t)value <= param->most)
			*param->value = (uint32_t)value;
		else
			tcp_log(FI_LOG_WARN,
				"FI_PLX_TCP_ parameter %s is refused; give a number from %u to %u",
				param->key, param->least, param->most);
	}
}

/* The first call of an application. */
static void start(void)
{
	prov_start_libfabric();
	read_params();
}

static void begin(void)
{
	pthread_once(&begun, start);
}

void tcp_begin_loading(void)
{
	pthread_once(&begun, read_params);
}

/* Provider --------------------------------------------------------------------------------- */

int tcp_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
		const struct fi_info *hints, struct fi_info **info_out)
{
	return prov_getinfo(&tcp_kind, version, node, service, flags, hints, info_out);
}

int tcp_fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **fabric_out, void *context)
{
	return prov_fabric_open(&tcp_kind, attr, fabric_out, context);
}

static int getinfo_for_libfabric(uint32_t version, const char *node, const char *service,
				 uint64_t flags, const struct fi_info *hints,
				 struct fi_info **info_out)
{
	return prov_getinfo_unnamed(&tcp_kind, version, node, service, flags, hints, info_out);
}

struct fi_provider tcp_prov = {
	.version = TCP_VERSION,
	.fi_version = FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION),
	.name = TCP_NAME,
	.getinfo = getinfo_for_libfabric,
	.fabric = tcp_fabric_open,
	.cleanup = prov_no_cleanup,
};

const struct prov tcp_kind = {
	.libfabric = &tcp_prov,
	.most = &tcp_info_most,
	.tx_size = TCP_TX_SIZE,
	.rx_size = TCP_RX_SIZE,
	.begin = begin,
	.domain_ops = &tcp_domain_ops,
	.cq_ops = &tcp_cq_ops,
	.ep_ops = &tcp_ep_ops,
	.pep_ops = &tcp_pep_ops,
};
