/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Descriptors of a library in its caller's epoll set: each lcore has one set for all that it waits
 * for. A provider of drivers/prov joins it through fi_open_ops on its fabric, with the name
 * PLX_WATCH_OPS. */
#ifndef PLX_WATCH_H
#define PLX_WATCH_H

#include <errno.h>
#include <stdint.h>
#include <sys/epoll.h>

struct fid;
struct fid_eq;

/* epoll_event.data.ptr points to one. */
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

/* Used by the thread that polls it, or by another while that one does not. `ready` runs on it. */
struct plx_watch_set {
	/* As plx_watch_in. Events are level-triggered. */
	int (*add)(struct plx_watch_set *set, struct plx_watch *watch, uint32_t events);
	/* Before the descriptor is closed: `ready` does not run after this. */
	void (*remove)(struct plx_watch_set *set, struct plx_watch *watch);
	/* Handle what is ready, now or in the next turn. */
	void (*look)(struct plx_watch_set *set);
};

/* Version 1: a change of the structures changes the name. */
#define PLX_WATCH_OPS "plx_watch/1"

struct plx_watch_ops {
	/* A CQ or EQ that was opened with FI_WAIT_NONE and is not bound yet shares the set.
	 * fi_trywait then works as with a wait object, and the set wakes its owner. An endpoint's
	 * CQ is one for both directions, and all its queues share one set. event: NULL, or `ready`
	 * runs when an EQ has got an event. Return: 0; -errno. */
	int (*join)(struct fid *queue, struct plx_watch_set *set, struct plx_watch *event);
	/* In what time the EQ must be read even if nothing is ready; UINT64_MAX: never. */
	uint64_t (*left_ns)(const struct fid_eq *eq);
};

#endif
