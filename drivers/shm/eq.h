/* SPDX-License-Identifier: BSD-3-Clause */
/* Event queues, and the sockets that events come from. */
#ifndef SHM_EQ_H
#define SHM_EQ_H

#include "list.h"
#include "queue.h"
#include "wire.h"

#include <rdma/fi_eq.h>

struct shm_fabric;

/* An event that waits to be read. What is told of an endpoint, and that a passive endpoint cannot
 * accept, is in memory of the endpoint's own, as it must not get lost because there is none; else
 * it is the queue's. */
struct shm_event {
	struct shm_list link; /* among those of the queue */
	uint32_t event;       /* FI_CONNREQ ...; of an error: its err */
	bool is_error;
	bool is_user; /* by fi_eq_write: data is all of it */
	bool is_lent; /* its memory is the endpoint's */
	bool is_queued;
	fid_t fid;
	void *context;
	struct fi_info *info; /* of a request, until it is read */
	uint32_t length;      /* of data */
	uint8_t data[SHM_CM_DATA_MAX];
};

struct shm_eq {
	struct fid_eq fid;
	struct shm_fabric *fabric;
	struct shm_list events;
	uint8_t err_data[SHM_CM_DATA_MAX]; /* valid until the next read */
	uint32_t refs;
	bool can_write; /* FI_WRITE was asked for */
	bool reading;   /* inside a read of it: who reads needs no signal */
	bool signalled; /* signal_fd is readable: so while events are queued, between reads */
	/* For listening sockets, handshakes, hang-ups: epoll_fd is always there. */
	struct queue_wait wait;
};

/* What epoll_event.data.ptr of an EQ points to; NULL for its signal_fd. */
enum shm_source_kind { SOURCE_PEP, SOURCE_PEP_TIMER, SOURCE_REQUEST, SOURCE_EP };
struct shm_source {
	enum shm_source_kind kind;
	int fd; /* -1: none */
};

int shm_eq_open(struct fid_fabric *fabric, struct fi_eq_attr *attr, struct fid_eq **eq_out,
		void *context);

/* Queue an event of an endpoint. event: memory of the endpoint's that was not given before;
 * eq_take_back comes before its end. data: private data, or NULL. Whoever sleeps on the queue is
 * woken. */
void eq_push(struct shm_eq *eq, struct shm_event *event, uint32_t number, fid_t fid,
	     const void *data, uint32_t length);
void eq_push_error(struct shm_eq *eq, struct shm_event *event, fid_t fid, int err, const void *data,
		   uint32_t length);
/* The same for FI_CONNREQ, in memory of the queue's. info becomes the event's. Return: 0;
 * -FI_ENOMEM. */
int eq_push_request(struct shm_eq *eq, fid_t pep, struct fi_info *info, const void *data,
		    uint32_t length);
/* Events that were not read: one, if it is queued, in constant time, as thousands may wait; those
 * of a passive endpoint. */
void eq_take_back(struct shm_eq *eq, struct shm_event *event);
void eq_forget(struct shm_eq *eq, fid_t pep);

int eq_watch(struct shm_eq *eq, struct shm_source *source, uint32_t epoll_events);
void eq_unwatch(struct shm_eq *eq, struct shm_source *source);
/* Handle what sockets have: at most 16 of them. Returns how many. */
int eq_progress(struct shm_eq *eq);
int eq_arm(struct shm_eq *eq); /* fi_trywait */

#endif
