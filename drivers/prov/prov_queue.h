/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by completion and event queues: epoll sets, wait times and error texts. */
#ifndef PROV_QUEUE_H
#define PROV_QUEUE_H

#include <plx_watch.h>
#include <rdma/fi_eq.h>
#include <stdbool.h>
#include <stdint.h>

/* How a queue learns that it has work. A descriptor that is not open is -1. */
struct queue_wait {
	int epoll_fd;              /* its own set, and its wait object if it has one */
	int signal_fd;             /* an eventfd in it; its data is NULL */
	struct plx_watch_set *set; /* it shares this one instead; NULL: it does not */
	struct plx_watch nested;   /* epoll_fd in `set` */
};

/* All zero otherwise. */
#define QUEUE_WAIT_NONE (struct queue_wait){.epoll_fd = -1, .signal_fd = -1, .nested.fd = -1}

/* Whether the wait object is supported. Return: 0; -FI_ENOSYS. */
int queue_check_wait(enum fi_wait_obj wait_obj);
/* Return: 0; -errno: call queue_close_wait for the descriptors that were opened. */
int queue_open_wait(struct queue_wait *wait, bool with_signal);
void queue_close_wait(struct queue_wait *wait);
/* Share a set. nests: its own one lies in it from now on; otherwise it is closed. Return: 0;
 * -errno. */
int queue_join(struct queue_wait *wait, struct plx_watch_set *set, bool nests);

/* Add to its set, or change the events. Return: 0; -errno. */
int queue_watch(const struct queue_wait *wait, struct plx_watch *watch, uint32_t events);
void queue_unwatch(const struct queue_wait *wait, struct plx_watch *watch); /* accepts fd -1 */

/* Whether it was opened with FI_WAIT_FD. */
static inline bool queue_can_sleep(const struct queue_wait *wait)
{
	return wait->signal_fd >= 0;
}

/* Whether something wakes its owner: fi_trywait works. */
static inline bool queue_can_arm(const struct queue_wait *wait)
{
	return queue_can_sleep(wait) || wait->set;
}

/* FI_GETWAIT and FI_GETWAITOBJ; otherwise -FI_ENOSYS. */
int queue_control(const struct queue_wait *wait, int command, void *arg);

/* CLOCK_MONOTONIC. */
uint64_t queue_now_ns(void);
/* The end of a wait that starts now; timeout_ms < 0: never. */
uint64_t queue_end_ns(int timeout_ms);
/* Time left for poll(2), rounded up; 0: over; -1: unlimited. */
int queue_left_ms(uint64_t end_ns);

/* For fi_cq_strerror and fi_eq_strerror. buf may be NULL. */
const char *queue_error_text(int err, char *buf, size_t size);

#endif
