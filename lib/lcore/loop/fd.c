/* SPDX-License-Identifier: BSD-3-Clause */
/* User descriptors, in one epoll set per lcore. A poller checks the set every LOOK_TURNS turns; a
 * sleeping lcore waits for the set's descriptor. */
#include "lcore_priv.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A check costs about 150 ns, as much as four idle turns. */
#define LOOK_TURNS 64

#define EVENTS_ALLOWED \
	((uint32_t)(EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLPRI | EPOLLET | EPOLLONESHOT))

struct plx_fd {
	int fd;
	plx_fd_fn fn;
	void *arg;
	struct fds *owner;
	LIST_ENTRY(plx_fd) link;
};

static int look(struct fds *fds)
{
	int count;

	fds->until_look = LOOK_TURNS;
	count = epoll_wait(fds->epoll, fds->events, FDS_BURST, 0);
	fds->event_count = count > 0 ? (unsigned)count : 0;
	for (unsigned i = 0; i < fds->event_count; i++) {
		struct plx_fd *fd = fds->events[i].data.ptr;

		if (fd) /* not removed by the one before */
			fd->fn(fd->fd, fds->events[i].events, fd->arg);
	}
	fds->event_count = 0;
	return count > 0 ? count : 0;
}

static int poll_fds(void *arg, uint64_t now_ns)
{
	struct fds *fds = arg;

	return plx_unlikely(--fds->until_look == 0) ? look(fds) : 0;
}

static int arm_fds(void *arg, struct plx_sleep *sleep)
{
	plx_sleep_on(sleep, ((struct fds *)arg)->epoll);
	return 0;
}

static void woke_fds(void *arg, const struct plx_sleep *sleep)
{
	struct fds *fds = arg;

	if (plx_sleep_ended_by(sleep, fds->epoll))
		fds->until_look = 1;
}

/* Create the lcore's set, unless it exists. Return: 0; -errno. */
static int open_set(struct fds *fds)
{
	int err;

	if (fds->poller)
		return 0;
	fds->until_look = LOOK_TURNS;
	fds->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (fds->epoll < 0)
		return plx_fail(errno, "plx_fd_add: no epoll: %s", strerror(errno));
	err = plx_poller_add("descriptors", poll_fds, fds, &fds->poller);
	if (err) {
		close(fds->epoll);
		return err;
	}
	plx_poller_set_arm(fds->poller, arm_fds, woke_fds);
	return 0;
}

static int control(struct plx_fd *fd, int what, uint32_t events, const char *caller)
{
	struct epoll_event event = {.events = events, .data.ptr = fd};
	int err;

	if (events & ~EVENTS_ALLOWED)
		return plx_fail(EINVAL,
				"%s: events 0x%x: those that may be asked for are EPOLLIN, "
				"EPOLLOUT, EPOLLRDHUP, EPOLLPRI, EPOLLET and EPOLLONESHOT",
				caller, events);
	if (epoll_ctl(fd->owner->epoll, what, fd->fd, &event) == 0)
		return 0;
	if (plx_is_forked())
		return plx_fail_forked(caller);
	err = errno;
	return plx_fail(err, "%s: descriptor %d: %s", caller, fd->fd,
			err == EPERM    ? "epoll cannot watch it, as it is a file or directory"
			: err == EEXIST ? "it is watched already; use plx_fd_modify"
					: strerror(err));
}

int plx_fd_add(int fd, uint32_t events, plx_fd_fn fn, void *arg, struct plx_fd **fd_out)
{
	struct plx_fd *added;
	int err;

	if (!loop_self)
		return plx_fail_no_lcore("plx_fd_add");
	if (!fn)
		return plx_fail(EINVAL, "plx_fd_add: no function to call: give one");
	err = open_set(&loop_self->fds);
	if (err)
		return err;
	added = malloc(sizeof(*added));
	if (!added)
		return plx_fail(ENOMEM, "plx_fd_add: out of memory");
	*added = (struct plx_fd){.fd = fd, .fn = fn, .arg = arg, .owner = &loop_self->fds};
	err = control(added, EPOLL_CTL_ADD, events, "plx_fd_add");
	if (err) {
		free(added);
		return err;
	}
	LIST_INSERT_HEAD(&loop_self->fds.list, added, link);
	if (fd_out)
		*fd_out = added;
	return 0;
}

int plx_fd_modify(struct plx_fd *fd, uint32_t events)
{
	ASSERT_OWNER(fd->owner->poller->owner->lcore_id);
	return control(fd, EPOLL_CTL_MOD, events, "plx_fd_modify");
}

void plx_fd_remove(struct plx_fd *fd)
{
	struct fds *fds;

	if (!fd)
		return;
	fds = fd->owner;
	ASSERT_OWNER(fds->poller->owner->lcore_id);
	/* Fails if the user has closed it: the kernel has removed it. */
	epoll_ctl(fds->epoll, EPOLL_CTL_DEL, fd->fd, NULL);
	for (unsigned i = 0; i < fds->event_count; i++) {
		if (fds->events[i].data.ptr == fd)
			fds->events[i].data.ptr = NULL;
	}
	LIST_REMOVE(fd, link);
	free(fd);
}

void fds_fini(struct fds *fds)
{
	struct plx_fd *fd, *next;

	if (!fds->poller)
		return;
	LIST_FOREACH_SAFE (fd, &fds->list, link, next)
		free(fd);
	plx_poller_remove(fds->poller);
	close(fds->epoll);
}

void fds_forget(struct fds *fds)
{
	if (fds->poller)
		close(fds->epoll);
	fds->epoll = -1;
}
