/* SPDX-License-Identifier: BSD-3-Clause */
/* Passive endpoints, and the requests that come in on them. */
#ifndef SHM_PEP_H
#define SHM_PEP_H

#include "../../prov/prov.h"
#include "wire.h"

#include <pthread.h>
#include <rdma/fi_cm.h>

#define SHM_BACKLOG 1024 /* of a passive endpoint: requests in the kernel, and unanswered ones */

/* A connection that came in, until fi_accept or fi_reject: info->handle. It is its passive
 * endpoint's, and an endpoint's that is made from it: that one may be of another thread. */
struct shm_request {
	struct fid fid; /* FI_CLASS_CONNREQ */
	struct prov_source source;
	struct shm_pep *pep; /* NULL: an endpoint's */
	struct shm_request *next;
	bool told;      /* FI_CONNREQ was queued */
	uint32_t ticks; /* of the passive endpoint's timer, without a first message */
	struct shm_offer offer;
};

struct shm_pep {
	struct fid_pep fid;
	struct prov_fabric *fabric;
	struct prov_eq *eq;
	struct fi_info *info;
	struct prov_source source;
	struct sockaddr_storage address; /* port 0 until it listens, or fi_setname */
	bool listening;
	struct prov_source timer; /* a timerfd: requests that say nothing, and `paused` */
	bool ticking;             /* it runs */
	uint32_t backlog;
	/* An endpoint may be made from a request on a thread of its own. */
	pthread_mutex_t lock;
	struct shm_request *requests;
	uint32_t request_count;
	struct prov_event failure; /* that no connection can be accepted */
	bool paused; /* no more is accepted: backlog is reached, or descriptors ran out */
};

int shm_pep_open(struct fid_fabric *fabric, struct fi_info *info, struct fid_pep **pep_out,
		 void *context);

/* request.c -------------------------------------------------------------------------------- */

void pep_incoming(struct prov_source *source); /* its listening socket is readable */
void pep_tick(struct prov_source *timer);      /* its timer expired */
void pep_resume(struct shm_pep *pep); /* the backlog changed: accept again, if there is room */
void request_incoming(struct prov_source *source); /* its socket is readable, or hung up */
void request_take(struct shm_request *request);    /* from its passive endpoint */
void request_free(struct shm_request *request);

#endif
