/* SPDX-License-Identifier: BSD-3-Clause */
/* What an event queue watches: the sockets that connections are made or lost by. */
#include "prov.h"

#include <errno.h>
#include <sys/epoll.h>

#define HANDLED_MAX 16 /* sockets in one progress */

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

/* One at a time: to handle one may be the end of another. The kernel takes those that are ready in
 * turn, so when signal_fd comes for the second time all others were seen. */
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
