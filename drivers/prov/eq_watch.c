/* SPDX-License-Identifier: BSD-3-Clause */
/* Sockets and deadlines that an event queue watches. */
#include "prov.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define HANDLED_MAX 16 /* sockets and deadlines per progress */

/* One at a time, because handling one may free another. The kernel reports ready sockets in turn:
 * when signal_fd appears a second time, all others have been handled. */
static int progress_own(struct prov_eq *eq)
{
	struct epoll_event event;
	bool signal_seen = false;
	int count = 0;

	while (count < HANDLED_MAX && epoll_wait(eq->wait.epoll_fd, &event, 1, 0) == 1) {
		if (event.data.ptr) {
			struct plx_watch *source = event.data.ptr;

			source->ready(source, event.events);
			count++;
		} else if (signal_seen) {
			break;
		} else {
			signal_seen = true;
		}
	}
	return count;
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

uint64_t eq_left_ns(const struct fid_eq *fid)
{
	const struct prov_eq *eq = (const struct prov_eq *)fid;
	const struct prov_deadline *first = TAILQ_FIRST(&eq->deadlines);

	return first ? plx_time_since(queue_now_ns(), first->at_ns) : UINT64_MAX;
}

/* One at a time, as with sockets. Return: whether one was due. */
static bool expire(struct prov_eq *eq)
{
	struct prov_deadline *first = TAILQ_FIRST(&eq->deadlines);

	if (eq_left_ns(&eq->fid) > 0)
		return false;
	eq_clear_deadline(eq, first);
	first->passed(first);
	return true;
}

/* The timer stays readable until none is due. */
static void timer_expired(struct plx_watch *timer, uint32_t events)
{
	struct prov_eq *eq = plx_container_of(timer, struct prov_eq, timer);
	const struct prov_deadline *first;
	uint64_t expired;

	if (expire(eq))
		return;
	first = TAILQ_FIRST(&eq->deadlines);
	if (read(eq->timer.fd, &expired, sizeof(expired)) < 0)
		return;
	eq->timer_ns = 0;
	if (first)
		set_timer(eq, first->at_ns);
}

int eq_prepare_deadlines(struct prov_eq *eq)
{
	int rc;

	if (eq->timer.fd >= 0 || eq->wait.set) /* its owner asks for the time */
		return 0;
	eq->timer.ready = timer_expired;
	eq->timer.fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (eq->timer.fd < 0)
		return -errno;
	rc = queue_watch(&eq->wait, &eq->timer, EPOLLIN);
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
	if (!eq->wait.set && (!eq->timer_ns || at_ns < eq->timer_ns))
		set_timer(eq, at_ns);
	return 0;
}

void eq_clear_deadline(struct prov_eq *eq, struct prov_deadline *deadline)
{
	if (deadline->at_ns)
		TAILQ_REMOVE(&eq->deadlines, deadline, link);
	deadline->at_ns = 0;
}

/* Progress ----------------------------------------------------------------------------------- */

int eq_progress(struct prov_eq *eq)
{
	int count = 0;

	if (!eq->wait.set)
		return progress_own(eq);
	while (count < HANDLED_MAX && expire(eq))
		count++;
	return count;
}

int eq_arm(struct prov_eq *eq)
{
	if (!queue_can_arm(&eq->wait))
		return -FI_EINVAL;
	if (TAILQ_EMPTY(&eq->events))
		eq_progress(eq);
	return TAILQ_EMPTY(&eq->events) ? 0 : -FI_EAGAIN;
}
