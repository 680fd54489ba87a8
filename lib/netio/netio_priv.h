/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of NetIO share, and where they are:
 *
 *   address.c          "host:port" of what users give
 *   loop/eventloop.c   the event loop; process.c: lcores for a process that has none
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

/* Log plx_error(), for those who do not look at what is returned. Return: rc. */
int netio_fail(int rc);

/* Whether the calling thread is the loop's. what: the function that asks, for the error text.
 * Return: 0; -EINVAL not set up; -EPERM; both logged. */
int netio_check(const struct netio_eventloop *evloop, const char *what);

/* Assert that the calling lcore is that of a socket's loop. core: what the socket stands for; NULL:
 * nothing is checked. */
#define ASSERT_LOOP(core, loop) \
	ASSERT_OWNER_IF(!(core) || owner_is_here((loop)->lcore_id), __func__, (loop)->lcore_id)

/* Fail as a socket that is not connected. Return: -ENOTCONN; -EPERM in the child of a fork. */
int netio_fail_closed(void);

/* "host:port" of what the user gave. what: the function, for the error text. Return: 0; -EINVAL.
 * address.c */
int netio_address(const char *what, const char *host, unsigned port, char out[PLX_ADDRESS_MAX]);

/* Lcores for a process that has none; conf: may be NULL. Return: 0; -ENOENT there are some, and
 * this thread is none; or what plx_eal_init gave. process.c */
int netio_process_enter(const struct plx_eal_conf *conf);

/* As often as entered; on the thread that set up the lcores the last one ends them. Return: 0;
 * -ETIMEDOUT. */
int netio_process_leave(void);

#endif
