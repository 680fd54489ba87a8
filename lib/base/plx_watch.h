/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Descriptors of a provider in its caller's epoll set: one set for all that a thread waits for.
 * plx_tcp and plx_shm join it, and other programs may use this too:
 *
 *     struct plx_watch_ops *ops;
 *     fi_open_ops(&fabric->fid, PLX_WATCH_OPS, 0, (void **)&ops, NULL);
 *     ops->join(&cq->fid, set, NULL), ops->join(&eq->fid, set, event)
 *     loop: read the queues; if nothing came, fi_trywait for all of them
 *           if that returns 0: epoll_wait, at most until left_ns; then for each event
 *           watch = event.data.ptr; if (watch->ready) watch->ready(watch, event.events)
 *
 * fi_open_ops returns -FI_ENOSYS for other names, and for providers without it. The table is
 * constant and valid as long as the provider is loaded. */
#ifndef PLX_WATCH_H
#define PLX_WATCH_H

#include <errno.h>
#include <stdint.h>
#include <sys/epoll.h>

struct fid;
struct fid_eq;

/* epoll_event.data.ptr points to one. Ownership: the caller keeps it until it is removed. */
struct plx_watch {
	int fd; /* -1: none */
	/* NULL: nothing to do but wake, as its owner reads it after every sleep. */
	void (*ready)(struct plx_watch *watch, uint32_t events);
};

/* Wait for events, or change them. Return: 0; -errno. */
static inline int plx_watch_in(int epoll, struct plx_watch *watch, uint32_t events)
{
	struct epoll_event event;
	int rc;

	event.events = events;
	event.data.ptr = watch;
	rc = epoll_ctl(epoll, EPOLL_CTL_ADD, watch->fd, &event);
	if (rc && errno == EEXIST)
		rc = epoll_ctl(epoll, EPOLL_CTL_MOD, watch->fd, &event);
	return rc ? -errno : 0;
}

/* What the caller implements. It outlives the queues that share it. Used by the thread that polls
 * it, or by another while that one does not. `ready` runs on it, after epoll_wait and before the
 * queues are read. */
struct plx_watch_set {
	/* As plx_watch_in. Events are level-triggered. Also called inside join and `ready`. */
	int (*add)(struct plx_watch_set *set, struct plx_watch *watch, uint32_t events);
	/* Before the descriptor is closed, also when a queue is: `ready` does not run after this.
	 * Accepts one that was never added. */
	void (*remove)(struct plx_watch_set *set, struct plx_watch *watch);
	/* Handle what is ready, now or in the next turn. For users of the set: providers do not
	 * call it. */
	void (*look)(struct plx_watch_set *set);
};

/* Version 1: a change of the structures changes the name. */
#define PLX_WATCH_OPS "plx_watch/1"

struct plx_watch_ops {
	/* Let a CQ or EQ share the set: opened with FI_WAIT_NONE, and not bound yet. fi_trywait
	 * then works as with a wait object. The endpoints bound to it must have one CQ for both
	 * directions, and their EQ in the same set. event: its `ready` runs when the EQ has got an
	 * event; its fd is not used. NULL: none, also for a CQ.
	 * Return: 0; -FI_EINVAL another object, bound, or opened with a wait object; what
	 * plx_watch_set.add returns. */
	int (*join)(struct fid *queue, struct plx_watch_set *set, struct plx_watch *event);
	/* In how many nanoseconds the EQ must be read even if nothing is ready, for the time-outs
	 * of connections; UINT64_MAX: never. */
	uint64_t (*left_ns)(const struct fid_eq *eq);
};

#endif
