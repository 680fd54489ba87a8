/* SPDX-License-Identifier: BSD-3-Clause */
/* Signals, timers and descriptors of a loop. */
#include "netio_priv.h"

#define CALLS_TURN_MAX 64 /* per signal; the rest runs in the next turn */

/* Also if a C++ callback throws. A backlog fires the signal again to get another turn. */
static void stop_calling(struct netio_signal **called)
{
	struct netio_signal *signal = *called;

	if (!signal)
		return;
	signal->called = NULL;
	if (signal->backlog > 0)
		plx_signal_fire(&signal->fired);
}

static void call(void *arg, uint64_t fires)
{
	struct netio_signal *signal = arg;
	const struct netio_eventloop *evloop = signal->evloop;
	struct netio_signal *called PLX_CLEANUP(stop_calling) = signal;

	signal->called = &called;
	signal->backlog += fires - (signal->backlog > 0); /* the fire for a backlog is no call */
	for (unsigned i = 0; i < CALLS_TURN_MAX && called && signal->backlog > 0; i++) {
		if (plx_atomic_load(&evloop->running, PLX_RELAXED) &&
		    plx_atomic_load(&evloop->terminated, PLX_RELAXED))
			break;
		signal->backlog--;
		if (signal->cb)
			signal->cb(signal->data);
	}
}

static void on_fired(struct plx_signal *fired, uint64_t fires, void *arg)
{
	const struct netio_signal *signal = arg;

	if (!signal->evloop->quiet)
		call(arg, fires);
}

int netio_signal_init(struct netio_eventloop *evloop, struct netio_signal *signal)
{
	*signal = (struct netio_signal){.evloop = evloop};
	if (!evloop->ready)
		return netio_check(evloop, "netio_signal_init");
	netio_exit_uses(evloop, signal);
	return netio_logged(plx_signal_init(&signal->fired, evloop->lcore_id, on_fired, signal));
}

void netio_signal_fire(struct netio_signal *signal)
{
	plx_signal_fire(&signal->fired);
}

void netio_signal_fini(struct netio_signal *signal)
{
	if (signal->called)
		*signal->called = NULL;
	signal->called = NULL;
	plx_signal_fini(&signal->fired);
	signal->evloop = NULL;
}

static void on_expired(struct plx_timer *expired, void *arg)
{
	struct netio_timer *timer = arg;

	if (timer->cb && !timer->evloop->quiet)
		timer->cb(timer->data);
}

int netio_timer_init(struct netio_eventloop *evloop, struct netio_timer *timer)
{
	*timer = (struct netio_timer){.evloop = evloop};
	plx_timer_init(&timer->timer, on_expired, timer);
	if (!evloop->ready)
		return netio_check(evloop, "netio_timer_init");
	netio_exit_uses(evloop, timer);
	return 0;
}

static int start(struct netio_timer *timer, unsigned long long count, uint64_t unit_ns)
{
	uint64_t period_ns;
	int rc = netio_check(timer->evloop, "netio_timer_start");

	if (rc)
		return rc;
	if (count == 0)
		return netio_fail(EINVAL, "netio_timer_start: a period of 0; give at least "
					  "1, or stop it with netio_timer_stop");
	period_ns = count > UINT64_MAX / unit_ns ? UINT64_MAX : count * unit_ns;
	return netio_logged(plx_timer_start_periodic(&timer->timer, period_ns));
}

int netio_timer_start_s(struct netio_timer *timer, unsigned long long seconds)
{
	return start(timer, seconds, PLX_NS_PER_S);
}

int netio_timer_start_ms(struct netio_timer *timer, unsigned long long milliseconds)
{
	return start(timer, milliseconds, PLX_NS_PER_MS);
}

int netio_timer_start_us(struct netio_timer *timer, unsigned long long microseconds)
{
	return start(timer, microseconds, PLX_NS_PER_US);
}

int netio_timer_start_ns(struct netio_timer *timer, unsigned long long nanoseconds)
{
	return start(timer, nanoseconds, 1);
}

void netio_timer_stop(struct netio_timer *timer)
{
	plx_timer_stop(&timer->timer);
}

static void on_events(int fd, uint32_t events, void *arg)
{
	struct netio_fd *watch = arg;

	if (watch->cb && !watch->evloop->quiet)
		watch->cb(fd, events, watch->data);
}

int netio_fd_init(struct netio_eventloop *evloop, struct netio_fd *watch, int fd, uint32_t events)
{
	int rc = netio_check(evloop, "netio_fd_init");

	watch->watch = NULL;
	watch->evloop = evloop;
	if (rc)
		return rc;
	netio_exit_uses(evloop, watch);
	return netio_logged(plx_fd_add(fd, events, on_events, watch, &watch->watch));
}

int netio_fd_modify(struct netio_fd *watch, uint32_t events)
{
	if (!watch->watch)
		return netio_fail(EINVAL, "netio_fd_modify: not watched; call "
					  "netio_fd_init first");
	return netio_logged(plx_fd_modify(watch->watch, events));
}

void netio_fd_fini(struct netio_fd *watch)
{
	plx_fd_remove(watch->watch);
	watch->watch = NULL;
}
