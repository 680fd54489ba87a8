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
	void (*cb_init)(void); /**< the first callback of netio_run; NULL: none */
	/* Private. */
	struct plx_signal terminate;
	uint32_t lcore_id;
	bool ready;
	/* Relaxed: only the loop's thread and its signal handlers access them. */
	PLX_ATOMIC(bool) running;
	PLX_ATOMIC(bool) terminated;
	bool draining;
	bool ending; /* by netio_fini */
	bool quiet;  /* calls no timers, signals and descriptors of the program */
	struct {
		struct netio_connection *lh_first; /* a list of <sys/queue.h> */
	} connections;
};

struct netio_context {
	struct netio_eventloop evloop;
};

/** Set up a context and its event loop. The calling thread must run it. Threads set up and end
 * their contexts in any order.
 * If the thread is an lcore (plx_eal_init, plx_lcore_launch), the loop is that lcore's. If not, it
 * becomes one until netio_fini: the first such thread starts Pollux with the EAL options in the
 * environment variable NETIO_OPTIONS (pollux(7): -l 2 --idle poll ...), not pinned unless they
 * name CPUs; the next ones call
 * plx_lcore_adopt, and get the further CPUs of -l, if any. The last netio_fini ends Pollux.
 * Set evloop.cb_init afterwards. ctx must not be set up yet. Do not call this between two calls of
 * getopt.
 * Thread: any.
 * Return: 0; -EINVAL an option; or as plx_eal_init or plx_lcore_adopt. */
int netio_init(struct netio_context *ctx);

/** netio_init with the program's own defaults: NETIO_OPTIONS overrides conf (plx_eal.h), and
 * everything in conf counts as set by the program. NULL: the defaults. */
int netio_init_conf(struct netio_context *ctx, const struct plx_eal_conf *conf);

/** Undo netio_init. Before it, stop the loop's signals, timers and descriptors: their callbacks
 * may run while this waits for connections to close. Remaining sockets end as by their own _fini,
 * which may still be called, and none can be set up. A program with plx_eal_init calls this before
 * plx_eal_fini. Takes at most PLX_CLOSE_NS, of which connections have 4 s, whatever the peers do.
 * If a thread that netio_init has made an lcore ends without this, or calls exit or returns from
 * main outside its callbacks, its connections close in the same way for at most 1 s, without
 * callbacks of sockets, timers, signals and descriptors. That cannot be done if the context, a
 * socket, a timer or a signal was on the stack, and goes wrong if one was freed before. Other
 * threads' connections look like a crash then. Accepts a context that is zeroed or whose set-up
 * failed.
 * Return: 0; -EPERM another thread's, -EBUSY in a callback of this lcore: nothing was done;
 * -ETIMEDOUT a peer did not take all in that time, and the rest is lost, or an lcore has not ended:
 * a second call then tries again. */
int netio_fini(struct netio_context *ctx);

/** netio_init and netio_fini for a loop without a context. */
int netio_eventloop_init(struct netio_eventloop *evloop);
int netio_eventloop_fini(struct netio_eventloop *evloop);

/** Call cb_init, then run the loop until netio_terminate or plx_stop. Programs that call
 * plx_stop_on_signals get plx_stop from SIGINT and SIGTERM. May be called again; after plx_stop it
 * returns at once until the lcores are set up anew.
 * Return: 0; -EINVAL not set up; -EPERM another thread's; -EBUSY in a callback of this lcore. */
int netio_run(struct netio_eventloop *evloop);

/** Make netio_run return at the end of this turn. Other callbacks of the turn may run first.
 * Posted functions and fired signals that have not run wait for the next netio_run. If the loop
 * does not run, the next netio_run returns after cb_init.
 * Thread: any + signal handlers, before netio_fini begins. */
void netio_terminate(struct netio_eventloop *evloop);

/** Graceful shutdown, after netio_run returns: stop listening and close all connections of the
 * loop's sockets. Accepted messages are sent first, and callbacks report each closure. Meanwhile
 * listening, connecting and subscribing fail with -ESHUTDOWN; afterwards they work again.
 * Spread connections (enum netio_spread) are included: those of its sockets on other lcores, whose
 * loops must turn meanwhile, and those of other loops' sockets on this lcore.
 * timeout_ns: for everything. Messages that a peer does not take in PLX_CLOSE_NS (5 s) are lost:
 * its connection ends with PLX_LINK_TIMEOUT.
 * Return: 0; -EBUSY in a callback of this lcore, nothing was done; -ETIMEDOUT some are still open,
 * or any connection of this lcore, also of a service, ended with PLX_LINK_TIMEOUT; -EINVAL;
 * -EPERM. */
int netio_drain(struct netio_eventloop *evloop, uint64_t timeout_ns);

/** Call fn(arg) in the loop.
 * Thread: any, before netio_fini begins.
 * Return: 0; -EAGAIN too many are waiting (no error text, no log), try later; -EINVAL no function,
 * or the loop was not set up; -ENOMEM for the lane of the first post from another lcore. */
int netio_post(struct netio_eventloop *evloop, void (*fn)(void *arg), void *arg);

/* Signals ---------------------------------------------------------------------------------- */

/** A callback that any thread can trigger. Set cb and data after netio_signal_init. */
struct netio_signal {
	void (*cb)(void *data); /**< runs once per netio_signal_fire */
	void *data;
	/* Private. */
	struct netio_eventloop *evloop;
	struct plx_signal fired;
	uint64_t backlog;
	struct netio_signal **called; /* while cb runs */
};

/** Return: 0; -EINVAL the loop was not set up. */
int netio_signal_init(struct netio_eventloop *evloop, struct netio_signal *signal);

/** Trigger cb; inside cb it runs again in a later turn. Allowed between netio_signal_init and
 * netio_signal_fini.
 * Thread: any + signal handlers. */
void netio_signal_fire(struct netio_signal *signal);

/** cb does not run after this, even if it was fired. Allowed inside cb, which may then free the
 * signal, and before netio_fini. Accepts a zeroed one. */
void netio_signal_fini(struct netio_signal *signal);

/* Timers ----------------------------------------------------------------------------------- */

/** A periodic callback. Set cb and data after netio_timer_init. */
struct netio_timer {
	void (*cb)(void *data);
	void *data;
	/* Private. */
	struct netio_eventloop *evloop;
	struct plx_timer timer;
};

/** Return: 0; -EINVAL the loop was not set up. */
int netio_timer_init(struct netio_eventloop *evloop, struct netio_timer *timer);

/** Call cb once per period, first after one period, until netio_timer_stop. Restarts a running
 * timer. Periods missed during a long callback are skipped.
 * Range: 1 ns to PLX_NEVER; longer values mean PLX_NEVER. Below the wheel's tick of 1.024 us, cb
 * runs once a tick.
 * Return: 0; -EINVAL period 0, or not set up; -EPERM another thread's. */
int netio_timer_start_s(struct netio_timer *timer, unsigned long long seconds);
int netio_timer_start_ms(struct netio_timer *timer, unsigned long long milliseconds);
int netio_timer_start_us(struct netio_timer *timer, unsigned long long microseconds);
int netio_timer_start_ns(struct netio_timer *timer, unsigned long long nanoseconds);

/** cb does not run until the timer is started again. Allowed inside cb, which may then free the
 * timer. Accepts a stopped one. */
void netio_timer_stop(struct netio_timer *timer);

/* Descriptors ------------------------------------------------------------------------------ */

/** A watched descriptor. */
struct netio_fd {
	void (*cb)(int fd, uint32_t events, void *data); /**< events: of epoll(7) */
	void *data;
	/* Private. */
	struct netio_eventloop *evloop;
	struct plx_fd *watch;
};

/** Watch fd for events (EPOLLIN, EPOLLOUT, EPOLLET, ...: see plx_fd_add) and call watch->cb, which
 * must be set before.
 * Ownership: the caller keeps fd, and keeps it open until netio_fd_fini.
 * Return: as plx_fd_add; -EPERM also: another thread's. */
int netio_fd_init(struct netio_eventloop *evloop, struct netio_fd *watch, int fd, uint32_t events);

/** Change the events. Return: 0; -EINVAL; -ENOMEM. */
int netio_fd_modify(struct netio_fd *watch, uint32_t events);

/** cb does not run after this. Allowed inside cb, which may then free the watch, and before
 * netio_fini. Accepts a zeroed one. */
void netio_fd_fini(struct netio_fd *watch);

PLX_END_DECLS

#endif
