/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of drivers/shm share: the objects of the provider plx_shm.
 *
 *   shm_fabric    EQs and passive endpoints belong to it
 *   shm_domain    CQs and endpoints belong to it
 *   shm_cq        completions, the bell of its receiving endpoints, and what it sleeps on
 *   shm_eq        connection events, and the sockets they come from
 *   shm_pep       a listening socket, and the requests that were not answered yet
 *   shm_ep        one connection: two rings, a socket, posted receives, sends under way
 *
 * Threads: FI_THREAD_DOMAIN. Calls on a domain, on all that belongs to it, and on the EQs that its
 * endpoints are bound to are made by one thread at a time. Progress is manual: everything happens
 * inside fi_cq_read and fi_eq_read (or what waits for them). Nothing blocks. */
#ifndef SHM_H
#define SHM_H

#include "../compat.h"
#include "address.h"
#include "cq.h"
#include "ep.h"
#include "eq.h"
#include "list.h"
#include "pep.h"
#include "queue.h"
#include "wire.h"

#include <netinet/in.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_prov.h>

#define SHM_NAME        "plx_shm"
#define SHM_VERSION     FI_VERSION(0, 1)
#define SHM_API_VERSION FI_VERSION(1, 5) /* the least that is understood */
#define SHM_RING_BYTES  (UINT32_C(256) << 10)

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
void shm_log(enum fi_log_level level, const char *format, ...) PLX_PRINTF(2, 3); /* prov.c */

/* prov.c, attr.c, info.c ------------------------------------------------------------------- */

/* To be called first by whatever may be an application's first call: reads the parameters. */
void shm_begin(void);
/* The same for the module, while libfabric loads it and none of its own calls may be made. */
void shm_begin_loading(void);

/* What the provider has at most; copies of it are what fi_getinfo answers. */
extern const struct fi_info shm_info_most;
/* Whether that is enough for the hints; where not, the reason is in the log (FI_LOG_INFO). */
bool shm_hints_fit(const struct fi_info *hints);
bool shm_domain_attr_fits(const struct fi_domain_attr *attr);
/* Turn a copy of shm_info_most into an answer to hints, which fit; NULL: to none. */
void shm_info_narrow(struct fi_info *info, const struct fi_info *hints);

int shm_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
		const struct fi_info *hints, struct fi_info **info_out);
int shm_fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **fabric_out, void *context);

/* The info that a connection request carries: the passive endpoint's, with addresses and handle. */
struct fi_info *shm_info_of_request(const struct shm_pep *pep, const struct sockaddr *peer,
				    struct fid *handle);

/* fabric.c, domain.c, mr.c ----------------------------------------------------------------- */

struct shm_fabric {
	struct fid_fabric fid;
	/* Domains, EQs and PEPs, which threads of their own may open: fi_close is -FI_EBUSY while
	 * there are any. Relaxed throughout: nothing is read through it. */
	_Atomic uint32_t refs;
};

static inline void fabric_ref(struct shm_fabric *fabric)
{
	atomic_fetch_add_explicit(&fabric->refs, 1, memory_order_relaxed);
}

static inline void fabric_unref(struct shm_fabric *fabric)
{
	atomic_fetch_sub_explicit(&fabric->refs, 1, memory_order_relaxed);
}

/* An EQ that endpoints of a domain are bound to: how many. */
struct shm_watch {
	struct shm_watch *next;
	struct shm_eq *eq;
	uint32_t endpoints;
};

struct shm_domain {
	struct fid_domain fid;
	struct shm_fabric *fabric;
	struct shm_list sending; /* endpoints with sends under way */
	struct shm_ep *callers;  /* endpoints that call their peers in the next poll, if need be */
	struct shm_list cqs;     /* all of its completion queues */
	struct shm_watch *watches; /* the EQs of its endpoints */
	uint32_t refs;             /* CQs, endpoints, MRs */
	void *mrs;                 /* registrations by key, for tsearch(3) */
	uint64_t next_key;         /* where chooses_keys */
	bool chooses_keys;         /* COMPAT_MR_BASIC */
	uint64_t looked_ns;        /* when a poll last looked for peers that hung up */
};

/* Whether the object is one of this copy of the provider. */
bool shm_is_fabric(const struct fid_fabric *fid);
bool shm_is_domain(const struct fid_domain *fid);
int shm_domain_open(struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **domain_out,
		    void *context);
/* An endpoint of the domain is, or is no longer, bound to that EQ. */
int domain_watch(struct shm_domain *domain, struct shm_eq *eq);
void domain_unwatch(struct shm_domain *domain, struct shm_eq *eq);
extern struct fi_ops_mr shm_mr_ops;

/* Entries for what the provider does not have. */
int shm_no_bind(struct fid *fid, struct fid *bound, uint64_t flags);
int shm_no_control(struct fid *fid, int command, void *arg);
int shm_no_ops_open(struct fid *fid, const char *name, uint64_t flags, void **ops_out,
		    void *context);

#endif
