/* SPDX-License-Identifier: BSD-3-Clause */
/* Listeners, and which lcore gets a connection that comes to one. */
#ifndef PLX_LISTEN_H
#define PLX_LISTEN_H

#include "admission.h"
#include "fabric_priv.h"

#define STRANGERS_MAX 16

/* A host whose peers do not complete the handshake. */
struct stranger {
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
	struct stranger strangers[STRANGERS_MAX];
};

struct plx_listener {
	uint8_t kind; /* first: see event_source() */
	struct plx_set *set;
	struct fid_pep *pep;
	struct plx_listen_attr attr;
	struct listener_shared *shared;
	struct plx_listener *next;
	struct plx_listener *also;  /* at the same address, by a driver of this host; or NULL */
	struct plx_listener *front; /* the one that the user has: itself, or whose `also` it is */
	struct request *requests;   /* on their way to another lcore, and back: see handover.c */
	uint32_t turn;              /* round-robin: the least lcore that is next */
	bool placing;               /* inside a callback that chooses an lcore */
	bool closed;                /* by the user; in the list until its requests are answered */
	char address[PLX_ADDRESS_MAX];
	uint16_t port;
};

/* listen.c */
void listener_free(struct plx_listener *listener);
void listener_release(struct plx_listener *listener);
void listener_ref(struct listener_shared *shared);
void listener_requested(struct listener_shared *shared);
void listener_refused(struct listener_shared *shared);
void listener_opened(struct listener_shared *shared);
void listener_protocol_broken(struct listener_shared *shared);
void listener_failed(const struct plx_link *link);
void listener_unref(struct listener_shared *shared);

/* Say that no connection can be accepted for a second. */
void listener_out_of_descriptors(struct plx_set *set);

/* stranger.c: what "who what" is wrong with the peer of an accepted link; and with one that the
 * provider refused before it was a link. */
void stranger_tell(const struct plx_link *link, const char *who, const char *what);
void stranger_refused(const struct sockaddr *peer, const char *why, bool evicted, void *shared);

/* handover.c */
void handover_request(struct plx_listener *listener, struct fi_info *info);
void handover_drop_all(struct plx_listener *listener);
void handover_forget_all(struct plx_fabric_lcore *home);

/* spread.c */
int spread_check(const struct plx_listen_attr *attr);
uint32_t spread_choose(struct plx_listener *listener, const struct sockaddr *peer);
uint64_t spread_weight(const struct sockaddr *peer, uint32_t lcore);

#endif
