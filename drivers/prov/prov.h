/* SPDX-License-Identifier: BSD-3-Clause */
/* What the providers of Pollux have in common: what libfabric asks of any provider and is the same
 * for each transport. A provider adds its domains, endpoints, and how messages move.
 *
 *   fabric.c          fabrics, domains, the log
 *   info.c, attr.c    fi_getinfo: one answer for each pair of addresses, and what is in it
 *   prov_ep.h         endpoints: ep.c opens them, cm.c connects them, receive.c posts receives
 *   prov_pep.h        passive endpoints, and the connections that come in on them: pep.c
 *   prov_cq.h         completion queues: cq.c
 *   eq.h              event queues: eq.c; eq_watch.c their sockets and deadlines
 *   prov_queue.h      what both kinds of queue are waited for by: queue.c
 *   mr.c              memory that is registered
 *   refuse.c          calls that are refused
 *   prov_address.h    addresses of endpoints: address.c
 *   provider.h, send_calls.h   what a provider's own files include, to be made for it
 *   module.c          the entry of a module that libfabric loads
 *
 * A provider may be in a process twice: linked in, and as a module that libfabric loads (module.c).
 * The copies share nothing.
 *
 * Threads: FI_THREAD_DOMAIN. Calls on a domain, on all that belongs to it, and on the EQs that its
 * endpoints are bound to are made by one thread at a time. Progress is manual: everything happens
 * inside fi_cq_read and fi_eq_read (or what waits for them). Nothing blocks. */
#ifndef PROV_H
#define PROV_H

#include "../compat.h"
#include "eq.h"
#include "plx_base.h"
#include "prov_address.h"
#include "prov_cq.h"
#include "prov_ep.h"
#include "prov_pep.h"
#include "prov_queue.h"

#include <netinet/in.h>
#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_prov.h>
#include <stdatomic.h>

#define PROV_API_VERSION FI_VERSION(1, 5) /* of libfabric: the least that is understood */

struct prov_mr;

/* What tells one provider from another. */
struct prov {
	struct fi_provider *libfabric; /* its name, its version, its log */
	const struct fi_info *most;    /* what it has at most; answers are copies of it */
	bool same_host;                /* peers are processes of this host alone */
	void (*read_params)(void);     /* once, by prov_begin */
	bool *has_begun;
	const struct prov_domain_ops *domain_ops;
	const struct prov_cq_ops *cq_ops;
	const struct prov_ep_ops *ep_ops;
	const struct prov_pep_ops *pep_ops;
};

void prov_log(const struct fi_provider *provider, enum fi_log_level level, const char *format, ...)
	PLX_PRINTF(3, 4);

/* Called first by whatever may be an application's first call. loading: by the module, while
 * libfabric loads it, and of its own calls only those about parameters and the log may be made. */
void prov_begin(const struct prov *prov, bool loading);
/* All that there is belongs to objects, and the application closes those. */
void prov_no_cleanup(void);

/* attr.c, info.c --------------------------------------------------------------------------- */

/* Whether it has enough for the hints; where not, the reason is in the log (FI_LOG_INFO). */
bool prov_hints_fit(const struct prov *prov, const struct fi_info *hints);
bool prov_domain_attr_fits(const struct prov *prov, const struct fi_domain_attr *attr);
/* Turn a copy of what it has at most into an answer to hints, which fit; NULL: to none. */
void prov_info_narrow(const struct prov *prov, struct fi_info *info, const struct fi_info *hints);

int prov_getinfo(const struct prov *prov, uint32_t version, const char *node, const char *service,
		 uint64_t flags, const struct fi_info *hints, struct fi_info **info_out);

/* The same for libfabric, which appends the provider's name to the one that it finds. */
int prov_getinfo_unnamed(const struct prov *prov, uint32_t version, const char *node,
			 const char *service, uint64_t flags, const struct fi_info *hints,
			 struct fi_info **info_out);

/* The info that a connection request carries: the passive endpoint's, with addresses and handle.
 * Return: NULL: no memory. */
struct fi_info *prov_info_of_request(const struct fi_info *pep_info,
				     const struct sockaddr_storage *local,
				     const struct sockaddr *peer, struct fid *handle);

/* fabric.c --------------------------------------------------------------------------------- */

struct prov_fabric {
	struct fid_fabric fid;
	const struct prov *prov;
	/* Domains, EQs and PEPs, which threads of their own may open: fi_close is -FI_EBUSY while
	 * there are any. Relaxed throughout: nothing is read through it. */
	_Atomic uint32_t refs;
};

int prov_fabric_open(const struct prov *prov, const struct fi_fabric_attr *attr,
		     struct fid_fabric **fabric_out, void *context);
/* Whether it is one of this copy of the provider. */
bool prov_is_fabric(const struct prov *prov, const struct fid_fabric *fid);

static inline void fabric_ref(struct prov_fabric *fabric)
{
	atomic_fetch_add_explicit(&fabric->refs, 1, memory_order_relaxed);
}

static inline void fabric_unref(struct prov_fabric *fabric)
{
	atomic_fetch_sub_explicit(&fabric->refs, 1, memory_order_relaxed);
}

/* What one thread at a time works with. */
struct prov_domain {
	struct fid_domain fid;
	struct prov_fabric *fabric;
	uint32_t refs;     /* CQs, endpoints, MRs */
	void *mrs;         /* struct prov_mr by key, for tsearch(3) */
	bool chooses_keys; /* FI_MR_PROV_KEY */
	bool by_address;   /* FI_MR_VIRT_ADDR: peers count from 0, not from a region's start */
	uint32_t cq_count;
	LIST_HEAD(prov_cqs, prov_cq) cqs;
};

/* What a provider adds. Its domain begins with a struct prov_domain; its other bytes are zero. */
struct prov_domain_ops {
	size_t bytes; /* of its domain */
	void (*init)(struct prov_domain *domain);
	void (*fini)(struct prov_domain *domain); /* or NULL */
	/* Nothing may use it from here on. NULL: nothing does. */
	void (*mr_closing)(struct prov_mr *mr);
};

/* Whether it is one of this copy of the provider. */
bool prov_is_domain(const struct prov *prov, const struct fid_domain *fid);

/* mr.c ------------------------------------------------------------------------------------- */

struct prov_mr {
	struct fid_mr fid;
	struct prov_domain *domain;
	struct iovec memory; /* the first piece */
	uint64_t address;    /* of its first byte, for peers */
	uint64_t access;
};

extern struct fi_ops_mr prov_mr_ops;
struct prov_mr *prov_mr_find(const struct prov_domain *domain, uint64_t key); /* or NULL */

/* refuse.c: for what a provider does not have ------------------------------------------------- */

/* Stands for every call that is refused, whatever its arguments: on the systems that Pollux runs on
 * a function may be given more of them than it takes. No entry of a table may be empty, as
 * libfabric's inline functions call them without looking. Return: -FI_ENOSYS. */
ssize_t prov_refuse(void);
#define PROV_REFUSED   ((void *)prov_refuse)

#define PROV_CALLS_MAX 14 /* of the longest of these tables */

/* libfabric's tables of calls: a size, and pointers to functions. */
union prov_calls {
	struct fi_ops_rma rma;
	struct fi_ops_tagged tagged;
	struct fi_ops_atomic atomic;
	struct fi_ops_collective collective;
	struct {
		size_t size;
		ssize_t (*calls[PROV_CALLS_MAX])(void);
	} all;
};

extern union prov_calls prov_no_rma, prov_no_tagged, prov_no_atomic, prov_no_collective;

/* The table of an object. */
#define PROV_FID_OPS(its_close, its_bind, its_control) \
	{                                              \
		.size = sizeof(struct fi_ops),         \
		.close = its_close,                    \
		.bind = its_bind,                      \
		.control = its_control,                \
		.ops_open = PROV_REFUSED,              \
	}

static inline void fid_init(struct fid *fid, size_t fclass, void *context, struct fi_ops *ops)
{
	*fid = (struct fid){.fclass = fclass, .context = context, .ops = ops};
}

#endif
