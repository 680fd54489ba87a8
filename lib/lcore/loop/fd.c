/* SPDX-License-Identifier: BSD-3-Clause */
/* The one epoll set of an lcore: its eventfd, the program's descriptors, and those of libraries
 * (plx_watch.h). A sleeping lcore blocks on it. While awake, a poller checks it every LOOK_TURNS
 * turns for the program's descriptors; without any, libraries say when to check. */
#include "lcore_priv.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A check costs about 150 ns, as much as four idle turns. */
#define LOOK_TURNS 64

#define EVENTS_ALLOWED \
	((uint32_t)(EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLPRI | EPOLLET | EPOLLONESHOT))

struct plx_fd {
	struct plx_watch watch;
	plx_fd_fn fn;
	void *arg;
	struct fds *owner;
	LIST_ENTRY(plx_fd) link;
};

/* Events ------------------------------------------------------------------------------------- */

static void call_user(struct plx_watch *watch, uint32_t events)
{
	struct plx_fd *fd = plx_container_of(watch, struct plx_fd, watch);

	fd->fn(watch->fd, events, fd->arg);
}

int fds_wait(struct fds *fds, uint64_t wait_ns)
{
	const struct timespec timeout = {
		.tv_sec = (time_t)(wait_ns / PLX_NS_PER_S),
		.tv_nsec = (long)(wait_ns % PLX_NS_PER_S),
	};
	struct pollfd ready = {.fd = fds->epoll, .events = POLLIN};
	int count = wait_ns
			  ? epoll_pwait2(fds->epoll, fds->events, PLX_FD_BURST_MAX, &timeout, NULL)
			  : epoll_wait(fds->epoll, fds->events, PLX_FD_BURST_MAX, 0);

	if (count < 0 && errno != EINTR) { /* an old kernel, or a container that forbids it */
		count = ppoll(&ready, 1, &timeout, NULL);
		if (count > 0)
			count = epoll_wait(fds->epoll, fds->events, PLX_FD_BURST_MAX, 0);
	}
	fds->next = 0;
	fds->count = count > 0 ? (unsigned)count : 0;
	return count;
}

unsigned fds_handle(struct fds *fds)
{
	unsigned work = 0;

	fds->rang = false;
	while (fds->next < fds->count) {
		const struct epoll_event *event = &fds->events[fds->next++];
		struct plx_watch *watch = event->data.ptr;

		fds->rang |= watch == &fds->bell;
		if (!watch || !watch->ready)
			continue;
		work += watch->ready == call_user;
		watch->ready(watch, event->events);
	}
	return work;
}

static unsigned look(struct fds *fds)
{
	fds->until_look = LOOK_TURNS;
	fds_wait(fds, 0);
	return fds_handle(fds);
}

static int poll_fds(void *arg, uint64_t now_ns)
{
	struct fds *fds = arg;

	return plx_unlikely(--fds->until_look == 0) ? (int)look(fds) : 0;
}

/* The loop waits for the whole set. */
static int arm_fds(void *arg, struct plx_sleep *sleep)
{
	return 0;
}

/* Its events that were taken and not handled yet. */
static void forget(struct fds *fds, const struct plx_watch *watch)
{
	for (unsigned i = fds->next; i < fds->count; i++) {
		if (fds->events[i].data.ptr == watch)
			fds->events[i].data.ptr = NULL;
	}
}

/* For libraries ------------------------------------------------------------------------------ */

static struct fds *fds_of(struct plx_watch_set *set)
{
	return plx_container_of(set, struct fds, set);
}

static int add(struct plx_watch_set *set, struct plx_watch *watch, uint32_t events)
{
	struct fds *fds = fds_of(set);

	forget(fds, watch);
	return plx_watch_in(fds->epoll, watch, events);
}

/* Fails if it was closed: the kernel has removed it. */
static void take_out(struct plx_watch_set *set, struct plx_watch *watch)
{
	struct fds *fds = fds_of(set);

	epoll_ctl(fds->epoll, EPOLL_CTL_DEL, watch->fd, NULL);
	forget(fds, watch);
}

static void look_for_libraries(struct plx_watch_set *set)
{
	struct fds *fds = fds_of(set);

	if (fds->poller) /* the program's functions run there */
		fds->until_look = 1;
	else
		look(fds);
}

struct plx_watch_set *lcore_watch_set(void)
{
	return &loop_self->fds.set;
}

/* For programs ------------------------------------------------------------------------------- */

static int add_poller(struct fds *fds)
{
	int err;

	if (fds->poller)
		return 0;
	fds->until_look = LOOK_TURNS;
	err = plx_poller_add("descriptors", poll_fds, fds, &fds->poller);
	if (err)
		return err;
	plx_poller_set_arm(fds->poller, arm_fds);
	lcore_poller_keep(fds->poller);
	return 0;
}

static int control(struct plx_fd *fd, int what, uint32_t events, const char *caller)
{
	struct epoll_event event = {.events = events, .data.ptr = &fd->watch};
	int err;

	if (events & ~EVENTS_ALLOWED)
		return plx_fail(EINVAL,
				"%s: events 0x%x: those that may be asked for are EPOLLIN, "
				"EPOLLOUT, EPOLLRDHUP, EPOLLPRI, EPOLLET and EPOLLONESHOT",
				caller, events);
	if (epoll_ctl(fd->owner->epoll, what, fd->watch.fd, &event) == 0)
		return 0;
	if (plx_is_forked())
		return plx_fail_forked(caller);
	err = errno;
	return plx_fail(err, "%s: descriptor %d: %s", caller, fd->watch.fd,
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
	err = add_poller(&loop_self->fds);
	if (err)
		return err;
	added = malloc(sizeof(*added));
	if (!added)
		return plx_fail(ENOMEM, "plx_fd_add: out of memory");
	*added = (struct plx_fd){
		.watch = {fd, call_user}, .fn = fn, .arg = arg, .owner = &loop_self->fds};
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
	int err;

	ASSERT_OWNER(fd->owner->poller->owner->lcore_id);
	err = control(fd, EPOLL_CTL_MOD, events, "plx_fd_modify");
	if (err == 0) /* the kernel reports again what is ready and still wanted */
		forget(fd->owner, &fd->watch);
	return err;
}

void plx_fd_remove(struct plx_fd *fd)
{
	if (!fd)
		return;
	ASSERT_OWNER(fd->owner->poller->owner->lcore_id);
	take_out(&fd->owner->set, &fd->watch);
	LIST_REMOVE(fd, link);
	free(fd);
}

/* Opening and closing ------------------------------------------------------------------------ */

int fds_init(struct fds *fds, int eventfd)
{
	fds->set = (struct plx_watch_set){add, take_out, look_for_libraries};
	fds->bell = (struct plx_watch){eventfd, NULL};
	fds->epoll = epoll_create1(EPOLL_CLOEXEC);
	return fds->epoll < 0 ? -errno : add(&fds->set, &fds->bell, EPOLLIN | EPOLLET);
}

void fds_park(struct fds *fds)
{
	struct plx_fd *fd, *next;

	LIST_FOREACH_SAFE (fd, &fds->list, link, next)
		plx_fd_remove(fd);
}

void fds_fini(struct fds *fds)
{
	struct plx_fd *fd, *next;

	LIST_FOREACH_SAFE (fd, &fds->list, link, next)
		free(fd);
	plx_poller_remove(fds->poller);
	if (fds->epoll >= 0)
		close(fds->epoll);
}

void fds_forget(struct fds *fds)
{
	close(fds->epoll);
	fds->epoll = -1;
}
