/* SPDX-License-Identifier: BSD-3-Clause */
/* Sockets and deadlines that an event queue watches. */
#include "prov.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define HANDLED_MAX 16 /* sockets and deadlines per progress */

int eq_watch(struct prov_eq *eq, struct prov_source *source, uint32_t epoll_events)
{
	struct epoll_event event = {.events = epoll_events, .data.ptr = source};

	if (epoll_ctl(eq->wait.epoll_fd, EPOLL_CTL_ADD, source->fd, &event) == 0)
		return 0;
	if (errno == EEXIST && epoll_ctl(eq->wait.epoll_fd, EPOLL_CTL_MOD, source->fd, &event) == 0)
		return 0;
	return -errno;
}

void eq_unwatch(struct prov_eq *eq, struct prov_source *source)
{
	if (source->fd >= 0)
		epoll_ctl(eq->wait.epoll_fd, EPOLL_CTL_DEL, source->fd, NULL);
}

/* One at a time, because handling one may free another. The kernel reports ready sockets in turn:
 * when signal_fd appears a second time, all others have been handled. */
int eq_progress(struct prov_eq *eq)
{
	struct epoll_event event;
	bool signal_seen = false;
	int count = 0;

	while (count < HANDLED_MAX && epoll_wait(eq->wait.epoll_fd, &event, 1, 0) == 1) {
		if (event.data.ptr) {
			struct prov_source *source = event.data.ptr;

			source->ready(source);
			count++;
		} else if (signal_seen) {
			break;
		} else {
			signal_seen = true;
		}
	}
	return count;
}

int eq_arm(struct prov_eq *eq)
{
	if (!queue_can_sleep(&eq->wait))
		return -FI_EINVAL;
	if (TAILQ_EMPTY(&eq->events))
		eq_progress(eq);
	return TAILQ_EMPTY(&eq->events) ? 0 : -FI_EAGAIN;
}

/* Deadlines ---------------------------------------------------------------------------------- */

/* One timer serves all deadlines and is set to the earliest. It may expire early if that deadline
 * was cleared. */
static void set_timer(struct prov_eq *eq, uint64_t at_ns)
{
	struct itimerspec at = {
		.it_value = {.tv_sec = (time_t)(at_ns / PLX_NS_PER_S),
			     .tv_nsec = (long)(at_ns % PLX_NS_PER_S)},
	};

	timerfd_settime(eq->timer.fd, TFD_TIMER_ABSTIME, &at, NULL);
	eq->timer_ns = at_ns;
}

/* One deadline at a time, as with sockets. The timer stays readable until none is due. */
static void timer_expired(struct prov_source *source)
{
	struct prov_eq *eq = plx_container_of(source, struct prov_eq, timer);
	struct prov_deadline *first = TAILQ_FIRST(&eq->deadlines);
	uint64_t expired;

	if (first && first->at_ns <= queue_now_ns()) {
		eq_clear_deadline(eq, first);
		first->passed(first);
		return;
	}
	if (read(eq->timer.fd, &expired, sizeof(expired)) < 0)
		return;
	eq->timer_ns = 0;
	if (first)
		set_timer(eq, first->at_ns);
}

int eq_prepare_deadlines(struct prov_eq *eq)
{
	int rc;

	if (eq->timer.fd >= 0)
		return 0;
	eq->timer.ready = timer_expired;
	eq->timer.fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (eq->timer.fd < 0)
		return -errno;
	rc = eq_watch(eq, &eq->timer, EPOLLIN);
	if (rc) {
		close(eq->timer.fd);
		eq->timer.fd = -1;
	}
	return rc;
}

int eq_set_deadline(struct prov_eq *eq, struct prov_deadline *deadline, uint64_t at_ns)
{
	struct prov_deadline *before = TAILQ_LAST(&eq->deadlines, prov_deadlines);
	int rc = eq_prepare_deadlines(eq);

	if (rc)
		return rc;
	while (before && before->at_ns > at_ns)
		before = TAILQ_PREV(before, prov_deadlines, link);
	if (before)
		TAILQ_INSERT_AFTER(&eq->deadlines, before, deadline, link);
	else
		TAILQ_INSERT_HEAD(&eq->deadlines, deadline, link);
	deadline->at_ns = at_ns;
	if (!eq->timer_ns || at_ns < eq->timer_ns)
		set_timer(eq, at_ns);
	return 0;
}

void eq_clear_deadline(struct prov_eq *eq, struct prov_deadline *deadline)
{
	if (deadline->at_ns)
		TAILQ_REMOVE(&eq->deadlines, deadline, link);
	deadline->at_ns = 0;
}
