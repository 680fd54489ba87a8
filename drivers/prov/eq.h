/* SPDX-License-Identifier: BSD-3-Clause */
/* Event queues, and the sockets that events come from. */
#ifndef PROV_EQ_H
#define PROV_EQ_H

#include "prov_queue.h"

#include <list.h>
#include <rdma/fi_eq.h>

#define PROV_CM_DATA_MAX 256 /* private data of connect, accept and reject */

struct prov_fabric;

/* An event that waits to be read. Events of an endpoint, and the failure of a passive endpoint to
 * accept, lie in the endpoint's memory, so that none is lost for want of memory. Others are
 * allocated by the queue. */
struct prov_event {
	TAILQ_ENTRY(prov_event) link; /* among those of the queue */
	uint32_t event;               /* FI_CONNREQ ...; of an error: its err */
	bool is_error;
	bool is_user; /* by fi_eq_write: data is all of it */
	bool is_lent; /* its memory is the endpoint's */
	bool is_queued;
	fid_t fid;
	void *context;
	struct fi_info *info; /* of a request, until it is read */
	uint32_t length;      /* of data */
	uint8_t data[PROV_CM_DATA_MAX];
};

/* What epoll_event.data.ptr of an EQ points to; NULL for its signal_fd. */
struct prov_source {
	int fd; /* -1: none */
	void (*ready)(struct prov_source *source);
};

/* A time until which something should have happened. */
struct prov_deadline {
	TAILQ_ENTRY(prov_deadline) link;
	uint64_t at_ns; /* CLOCK_MONOTONIC; 0: it is not set */
	void (*passed)(struct prov_deadline *deadline);
};

struct prov_eq {
	struct fid_eq fid;
	struct prov_fabric *fabric;
	TAILQ_HEAD(prov_events, prov_event) events;
	uint8_t err_data[PROV_CM_DATA_MAX]; /* valid until the next read */
	uint32_t refs;
	bool can_write; /* FI_WRITE was asked for */
	bool reading;   /* inside a read of it: the reader needs no signal */
	bool signalled; /* signal_fd is readable: so while events are queued, between reads */
	TAILQ_HEAD(prov_deadlines, prov_deadline) deadlines; /* the next one first */
	uint64_t timer_ns;        /* when it is set to expire; 0: it is not */
	struct prov_source timer; /* a timerfd; none until there is a deadline */
	/* For listening sockets, handshakes, hang-ups: epoll_fd is always there. */
	struct queue_wait wait;
};

int prov_eq_open(struct fid_fabric *fabric, struct fi_eq_attr *attr, struct fid_eq **eq_out,
		 void *context);

/* Queue an event of an endpoint. event: memory of the endpoint's that was not given before;
 * eq_take_back comes before its end. data: private data, or NULL. Whoever sleeps on the queue is
 * woken. */
void eq_push(struct prov_eq *eq, struct prov_event *event, uint32_t number, fid_t fid,
	     const void *data, uint32_t length);
void eq_push_error(struct prov_eq *eq, struct prov_event *event, fid_t fid, int err,
		   const void *data, uint32_t length);
/* The same for FI_CONNREQ, in memory of the queue's. info becomes the event's. Return: 0;
 * -FI_ENOMEM. */
int eq_push_request(struct prov_eq *eq, fid_t pep, struct fi_info *info, const void *data,
		    uint32_t length);
/* Events that were not read: one, if it is queued, in constant time, as thousands may wait; those
 * of a passive endpoint. */
void eq_take_back(struct prov_eq *eq, struct prov_event *event);
void eq_forget(struct prov_eq *eq, fid_t pep);

int eq_watch(struct prov_eq *eq, struct prov_source *source, uint32_t epoll_events);
void eq_unwatch(struct prov_eq *eq, struct prov_source *source);
/* Open what deadlines need, so that none fails for want of a descriptor later. Return: 0; -errno.
 */
int eq_prepare_deadlines(struct prov_eq *eq);
/* Set a deadline that is not set. A read of the queue after that time calls `passed`, once.
 * Deadlines that are set in the order in which they end take constant time. Return: 0; -errno. */
int eq_set_deadline(struct prov_eq *eq, struct prov_deadline *deadline, uint64_t at_ns);
void eq_clear_deadline(struct prov_eq *eq,
		       struct prov_deadline *deadline); /* accepts one that is not set */
/* Handle what sockets have: at most 16 of them. Returns how many. */
int eq_progress(struct prov_eq *eq);
int eq_arm(struct prov_eq *eq); /* fi_trywait */

#endif
