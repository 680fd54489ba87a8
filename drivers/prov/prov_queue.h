/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by completion and event queues: wait objects, wait times and error texts. */
#ifndef PROV_QUEUE_H
#define PROV_QUEUE_H

#include <rdma/fi_eq.h>
#include <stdbool.h>
#include <stdint.h>

/* A descriptor that is not open is -1. */
struct queue_wait {
	int epoll_fd;  /* the wait object */
	int signal_fd; /* an eventfd in it; its data is NULL */
};

/* Whether the wait object is supported. Return: 0; -FI_ENOSYS. */
int queue_check_wait(enum fi_wait_obj wait_obj);
/* Return: 0; -errno: call queue_close_wait for the descriptors that were opened. */
int queue_open_wait(struct queue_wait *wait, bool with_signal);
void queue_close_wait(struct queue_wait *wait);

/* Whether it was opened with FI_WAIT_FD. */
static inline bool queue_can_sleep(const struct queue_wait *wait)
{
	return wait->signal_fd >= 0;
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
