/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by Pollux's libfabric providers: everything that libfabric requires and that does not
 * depend on the transport. A provider adds its domains, its endpoints and the transfer of messages.
 *
 *   fabric.c          fabrics, domains, memory registration, the log; unsupported calls
 *   info.c, attr.c    fi_getinfo: one answer per pair of addresses, and its attributes; addresses
 *   prov_ep.h         endpoints: ep.c opens them, cm.c connects them, receive.c posts receives
 *   prov_pep.h        passive endpoints: pep.c; incoming connections: request.c
 *   prov_cq.h         completion queues: cq.c; waiting for either kind of queue: queue.c
 *   eq.h              event queues: eq.c; eq_watch.c their sockets and deadlines
 *   provider.h, send_calls.h   templates that a provider's files include
 *
 * A process may contain a provider twice: linked in, and as a module that libfabric loads
 * (see provider.h). The copies share nothing.
 *
 * Threads: FI_THREAD_DOMAIN. One thread at a time calls a domain, its objects, and the EQs that its
 * endpoints are bound to. Progress is manual: all work happens inside fi_cq_read and fi_eq_read (or
 * inside waits for them). Nothing blocks. */
#ifndef PROV_H
#define PROV_H

#include "../compat.h"
#include "eq.h"
#include "plx_base.h"
#include "prov_cq.h"
#include "prov_ep.h"
#include "prov_pep.h"

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
#include <sockaddr.h>
#include <stdatomic.h>

#define PROV_API_VERSION FI_VERSION(1, 5) /* oldest libfabric API understood */

struct prov_mr;

/* What distinguishes one provider from another. */
struct prov {
	struct fi_provider *libfabric; /* its name, version and log */
	const struct fi_info *most;    /* its maximum; answers are narrowed copies */
	bool same_host;                /* peers are processes of this host only */
	void (*read_params)(void);     /* called once, by prov_begin */
	bool *has_begun;
	const struct prov_domain_ops *domain_ops;
	const struct prov_cq_ops *cq_ops;
	const struct prov_ep_ops *ep_ops;
	const struct prov_pep_ops *pep_ops;
};

void prov_log(const struct fi_provider *provider, enum fi_log_level level, const char *format, ...)
	PLX_PRINTF(3, 4);

/* Call first in every entry point that an application may call first. loading: set by the module
 * while libfabric loads it; only libfabric's parameter and log calls are allowed then. */
void prov_begin(const struct prov *prov, bool loading);
/* Nothing to free: all state belongs to objects, which the application closes. */
void prov_no_cleanup(void);

/* attr.c, info.c --------------------------------------------------------------------------- */

/* Whether the provider satisfies the hints. If not, the log has the reason (FI_LOG_INFO). */
bool prov_hints_fit(const struct prov *prov, const struct fi_info *hints);
bool prov_domain_attr_fits(const struct prov *prov, const struct fi_domain_attr *attr);
/* Narrow a copy of the provider's maximum to hints that fit; NULL for no hints. */
void prov_info_narrow(const struct prov *prov, struct fi_info *info, const struct fi_info *hints);

int prov_getinfo(const struct prov *prov, uint32_t version, const char *node, const char *service,
		 uint64_t flags, const struct fi_info *hints, struct fi_info **info_out);

/* The same for libfabric, which appends the provider's name to the fabric name. */
int prov_getinfo_unnamed(const struct prov *prov, uint32_t version, const char *node,
			 const char *service, uint64_t flags, const struct fi_info *hints,
			 struct fi_info **info_out);

/* The info of a connection request: the passive endpoint's, with addresses and handle.
 * Return: NULL: out of memory. */
struct fi_info *prov_info_of_request(const struct fi_info *pep_info,
				     const struct sockaddr_storage *local,
				     const struct sockaddr *peer, struct fid *handle);

/* Copy an address; ::ffff:a.b.c.d becomes the IPv4 address. Return: whether the family is
 * supported. */
bool prov_address_plain_copy(const struct sockaddr *address, struct sockaddr_storage *copy_out);
/* Whether it is an address of this host. provider: its log gets the reason if that cannot be
 * determined. */
bool prov_address_is_local(const struct fi_provider *provider, const struct sockaddr *address);
/* Set a port that is free for TCP at this address and differs from the present one. The port is not
 * reserved. Return: 0; -errno no port is free, or the address is not of this host. */
int prov_address_find_port(struct sockaddr_storage *address);

/* For fi_getname and similar calls: -FI_ETOOSMALL, and as much as fits, if it is too long. */
int prov_address_give(const struct sockaddr_storage *address, void *out, size_t *bytes);
/* Check and copy a caller's address. Return: 0; -FI_EINVAL. */
int prov_address_take(const void *address, size_t bytes, struct sockaddr_storage *out);

/* fabric.c --------------------------------------------------------------------------------- */

struct prov_fabric {
	struct fid_fabric fid;
	const struct prov *prov;
	/* Open domains, EQs and PEPs, which any thread may open. fi_close returns -FI_EBUSY while
	 * it is not 0. Relaxed throughout: it publishes no other data. */
	_Atomic uint32_t refs;
};

int prov_fabric_open(const struct prov *prov, const struct fi_fabric_attr *attr,
		     struct fid_fabric **fabric_out, void *context);
/* Whether it belongs to this copy of the provider. */
bool prov_is_fabric(const struct prov *prov, const struct fid_fabric *fid);

static inline const struct prov_pep_ops *prov_pep_ops(const struct prov_pep *pep)
{
	return pep->fabric->prov->pep_ops;
}

static inline void fabric_ref(struct prov_fabric *fabric)
{
	atomic_fetch_add_explicit(&fabric->refs, 1, memory_order_relaxed);
}

static inline void fabric_unref(struct prov_fabric *fabric)
{
	atomic_fetch_sub_explicit(&fabric->refs, 1, memory_order_relaxed);
}

/* Used by one thread at a time. */
struct prov_domain {
	struct fid_domain fid;
	struct prov_fabric *fabric;
	uint32_t refs;     /* CQs, endpoints, MRs */
	void *mrs;         /* struct prov_mr by key, for tsearch(3) */
	bool chooses_keys; /* FI_MR_PROV_KEY */
	bool by_address;   /* FI_MR_VIRT_ADDR; without it peers count from 0 at a region's start */
	uint32_t cq_count;
	LIST_HEAD(prov_cqs, prov_cq) cqs;
};

/* A provider's extension. Its domain starts with a struct prov_domain; the rest is zeroed. */
struct prov_domain_ops {
	size_t bytes; /* size of its domain */
	void (*init)(struct prov_domain *domain);
	void (*fini)(struct prov_domain *domain); /* or NULL */
	/* Nothing may use the region after this returns. NULL: nothing does. */
	void (*mr_closing)(struct prov_mr *mr);
};

static inline const struct prov_ep_ops *prov_ep_ops(const struct prov_ep *ep)
{
	return ep->domain->fabric->prov->ep_ops;
}

/* Whether it belongs to this copy of the provider. */
bool prov_is_domain(const struct prov *prov, const struct fid_domain *fid);

struct prov_mr {
	struct fid_mr fid;
	struct prov_domain *domain;
	struct iovec memory; /* the first piece */
	uint64_t address;    /* of its first byte, as peers address it */
	uint64_t access;
	struct prov_ep *ep; /* bound: only its peer may reach it; NULL: every peer of the domain */
	LIST_ENTRY(prov_mr) of_ep;
};

struct prov_mr *prov_mr_find(const struct prov_domain *domain, uint64_t key); /* or NULL */
void prov_mr_orphan_all(struct prov_ep *ep); /* it closes: its registrations are unreachable */

/* Unsupported calls ------------------------------------------------------------------------ */

/* Stands for every unsupported call, whatever its arguments: on Pollux's platforms a function may
 * be passed more arguments than it takes. No table entry may be empty, because libfabric's inline
 * functions call entries without checking. Return: -FI_ENOSYS. */
ssize_t prov_refuse(void);
#define PROV_REFUSED   ((void *)prov_refuse)

#define PROV_CALLS_MAX 14 /* entries of the longest table */

/* libfabric's tables of calls: a size, then function pointers. */
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

/* An object's table of calls. */
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
