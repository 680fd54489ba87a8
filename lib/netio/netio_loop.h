/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The event loop, its signals, timers and descriptors. Part of netio.h.
 */
#ifndef NETIO_LOOP_H
#define NETIO_LOOP_H

#include "plx_lcore.h"

PLX_BEGIN_DECLS

struct netio_connection;
struct netio_listener;
struct plx_eal_conf;

/* The event loop --------------------------------------------------------------------------- */

struct netio_eventloop {
	void (*cb_init)(void); /**< the first thing that netio_run calls; NULL: nothing */
	/* Private. */
	struct plx_signal terminate;
	uint32_t lcore_id;
	bool ready;
	bool running;
	bool terminated;
	bool draining;
	struct netio_connection *connections;
};

struct netio_context {
	struct netio_eventloop evloop;
};

/** Set up a context and its event loop. The calling thread is the one that runs it. If it is an
 * lcore already (plx_eal_init, plx_lcore_launch), the loop is that lcore's. If the process has no
 * lcores, the thread becomes one, pinned to a CPU, with the EAL options (pollux(7): -l 2 --idle
 * poll ...) that the environment variable NETIO_OPTIONS holds, words between blanks, until
 * netio_fini. Set evloop.cb_init behind it. Not between two calls of getopt.
 * Return: 0; -EINVAL an option; -ENOENT the thread is none of the lcores that there are; or what
 * plx_eal_init gave. */
int netio_init(struct netio_context *ctx);

/** The same with what the program wants where NETIO_OPTIONS says nothing (plx_eal.h): conf as for
 * plx_eal_init, whatever is in it counting as set by the program; NULL: the defaults. */
int netio_init_conf(struct netio_context *ctx, const struct plx_eal_conf *conf);

/** Give back what netio_init took. Stop and end signals, timers and descriptors of the loop before:
 * their callbacks come while it waits for connections to close. Sockets end before or with it, as
 * by their own _fini; a process that ends without it is as one that died: the
 * peers of its sockets are not told. Accepts a
 * context that is zeroed or whose set-up failed. Return: 0; -EPERM another thread's; -EBUSY inside
 * its loop; -ETIMEDOUT an lcore does not end: it may be called again. */
int netio_fini(struct netio_context *ctx);

/** What netio_init and netio_fini do to ctx->evloop, for loops without a context. */
int netio_eventloop_init(struct netio_eventloop *evloop);
int netio_eventloop_fini(struct netio_eventloop *evloop);

/** Call cb_init, and then be the loop, until netio_terminate or plx_stop, which SIGINT and SIGTERM
 * call in a program that asks for it by plx_stop_on_signals. May be called again; after plx_stop it
 * returns at once until the lcores are set up anew.
 * Return: 0; -EINVAL not set up; -EPERM another thread's; -EBUSY inside it. */
int netio_run(struct netio_eventloop *evloop);

/** Let netio_run return at the end of this turn. Other callbacks of the turn may come before that;
 * what is posted and fired, and not yet called, waits for the next netio_run. Where the loop does
 * not run, the next netio_run returns behind cb_init. Thread: any, before netio_fini begins; no
 * signal handler: fire a signal there. */
void netio_terminate(struct netio_eventloop *evloop);

/** Stop listening, and close all connections of the loop's sockets: what was accepted from them is
 * sent first, and their callbacks tell of each end. So are those that are spread (enum
 * netio_spread): of its sockets those on other lcores, whose loops must turn meanwhile, and those
 * that this lcore has of other loops' sockets. For who is about to end, behind netio_run. The
 * sockets are there afterwards, and may listen and connect again. timeout_ns: of it all; and what a
 * peer takes nothing of for 2 s is lost. Return: 0; -EBUSY inside netio_run: call netio_terminate,
 * and do it behind that; -ETIMEDOUT some are open still; -EINVAL; -EPERM. */
int netio_drain(struct netio_eventloop *evloop, uint64_t timeout_ns);

/** Call fn(arg) in the loop. Thread: any, before netio_fini begins. Return: 0; -EAGAIN too many
 * wait already (no error text, no log): try later; -EINVAL no function, or a loop that was not set
 * up; -ENOMEM the first one from another lcore has no memory for its lane. */
int netio_post(struct netio_eventloop *evloop, void (*fn)(void *arg), void *arg);

/* Signals ---------------------------------------------------------------------------------- */

/** Calls of cb that any thread may ask for. Set cb and data behind netio_signal_init. */
struct netio_signal {
	void (*cb)(void *data); /**< once for each time that it was fired */
	void *data;
	/* Private. */
	struct netio_eventloop *evloop;
	struct plx_signal fired;
	uint64_t backlog;
	bool *gone;
};

/** Return: 0; -EINVAL a loop that was not set up. */
int netio_signal_init(struct netio_eventloop *evloop, struct netio_signal *signal);

/** Let cb be called; from inside cb: in a later turn. Between netio_signal_init and
 * netio_signal_fini. Thread: any + signal handlers. */
void netio_signal_fire(struct netio_signal *signal);

/** cb is not called any more, also for what was fired before. Allowed inside cb, which may free the
 * signal then. Accepts one that is zeroed. */
void netio_signal_fini(struct netio_signal *signal);

/* Timers ----------------------------------------------------------------------------------- */

/** Calls of cb at equal distances. Set cb and data behind netio_timer_init. */
struct netio_timer {
	void (*cb)(void *data);
	void *data;
	/* Private. */
	struct netio_eventloop *evloop;
	struct plx_timer timer;
};

/** Return: 0; -EINVAL a loop that was not set up. */
int netio_timer_init(struct netio_eventloop *evloop, struct netio_timer *timer);

/** Call cb every so long, the first time after that, until netio_timer_stop; a timer that runs
 * begins anew. Periods that a long callback made it miss are skipped. Range: 1 ns to PLX_NEVER;
 * what is longer is that long. A period below the wheel's tick of 1.024 us is one call a tick.
 * Return: 0; -EINVAL 0, or not set up; -EPERM another thread's. */
int netio_timer_start_s(struct netio_timer *timer, unsigned long long seconds);
int netio_timer_start_ms(struct netio_timer *timer, unsigned long long milliseconds);
int netio_timer_start_us(struct netio_timer *timer, unsigned long long microseconds);
int netio_timer_start_ns(struct netio_timer *timer, unsigned long long nanoseconds);

/** cb is not called any more until it is started again. Allowed inside cb, which may free the timer
 * then. Accepts one that does not run. */
void netio_timer_stop(struct netio_timer *timer);

/* Descriptors ------------------------------------------------------------------------------ */

/** A descriptor that the loop watches. */
struct netio_fd {
	void (*cb)(int fd, uint32_t events, void *data); /**< events: of epoll(7), that are there */
	void *data;
	/* Private. */
	struct plx_fd *watch;
};

/** Call watch->cb, which is set before, when one of events (EPOLLIN, EPOLLOUT, EPOLLET, ...: see
 * plx_fd_add) is there. fd stays the caller's, and open until netio_fd_fini. Return: as plx_fd_add;
 * -EPERM also: another thread's. */
int netio_fd_init(struct netio_eventloop *evloop, struct netio_fd *watch, int fd, uint32_t events);

/** Other events. Return: 0; -EINVAL; -ENOMEM. */
int netio_fd_modify(struct netio_fd *watch, uint32_t events);

/** cb is not called any more. Allowed inside cb. Accepts one that is zeroed. */
void netio_fd_fini(struct netio_fd *watch);

PLX_END_DECLS

#endif
