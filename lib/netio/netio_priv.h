/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the files of NetIO, and an index of them:
 *
 *   address.c          "host:port" that users give
 *   loop/eventloop.c   the event loop; process.c: lcores for a process without any
 *   loop/              signal.c, timer.c, fd.c: callbacks of a loop
 *   point/             sockets that send, and that listen: point.h
 *   push/              push sockets: push.h
 *   pubsub/            sockets that publish and subscribe: pubsub_priv.h */
#ifndef NETIO_PRIV_H
#define NETIO_PRIV_H

#include "lcore_internal.h"
#include "netio.h"
#include "owner.h"

extern struct plx_log_component netio_log;

/* Log plx_error(), for callers that ignore return values. Return: rc. */
int netio_fail(int rc);

/* Whether the calling thread is the loop's. what: the calling function, for the error text.
 * Return: 0; -EINVAL not set up; -EPERM; both logged. */
int netio_check(const struct netio_eventloop *evloop, const char *what);

/* Assert that the calling lcore is that of a socket's loop. core: the socket's core; NULL: no
 * check. */
#define ASSERT_LOOP(core, loop) \
	ASSERT_OWNER_IF(!(core) || owner_is_here((loop)->lcore_id), __func__, (loop)->lcore_id)

/* Fail because the socket is not connected. Return: -ENOTCONN; -EPERM in the child of a fork. */
int netio_fail_closed(void);

/* Format "host:port" from a user's arguments. what: the calling function, for the error text. In
 * address.c.
 * Return: 0; -EINVAL. */
int netio_address(const char *what, const char *host, unsigned port, char out[PLX_ADDRESS_MAX]);

/* Set up lcores in a process without any; conf may be NULL. In process.c.
 * Return: 0; -ENOENT the process has lcores, but this thread is not one; or as plx_eal_init. */
int netio_process_enter(const struct plx_eal_conf *conf);

/* Undo netio_process_enter. The last call on the thread that set up the lcores ends them.
 * Return: 0; -ETIMEDOUT. */
int netio_process_leave(void);

#endif
