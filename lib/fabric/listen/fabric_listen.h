/* SPDX-License-Identifier: BSD-3-Clause */
/* Listeners, and which lcore gets a connection that comes to one.
 *
 *   listen.c         listening on the addresses of a name, by each driver that may be asked
 *   listener.c       a listener, what is counted of it, and its end
 *   handover.c       from a connection request to a link on some lcore
 *   admission.c      which connections are taken: see struct plx_admission
 *   spread.c         which lcore gets the next one
 *   handshake_log.c  log lines of peers that do not complete the handshake
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

struct admission_host;

/* One connection, from its request until its link is gone. In handshake it is in a list, oldest
 * first; who evicts it takes it out. */
struct ticket {
	struct admission *admission;
	struct admission_host *host;
	TAILQ_ENTRY(ticket) of_handshakes; /* tqe_prev NULL: it is open, or was evicted */
	struct request *request;           /* on the listener's lcore, not placed yet; or NULL */
	struct plx_link *link;             /* its lcore's; NULL: none yet, or none any more */
	uint32_t lcore;                    /* of the link */
	_Atomic bool evicted;              /* relaxed: only logs ask */
	unsigned refs;                     /* the connection, and who evicts it */
	struct plx_call call;
};

/* Of a listener, shared by the lcores of its links. */
struct admission {
	pthread_mutex_t lock;
	struct plx_admission limits;
	void *hosts; /* struct admission_host by address: tsearch(3) */
	uint32_t links, handshakes;
	TAILQ_HEAD(, ticket) in_handshake;
	uint64_t next_ns; /* when the next connection is due, by accepts_per_s */
	uint64_t counts[ADMISSION_CAUSES];
	struct plx_log_limit log_limits[ADMISSION_CAUSES];
};

/* What listeners have that ask for nothing else. */
void admission_set_defaults(const struct plx_admission *conf);

void admission_init(struct admission *admission, const struct plx_admission *asked);
void admission_fini(struct admission *admission);

struct admission_answer {
	struct ticket *ticket;
	struct ticket *evicted; /* must end, as all that may open at a time do; or NULL */
	uint64_t wait_ns;       /* before it is due */
	enum admission_cause cause;
};

/* A connection asks to be taken, and waits for up to most_ns. Return: 0; -ENOMEM; -EBUSY not taken:
 * answer->cause. */
int admission_ask(struct admission *admission, const struct in6_addr *host, uint64_t most_ns,
		  struct admission_answer *answer);

/* Where it comes from, as admission_ask was told. Valid until admission_leave. */
struct in6_addr admission_address(const struct ticket *ticket);

/* It has a link on the calling lcore now, and is no request any more. */
void admission_placed(struct ticket *ticket, struct plx_link *link);

/* The connection is open: no handshake any more. */
void admission_opened(struct ticket *ticket);

/* It is gone; NULL is accepted. */
void admission_leave(struct ticket *ticket);

/* What an evicted one is now. */
struct admission_state {
	struct request *request;
	struct plx_link *link;
	uint32_t lcore;
};
struct admission_state admission_look(struct ticket *ticket);

/* Who evicts it refers to it until then. */
void admission_unref(struct ticket *ticket);

/* The provider made room for another connection, by its own count of the same limit. */
void admission_count_evicted(struct admission *admission);

uint64_t admission_count(struct admission *admission, enum admission_cause cause);

/* Whether one more log line for that cause may be written now. */
bool admission_may_log(struct admission *admission, enum admission_cause cause);

/* Listeners ------------------------------------------------------------------------------------ */

#define HANDSHAKE_LOG_HOSTS 16

/* A host whose peers do not complete the handshake. */
struct handshake_log_host {
	struct in6_addr host;
	uint64_t next_ns; /* when that may be logged again; 0: none is here */
};

/* Counters of a listener, shared with the links it placed on other lcores. */
struct listener_shared {
	_Atomic uint32_t refs;
	_Atomic uint64_t requests, opened, refused, failed, no_handshake, protocol_broken;
	struct admission admission;
	pthread_mutex_t lock; /* for what follows: only failures take it */
	char last_failure[160];
	struct handshake_log_host log_hosts[HANDSHAKE_LOG_HOSTS];
};

struct plx_listener {
	uint8_t kind; /* first: see event_source() */
	struct plx_set *set;
	struct fid_pep *pep;
	struct plx_listen_attr attr;
	struct listener_shared *shared;
	LIST_ENTRY(plx_listener) of_home; /* le_prev NULL: it failed to listen */
	struct plx_listener *also;  /* at the same address, by a driver of this host; or NULL */
	struct plx_listener *front; /* the one that the user has: itself, or whose `also` it is */
	struct requests requests;   /* on their way to another lcore, and back: see handover.c */
	uint32_t turn;              /* round-robin: the least lcore that is next */
	bool placing;               /* inside a callback that chooses an lcore */
	bool closed;                /* by the user; in the list until its requests are answered */
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

/* Say that no connection can be accepted for a second. */
void listener_out_of_descriptors(struct plx_set *set);

/* handshake_log.c: what "who what" is wrong with the peer of an accepted link; and with one that
 * the provider refused before it was a link. */
void handshake_log_failed(const struct plx_link *link, const char *who, const char *what);
void handshake_log_refused(const struct sockaddr *peer, const char *why, bool evicted,
			   void *shared);

/* handover.c */
void handover_request(struct plx_listener *listener, struct fi_info *info);
void handover_drop_all(struct plx_listener *listener);
void handover_forget_all(struct plx_fabric_lcore *home);

/* spread.c */
int spread_check(const struct plx_listen_attr *attr);
uint32_t spread_choose(struct plx_listener *listener, const struct sockaddr *peer);
uint64_t spread_weight(const struct sockaddr *peer, uint32_t lcore);

#endif
