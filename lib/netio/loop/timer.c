/* SPDX-License-Identifier: BSD-3-Clause */
#include "netio_priv.h"

static void on_expired(struct plx_timer *expired, void *arg)
{
	struct netio_timer *timer = arg;

	if (timer->cb)
		timer->cb(timer->data);
}

int netio_timer_init(struct netio_eventloop *evloop, struct netio_timer *timer)
{
	*timer = (struct netio_timer){.evloop = evloop};
	plx_timer_init(&timer->timer, on_expired, timer);
	return evloop->ready ? 0 : netio_check(evloop, "netio_timer_init");
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
	rc = plx_timer_start_periodic(&timer->timer, period_ns);
	return netio_logged(rc);
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
