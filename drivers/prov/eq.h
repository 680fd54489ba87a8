/* SPDX-License-Identifier: BSD-3-Clause */
/* Event queues, and the sockets that events come from. */
#ifndef PROV_EQ_H
#define PROV_EQ_H

#include "prov_cq.h"

#include <list.h>
#include <rdma/fi_eq.h>

#define PROV_CM_DATA_MAX 256 /* private data of connect, accept and reject */

struct prov_fabric;

/* An event that has not been read yet. Events of an endpoint, and a passive endpoint's failure to
 * accept, are stored in the endpoint, so that running out of memory loses none. The queue allocates
 * the others. */
struct prov_event {
	TAILQ_ENTRY(prov_event) link; /* in the queue */
	uint32_t event;               /* FI_CONNREQ ...; for an error, its err */
	bool is_error;
	bool is_user; /* from fi_eq_write: data is the whole event */
	bool is_lent; /* stored in the endpoint */
	bool is_queued;
	fid_t fid;
	void *context;
	struct fi_info *info; /* of a request, until read */
	uint32_t length;      /* of data */
	uint8_t data[PROV_CM_DATA_MAX];
};

/* A point in time at which `passed` runs unless cleared. */
struct prov_deadline {
	TAILQ_ENTRY(prov_deadline) link;
	uint64_t at_ns; /* CLOCK_MONOTONIC; 0: not set */
	void (*passed)(struct prov_deadline *deadline);
};

struct prov_eq {
	struct fid_eq fid;
	struct prov_fabric *fabric;
	TAILQ_HEAD(prov_events, prov_event) events;
	uint8_t err_data[PROV_CM_DATA_MAX]; /* valid until the next read */
	uint32_t refs;
	bool can_write; /* opened with FI_WRITE */
	bool reading;   /* inside a read: the reader needs no signal */
	bool signalled; /* signal_fd is readable: while events are queued, between reads */
	TAILQ_HEAD(prov_deadlines, prov_deadline) deadlines; /* earliest first */
	uint64_t timer_ns;                                   /* its expiry; 0: not set */
	struct plx_watch timer; /* a timerfd; opened with the first deadline */
	/* For listening sockets, handshakes and hang-ups: it has a set or shares one. */
	struct queue_wait wait;
	struct plx_watch *event; /* `ready` runs with each event; NULL: nothing does */
};

int prov_eq_open(struct fid_fabric *fabric, struct fi_eq_attr *attr, struct fid_eq **eq_out,
		 void *context);

/* Queue an event, and wake sleeping threads. event: not queued already; the caller has set all that
 * the parameters do not. Call eq_take_back before freeing one that is lent. data: private data, or
 * NULL. */
void eq_push(struct prov_eq *eq, struct prov_event *event, fid_t fid, const void *data,
	     uint32_t length);
/* The same for FI_CONNREQ, in memory of the queue. The event takes over info. Return: 0;
 * -FI_ENOMEM. */
int eq_push_request(struct prov_eq *eq, fid_t pep, struct fi_info *info, const void *data,
		    uint32_t length);
/* Remove unread events. The first removes one event if it is queued, in constant time, since
 * thousands may be queued; the second removes those of a passive endpoint, with their requests. */
void eq_take_back(struct prov_eq *eq, struct prov_event *event);
void eq_forget(struct prov_eq *eq, fid_t pep);

static inline int eq_watch(struct prov_eq *eq, struct plx_watch *source, uint32_t epoll_events)
{
	return queue_watch(&eq->wait, source, epoll_events);
}

static inline void eq_unwatch(struct prov_eq *eq, struct plx_watch *source)
{
	queue_unwatch(&eq->wait, source);
}

/* Open what deadlines need, so that setting one never fails for want of a descriptor. Return: 0;
 * -errno. */
int eq_prepare_deadlines(struct prov_eq *eq);
/* Set a deadline that is not set. A read of the queue after that time calls `passed`, once.
 * Takes constant time if deadlines are set in order of expiry. Return: 0; -errno. */
int eq_set_deadline(struct prov_eq *eq, struct prov_deadline *deadline, uint64_t at_ns);
void eq_clear_deadline(struct prov_eq *eq,
		       struct prov_deadline *deadline); /* accepts an unset one */
/* Until the first one; UINT64_MAX: there is none. */
uint64_t eq_left_ns(const struct fid_eq *fid);
/* Handle at most 16 ready sockets and deadlines; of a shared set, only deadlines. Return: their
 * number. */
int eq_progress(struct prov_eq *eq);
int eq_arm(struct prov_eq *eq); /* fi_trywait */

#endif
