/* SPDX-License-Identifier: BSD-3-Clause */
/* The timer wheel, with time set by the test. */
#include "dice.h"
#include "lcore_priv.h"
#include "plx_test.h"

#define TICK     (UINT64_C(1) << WHEEL_TICK_SHIFT)
#define DAY      (86400 * PLX_NS_PER_S)
#define TURN_MAX (WHEEL_FIRED_MAX + (WHEEL_LEVELS - 1) * WHEEL_MOVED_MAX)

static struct plx_timer_wheel wheel;
static uint64_t now;

static struct plx_timer *last_fired;
static unsigned fired_count;

static void note(struct plx_timer *timer, void *arg)
{
	assert_true(timer->expiry_ns <= now || timer->period_ns);
	last_fired = timer;
	fired_count++;
}

static int set_up(void **state)
{
	now = 1000 * PLX_NS_PER_S + 77;
	fired_count = 0;
	wheel_init(&wheel, now);
	return 0;
}

static void start(struct plx_timer *timer, uint64_t delay_ns)
{
	if (!timer->fn)
		plx_timer_init(timer, note, NULL);
	wheel_start(&wheel, timer, now, now + delay_ns);
}

static void start_periodic(struct plx_timer *timer, uint64_t period_ns)
{
	plx_timer_init(timer, note, NULL);
	timer->period_ns = period_ns;
	start(timer, period_ns);
}

/* Turns at that time, as a loop makes them, until there is nothing left to do. */
static void turns_at(uint64_t to)
{
	now = to;
	while (now >= wheel.next_ns)
		wheel_expire(&wheel, now);
}

/* The same; `count` timers have fired. */
static void turns_fire(uint64_t to, unsigned count)
{
	turns_at(to);
	assert_int_equal(fired_count, count);
}

#define TEST(name) PLX_TEST_WITH(name, set_up, NULL)

#define TURN_NS    (10 * PLX_NS_PER_US)
#define MANY       200000
#define LATE_TURNS 10

static unsigned many_fired, ticks_fired;
static uint64_t latest_ns;

static void fire_one_of_many(struct plx_timer *timer, void *arg)
{
	assert_true(timer->expiry_ns <= now);
	many_fired++;
}

static void fire_each_ms(struct plx_timer *timer, void *arg)
{
	uint64_t late_ns = now - timer->expiry_ns;

	latest_ns = late_ns > latest_ns ? late_ns : latest_ns;
	ticks_fired++;
	start(timer, PLX_NS_PER_MS);
}

/* It is restarted constantly, so also where the crowd's slots begin. */
TEST(a_crowd_of_long_timers_does_not_delay_a_short_one)
{
	struct plx_timer *many = calloc(MANY, sizeof(*many));
	struct plx_timer each_ms;
	uint64_t begin = now;

	assert_non_null(many);
	many_fired = ticks_fired = 0;
	latest_ns = 0;
	for (unsigned i = 0; i < MANY; i++) {
		plx_timer_init(&many[i], fire_one_of_many, NULL);
		start(&many[i], 20 * PLX_NS_PER_S + i * (17 * PLX_NS_PER_S / MANY));
	}
	plx_timer_init(&each_ms, fire_each_ms, NULL);
	start(&each_ms, PLX_NS_PER_MS);
	while (now < begin + 38 * PLX_NS_PER_S) {
		now = wheel.next_ns > now + TURN_NS ? wheel.next_ns : now + TURN_NS;
		assert_in_range(wheel_expire(&wheel, now), 0, TURN_MAX); /* bounded */
	}
	assert_int_equal(many_fired, MANY);
	assert_in_range(ticks_fired, 30000, 38000);
	assert_in_range(latest_ns, 0, LATE_TURNS * TURN_NS);
	wheel_fini(&wheel);
	free(many);
}

static void free_itself(struct plx_timer *timer, void *arg)
{
	fired_count++;
	plx_timer_stop(timer);
	free(timer);
}

TEST(a_timer_may_be_freed_in_its_function)
{
	for (int periodic = 0; periodic < 2; periodic++) {
		struct plx_timer *timer = malloc(sizeof(*timer));

		plx_timer_init(timer, free_itself, NULL);
		timer->period_ns = periodic ? TICK : 0;
		start(timer, TICK);
		turns_fire(now + 10 * TICK, periodic + 1);
		assert_true(wheel.next_ns == UINT64_MAX);
	}
}

TEST(missed_periods_are_skipped)
{
	struct plx_timer timer;
	uint64_t begin = now;

	start_periodic(&timer, 10 * TICK);
	turns_fire(begin + 10 * DAY + 3 * TICK, 1);
	/* In the old rhythm. */
	assert_int_equal((timer.expiry_ns - begin) % (10 * TICK), 0);
	assert_in_range(timer.expiry_ns, now, now + 10 * TICK);

	/* The shortest period fires once per tick, not endlessly. */
	timer.period_ns = 1;
	start(&timer, 1);
	fired_count = 0;
	turns_fire(now + 50 * TICK, 1);
	turns_fire(now + TICK, 2);
	plx_timer_stop(&timer);
}

TEST(far_expiry_times_do_not_wrap)
{
	struct plx_timer timer = {0}, near = {0};

	plx_timer_init(&timer, note, NULL);
	wheel_start(&wheel, &timer, now, UINT64_MAX);
	start(&near, DAY);
	turns_fire(now + 100000 * DAY, 1);
	assert_ptr_equal(last_fired, &near);
	wheel_fini(&wheel);
	assert_false(plx_timer_running(&timer));
}

static uint64_t due_ns(void)
{
	return wheel_due(&wheel).next_ns;
}

static uint64_t exact_ns(void)
{
	return wheel_due(&wheel).exact_ns;
}

/* A sleeping lcore wakes for timers that fire, not for moves between levels. */
TEST(the_next_expiry_is_known_and_the_next_that_must_not_be_late)
{
	static const uint64_t delays[] = {1, 65 * TICK, PLX_NS_PER_S / 10, 3 * DAY};
	struct plx_timer timers[4] = {0};

	assert_true(due_ns() == UINT64_MAX);
	for (unsigned i = 4; i-- > 0;) {
		uint64_t due = now + delays[i];

		start(&timers[i], delays[i]);
		assert_in_range(due_ns(), due, due + TICK - 1);
		assert_in_range(exact_ns(), due, due + TICK - 1);
	}
	for (unsigned i = 0; i < 3; i++) {
		uint64_t due = now + delays[i + 1];

		plx_timer_set_lax(&timers[i], true);
		assert_in_range(exact_ns(), due, due + TICK - 1);
		assert_in_range(due_ns(), now + 1, now + TICK);
	}
	wheel_fini(&wheel);
}

/* Random starts, moves, stops and time jumps, also in functions of timers, compared with a model
 * that only keeps a list. ---------------------------------------------------------------------- */

#define MODEL_TIMERS 200
#define FEW          WHEEL_MOVED_MAX /* no slot is crowded */

struct model {
	struct plx_timer timer;
	bool running;
	uint64_t tick; /* when it must fire */
	uint64_t sequence;
};

static struct model models[MODEL_TIMERS];
static unsigned model_count;
static uint64_t model_sequence;
static uint64_t random_state;

static uint64_t random_below(uint64_t n)
{
	return dice_next(&random_state) % n;
}

/* Mostly short, sometimes up to months. */
static uint64_t random_time(void)
{
	return random_below(UINT64_C(1) << (1 + random_below(53)));
}

static struct model *model_next(void)
{
	struct model *next = NULL;

	for (unsigned i = 0; i < model_count; i++) {
		struct model *m = &models[i];

		if (!m->running || m->tick > now / TICK)
			continue;
		if (!next || m->tick < next->tick ||
		    (m->tick == next->tick && m->sequence < next->sequence))
			next = m;
	}
	return next;
}

static uint64_t model_due_ns(bool lax_too)
{
	uint64_t due_ns = UINT64_MAX;

	for (unsigned i = 0; i < model_count; i++)
		if (models[i].running && models[i].tick * TICK < due_ns &&
		    (lax_too || !models[i].timer.lax))
			due_ns = models[i].tick * TICK;
	return due_ns;
}

static void model_start(struct model *m)
{
	uint64_t delay = random_time();

	m->running = true;
	m->sequence = model_sequence++;
	m->tick = (now + delay + TICK - 1) / TICK;
	if (m->tick <= now / TICK)
		m->tick = now / TICK + 1;
	wheel_start(&wheel, &m->timer, now, now + delay);
}

static void model_stop(struct model *m)
{
	m->running = false;
	plx_timer_stop(&m->timer);
}

static void model_fired(struct plx_timer *timer, void *arg)
{
	struct model *m = arg;

	assert_true(m->running && m->tick <= now / TICK);
	if (model_count <= FEW)
		assert_ptr_equal(m, model_next());
	m->running = false;
	fired_count++;
	switch (random_below(4)) {
	case 0:
		model_start(m);
		break;
	case 1:
		model_stop(&models[random_below(model_count)]);
		break;
	case 2:
		model_start(&models[random_below(model_count)]);
		break;
	}
}

static void behave_like_a_list(unsigned count)
{
	model_count = count;
	for (random_state = 1; random_state < 20; random_state++) {
		uint64_t seed = random_state;

		now = random_time();
		fired_count = 0;
		wheel_init(&wheel, now);
		for (unsigned i = 0; i < model_count; i++) {
			plx_timer_init(&models[i].timer, model_fired, &models[i]);
			plx_timer_set_lax(&models[i].timer, i % 3 == 0);
			models[i].running = false;
		}
		for (unsigned step = 0; step < 3000; step++) {
			struct model *m = &models[random_below(model_count)];

			if (random_below(3))
				model_start(m);
			else
				model_stop(m);
			if (random_below(2))
				turns_at(now + random_time() / (1 + random_below(1000)));
			assert_null(model_next());
			assert_true(due_ns() <= model_due_ns(true));
			assert_true(exact_ns() <= model_due_ns(false));
			assert_true(exact_ns() >= due_ns());
			assert_int_equal(m->running, plx_timer_running(&m->timer));
		}
		assert_true(fired_count > 1000);
		wheel_fini(&wheel);
		for (unsigned i = 0; i < model_count; i++)
			assert_false(plx_timer_running(&models[i].timer));
		random_state = seed;
	}
}

PLX_TEST(timers_behave_like_a_sorted_list)
{
	behave_like_a_list(FEW);
}

PLX_TEST(all_due_timers_of_crowded_slots_fire)
{
	behave_like_a_list(MODEL_TIMERS);
}

PLX_TEST(a_timer_needs_an_lcore_and_a_function)
{
	struct plx_timer timer = {0};

	assert_fails(plx_timer_start(&timer, 1), -ENOENT,
		     "plx_timer_start: Pollux is not up; call plx_eal_init or plx_app_start first");
	assert_fails(plx_timer_start_periodic(&timer, 0), -EINVAL, "period_ns 0; it is at least 1");
}

PLX_TEST_MAIN()
