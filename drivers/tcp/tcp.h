/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the files of drivers/tcp: the objects of the provider plx_tcp.
 *
 *   sys.h        system calls on sockets, which tests replace
 *   tcp_wire.h   the wire format: wire.c
 *   block.h      memory for bytes that wait to be sent or taken
 *   tcp_cq.h     completion queues: cq.c; progress in a read of them: poll.c        (hot path)
 *   tcp_ep.h     endpoints: connections: ep.c
 *     receive.c    from bytes of a socket to completions                           (hot path)
 *     send.c       from calls to bytes of a socket                                 (hot path)
 *     rma.c        one-sided reads and writes
 *   domain.c     owner of queues and endpoints; memory that peers may read or write
 *   cm/          connecting: tcp_pep.h, pep.c; connect.c, congestion.c, cm.c
 *   provider.c   attributes, libfabric entry points, parameters
 *   driver.c     the driver for lib/fabric */
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

/* Parameters, from the environment (FI_PLX_TCP_...) or from lib/fabric. provider.c reads them
 * once. */
struct tcp_params {
	uint32_t send_bytes, receive_bytes; /* kernel buffers; 0: kernel default */
	uint32_t user_timeout_ms;           /* TCP_USER_TIMEOUT; 0: kernel default */
	uint32_t busy_poll_us;              /* SO_BUSY_POLL; 0: none */
	uint32_t dscp;                      /* for endpoints without a tclass; 0: best effort */
	uint32_t connect_ms;                /* to connect and receive the answer */
	uint32_t handshake_ms;              /* for a peer to send its HELLO */
	uint32_t handshakes_max;            /* peers without a HELLO, per passive endpoint */
};
extern struct tcp_params tcp_params;

/* The first setting is only for libfabric programs: in lib/fabric each listener has that limit. */
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
	LIST_HEAD(tcp_all_eps, tcp_ep) eps; /* connected endpoints */
	uint32_t polls;                     /* modulo 2^32 */
	uint32_t blocked_count;             /* endpoints whose socket has no room */
	struct plx_log_limit log_limit;
	uint64_t breaches[TCP_BREACH_COUNT]; /* connections closed for each breach */
	/* Sends after the first since a poll wait for the next poll, as if each had FI_MORE. For
	 * lib/fabric, which polls each turn and sends many messages per turn. */
	bool gathers;
};

extern const struct prov_domain_ops tcp_domain_ops;

/* Find the registration with that key that covers the bytes and allows the access (FI_REMOTE_READ
 * or FI_REMOTE_WRITE). Return: their address, and the registration; NULL: not found. */
uint8_t *tcp_mr_find(struct tcp_domain *domain, uint64_t key, uint64_t address, uint64_t length,
		     uint64_t access, struct prov_mr **mr_out);

#endif
