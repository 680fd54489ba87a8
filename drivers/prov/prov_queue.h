/* SPDX-License-Identifier: BSD-3-Clause */
/* What completion queues and event queues have in common: an object to be waited for, how long a
 * wait may take, and the text of an error. */
#ifndef PROV_QUEUE_H
#define PROV_QUEUE_H

#include <rdma/fi_eq.h>
#include <stdbool.h>
#include <stdint.h>

/* Either descriptor is -1 where there is none. */
struct queue_wait {
	int epoll_fd;  /* what is waited for */
	int signal_fd; /* an eventfd in it, with NULL as its data */
};

/* Whether there is such a wait object. Return: 0; -FI_ENOSYS. */
int queue_check_wait(enum fi_wait_obj wait_obj);
/* Return: 0; -errno, with what was opened left to queue_close_wait. */
int queue_open_wait(struct queue_wait *wait, bool with_signal);
void queue_close_wait(struct queue_wait *wait);

/* Whether it was opened with FI_WAIT_FD. */
static inline bool queue_can_sleep(const struct queue_wait *wait)
{
	return wait->signal_fd >= 0;
}

/* FI_GETWAIT and FI_GETWAITOBJ; else -FI_ENOSYS. */
int queue_control(const struct queue_wait *wait, int command, void *arg);

/* CLOCK_MONOTONIC. */
uint64_t queue_now_ns(void);
/* When a wait that begins now ends; timeout_ms < 0: never. */
uint64_t queue_end_ns(int timeout_ms);
/* What is left until then, for poll(2): rounded up; 0 it is over; -1 it never is. */
int queue_left_ms(uint64_t end_ns);

/* For fi_cq_strerror and fi_eq_strerror. buf may be NULL. */
const char *queue_error_text(int err, char *buf, size_t size);

#endif
