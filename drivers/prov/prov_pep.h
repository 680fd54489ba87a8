/* SPDX-License-Identifier: BSD-3-Clause */
/* Passive endpoints and incoming connections. */
#ifndef PROV_PEP_H
#define PROV_PEP_H

#include "eq.h"
#include "plx_admit.h"

#include <pthread.h>
#include <rdma/fi_cm.h>
#include <sys/socket.h>

struct prov_fabric;
struct prov_pep;
struct prov_pep_ops;

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
	bool is_closed; /* freed with the last of these */
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

/* Entry of struct fi_ops_fabric. */
int prov_pep_open(struct fid_fabric *fid, struct fi_info *info, struct fid_pep **pep_out,
		  void *context);
/* For drivers of lib/fabric: see plx_fabric_driver.h. */
void prov_pep_admit(struct fid_pep *fid, const struct plx_admit_calls *calls);
void *prov_request_ticket(const struct fi_info *info);
int prov_request_reject(fid_t handle, const void *data, size_t length);
/* accept(2) failed with that error: close another connection if descriptors ran out; otherwise
 * report it, and pause accepting if it may recover. */
void prov_pep_cannot_accept(struct prov_pep *pep, int err);
/* And free it if it is closed and has no requests. */
void prov_pep_unlock(struct prov_pep *pep);

/* request.c */
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

#endif
