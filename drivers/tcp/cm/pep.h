/* SPDX-License-Identifier: BSD-3-Clause */
/* Passive endpoints, and the connections that come in on them. */
#ifndef TCP_PEP_H
#define TCP_PEP_H

#include "../../prov/prov.h"
#include "../wire.h"

#include <pthread.h>
#include <rdma/fi_cm.h>

#define TCP_BACKLOG 4096 /* in the kernel; and of those that wait for fi_accept or fi_reject */

struct tcp_origin;

/* A connection that came in, until fi_accept or fi_reject: info->handle. First it has to send its
 * HELLO. Then it is told of, and may become an endpoint's, which may be of another thread. */
struct tcp_request {
	struct fid fid; /* FI_CLASS_CONNREQ */
	struct prov_source source;
	struct tcp_pep *pep; /* NULL: an endpoint's */
	struct sockaddr_storage peer;
	struct prov_list link; /* of its origin while it is silent, then of the passive endpoint */
	struct tcp_origin *origin; /* NULL: it was told of */
	struct prov_deadline deadline;
	struct wire_hello hello;
};

/* Why connections were not taken. */
enum tcp_refusal {
	TCP_REFUSED_SILENT,   /* no HELLO in time */
	TCP_REFUSED_EVICTED,  /* one of too many that had sent none */
	TCP_REFUSED_STRANGER, /* it speaks something else */
	TCP_REFUSED_VERSION,
	TCP_REFUSED_GONE, /* it closed before its HELLO was whole */
	TCP_REFUSED_COUNT,
};

/* peer: its address. why: "it speaks HTTP". evicted: TCP_REFUSED_EVICTED. */
typedef void (*tcp_refused_fn)(const struct sockaddr *peer, const char *why, bool evicted,
			       void *arg);

struct tcp_pep {
	struct fid_pep fid;
	struct prov_fabric *fabric;
	struct prov_eq *eq;
	struct fi_info *info;
	struct prov_source source;
	struct sockaddr_storage address; /* port 0 until it is bound */
	bool listening;
	bool is_paused; /* no more is accepted: backlog is reached, or descriptors ran out */
	struct prov_deadline resume; /* ... until then, at the latest */
	uint32_t backlog;
	uint32_t handshakes_max;   /* peers that have not sent their HELLO */
	struct prov_event failure; /* that no connection can be accepted */
	/* Those that have not sent their HELLO, by remote address. */
	struct prov_list origins;
	uint32_t silent_count;
	uint64_t refused[TCP_REFUSED_COUNT];
	struct plx_log_limit log_limit;
	/* What a refusal is told to instead of the log; NULL: none. */
	tcp_refused_fn on_refused;
	void *refused_arg;
	/* An endpoint may be made from a request on a thread of its own. */
	pthread_mutex_t lock;
	struct prov_list told; /* requests, until they are answered */
	uint32_t told_count;
};

int tcp_pep_open(struct fid_fabric *fabric, struct fi_info *info, struct fid_pep **pep_out,
		 void *context);
void tcp_pep_pause(struct tcp_pep *pep); /* for a second, or until there is room */

/* request.c -------------------------------------------------------------------------------- */

void tcp_pep_incoming(struct prov_source *source);  /* its listening socket is readable */
void tcp_request_take(struct tcp_request *request); /* from its passive endpoint; it was told of */
void tcp_request_free(struct tcp_request *request);
void tcp_pep_free_requests(struct tcp_pep *pep);

#endif
