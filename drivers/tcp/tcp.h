/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of drivers/tcp share: the objects of the provider plx_tcp.
 *
 *   sys.h        system calls on sockets, which tests replace
 *   tcp_wire.h   what goes over a connection: wire.c
 *   block.h      memory for what waits to be sent, or to be taken
 *   tcp_cq.h     completion queues: cq.c; what one read of them does: poll.c        (hot path)
 *   tcp_ep.h     endpoints: connections: ep.c
 *     receive.c    from bytes of a socket to completions                           (hot path)
 *     send.c       from calls to bytes of a socket                                 (hot path)
 *     rma.c        one-sided reads and writes
 *   domain.c     what completion queues and endpoints belong to, and what peers may read or write
 *   cm/          how connections are made: tcp_pep.h, pep.c; connect.c, congestion.c, cm.c
 *   provider.c   what the provider has, how libfabric knows it, parameters
 *   driver.c     how lib/fabric uses it
 */
#ifndef TCP_H
#define TCP_H

#include "../prov/prov.h"
#include "block.h"
#include "cm/tcp_pep.h"
#include "sys.h"
#include "tcp_cq.h"
#include "tcp_ep.h"
#include "tcp_wire.h"

#define TCP_NAME "plx_tcp"

/* Parameters: from the environment (FI_PLX_TCP_...), or from lib/fabric. provider.c reads them
 * once. */
struct tcp_params {
	uint32_t send_bytes, receive_bytes; /* buffers of the kernel; 0: it chooses */
	uint32_t user_timeout_ms;           /* TCP_USER_TIMEOUT; 0: the kernel's */
	uint32_t busy_poll_us;              /* SO_BUSY_POLL; 0: none */
	uint32_t dscp;                      /* of endpoints whose tclass is none; 0: best effort */
	uint32_t connect_ms;                /* to connect, and to be answered */
	uint32_t handshake_ms;              /* for a peer to send its HELLO */
	uint32_t handshakes_max; /* peers that have not sent it, of one passive endpoint */
};
extern struct tcp_params tcp_params;

/* The first is for programs of libfabric's alone: to lib/fabric it is a limit of each listener. */
#define TCP_SETTINGS_OWN 1
extern const struct plx_setting tcp_settings[];

extern struct fi_provider tcp_prov;
extern const struct prov tcp_kind;
extern const struct prov_pep_ops tcp_pep_ops;
#define tcp_log(...) prov_log(&tcp_prov, __VA_ARGS__)

/* provider.c ----------------------------------------------------------------------- */

int tcp_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
		const struct fi_info *hints, struct fi_info **info_out);
int tcp_fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **fabric_out, void *context);

/* domain.c --------------------------------------------------------------------------------- */

struct tcp_domain {
	struct prov_domain base;
	struct block_pool blocks;
	struct tcp_eps queued;              /* endpoints with bytes that the next poll sends */
	LIST_HEAD(tcp_all_eps, tcp_ep) eps; /* that are connected */
	uint32_t polls;                     /* modulo 2^32 */
	uint32_t blocked_count;             /* endpoints whose socket has no room */
	struct plx_log_limit log_limit;
	uint64_t breaches[TCP_BREACH_COUNT]; /* connections that were ended for that */
	/* Sends after the first one since a poll wait for the next poll, as if each had FI_MORE:
	 * for lib/fabric, which polls each turn and sends many messages in one. */
	bool gathers;
};

extern const struct prov_domain_ops tcp_domain_ops;

/* The registration with that key, which covers the bytes and allows what is asked (FI_REMOTE_READ
 * or FI_REMOTE_WRITE). Return: where they are, and the registration; NULL: there is none. */
uint8_t *tcp_mr_find(struct tcp_domain *domain, uint64_t key, uint64_t address, uint64_t length,
		     uint64_t access, struct prov_mr **mr_out);

#endif
