/* SPDX-License-Identifier: BSD-3-Clause */
/* A hierarchical timing wheel: scheme 7 of G. Varghese and T. Lauck, "Hashed and Hierarchical
 * Timing Wheels", SOSP 1987.
 *
 * A tick is 1.024 us. A timer lies on the level of the highest 6-bit digit in which its tick
 * differs from the wheel's, in the slot of that digit's value. So all timers of a level come before
 * those of a higher one, no slot is behind the wheel, and the first slot of the lowest level that
 * has any is the next to look at: two bit scans. When time reaches a slot of a higher level, its
 * timers move to lower ones; a slot of level 0 is one tick, and its timers fire.
 * Timers of one tick are always in one slot, in the order in which they were started. */
#include "lcore_priv.h"

#include <string.h>

#define TICK_MAX (UINT64_MAX >> WHEEL_TICK_SHIFT)

static_assert(WHEEL_LEVELS * WHEEL_SLOT_BITS + WHEEL_TICK_SHIFT == 64, "a slot for every time");

static uint32_t slot_of(const struct plx_timer_wheel *wheel, uint64_t tick)
{
	uint64_t differs = (tick ^ wheel->tick) | 1;
	unsigned level = (63 - (unsigned)__builtin_clzll(differs)) / WHEEL_SLOT_BITS;

	return level * WHEEL_SLOTS + (tick >> level * WHEEL_SLOT_BITS) % WHEEL_SLOTS;
}

/* The tick at which something is to be done for a timer that is linked. */
static uint64_t slot_tick(const struct plx_timer *timer)
{
	unsigned shift = timer->slot / WHEEL_SLOTS * WHEEL_SLOT_BITS;

	return timer->expiry_tick >> shift << shift;
}

static void link_timer(struct plx_timer_wheel *wheel, struct plx_timer *timer)
{
	uint32_t number = slot_of(wheel, timer->expiry_tick);
	struct wheel_slot *slot = &wheel->slots[number];

	timer->slot = number;
	timer->wheel = wheel;
	timer->next = NULL;
	timer->prev_next = slot->last_next;
	*slot->last_next = timer;
	slot->last_next = &timer->next;
	wheel->occupied[number / WHEEL_SLOTS] |= UINT64_C(1) << number % WHEEL_SLOTS;
	wheel->levels |= 1u << number / WHEEL_SLOTS;
}

static void unlink_timer(struct plx_timer *timer)
{
	struct plx_timer_wheel *wheel = timer->wheel;
	struct wheel_slot *slot = &wheel->slots[timer->slot];
	uint64_t *occupied = &wheel->occupied[timer->slot / WHEEL_SLOTS];

	assert(plx_timer_running(timer));
	*timer->prev_next = timer->next;
	if (timer->next)
		timer->next->prev_next = timer->prev_next;
	else
		slot->last_next = timer->prev_next;
	timer->prev_next = NULL;
	if (slot->first)
		return;
	if (timer->slot == wheel->cascading)
		wheel->cascading = 0;
	*occupied &= ~(UINT64_C(1) << timer->slot % WHEEL_SLOTS);
	if (!*occupied)
		wheel->levels &= ~(1u << timer->slot / WHEEL_SLOTS);
}

/* The first timer of the slot to look at next: of the one that is being emptied, else of the first
 * one of the lowest level. NULL if there is none. */
static struct plx_timer *first_timer(const struct plx_timer_wheel *wheel)
{
	if (wheel->cascading)
		return wheel->slots[wheel->cascading].first;
	if (!wheel->levels)
		return NULL;

	unsigned level = (unsigned)__builtin_ctz(wheel->levels);
	unsigned slot = (unsigned)__builtin_ctzll(wheel->occupied[level]);

	return wheel->slots[level * WHEEL_SLOTS + slot].first;
}

/* Time has come to `tick`, and no slot lies before it: that leaves every timer where it is. */
static void advance(struct plx_timer_wheel *wheel, uint64_t tick)
{
	if (tick > wheel->tick)
		wheel->tick = tick;
}

void wheel_init(struct plx_timer_wheel *wheel, uint64_t now_ns)
{
	memset(wheel, 0, sizeof(*wheel));
	wheel->next_ns = UINT64_MAX;
	wheel->tick = now_ns >> WHEEL_TICK_SHIFT;
	for (uint32_t i = 0; i < PLX_ARRAY_LEN(wheel->slots); i++)
		wheel->slots[i].last_next = &wheel->slots[i].first;
}

void wheel_fini(struct plx_timer_wheel *wheel)
{
	struct plx_timer *timer;

	while ((timer = first_timer(wheel)))
		unlink_timer(timer);
}

/* The tick that contains or follows ns: a timer is never early. The present one is over for new
 * timers: one that starts itself again with no delay cannot keep a turn busy for ever. */
static uint64_t expiry_tick(const struct plx_timer_wheel *wheel, uint64_t now_ns, uint64_t ns)
{
	uint64_t tick = (ns >> WHEEL_TICK_SHIFT) + (ns % (1u << WHEEL_TICK_SHIFT) != 0);
	uint64_t present = now_ns >> WHEEL_TICK_SHIFT;

	if (present < wheel->tick)
		present = wheel->tick;
	if (tick <= present)
		tick = present + 1;
	return tick < TICK_MAX ? tick : TICK_MAX;
}

void wheel_start(struct plx_timer_wheel *wheel, struct plx_timer *timer, uint64_t now_ns,
		 uint64_t expiry_ns)
{
	assert(!plx_timer_running(timer) || timer->wheel == wheel);
	plx_timer_stop(timer);
	/* Catch up first, while nothing is due: from an old tick the timer would be put on a higher
	 * level than it needs, and be moved more often. */
	if (now_ns < wheel->next_ns)
		advance(wheel, now_ns >> WHEEL_TICK_SHIFT);
	timer->expiry_ns = expiry_ns;
	timer->expiry_tick = expiry_tick(wheel, now_ns, expiry_ns);
	link_timer(wheel, timer);

	uint64_t next_ns = slot_tick(timer) << WHEEL_TICK_SHIFT;

	if (next_ns < wheel->next_ns)
		wheel->next_ns = next_ns;
}

/* From the time it should have fired on, so that it does not drift; not before now, so that what a
 * long turn missed is not made up for. */
static void start_next_period(struct plx_timer_wheel *wheel, struct plx_timer *timer,
			      uint64_t now_ns)
{
	uint64_t missed = (now_ns - timer->expiry_ns) / timer->period_ns * timer->period_ns;

	wheel_start(wheel, timer, now_ns,
		    plx_time_add(timer->expiry_ns + missed, timer->period_ns));
}

/* The timer is its user's again before fn runs, which may start it, stop it, or free it. */
static void fire(struct plx_timer_wheel *wheel, struct plx_timer *timer, uint64_t now_ns)
{
	if (timer->period_ns)
		start_next_period(wheel, timer, now_ns);
	wheel->fired++;
	timer->fn(timer, timer->arg);
}

/* A slot that was begun is emptied before anything else is looked at, even over several turns: its
 * timers may come before those that are on lower levels by then. */
static void cascade(struct plx_timer_wheel *wheel, struct plx_timer *timer)
{
	uint32_t from = timer->slot;

	link_timer(wheel, timer);
	wheel->cascading = wheel->slots[from].first ? from : 0;
}

unsigned wheel_expire(struct plx_timer_wheel *wheel, uint64_t now_ns)
{
	uint64_t now_tick = now_ns >> WHEEL_TICK_SHIFT;
	struct plx_timer *timer;
	unsigned done = 0;

	/* One at a time, since fn may stop any other one. */
	while ((timer = first_timer(wheel)) && slot_tick(timer) <= now_tick &&
	       done < WHEEL_TURN_MAX) {
		advance(wheel, slot_tick(timer));
		unlink_timer(timer);
		if (timer->slot < WHEEL_SLOTS)
			fire(wheel, timer, now_ns);
		else
			cascade(wheel, timer);
		done++;
	}
	wheel->next_ns = timer ? slot_tick(timer) << WHEEL_TICK_SHIFT : UINT64_MAX;
	if (now_ns < wheel->next_ns)
		advance(wheel, now_tick);
	return done;
}

/* Timers that are looked at: each may be a cache miss, on the way to a sleep. */
#define DUE_LOOKS_MAX 8

struct due_ticks {
	uint64_t next, exact; /* UINT64_MAX: none */
	unsigned looks;
};

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* What lies in a slot. Return: whether it was looked at to its end. */
static bool look_into(const struct plx_timer *first, struct due_ticks *due)
{
	for (const struct plx_timer *timer = first; timer; timer = timer->next) {
		if (++due->looks > DUE_LOOKS_MAX) {
			due->next = earlier(due->next, slot_tick(first));
			due->exact = earlier(due->exact, slot_tick(first));
			return false;
		}
		due->next = earlier(due->next, timer->expiry_tick);
		if (!timer->lax)
			due->exact = earlier(due->exact, timer->expiry_tick);
	}
	return true;
}

static uint64_t ns_of(uint64_t tick)
{
	return tick == UINT64_MAX ? UINT64_MAX : tick << WHEEL_TICK_SHIFT;
}

struct due wheel_due(const struct plx_timer_wheel *wheel)
{
	struct due_ticks due = {UINT64_MAX, UINT64_MAX, 0};
	bool goes_on = true;

	if (wheel->cascading) /* what it has moved may come before what is left */
		return (struct due){wheel->next_ns, wheel->next_ns};
	/* Slot by slot, in the order of time, until one has a timer that is not lax. */
	for (uint32_t levels = wheel->levels; levels && goes_on; levels &= levels - 1) {
		unsigned level = (unsigned)__builtin_ctz(levels);

		for (uint64_t slots = wheel->occupied[level]; slots && goes_on;
		     slots &= slots - 1) {
			unsigned slot = (unsigned)__builtin_ctzll(slots);

			goes_on = look_into(wheel->slots[level * WHEEL_SLOTS + slot].first, &due) &&
				  due.exact == UINT64_MAX;
		}
	}
	return (struct due){ns_of(due.next), ns_of(due.exact)};
}

void plx_timer_init(struct plx_timer *timer, plx_timer_fn fn, void *arg)
{
	*timer = (struct plx_timer){.fn = fn, .arg = arg};
}

void plx_timer_set_lax(struct plx_timer *timer, bool lax)
{
	timer->lax = lax;
}

static int start(const char *what, struct plx_timer *timer, uint64_t delay_ns, uint64_t period_ns)
{
	uint64_t now_ns = plx_loop_now_ns();

	if (!loop_self)
		return plx_fail_no_lcore(what);
	if (!timer->fn)
		return plx_fail(EINVAL, "%s: the timer has no function; call plx_timer_init first",
				what);
	timer->period_ns = period_ns;
	wheel_start(&loop_self->wheel, timer, now_ns, plx_time_add(now_ns, delay_ns));
	return 0;
}

int plx_timer_start(struct plx_timer *timer, uint64_t delay_ns)
{
	return start("plx_timer_start", timer, delay_ns, 0);
}

int plx_timer_start_periodic(struct plx_timer *timer, uint64_t period_ns)
{
	if (!period_ns)
		return plx_fail(EINVAL, "plx_timer_start_periodic: period_ns 0; it is at least 1");
	return start("plx_timer_start_periodic", timer, period_ns, period_ns);
}

void plx_timer_stop(struct plx_timer *timer)
{
	if (plx_timer_running(timer))
		unlink_timer(timer);
}
