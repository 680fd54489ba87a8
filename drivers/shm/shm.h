/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the files of drivers/shm: the objects of the provider plx_shm, and an index of files.
 *
 *   ring/        memory of two processes: segment.h its layout, segment.c sharing it,
 *                ring.h its records                                     (hot path)
 *   shm_cq.h     completions, the bell of its receiving endpoints: cq.c
 *   shm_ep.h     a connection: two rings, a socket, posted receives, sends in flight: ep.c
 *     progress.c   reading a completion queue                           (hot path)
 *     receive.c    from records to completions                          (hot path)
 *     send.c       from calls to records                                (hot path)
 *   domain.c     owner of completion queues and endpoints
 *   cm/          connecting: shm_pep.h a listening socket and its requests (pep.c),
 *                connect.c, cm.c; shm_wire.h, wire.c the handshake; name.h names of
 *                sockets; peer.h the peer process
 *   provider.c   attributes, libfabric entry points, parameters
 *   driver.c     the driver for lib/fabric */
#ifndef SHM_H
#define SHM_H

#include "../prov/prov.h"
#include "base_internal.h"
#include "cm/name.h"
#include "cm/shm_pep.h"
#include "cm/shm_wire.h"
#include "shm_cq.h"
#include "shm_ep.h"

#define SHM_NAME       "plx_shm"
#define SHM_RING_BYTES (UINT32_C(256) << 10)

/* Parameters, read once from the environment (FI_PLX_SHM_...) by prov.c. */
struct shm_params {
	uint32_t ring_bytes; /* of each receiving ring: a power of two */
	uint64_t inline_max; /* up to this, a message is one record in the ring */
	uint64_t copy_max;   /* up to this, in parts; beyond it the peer reads, if it can */
	bool cma;            /* read senders' memory */
	bool has_group;      /* members of this group may connect too */
	uint32_t group;      /* gid */
};
extern struct shm_params shm_params;
extern struct fi_provider shm_prov;
extern const struct prov shm_kind;
extern const struct prov_pep_ops shm_pep_ops;
#define shm_log(...) prov_log(&shm_prov, __VA_ARGS__)

/* provider.c ----------------------------------------------------------------------- */

int shm_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
		const struct fi_info *hints, struct fi_info **info_out);
int shm_fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **fabric_out, void *context);

/* domain.c --------------------------------------------------------------------------- */

/* An EQ that a domain's endpoints are bound to, with their count. */
struct shm_watch {
	struct shm_watch *next;
	struct prov_eq *eq;
	uint32_t endpoints;
};

struct shm_domain {
	struct prov_domain base;
	struct shm_eps sending;    /* endpoints with sends in flight */
	struct shm_ep *callers;    /* endpoints that call their peers in the next poll, if needed */
	struct shm_watch *watches; /* the EQs of its endpoints */
	uint64_t looked_ns;        /* when a poll last checked for hang-ups */
};

extern const struct prov_domain_ops shm_domain_ops;
/* An endpoint of the domain is, or is no longer, bound to that EQ. */
int domain_watch(struct shm_domain *domain, struct prov_eq *eq);
void domain_unwatch(struct shm_domain *domain, struct prov_eq *eq);

#endif
