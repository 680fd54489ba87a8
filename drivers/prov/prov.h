/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by Pollux's libfabric providers: everything that libfabric requires and that does not
 * depend on the transport. A provider adds its domains, its endpoints and the transfer of messages.
 *
 *   fabric.c          fabrics, domains, memory registration, the log; unsupported calls
 *   info.c, attr.c    fi_getinfo: one answer per pair of addresses, and its attributes; addresses
 *   prov_ep.h         endpoints: ep.c opens them, cm.c connects them, receive.c posts receives
 *   pep.c, request.c  passive endpoints; incoming connections
 *   port.c            ports, which a listener of either provider holds
 *   prov_cq.h         completion queues: cq.c; waiting for either kind of queue: queue.c
 *   eq.h              event queues: eq.c; eq_watch.c their sockets and deadlines
 *   provider.h, send_calls.h   templates that a provider's files include
 *
 * A process may contain a provider twice: linked in, and as a module that libfabric loads
 * (see provider.h). The copies share nothing.
 *
 * Threads: FI_THREAD_DOMAIN. One thread at a time calls a domain, its objects, and the EQs that its
 * endpoints are bound to. Progress is manual: all work happens inside fi_cq_read and fi_eq_read (or
 * inside waits for them). Nothing blocks, except that closing may wait, as plx_tcp does for
 * injected messages. */
#ifndef PROV_H
#define PROV_H

#include "../compat.h"
#include "eq.h"
#include "plx_admit.h"
#include "plx_base.h"
#include "prov_cq.h"
#include "prov_ep.h"

#include <netinet/in.h>
#include <pthread.h>
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
	struct fi_provider *libfabric;     /* its name, version and log */
	const struct fi_info *most;        /* its maximum; answers are narrowed copies */
	bool same_host;                    /* peers are processes of this host only */
	void (*read_params)(bool loading); /* called once, by prov_begin */
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

#define PROV_PARAM_NAME_MAX 64

/* Write the parameter's name in the environment, FI_PLX_TCP_KEY. Return: out. */
const char *prov_param_name(const struct fi_provider *provider, const char *key,
			    char out[PROV_PARAM_NAME_MAX]);

/* The text of a parameter, FI_PLX_TCP_KEY in the environment; NULL: not set. loading: as in
 * prov_begin; fi_info -e then shows it with its help. */
const char *prov_param(const struct fi_provider *provider, bool loading, const char *key,
		       const char *help);

/* attr.c, info.c --------------------------------------------------------------------------- */

/* Whether the provider satisfies the hints. If not, the log has the reason (FI_LOG_INFO). */
bool prov_hints_fit(const struct prov *prov, const struct fi_info *hints);
bool prov_domain_attr_fits(const struct prov *prov, const struct fi_domain_attr *attr);
/* Narrow a copy of the provider's maximum to hints that fit; NULL for no hints. */
void prov_info_narrow(const struct prov *prov, struct fi_info *info, const struct fi_info *hints);

/* Answers have no fabric_attr->prov_name: libfabric sets it. */
int prov_getinfo(const struct prov *prov, uint32_t version, const char *node, const char *service,
		 uint64_t flags, const struct fi_info *hints, struct fi_info **info_out);

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

/* port.c ------------------------------------------------------------------------------------- */

#define PROV_SHM_NAME  "plx_shm" /* and of its listeners' sockets: name:address */
#define PORT_WHY_BYTES 256

/* Whether another process listens at that address with the other provider. Call it once this one
 * listens there. why_out: the process, and what to do. */
bool prov_port_is_taken(const struct prov *prov, const struct sockaddr *address, char *why_out,
			size_t size);

/* Passive endpoints and incoming connections: pep.c, request.c ------------------------------- */

#define PROV_HANDSHAKES_MAX 256 /* defaults of a passive endpoint */
#define PROV_SILENT_NS      (5 * PLX_NS_PER_S)

/* An incoming connection; info->handle points to it. It is silent until its first message arrives,
 * and reported once FI_CONNREQ is queued. Once that is read, it belongs to the application until it
 * is rejected, or an endpoint takes it over: on any thread, and also after its passive endpoint is
 * closed. */
struct prov_request {
	struct fid fid; /* FI_CLASS_CONNREQ */
	const struct prov_pep_ops *ops;
	struct plx_watch source;
	struct sockaddr_storage peer;   /* set before it is reported */
	uid_t user;                     /* of a peer on this host */
	void *ticket;                   /* see plx_admit.h; NULL: none, or its owner took it */
	struct prov_pep *pep;           /* NULL: an endpoint owns it */
	TAILQ_ENTRY(prov_request) link; /* in pep's list of silent or reported requests */
	bool is_told;
	bool is_kept;                  /* silent: read nothing, and ask again at the deadline */
	struct prov_deadline deadline; /* while it is silent */
};

TAILQ_HEAD(prov_requests, prov_request);

struct prov_pep {
	struct fid_pep fid;
	struct prov_fabric *fabric;
	struct prov_eq *eq;
	struct fi_info *info;
	struct plx_watch source;
	struct sockaddr_storage address; /* port 0 until bound */
	bool listening;
	uint32_t backlog;
	struct prov_deadline resume;    /* set: accepts nothing until then */
	struct prov_event failure;      /* reports that accepting failed */
	struct plx_admit_calls admit;   /* accepted NULL: the default */
	uint32_t handshakes_max;        /* silent requests; for the default only */
	uint64_t silent_ns;             /* until its first message */
	uint64_t accepted;              /* connections */
	uint64_t ended[PLX_ADMIT_ENDS]; /* silent requests */
	struct plx_log_limit log_limit;
	struct prov_requests silent; /* oldest first */
	uint32_t silent_count;
	/* Another thread may create an endpoint from a request. */
	pthread_mutex_t lock;
	struct prov_requests told;
	uint32_t told_count;
	bool is_closed;           /* freed with the last of these */
	char why[PORT_WHY_BYTES]; /* it does not listen; "": the error says it all */
};

/* A provider's extension. Its passive endpoint starts with a struct prov_pep and its requests with
 * a struct prov_request; the rest is zeroed. */
struct prov_pep_ops {
	size_t bytes; /* size of its passive endpoint */
	size_t request_bytes;
	uint32_t backlog_max;
	void (*init)(struct prov_pep *pep); /* or NULL */
	/* Open a socket for that address, and find a port if it has none. Return: the socket;
	 * -errno. */
	int (*open)(struct prov_pep *pep, struct sockaddr_storage *address);
	int (*start)(struct prov_pep *pep);     /* before listen(2). Return: 0; -errno */
	void (*incoming)(struct prov_pep *pep); /* accept one connection; there is room for it */
	void (*ready)(struct prov_request *request); /* data arrived, or hang-up */
	/* Send a rejection, if it can be sent at once, after taking what the peer has sent. */
	void (*reject)(struct prov_request *request, const void *data, size_t length);
	void (*leave)(struct prov_request *request); /* free the provider's part of it; or NULL */
};

static inline const struct prov_pep_ops *prov_pep_ops(const struct prov_pep *pep)
{
	return pep->fabric->prov->pep_ops;
}

/* Entry of struct fi_ops_fabric. */
int prov_pep_open(struct fid_fabric *fid, struct fi_info *info, struct fid_pep **pep_out,
		  void *context);
/* For drivers of lib/fabric: see plx_fabric_driver.h. */
void prov_pep_admit(struct fid_pep *fid, const struct plx_admit_calls *calls);
const char *prov_pep_why(const struct fid_pep *fid); /* fi_listen failed; NULL: see its error */
void *prov_request_ticket(const struct fi_info *info);
int prov_request_reject(fid_t handle, const void *data, size_t length);
/* accept(2) failed with that error: close another connection if descriptors ran out; otherwise
 * report it, and pause accepting if it may recover. */
void prov_pep_cannot_accept(struct prov_pep *pep, int err);
/* And free it if it is closed and has no requests. */
void prov_pep_unlock(struct prov_pep *pep);

/* Add an incoming connection, and ask whether to take it. peer: NULL for one of this host, of that
 * user. Ownership: takes fd. */
void prov_request_add(struct prov_pep *pep, int fd, const struct sockaddr *peer, uid_t user);
/* Close a silent connection to free its descriptor. Return: whether there was one. */
bool prov_request_make_room(struct prov_pep *pep);
/* Report the request. Its socket is no longer watched, because another thread may take it over.
 * Frees it if there is no memory. */
void prov_request_tell(struct prov_request *request, const void *data, uint32_t length);
/* End a silent request, report why, and free it. */
void prov_request_end(struct prov_request *request, enum plx_admit_end reason, const char *why);
void prov_request_take(
	struct prov_request *request); /* remove a reported request from its passive endpoint */
void prov_request_free(struct prov_request *request);

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
