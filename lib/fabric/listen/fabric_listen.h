/* SPDX-License-Identifier: BSD-3-Clause */
/* Listeners, and the choice of an lcore for each connection.
 *
 *   listen.c     listens on the addresses of a name, with each possible driver
 *   listener.c   a listener, its counters, and its end
 *   handover.c   from a connection request to a link on some lcore
 *   admission.c  limits on connections: see struct plx_admission
 *   spread.c     the choice of an lcore
 */
#ifndef FABRIC_LISTEN_H
#define FABRIC_LISTEN_H

#include "counter.h"
#include "fabric_address.h"
#include "fabric_lcore.h"
#include "fabric_provider.h"

#include <pthread.h>
#include <stdatomic.h>

/* Admission ------------------------------------------------------------------------------------ */

enum admission_cause {
	ADMISSION_LINKS,
	ADMISSION_HOST,
	ADMISSION_RATE,
	ADMISSION_EVICTED,
	ADMISSION_CAUSES,
};

struct admission_host {
	struct in6_addr address; /* never changes; first: see by_address */
	uint32_t links, handshakes;
};

/* A connection, from its request until its link has ended. During the handshake it is in a list,
 * oldest first; an eviction removes it. */
struct ticket {
	struct admission *admission;
	struct admission_host *host;
	TAILQ_ENTRY(ticket) of_handshakes; /* tqe_prev NULL: open or evicted */
	struct request *request;           /* on the listener's lcore, not placed yet; or NULL */
	struct plx_link *link;             /* owned by its lcore; NULL: none */
	uint32_t lcore;                    /* the link's */
	_Atomic bool evicted;              /* relaxed: only logs read it */
	unsigned refs;                     /* the connection, and an eviction */
	struct plx_call call;
};

/* Per listener, shared by the lcores of its links. */
struct admission {
	pthread_mutex_t lock;
	struct plx_admission limits;
	void *hosts; /* struct admission_host by address: tsearch(3) */
	uint32_t links, handshakes;
	TAILQ_HEAD(, ticket) in_handshake;
	uint64_t next_ns; /* when the next connection is due, by accepts_per_s */
	_Atomic uint64_t counts[ADMISSION_CAUSES];
	struct plx_log_limit log_limits[ADMISSION_CAUSES]; /* of the listener's lcore */
};

struct admission_answer {
	struct ticket *ticket;
	struct ticket *evicted; /* must end, because the limit of handshakes is reached; or NULL */
	uint64_t wait_ns;       /* until it is due */
	enum admission_cause cause;
};

/* The state of an evicted connection. */
struct admission_state {
	struct request *request;
	struct plx_link *link;
	uint32_t lcore;
};

/* admission.c */
void admission_set_defaults(const struct plx_admission *conf);
void admission_init(struct admission *admission, const struct plx_admission *asked);
/* Request admission of a connection, which can wait up to most_ns. Return: 0; -ENOMEM; -EBUSY
 * refused: answer->cause. */
int admission_ask(struct admission *admission, const struct in6_addr *host, uint64_t most_ns,
		  struct admission_answer *answer);
/* The connection has a link on the calling lcore now, instead of a request. */
void admission_placed(struct ticket *ticket, struct plx_link *link);
void admission_opened(struct ticket *ticket); /* its handshake is complete */
void admission_leave(struct ticket *ticket);  /* it has ended; accepts NULL */
/* For the side that evicted the connection, which must drop its reference when done. */
struct admission_state admission_look(struct ticket *ticket);
void admission_unref(struct ticket *ticket);

/* Listeners ------------------------------------------------------------------------------------ */

#define HANDSHAKE_LOG_HOSTS 16

/* A host with failed handshakes. */
struct handshake_log_host {
	struct in6_addr host;
	uint64_t next_ns; /* earliest time of its next log line; 0: unused */
};

/* A listener's counters, shared with its links on other lcores. */
struct listener_shared {
	_Atomic uint32_t refs;
	_Atomic uint64_t requests, opened, refused, failed, no_handshake, protocol_broken;
	struct admission admission;
	char last_failure[160]; /* this and the next under the lock of admission */
	struct handshake_log_host log_hosts[HANDSHAKE_LOG_HOSTS];
};

struct plx_listener {
	uint8_t kind; /* first: see event_source() */
	struct plx_set *set;
	struct fid_pep *pep;
	struct plx_listen_attr attr;
	struct listener_shared *shared;
	LIST_ENTRY(plx_listener) of_home; /* le_prev NULL: it failed to listen */
	struct plx_listener *front; /* the user's listener: itself, or one in whose `also` it is */
	LIST_HEAD(, plx_listener) also;    /* other drivers' and addresses' listeners */
	LIST_ENTRY(plx_listener) of_front; /* in its `also`; le_prev NULL: it is the user's */
	struct requests requests; /* sent to another lcore, or on the way back: see handover.c */
	uint32_t turn;            /* round-robin: search for the next lcore from here */
	bool placing;             /* inside a callback that chooses an lcore */
	bool closed;              /* by the user; stays listed until its requests are answered */
	char address[PLX_ADDRESS_MAX];
	uint16_t port;
};

/* listener.c */
struct listener_shared *listener_shared_create(const struct plx_admission *limits);
void listener_free(struct plx_listener *listener);
void listener_release(struct plx_listener *listener);
void listener_ref(struct listener_shared *shared);
void listener_failed(const struct plx_link *link);
void listener_unref(struct listener_shared *shared);

/* Log that no connection can be accepted for one second. */
void listener_out_of_descriptors(struct plx_set *set);

/* The provider refused a connection before it was a link: see struct plx_fabric_guard. */
void listener_handshake_refused(const struct sockaddr *peer, const char *why, bool evicted,
				void *shared);

/* handover.c */
void handover_request(struct plx_listener *listener, struct fi_info *info);
void handover_drop_all(struct plx_listener *listener);
void handover_forget_all(struct plx_fabric_lcore *home);

/* spread.c */
int spread_check(struct plx_listen_attr *attr); /* names all lcores if it names none */
uint32_t spread_choose(struct plx_listener *listener, const struct sockaddr *peer);
uint64_t spread_weight(const struct sockaddr *peer, uint32_t lcore);

#endif
