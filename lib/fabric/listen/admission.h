/* SPDX-License-Identifier: BSD-3-Clause */
/* Which connections a listener takes: see struct plx_admission. */
#ifndef PLX_ADMISSION_H
#define PLX_ADMISSION_H

#include "fabric_priv.h"

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
	struct ticket *next, **prev_next; /* NULL: it is open, or was evicted */
	struct request *request;          /* on the listener's lcore, not placed yet; or NULL */
	struct plx_link *link;            /* its lcore's; NULL: none yet, or none any more */
	uint32_t lcore;                   /* of the link */
	_Atomic bool evicted;             /* relaxed: only logs ask */
	unsigned refs;                    /* the connection, and who evicts it */
	struct plx_call call;
};

/* Of a listener, shared by the lcores of its links. */
struct admission {
	pthread_mutex_t lock;
	struct plx_admission limits;
	void *hosts; /* struct admission_host by address: tsearch(3) */
	uint32_t links, handshakes;
	struct ticket *oldest, **newest_next;
	uint64_t next_ns; /* when the next connection is due, by accepts_per_s */
	uint64_t counts[ADMISSION_CAUSES];
	struct plx_log_limit log_limits[ADMISSION_CAUSES];
};

/* What listeners have that ask for nothing else. */
void admission_set_defaults(const struct plx_admission *conf);

void admission_init(struct admission *admission, const struct plx_admission *asked);
void admission_fini(struct admission *admission);

/* A connection asks to be taken. *wait_ns_out: how long it has to wait first, up to most_ns; where
 * all that may open at a time do, *evicted_out is one of them that must end, or NULL.
 * Return: 0; -ENOMEM; -EBUSY not taken: *cause_out. */
int admission_ask(struct admission *admission, const struct in6_addr *host, uint64_t most_ns,
		  struct ticket **ticket_out, struct ticket **evicted_out, uint64_t *wait_ns_out,
		  enum admission_cause *cause_out);

/* Where it comes from, as admission_ask was told. Valid until admission_leave. */
struct in6_addr admission_address(const struct ticket *ticket);

/* It has a link on the calling lcore now, and is no request any more. */
void admission_placed(struct ticket *ticket, struct plx_link *link);

/* The connection is open: no handshake any more. */
void admission_opened(struct ticket *ticket);

/* It is gone; NULL is accepted. */
void admission_leave(struct ticket *ticket);

/* What an evicted one is now. */
struct plx_link *admission_link(struct ticket *ticket, uint32_t *lcore_out);
struct request *admission_request(struct ticket *ticket);

/* Who evicts it refers to it until then. */
void admission_let_go(struct ticket *ticket);

/* The provider made room for another connection, by its own count of the same limit. */
void admission_count_evicted(struct admission *admission);

uint64_t admission_count(struct admission *admission, enum admission_cause cause);

/* Whether one more log line for that cause may be written now. */
bool admission_may_log(struct admission *admission, enum admission_cause cause);

#endif
