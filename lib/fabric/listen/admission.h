/* SPDX-License-Identifier: BSD-3-Clause */
/* Which incoming connections a listener takes, and when. What unknown peers hold is counted per
 * address and in all; at a limit, the address that holds most pays.
 *
 *   admission.c  tickets: one per connection, and the verdicts
 *   limits.c     the limits, and the texts of refusals
 *   origin.c     what each address holds
 *   turns.c      the rate, and whose turn it is
 */
#ifndef FABRIC_ADMISSION_H
#define FABRIC_ADMISSION_H

#include "fabric_lcore.h"
#include "plx_admit.h"

#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>

struct listener_shared;
struct request;

#define NETWORK_TIMES 2 /* an IPv6 /48 may have as many links as this number of addresses */

/* Origins -------------------------------------------------------------------------------------- */

/* What an address holds: connections taken, until they end; of these, not open yet; and those not
 * taken yet. */
enum origin_share { ORIGIN_LINKS, ORIGIN_HALF_OPEN, ORIGIN_WAITING, ORIGIN_SHARES };

/* An address, or a user over shm. An IPv6 /64 counts as one address; the one above it is its /48.
 * Above all of them is the root, which counts everything. */
struct origin {
	struct in6_addr key;   /* never changes; first: see tree_by_address */
	struct origin *parent; /* NULL: the root */
	LIST_HEAD(, origin)
	busy, quiet; /* those below it: with connections not open yet, without */
	LIST_ENTRY(origin) of_parent;
	uint32_t shares[ORIGIN_SHARES];
	uint64_t next_turn;                       /* see turns.c; of the highest below the root */
	TAILQ_HEAD(tickets, ticket) silent, kept; /* tickets in those states, oldest first */
};

struct origins {
	struct origin root;
	void *by_key; /* struct origin: tsearch(3) */
};

void origins_init(struct origins *origins);
/* The key of a connection's origin. */
struct in6_addr origin_key(const struct plx_admit_request *asked);
/* Created if needed. Return: NULL: no memory. */
struct origin *origin_find(struct origins *origins, const struct in6_addr *key);
/* Add to a count of the origin and of those above it. */
void origin_add(struct origin *origin, enum origin_share share, int more);
/* Free it, and those above it, if they hold nothing. */
void origin_release(struct origins *origins, struct origin *origin);
/* The address that holds most: of the highest level, then below it. Return: NULL: nobody holds
 * any. */
struct origin *origin_most(struct origins *origins, enum origin_share share);
/* The highest one below the root. */
struct origin *origin_top(struct origin *origin);
/* "192.0.2.1", "2001:db8:1:2::/64", "user 1000". out: ORIGIN_TEXT_BYTES. Return: out. */
#define ORIGIN_TEXT_BYTES 56
const char *origin_key_text(const struct in6_addr *key, char *out);

/* Turns ---------------------------------------------------------------------------------------- */

#define TURNS_MAX 4096 /* connections that wait; a power of two */

/* A rate, and a queue in which each address has one turn after the other: start-time fair queueing
 * (Goyal, Vin, Cheng, IEEE/ACM ToN 5(5), 1997) with turns as virtual time. */
struct turns {
	uint64_t gap_ns;   /* between two; 0: no rate */
	uint64_t burst_ns; /* unused time that may be caught up */
	uint64_t next_ns;  /* when the next one is due */
	uint64_t first;    /* the first turn that a connection waits for */
	uint32_t waiting;
	uint16_t counts[TURNS_MAX]; /* waiting, by turn, mod TURNS_MAX */
};

void turns_init(struct turns *turns, uint32_t per_s);
/* Queue one more. next: the turn after the last one of its address. Return: its turn. */
uint64_t turns_join(struct turns *turns, uint64_t *next);
void turns_leave(struct turns *turns, uint64_t turn);
/* How long the one that waits for this turn must wait; 0: it is due. */
uint64_t turns_wait_ns(const struct turns *turns, uint64_t turn, bool is_last, uint64_t now_ns);
/* One is taken. */
void turns_use(struct turns *turns, uint64_t now_ns);

/* Tickets -------------------------------------------------------------------------------------- */

enum admission_cause {
	ADMISSION_LINKS,
	ADMISSION_HOST,
	ADMISSION_RATE,
	ADMISSION_HANDSHAKES,
	ADMISSION_EVICTED,
	ADMISSION_CAUSES,
	ADMISSION_NONE = ADMISSION_CAUSES,
};

/*  WAITING ---> SILENT ---> OPEN      from accept(2) to the end of its link
 *     |           |
 *     '-----------'---> LOST         it made room for another one
 */
enum ticket_state {
	TICKET_WAITING, /* for its turn */
	TICKET_SILENT,  /* taken; its link is not open */
	TICKET_OPEN,
	TICKET_LOST,
};

/* Who can end a connection: one of these, or none of them. */
struct ticket_holder {
	void *connection;        /* its provider, which has not reported it: by `close` */
	struct request *request; /* see handover.c */
	struct plx_link *link;   /* the lcore of its link: */
	uint32_t lcore;
};

/* A connection, from accept(2) or its request until its link has ended. */
struct ticket {
	struct listener_shared *shared; /* holds a reference */
	struct origin *origin;
	enum ticket_state state;
	bool is_taken;                 /* counts as a link */
	bool is_half_open;             /* counts as one */
	uint64_t turn, since_ns;       /* of the present state */
	TAILQ_ENTRY(ticket) of_origin; /* kept or silent, by state */
	struct ticket_holder holder;
	void (*close)(void *connection, const void *data, size_t length);
	_Atomic bool evicted; /* relaxed: only logs read it */
	unsigned refs;        /* the connection, and an eviction */
	struct plx_call call; /* of an eviction */
};

/* Silent connections are not closed for another one of an address that holds as many until then: an
 * honest peer may be slow, and would come again. One that was closed may come again after that. */
#define ADMISSION_GRACE_NS (100 * PLX_NS_PER_MS)

/* Per listener, shared by the lcores of its links. */
struct admission {
	pthread_mutex_t lock;
	struct plx_admission limits;
	uint64_t wait_max_ns;
	uint32_t waiting_max;
	struct origins origins;
	struct turns turns;
	uint32_t closing; /* evicted, not closed yet, and still half-open */
	_Atomic uint64_t counts[ADMISSION_CAUSES];
	struct plx_log_limit
		log_limits[ADMISSION_CAUSES + 1]; /* and of no memory; the listener's lcore */
};

struct admission_answer {
	enum plx_admit_verdict verdict;
	enum admission_cause cause; /* if refused; ADMISSION_NONE: no memory */
	uint64_t wait_ns;           /* if kept */
	uint64_t again_ns;          /* when those that are refused or make room may come again */
	struct ticket *ticket;      /* NULL: refused */
	struct ticket *victim;      /* makes room; holds a reference. NULL: none */
	enum admission_cause victim_cause;
	struct in6_addr victim_key; /* of its origin */
};

/* The limits of the process. Return: 0; -EINVAL with a text. */
int admission_init_defaults(const struct plx_admission *conf);
/* Complete the limits of a listener with the defaults. Return: 0; -EINVAL with a text. */
int admission_check(const struct plx_admission *asked, struct plx_admission *out);
/* limits: checked. timeout_ns: for which a peer waits. */
void admission_init(struct admission *admission, const struct plx_admission *limits,
		    uint64_t timeout_ns);
/* Whether to take a connection now. */
void admission_ask(struct listener_shared *shared, const struct plx_admit_request *asked,
		   uint64_t now_ns, struct admission_answer *answer_out);
/* Change who can end it. Nobody can between its provider's report and the reading of its request.
 * Return: whether it may continue; false: it was evicted, and has no holder. */
bool admission_hold(struct ticket *ticket, struct ticket_holder holder);
void admission_opened(struct ticket *ticket); /* its handshake is complete */
void admission_leave(struct ticket *ticket);  /* it has ended; accepts NULL */
/* A provider's connection to close, so that a descriptor is free. Return: NULL: none. */
void *admission_descriptor(struct admission *admission);
/* For the side that evicts: what is left of the connection, and that this side is done. */
struct ticket_holder admission_holder(struct ticket *ticket);
void admission_unref(struct ticket *ticket);
/* Why a connection of that origin is refused; out: of that size. */
void admission_text(struct admission *admission, enum admission_cause cause,
		    const struct in6_addr *key, char *out, size_t size);

#endif
