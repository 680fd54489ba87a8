/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of drivers/shm share: the objects of the provider plx_shm.
 *
 *   prov_fabric   EQs and passive endpoints belong to it
 *   shm_domain    CQs and endpoints belong to it
 *   shm_cq        completions, the bell of its receiving endpoints, and what it sleeps on
 *   prov_eq        connection events, and the sockets they come from
 *   shm_pep       a listening socket, and the requests that were not answered yet
 *   shm_ep        one connection: two rings, a socket, posted receives, sends under way
 */
#ifndef SHM_H
#define SHM_H

#include "../prov/prov.h"
#include "cm/name.h"
#include "cm/pep.h"
#include "cm/wire.h"
#include "cq.h"
#include "ep.h"

#define SHM_NAME       "plx_shm"
#define SHM_RING_BYTES (UINT32_C(256) << 10)

/* Parameters, read once from the environment (FI_PLX_SHM_...) by prov.c. */
struct shm_params {
	uint32_t ring_bytes; /* of each receiving ring: a power of two */
	uint64_t inline_max; /* messages up to it go through the ring in one record */
	uint64_t copy_max;   /* up to it in parts; longer ones are read, where the peer can */
	bool cma;            /* read from senders' memory */
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

/* An EQ that endpoints of a domain are bound to: how many. */
struct shm_watch {
	struct shm_watch *next;
	struct prov_eq *eq;
	uint32_t endpoints;
};

struct shm_domain {
	struct prov_domain base;
	struct shm_eps sending; /* endpoints with sends under way */
	struct shm_ep *callers; /* endpoints that call their peers in the next poll, if need be */
	struct shm_watch *watches; /* the EQs of its endpoints */
	uint64_t looked_ns;        /* when a poll last looked for peers that hung up */
};

extern const struct prov_domain_ops shm_domain_ops;
/* An endpoint of the domain is, or is no longer, bound to that EQ. */
int domain_watch(struct shm_domain *domain, struct prov_eq *eq);
void domain_unwatch(struct shm_domain *domain, struct prov_eq *eq);

#endif
