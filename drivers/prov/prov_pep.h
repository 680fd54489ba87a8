/* SPDX-License-Identifier: BSD-3-Clause */
/* Passive endpoints, and the connections that come in on them. */
#ifndef PROV_PEP_H
#define PROV_PEP_H

#include "eq.h"

#include <pthread.h>
#include <rdma/fi_cm.h>
#include <sys/socket.h>

struct prov_fabric;
struct prov_pep;
struct prov_pep_ops;

/* An incoming connection, until fi_accept or fi_reject; info->handle points to it. It is silent
 * until its first message arrives, and told once FI_CONNREQ is queued. Then an endpoint may take it
 * over, on another thread too. */
struct prov_request {
	struct fid fid; /* FI_CLASS_CONNREQ */
	const struct prov_pep_ops *ops;
	struct prov_source source;
	struct sockaddr_storage peer;   /* by the time that it is told */
	struct prov_pep *pep;           /* NULL: an endpoint's */
	TAILQ_ENTRY(prov_request) link; /* silent or told, of pep */
	bool is_told;
	struct prov_deadline deadline; /* of the silent one */
};

TAILQ_HEAD(prov_requests, prov_request);

struct prov_pep {
	struct fid_pep fid;
	struct prov_fabric *fabric;
	struct prov_eq *eq;
	struct fi_info *info;
	struct prov_source source;
	struct sockaddr_storage address; /* port 0 until it is bound */
	bool listening;
	uint32_t backlog;
	struct prov_deadline resume; /* set: no more is accepted until then */
	struct prov_event failure;   /* that no connection can be accepted */
	struct prov_requests silent; /* oldest first */
	uint32_t silent_count;
	/* An endpoint may be made from a request on a thread of its own. */
	pthread_mutex_t lock;
	struct prov_requests told;
	uint32_t told_count;
};

/* What a provider adds. Its passive endpoint begins with a struct prov_pep, and what comes in on it
 * with a struct prov_request; their other bytes are zero. */
struct prov_pep_ops {
	size_t bytes; /* of its passive endpoint */
	size_t request_bytes;
	uint32_t backlog_max;
	bool evicts; /* silent requests have a bound of their own: `backlog` is of the others */
	void (*init)(struct prov_pep *pep); /* or NULL */
	/* Open a socket for that address; a port is found where it has none. Return: it; -errno. */
	int (*open)(struct prov_pep *pep, struct sockaddr_storage *address);
	int (*start)(struct prov_pep *pep);        /* before listen(2). Return: 0; -errno */
	void (*incoming)(struct prov_pep *pep);    /* accept one connection: there is room for it */
	void (*ready)(struct prov_source *source); /* of a request: something came, or its end */
	/* Send a refusal, if it can be sent at once. */
	void (*reject)(struct prov_request *request, const void *data, size_t length);
	void (*late)(struct prov_request *request);  /* it was silent for too long: free it */
	void (*leave)(struct prov_request *request); /* its end: give up what the provider has */
};

/* Entry of struct fi_ops_fabric. */
int prov_pep_open(struct fid_fabric *fid, struct fi_info *info, struct fid_pep **pep_out,
		  void *context);
bool prov_pep_has_room(struct prov_pep *pep); /* for one more request */
/* accept(2) gave that: -errno is told of, and nothing is accepted for a while, where it may go on.
 */
void prov_pep_cannot_accept(struct prov_pep *pep, int err);

/* A connection came in, and may be silent for that long. Return: NULL: there is no memory for it;
 * fd stays the caller's. */
struct prov_request *prov_request_add(struct prov_pep *pep, int fd, uint64_t late_ns);
/* From here on nothing is looked for on its socket, as it may become another thread's. Return: 0;
 * -FI_ENOMEM. */
int prov_request_tell(struct prov_request *request, const void *data, uint32_t length);
void prov_request_take(
	struct prov_request *request); /* from its passive endpoint; it was told of */
void prov_request_free(struct prov_request *request);

#endif
