/* SPDX-License-Identifier: BSD-3-Clause */
/* A hierarchical timing wheel: scheme 7 of G. Varghese and T. Lauck, "Hashed and Hierarchical
 * Timing Wheels", SOSP 1987.
 *
 * A tick is 1.024 us. A timer is on the lowest level where its expiry is less than 64 slots ahead.
 * So a timer that is due soon is on a low level, however many are on higher ones, and all timers of
 * a slot belong to one round. When time reaches a slot of a higher level, its timers move to lower
 * levels. A slot of level 0 is one tick, and its timers fire.
 *
 * In a turn each level moves a bounded number of timers. Larger slots are finished in later turns;
 * until then, slots within their time overtake them. All other slots are served in the order of
 * time. Of two timers with the same tick, the one on the higher level was started first, so moved
 * timers go before those that were started in the slot. */
#include "lcore_priv.h"

#include <string.h>

#define TICK_MAX (UINT64_MAX >> WHEEL_TICK_SHIFT)

static_assert(WHEEL_LEVELS * WHEEL_SLOT_BITS + WHEEL_TICK_SHIFT == 64, "a slot for every time");

static unsigned shift_of(unsigned level)
{
	return level * WHEEL_SLOT_BITS;
}

/* Slots of the level from the current one to that of `tick`, which must not be earlier. */
static uint64_t slots_ahead(const struct plx_timer_wheel *wheel, unsigned level, uint64_t tick)
{
	return (tick >> shift_of(level)) - (wheel->tick >> shift_of(level));
}

/* A late timer from a crowded slot belongs to the current tick. */
static uint32_t slot_of(const struct plx_timer_wheel *wheel, uint64_t tick)
{
	uint64_t at = tick > wheel->tick ? tick : wheel->tick;
	/* If d is the highest digit that differs, less than 64 slots are between on level d, and
	 * possibly on level d - 1. */
	unsigned level = (63 - (unsigned)__builtin_clzll((at ^ wheel->tick) | 1)) / WHEEL_SLOT_BITS;

	while (level && slots_ahead(wheel, level - 1, at) < WHEEL_SLOTS)
		level--;
	return level * WHEEL_SLOTS + (at >> shift_of(level)) % WHEEL_SLOTS;
}

/* The first tick of a slot that has timers. */
static uint64_t slot_tick(const struct plx_timer_wheel *wheel, uint32_t number)
{
	unsigned shift = shift_of(number / WHEEL_SLOTS);
	uint64_t present = wheel->tick >> shift;

	return (present + (number - present) % WHEEL_SLOTS) << shift;
}

/* The first slot of a level that has timers. */
static uint32_t first_slot(const struct plx_timer_wheel *wheel, unsigned level)
{
	unsigned present = (wheel->tick >> shift_of(level)) % WHEEL_SLOTS;
	uint64_t occupied = wheel->occupied[level];
	uint64_t ahead = occupied >> present | occupied << (WHEEL_SLOTS - present) % WHEEL_SLOTS;

	return level * WHEEL_SLOTS + (present + (unsigned)__builtin_ctzll(ahead)) % WHEEL_SLOTS;
}

/* moved: from a higher level, so before the timers that were started on this one. */
static void link_timer(struct plx_timer_wheel *wheel, struct plx_timer *timer, bool moved)
{
	uint32_t number = slot_of(wheel, timer->expiry_tick);
	struct wheel_slot *slot = &wheel->slots[number];
	struct plx_timer **at = moved ? slot->moved_next : slot->last_next;

	timer->slot = number;
	timer->wheel = wheel;
	timer->next = *at;
	timer->prev_next = at;
	*at = timer;
	if (timer->next)
		timer->next->prev_next = &timer->next;
	else
		slot->last_next = &timer->next;
	if (moved)
		slot->moved_next = &timer->next;
	wheel->occupied[number / WHEEL_SLOTS] |= UINT64_C(1) << number % WHEEL_SLOTS;
	wheel->levels |= 1u << number / WHEEL_SLOTS;
}

static void unlink_timer(struct plx_timer *timer)
{
	struct plx_timer_wheel *wheel = timer->wheel;
	struct wheel_slot *slot = &wheel->slots[timer->slot];
	unsigned level = timer->slot / WHEEL_SLOTS;

	assert(plx_timer_running(timer));
	*timer->prev_next = timer->next;
	if (timer->next)
		timer->next->prev_next = timer->prev_next;
	else
		slot->last_next = timer->prev_next;
	if (slot->moved_next == &timer->next)
		slot->moved_next = timer->prev_next;
	timer->prev_next = NULL;
	if (slot->first)
		return;
	/* Time does not leave a slot that was begun: it is the current one of its level. */
	if (slot_tick(wheel, timer->slot) <= wheel->tick)
		wheel->begun &= ~(1u << level);
	wheel->occupied[level] &= ~(UINT64_C(1) << timer->slot % WHEEL_SLOTS);
	if (!wheel->occupied[level])
		wheel->levels &= ~(1u << level);
}

/* Move the current time to `tick`. No slot may end before it, so all timers stay in place. */
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
		wheel->slots[i].last_next = wheel->slots[i].moved_next = &wheel->slots[i].first;
}

void wheel_fini(struct plx_timer_wheel *wheel)
{
	while (wheel->levels) {
		uint32_t number = first_slot(wheel, (unsigned)__builtin_ctz(wheel->levels));

		unlink_timer(wheel->slots[number].first);
	}
}

/* The first tick at or after ns, so that no timer is early; at least the next one, so that a timer
 * that restarts itself with delay 0 cannot keep a turn running. */
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
	/* Catch up first, while nothing is due: from an old tick the timer would be on a higher
	 * level than it needs, and be moved more often. */
	if (now_ns < wheel->next_ns)
		advance(wheel, now_ns >> WHEEL_TICK_SHIFT);
	timer->expiry_ns = expiry_ns;
	timer->expiry_tick = expiry_tick(wheel, now_ns, expiry_ns);
	link_timer(wheel, timer, false);

	uint64_t next_ns = slot_tick(wheel, timer->slot) << WHEEL_TICK_SHIFT;

	if (next_ns < wheel->next_ns)
		wheel->next_ns = next_ns;
}

/* The user owns the timer again before its fn runs, which may start, stop or free it. */
static void fire(struct plx_timer_wheel *wheel, struct plx_timer *timer, uint64_t now_ns)
{
	uint64_t period_ns = timer->period_ns;

	if (period_ns) {
		/* From the planned time, so that the period does not drift, but from now at the
		 * earliest: periods missed in a long turn are skipped. */
		uint64_t late_ns = plx_time_since(timer->expiry_ns, now_ns);
		uint64_t last_ns = timer->expiry_ns + late_ns / period_ns * period_ns;

		wheel_start(wheel, timer, now_ns, plx_time_add(last_ns, period_ns));
	}
	wheel->fired++;
	timer->fn(timer, timer->arg);
}

/* Fire the timers of a slot of level 0, or move those of a higher one to lower levels. One at a
 * time, because fn may stop any other. Return: their number. */
static unsigned serve_slot(struct plx_timer_wheel *wheel, uint32_t number, uint64_t now_ns,
			   unsigned max)
{
	struct wheel_slot *slot = &wheel->slots[number];
	unsigned level = number / WHEEL_SLOTS, done = 0;

	if (level)
		wheel->begun |= 1u << level;
	for (; slot->first && done < max; done++) {
		struct plx_timer *timer = slot->first;

		unlink_timer(timer);
		if (level)
			link_timer(wheel, timer, true);
		else
			fire(wheel, timer, now_ns);
	}
	return done;
}

/* Find the next slot, on levels that are not spent in this turn. Return: its first tick;
 * UINT64_MAX: none. */
static uint64_t next_slot(const struct plx_timer_wheel *wheel, uint32_t spent, uint32_t *number_out)
{
	uint64_t first = UINT64_MAX, limit = UINT64_MAX;

	for (uint32_t levels = wheel->levels; levels; levels &= levels - 1) {
		unsigned level = (unsigned)__builtin_ctz(levels);
		uint32_t number = first_slot(wheel, level);
		uint64_t tick = slot_tick(wheel, number);

		if (spent & 1u << level) {
			/* Slots within the time of a slot that was begun overtake it. */
			uint64_t end = wheel->begun & 1u << level
					     ? tick + (UINT64_C(1) << shift_of(level))
					     : tick;

			limit = end < limit ? end : limit;
		} else if (tick <= first) { /* of two, the higher level moves first */
			first = tick;
			*number_out = number;
		}
	}
	return first < limit ? first : UINT64_MAX;
}

static uint64_t ns_of(uint64_t tick)
{
	return tick == UINT64_MAX ? UINT64_MAX : tick << WHEEL_TICK_SHIFT;
}

unsigned wheel_expire(struct plx_timer_wheel *wheel, uint64_t now_ns)
{
	uint64_t now_tick = now_ns >> WHEEL_TICK_SHIFT, tick;
	unsigned left[] = {WHEEL_FIRED_MAX, [1 ... WHEEL_LEVELS - 1] = WHEEL_MOVED_MAX};
	uint32_t spent = 0, number = 0;
	unsigned done_in_all = 0;

	while ((tick = next_slot(wheel, spent, &number)) <= now_tick) {
		unsigned level = number / WHEEL_SLOTS, done;

		advance(wheel, tick);
		done = serve_slot(wheel, number, now_ns, left[level]);
		done_in_all += done;
		left[level] -= done;
		if (!left[level])
			spent |= 1u << level;
	}
	wheel->next_ns = ns_of(next_slot(wheel, 0, &number));
	if (now_ns < wheel->next_ns)
		advance(wheel, now_tick);
	return done_in_all;
}

/* Bounds cache misses on the way to sleep: timers to look at. */
#define DUE_LOOKS_MAX 8

/* Look at the timers of a slot that begins at start_ns. Return: whether all were looked at. */
static bool look_into(const struct plx_timer *first, uint64_t start_ns, struct due *due)
{
	for (const struct plx_timer *timer = first; timer; timer = timer->next) {
		bool enough = ++due->looks > DUE_LOOKS_MAX;
		uint64_t ns = enough ? start_ns : ns_of(timer->expiry_tick);

		due->next_ns = earlier(due->next_ns, ns);
		if (enough || !timer->lax)
			due->exact_ns = earlier(due->exact_ns, ns);
		if (enough)
			return false;
	}
	return true;
}

/* Slot by slot in the order of time, until none can have an earlier timer that is not lax. */
static void look_into_level(const struct plx_timer_wheel *wheel, unsigned level, struct due *due)
{
	uint32_t first = first_slot(wheel, level) % WHEEL_SLOTS;

	for (unsigned i = 0; i < WHEEL_SLOTS; i++) {
		unsigned slot = (first + i) % WHEEL_SLOTS;
		uint32_t number = level * WHEEL_SLOTS + slot;
		uint64_t ns;

		if (!(wheel->occupied[level] & UINT64_C(1) << slot))
			continue;
		ns = ns_of(slot_tick(wheel, number));
		if (ns >= due->exact_ns || !look_into(wheel->slots[number].first, ns, due))
			return;
	}
}

struct due wheel_due(const struct plx_timer_wheel *wheel)
{
	struct due due = {.next_ns = UINT64_MAX, .exact_ns = UINT64_MAX};

	if (wheel->begun) /* timers already moved may expire before those left */
		return (struct due){.next_ns = wheel->next_ns, .exact_ns = wheel->next_ns};
	for (uint32_t levels = wheel->levels; levels; levels &= levels - 1)
		look_into_level(wheel, (unsigned)__builtin_ctz(levels), &due);
	return due;
}

void plx_timer_init(struct plx_timer *timer, plx_timer_fn fn, void *arg)
{
	*timer = (struct plx_timer){.fn = fn, .arg = arg};
}

void plx_timer_set_lax(struct plx_timer *timer, bool lax)
{
	if (plx_timer_running(timer))
		ASSERT_OWNER(timer->wheel->lcore_id);
	timer->lax = lax;
}

/* Between turns the counter may have stepped: a timer from a time ahead would be late. */
static PLX_NOINLINE uint64_t between_turns_ns(const struct loop *loop)
{
	uint64_t now_ns = plx_now_ns();

	if (now_ns >= loop->now_ns && now_ns - loop->now_ns < LOOP_LONG_NS)
		return now_ns;
	plx_clock_look(true);
	return plx_now_ns();
}

static inline PLX_ALWAYS_INLINE int start(const char *what, struct plx_timer *timer,
					  uint64_t delay_ns, uint64_t period_ns)
{
	uint64_t now_ns;

	if (!loop_self)
		return plx_fail_no_lcore(what);
	now_ns = plx_likely(loop_self->entered) ? loop_self->now_ns : between_turns_ns(loop_self);
	ASSERT_OWNER_IF(!plx_timer_running(timer) || timer->wheel == &loop_self->wheel, what,
			timer->wheel->lcore_id);
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
	if (!plx_timer_running(timer))
		return;
	ASSERT_OWNER(timer->wheel->lcore_id);
	unlink_timer(timer);
}
