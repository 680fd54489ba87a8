/* SPDX-License-Identifier: BSD-3-Clause */
/* A timer of 10 ms on an lcore whose callbacks take long: how late it is. A shared host takes the
 * CPU away: ticks after that do not count. */
#ifndef ON_TIME_H
#define ON_TIME_H

#include "plx_lcore.h"
#include "plx_test.h"

#include <time.h>

#define ON_TIME_PERIOD_NS (10 * PLX_NS_PER_MS)
#define ON_TIME_AWAY_NS   PLX_NS_PER_MS

struct on_time {
	struct plx_timer timer;
	uint64_t allowed_ns, due_ns, latest_ns;
	uint64_t looked_ns, looked_cpu_ns; /* the last look at both clocks before it was due */
	unsigned ticks, late, away;
};

static inline uint64_t on_time_cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * PLX_NS_PER_S + (uint64_t)ts.tv_nsec;
}

/* In each long callback, when it begins. */
static inline void on_time_look(struct on_time *it, uint64_t now_ns)
{
	if (now_ns >= it->due_ns)
		return;
	it->looked_ns = now_ns;
	it->looked_cpu_ns = on_time_cpu_ns(); /* later: a pause between them counts */
}

static inline void on_time_again(struct on_time *it)
{
	it->due_ns = plx_loop_now_ns() + ON_TIME_PERIOD_NS;
	on_time_look(it, plx_now_ns());
	assert_works(plx_timer_start(&it->timer, ON_TIME_PERIOD_NS));
}

static inline void on_time_tick(struct plx_timer *timer, void *arg)
{
	struct on_time *it = arg;
	uint64_t now_ns = plx_now_ns(), late_ns = plx_time_since(it->due_ns, now_ns);
	uint64_t away_ns = plx_time_since(on_time_cpu_ns() - it->looked_cpu_ns,
					  now_ns - it->looked_ns);

	if (away_ns > ON_TIME_AWAY_NS) {
		it->away++;
	} else {
		it->ticks++;
		late_ns = plx_time_since(away_ns, late_ns);
		it->late += late_ns > it->allowed_ns;
		it->latest_ns = late_ns > it->latest_ns ? late_ns : it->latest_ns;
	}
	on_time_again(it);
}

static inline void on_time_start(struct on_time *it, uint64_t allowed_ns)
{
	*it = (struct on_time){.allowed_ns = allowed_ns};
	plx_timer_init(&it->timer, on_time_tick, it);
	on_time_again(it);
}

#endif
