/* SPDX-License-Identifier: BSD-3-Clause */
/* Internal to NetIO. The files:
 *
 *   loop/eventloop.c   the event loop, and checks of all functions
 *   loop/process.c     lcores for threads that are none
 *   loop/exit.c        threads and processes that end without netio_fini
 *   loop/callbacks.c   signals, timers and descriptors of a loop
 *   point/             sending and listening sockets: point.h
 *   push/              push sockets: push.h
 *   pubsub/            publish and subscribe sockets: pubsub_priv.h */
#ifndef NETIO_PRIV_H
#define NETIO_PRIV_H

#include "lcore_internal.h"
#include "netio.h"
#include "owner.h"

extern struct plx_log_component *const netio_log;

/* Log plx_error() unless rc is 0, for callers that ignore return values. Return: rc. */
int netio_logged(int rc);

/* plx_fail that logs. */
#define netio_fail(...) netio_logged(plx_fail(__VA_ARGS__))

/* Check that the calling thread is the loop's. what: the caller, for the error text. Return: 0;
 * -EINVAL not set up; -EPERM; both logged. */
int netio_check(const struct netio_eventloop *evloop, const char *what);

/* Check that the loop may listen and connect. what: as above. Return: 0; -ESHUTDOWN, logged. */
int netio_check_open(const struct netio_eventloop *evloop, const char *what);

/* Assert that this lcore is that of a socket's loop. core: the socket's state; NULL: no check. */
#define ASSERT_LOOP(core, loop) \
	ASSERT_OWNER_IF(!(core) || owner_is_here((loop)->lcore_id), __func__, (loop)->lcore_id)

/* Check the loop and allocate the state of a new socket: zeroed, from a cache line on. what: the
 * caller, for the error text. Return: the state; NULL with *rc_out: -EINVAL; -EPERM; -ENOMEM;
 * logged. */
void *netio_allocate(struct netio_eventloop *evloop, const char *what, size_t bytes, int *rc_out);

/* Check an attribute. Return: 0; -EINVAL. */
int netio_check_range(const char *name, uint64_t value, uint64_t least, uint64_t most);
int netio_check_enum(const char *name, unsigned value, unsigned count, const char *type);

/* Fail for a socket that is not connected. Return: -ENOTCONN; -EPERM in a forked child. */
int netio_fail_closed(void);
/* Format a user's "host:port". what: the caller, for the error text. Return: 0; -EINVAL. */
int netio_address(const char *what, const char *host, unsigned port, char out[PLX_ADDRESS_MAX]);
/* process.c: make the calling thread an lcore, unless it is one. conf: for the first one; may be
 * NULL. Return: 0; as plx_eal_init or plx_lcore_adopt. */
int netio_process_enter(const struct plx_eal_conf *conf);
/* Call once per netio_process_enter. The last call of a thread undoes it, and that of the last
 * thread ends the lcores. Return: 0; -ETIMEDOUT. */
int netio_process_leave(void);

/* Whether netio_init has made the calling thread an lcore. */
bool netio_process_is_ours(void);

/* End all sockets of the loop without loss. what: for the error text. Return: 0; -ETIMEDOUT,
 * logged. */
int netio_close_all(struct netio_eventloop *evloop, const char *what, uint64_t timeout_ns);

/* exit.c: the thread may end without netio_fini; it has called that. */
#define NETIO_EXIT_NS PLX_NS_PER_S
void netio_exit_watch(struct netio_eventloop *evloop);
void netio_exit_forget(const struct netio_eventloop *evloop);
/* The loop uses that memory of the program. */
void netio_exit_uses(const struct netio_eventloop *evloop, const void *object);

#endif
