/* SPDX-License-Identifier: BSD-3-Clause */
/* Listeners, and the choice of an lcore for each connection.
 *
 *   listen.c     listens on the addresses of a name, with each possible driver
 *   listener.c   a listener, its counters, and its end
 *   handover.c   from a connection request to a link on some lcore
 *   admission.h  limits on connections (struct plx_admission): admission.c, limits.c, origin.c,
 *                turns.c
 *   admit.c      a listener's answers to providers, by these limits
 *   spread.c     the choice of an lcore
 */
#ifndef FABRIC_LISTEN_H
#define FABRIC_LISTEN_H

#include "admission.h"
#include "counter.h"
#include "fabric_address.h"
#include "fabric_lcore.h"
#include "fabric_provider.h"

/* Listeners ------------------------------------------------------------------------------------ */

#define HANDSHAKE_LOGS 64

/* A listener's attributes and counters, shared with its requests and links on other lcores. */
struct listener_shared {
	_Atomic uint32_t refs;
	_Atomic uint64_t requests, opened, refused, failed, no_handshake, protocol_broken;
	struct plx_listen_attr attr; /* constant */
	bool offers_same_host;       /* a driver of that kind listens; set before a request comes */
	struct admission admission;
	char last_failure[160];         /* this and the next one under the lock of admission */
	char last_refused[256];         /* the log line of a limit */
	struct plx_siphash_key log_key; /* random: hosts cannot choose to share with another */
	/* Earliest time of the next log line of a host, by its hash; relaxed: guards no data. */
	_Atomic uint64_t log_next_ns[HANDSHAKE_LOGS];
};

struct plx_listener {
	uint8_t kind; /* first: see event_source() */
	struct plx_fabric_lcore *home;
	struct plx_set *set;
	struct fid_pep *pep; /* NULL: it has ended, or failed to listen */
	struct listener_shared *shared;
	LIST_ENTRY(plx_listener) of_home; /* le_prev NULL: it failed to listen */
	struct plx_listener *front; /* the user's listener: itself, or one in whose `also` it is */
	LIST_HEAD(, plx_listener) also;    /* other drivers' and addresses' listeners */
	LIST_ENTRY(plx_listener) of_front; /* in its `also`; le_prev NULL: it is the user's */
	uint32_t turn;                     /* round-robin: search for the next lcore from here */
	char address[PLX_ADDRESS_MAX];
	uint16_t port;
};

/* listener.c */
/* attr: its admission is checked. Return: NULL: no memory. */
struct listener_shared *listener_shared_create(const struct plx_listen_attr *attr);
/* Stop listening. The user's handle stays valid until listener_free. */
void listener_end(struct plx_listener *listener);
void listener_free(struct plx_listener *listener);
void listener_ref(struct listener_shared *shared);
void listener_failed(const struct plx_link *link);
void listener_unref(struct listener_shared *shared);

/* A connection ended before it was a link. left: its peer had said nothing. */
void listener_no_handshake(const struct ticket *ticket, bool left, const char *why);

/* admit.c */
#define ADMIT_WHY_BYTES 192
/* Ask whether to take a connection; end those that make room for it, log and count. */
void admit_ask(struct listener_shared *shared, const struct plx_admit_request *asked,
	       struct admission_answer *answer_out);
/* Give the provider of a new passive endpoint the calls by which it asks. */
void admit_offer(struct plx_listener *listener);

/* handover.c */
/* FI_CONNREQ, with its private data. Ownership: takes info. */
void handover_request(struct plx_listener *listener, struct fi_info *info, const void *data,
		      size_t length);
/* Reject the request of an evicted connection, unless its target was first. */
void handover_evict(struct request *request, const void *data, size_t length);
/* The listener is about to be freed: refuse those that it has not sent, or that need it. */
void handover_close(const struct plx_listener *listener);
/* Refuse all that this lcore has read. No lcore runs. */
void handover_fini(struct plx_fabric_lcore *home);

/* spread.c */
int spread_check(struct plx_listen_attr *attr); /* names all lcores if it names none */
uint32_t spread_choose(struct plx_listener *listener, const struct sockaddr *peer);
uint64_t spread_weight(const struct sockaddr *peer, uint32_t lcore);

#endif
