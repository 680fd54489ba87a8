/* SPDX-License-Identifier: BSD-3-Clause */
/* Passive endpoints and incoming connections. */
#ifndef TCP_PEP_H
#define TCP_PEP_H

#include "../../prov/prov.h"
#include "../tcp_wire.h"

#define TCP_BACKLOG 4096 /* pending in the kernel; and waiting for fi_accept or fi_reject */

struct tcp_origin;

struct tcp_request {
	struct prov_request base;
	struct tcp_origin *origin; /* NULL: it was reported, or there is no limit */
	TAILQ_ENTRY(tcp_request) origin_link;
	struct wire_hello hello;
};

/* Why connections were refused. */
enum tcp_refusal {
	TCP_REFUSED_SILENT,   /* no HELLO in time */
	TCP_REFUSED_EVICTED,  /* too many had not sent a HELLO */
	TCP_REFUSED_STRANGER, /* it speaks another protocol */
	TCP_REFUSED_VERSION,
	TCP_REFUSED_GONE, /* it closed before its HELLO was complete */
	TCP_REFUSED_COUNT,
};

/* peer: its address. why: "it speaks HTTP". evicted: TCP_REFUSED_EVICTED. */
typedef void (*tcp_refused_fn)(const struct sockaddr *peer, const char *why, bool evicted,
			       void *arg);

struct tcp_pep {
	struct prov_pep base;
	uint32_t handshakes_max; /* peers that have not sent their HELLO; may be PLX_NO_LIMIT */
	LIST_HEAD(tcp_origins, tcp_origin) origins; /* the same, by remote address */
	bool left_bbr;                              /* congestion.c */
	uint64_t refused[TCP_REFUSED_COUNT];
	struct plx_log_limit log_limit;
	/* Called for a refusal instead of logging it; NULL: log. */
	tcp_refused_fn on_refused;
	void *refused_arg;
};

/* congestion.c ----------------------------------------------------------------------------- */

/* Call before the socket connects or listens. Return: whether it had BBR; if so, call
 * congestion_return_to_bbr for it, or for each socket that it accepts. */
bool congestion_leave_bbr(int fd);
/* Does nothing if the peer is on this host. */
void congestion_return_to_bbr(int fd, const struct sockaddr_storage *peer);

#endif
