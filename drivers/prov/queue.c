/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by completion and event queues: see prov_cq.h. */
#include "prov.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

/* The wait object -------------------------------------------------------------------------- */

int queue_check_wait(enum fi_wait_obj wait_obj)
{
	bool is_known = wait_obj == FI_WAIT_NONE || wait_obj == FI_WAIT_UNSPEC ||
			wait_obj == FI_WAIT_FD;

	return is_known ? 0 : -FI_ENOSYS;
}

int queue_open_wait(struct queue_wait *wait, bool with_signal)
{
	struct epoll_event event = {.events = EPOLLIN};

	wait->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (wait->epoll_fd < 0)
		return -errno;
	if (!with_signal)
		return 0;
	wait->signal_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (wait->signal_fd < 0 ||
	    epoll_ctl(wait->epoll_fd, EPOLL_CTL_ADD, wait->signal_fd, &event))
		return -errno;
	return 0;
}

void queue_close_wait(struct queue_wait *wait)
{
	if (wait->set && wait->nested.fd >= 0)
		wait->set->remove(wait->set, &wait->nested);
	if (wait->signal_fd >= 0)
		close(wait->signal_fd);
	if (wait->epoll_fd >= 0)
		close(wait->epoll_fd);
}

int queue_join(struct queue_wait *wait, struct plx_watch_set *set, bool nests)
{
	int rc;

	if (queue_can_arm(wait))
		return -FI_EINVAL;
	if (!nests) {
		queue_close_wait(wait);
		*wait = QUEUE_WAIT_NONE;
	}
	wait->nested.fd = wait->epoll_fd;
	rc = nests ? set->add(set, &wait->nested, EPOLLIN) : 0;
	if (rc == 0)
		wait->set = set;
	return rc;
}

int queue_watch(const struct queue_wait *wait, struct plx_watch *watch, uint32_t events)
{
	return wait->set ? wait->set->add(wait->set, watch, events)
			 : plx_watch_in(wait->epoll_fd, watch, events);
}

void queue_unwatch(const struct queue_wait *wait, struct plx_watch *watch)
{
	if (watch->fd < 0)
		return;
	if (wait->set)
		wait->set->remove(wait->set, watch);
	else
		epoll_ctl(wait->epoll_fd, EPOLL_CTL_DEL, watch->fd, NULL);
}

int queue_control(const struct queue_wait *wait, int command, void *arg)
{
	switch (command) {
	case FI_GETWAIT:
		if (!queue_can_sleep(wait))
			return -FI_ENODATA;
		*(int *)arg = wait->epoll_fd;
		return 0;
	case FI_GETWAITOBJ:
		*(enum fi_wait_obj *)arg = queue_can_sleep(wait) ? FI_WAIT_FD : FI_WAIT_NONE;
		return 0;
	default:
		return -FI_ENOSYS;
	}
}

/* Time ------------------------------------------------------------------------------------- */

/* Not plx_now_ns(): a program that loads the module does not initialize that clock. */
uint64_t queue_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * PLX_NS_PER_S + (uint64_t)now.tv_nsec;
}

uint64_t queue_end_ns(int timeout_ms)
{
	return timeout_ms < 0 ? UINT64_MAX : queue_now_ns() + (uint64_t)timeout_ms * PLX_NS_PER_MS;
}

int queue_left_ms(uint64_t end_ns)
{
	uint64_t now_ns;

	if (end_ns == UINT64_MAX)
		return -1;
	now_ns = queue_now_ns();
	return now_ns < end_ns ? (int)((end_ns - now_ns + PLX_NS_PER_MS - 1) / PLX_NS_PER_MS) : 0;
}

/* Errors ----------------------------------------------------------------------------------- */

const char *queue_error_text(int err, char *buf, size_t size)
{
	const char *text = fi_strerror(err);

	if (buf && size) {
		strncpy(buf, text, size - 1);
		buf[size - 1] = '\0';
	}
	return text;
}
