/* SPDX-License-Identifier: BSD-3-Clause */
/* What an event queue watches: the sockets that connections are made or lost by. */
#include "shm.h"

#include <errno.h>
#include <sys/epoll.h>

#define HANDLED_MAX 16 /* sockets in one progress */

int eq_watch(struct shm_eq *eq, struct shm_source *source, uint32_t epoll_events)
{
	struct epoll_event event = {.events = epoll_events, .data.ptr = source};

	if (epoll_ctl(eq->wait.epoll_fd, EPOLL_CTL_ADD, source->fd, &event) == 0)
		return 0;
	if (errno == EEXIST && epoll_ctl(eq->wait.epoll_fd, EPOLL_CTL_MOD, source->fd, &event) == 0)
		return 0;
	return -errno;
}

void eq_unwatch(struct shm_eq *eq, struct shm_source *source)
{
	if (source->fd >= 0)
		epoll_ctl(eq->wait.epoll_fd, EPOLL_CTL_DEL, source->fd, NULL);
}

static void handle(struct shm_source *source)
{
	switch (source->kind) {
	case SOURCE_PEP:
		pep_incoming(plx_container_of(source, struct shm_pep, source));
		break;
	case SOURCE_PEP_TIMER:
		pep_tick(plx_container_of(source, struct shm_pep, timer));
		break;
	case SOURCE_REQUEST:
		request_incoming(plx_container_of(source, struct shm_request, source));
		break;
	case SOURCE_EP:
		ep_incoming(plx_container_of(source, struct shm_ep, source));
		break;
	}
}

/* One at a time: to handle one may be the end of another. The kernel takes those that are ready in
 * turn, so when signal_fd comes for the second time all others were seen. */
int eq_progress(struct shm_eq *eq)
{
	struct epoll_event event;
	bool signal_seen = false;
	int count = 0;

	while (count < HANDLED_MAX && epoll_wait(eq->wait.epoll_fd, &event, 1, 0) == 1) {
		if (event.data.ptr) {
			handle(event.data.ptr);
			count++;
		} else if (signal_seen) {
			break;
		} else {
			signal_seen = true;
		}
	}
	return count;
}

int eq_arm(struct shm_eq *eq)
{
	if (!queue_can_sleep(&eq->wait))
		return -FI_EINVAL;
	if (list_is_empty(&eq->events))
		eq_progress(eq);
	return list_is_empty(&eq->events) ? 0 : -FI_EAGAIN;
}
